"""The folder of a campaign: checks and clears it, and loads the snapshot of the first round."""

from pathlib import Path

from kipcheck.conformance.campaign.corpus import snapshots
from kipcheck.conformance.campaign.corpus.entries import Damaged, Snapshot
from kipcheck.conformance.campaign.corpus.snapshots import Lost, Shelf, save, shelf
from kipcheck.conformance.campaign.manifest import NAME, Manifest, Unfit
from kipcheck.conformance.core.output_folder import CORPUS, OF_A_CAMPAIGN, OutputFolder


def free(out: Path) -> None:
    """Errors: ``Unfit`` if the folder contains an unfinished campaign."""
    if (out / NAME).exists() and not (found := Manifest.read(out)).complete:
        why = f"{out} contains an unfinished campaign ({found.stopped_by})"
        raise Unfit(f"{why}: continue it with --resume {out}, or use another --out")


def checked(out: Path) -> OutputFolder:
    """The folder of the campaign. Errors: ``output_folder.Unusable`` if it contains files that kipcheck did not
    write.
    """
    folder = OutputFolder(out)
    folder.check(*OF_A_CAMPAIGN)
    return folder


def cleared(out: Path) -> None:
    """Removes the files of an earlier campaign, except its corpus. Errors: ``Unusable``; OSError."""
    folder = OutputFolder(out)
    folder.claim(NAME)
    folder.remove(*(kind for kind in OF_A_CAMPAIGN if kind is not CORPUS))


def earlier(out: Path) -> Path | None:
    """The newest snapshot of an earlier campaign in the folder."""
    try:
        name = (out / snapshots.NAME / snapshots.LATEST).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return next((each for each in Shelf(out).files() if each.name == name and each != snapshots.place(out, "")), None)


def begun_with(place: Path | None) -> Snapshot:
    """The newest snapshot in the folder of an earlier campaign, or the snapshot in a file.

    Errors: ``Unfit``; OSError.
    """
    if place is None:
        return Snapshot.empty()
    try:
        return Snapshot.load(place.read_bytes()) if place.is_file() else shelf(place).latest()
    except Damaged as wrong:
        raise Unfit(f"the corpus {place} cannot be read: {wrong}") from None
    except (LookupError, Lost) as missing:
        raise Unfit(f"no corpus to start with: {missing}") from None


def first(out: Path, digest: str) -> Snapshot:
    """The snapshot of the first round. Errors: ``Unfit``."""
    if not digest:
        return Snapshot.empty()
    path = snapshots.place(out, digest)
    try:
        return Snapshot.load(path.read_bytes())
    except (OSError, Damaged) as wrong:
        raise Unfit(f"the first snapshot of the campaign cannot be read: {path}: {wrong}") from None


__all__ = ["begun_with", "checked", "cleared", "earlier", "first", "free", "save"]
