"""The folder of a campaign: what it begins with, and the corpus of each round in ``corpus/<digest>.jsonl.gz``."""

import shutil
from pathlib import Path
from typing import Final

import reports
from conformance.campaign.corpus import Damaged, Snapshot
from conformance.campaign.files import put
from conformance.campaign.manifest import NAME, Manifest, Unfit
from conformance.core.ledger import NAME as TOLD

CORPUS: Final = "corpus"
LEDGER: Final = "ledger"
LATEST: Final = "latest"
"""Holds the name of the newest file of a corpus."""


def cleared(out: Path) -> None:
    """Room for a new campaign, where there is none that was cut off. Errors: ``Unfit``; OSError."""
    if (out / NAME).exists():
        found = Manifest.read(out)
        if not found.complete:
            raise Unfit(f"{out} holds a campaign that is not at its end ({found.stopped_by}): --resume {out}, or --out DIR")
        (out / NAME).unlink()
    for name in (LEDGER, CORPUS, "failures"):
        shutil.rmtree(out / name, ignore_errors=True)
    out.mkdir(parents=True, exist_ok=True)
    reports.forget(out)
    (out / TOLD).unlink(missing_ok=True)


def begun_with(out: Path, folder: Path | None) -> Snapshot:
    """The newest corpus of an earlier campaign, copied. Errors: ``Unfit``; OSError."""
    if folder is None:
        return Snapshot.empty()
    try:
        name = (folder / CORPUS / LATEST).read_text("utf-8").strip()
        found = Snapshot.load((folder / CORPUS / name).read_bytes())
    except FileNotFoundError:
        raise Unfit(f"{folder} holds no corpus: a folder is wanted that kipcheck campaign wrote") from None
    except Damaged as wrong:
        raise Unfit(f"the corpus of {folder} cannot be read: {wrong}") from None
    keep(out, found)
    return found


def first(out: Path, digest: str) -> Snapshot:
    """What the first round begins with. Errors: ``Unfit``."""
    if not digest:
        return Snapshot.empty()
    path = _path(out, digest)
    try:
        return Snapshot.load(path.read_bytes())
    except (OSError, Damaged) as wrong:
        raise Unfit(f"what the campaign began with cannot be read: {path}: {wrong}") from None


def keep(out: Path, snapshot: Snapshot) -> None:
    """Errors: ``Full``; OSError."""
    path = _path(out, snapshot.digest or "empty")
    put(path, snapshot.dump())
    put(path.with_name(LATEST), f"{path.name}\n".encode())


def _path(out: Path, digest: str) -> Path:
    return out / CORPUS / f"{digest}.jsonl.gz"
