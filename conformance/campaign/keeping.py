"""The folder of a campaign: room for a new one, and what its first round begins with."""

import shutil
from pathlib import Path

import reports
from conformance.campaign import ledger, snapshots
from conformance.campaign.corpus import Damaged, Snapshot
from conformance.campaign.manifest import NAME, Manifest, Unfit
from conformance.campaign.snapshots import Lost, save, shelf
from conformance.core.ledger import NAME as TOLD


def free(out: Path) -> None:
    """Is there no campaign that was cut off, and would be lost? Errors: ``Unfit``."""
    if (out / NAME).exists() and not (found := Manifest.read(out)).complete:
        why = f"{out} holds a campaign that is not at its end ({found.stopped_by})"
        raise Unfit(f"{why}: --resume {out}, or another --out")


def cleared(out: Path) -> None:
    """Room for a new campaign. Errors: OSError."""
    (out / NAME).unlink(missing_ok=True)
    for name in (ledger.NAME, snapshots.NAME, "failures"):
        shutil.rmtree(out / name, ignore_errors=True)
    out.mkdir(parents=True, exist_ok=True)
    reports.forget(out)
    (out / TOLD).unlink(missing_ok=True)


def begun_with(folder: Path | None) -> Snapshot:
    """The newest corpus of an earlier campaign. Errors: ``Unfit``; OSError."""
    if folder is None:
        return Snapshot.empty()
    try:
        return shelf(folder).latest()
    except (LookupError, Lost) as missing:
        raise Unfit(f"no corpus to begin with: {missing}") from None


def first(out: Path, digest: str) -> Snapshot:
    """What the first round begins with. Errors: ``Unfit``."""
    if not digest:
        return Snapshot.empty()
    path = snapshots.place(out, digest)
    try:
        return Snapshot.load(path.read_bytes())
    except (OSError, Damaged) as wrong:
        raise Unfit(f"what the campaign began with cannot be read: {path}: {wrong}") from None


__all__ = ["begun_with", "cleared", "first", "free", "save"]
