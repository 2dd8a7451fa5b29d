"""The folder of a campaign: room for a new one, and what its first round begins with."""

from pathlib import Path

from kipcheck.conformance.campaign.corpus import snapshots
from kipcheck.conformance.campaign.corpus.entries import Damaged, Snapshot
from kipcheck.conformance.campaign.corpus.snapshots import Lost, Shelf, save, shelf
from kipcheck.conformance.campaign.manifest import NAME, Manifest, Unfit
from kipcheck.conformance.core.output_folder import CORPUS, OF_A_CAMPAIGN, OutputFolder


def free(out: Path) -> None:
    """Is there no campaign that was cut off, and would be lost? Errors: ``Unfit``."""
    if (out / NAME).exists() and not (found := Manifest.read(out)).complete:
        why = f"{out} holds a campaign that is not at its end ({found.stopped_by})"
        raise Unfit(f"{why}: --resume {out}, or another --out")


def checked(out: Path) -> OutputFolder:
    """Where the campaign will be. Errors: ``output_folder.Unusable`` where there are files of somebody else."""
    folder = OutputFolder(out)
    folder.check(*OF_A_CAMPAIGN)
    return folder


def cleared(out: Path) -> None:
    """Room for a new campaign: all that an earlier one left goes, but its corpus. Errors: ``Unusable``; OSError."""
    folder = OutputFolder(out)
    folder.claim(NAME)
    folder.remove(*(kind for kind in OF_A_CAMPAIGN if kind is not CORPUS))


def earlier(out: Path) -> Path | None:
    """The newest snapshot of the corpus that an earlier campaign left there."""
    try:
        name = (out / snapshots.NAME / snapshots.LATEST).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return next((each for each in Shelf(out).files() if each.name == name and each != snapshots.place(out, "")), None)


def begun_with(place: Path | None) -> Snapshot:
    """The newest corpus of an earlier campaign, by its folder, or one snapshot, by its file.

    Errors: ``Unfit``; OSError.
    """
    if place is None:
        return Snapshot.empty()
    try:
        return Snapshot.load(place.read_bytes()) if place.is_file() else shelf(place).latest()
    except Damaged as wrong:
        raise Unfit(f"no corpus to begin with: {place}: {wrong}") from None
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


__all__ = ["begun_with", "checked", "cleared", "earlier", "first", "free", "save"]
