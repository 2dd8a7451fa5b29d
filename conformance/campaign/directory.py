"""The folder of a campaign: checks and clears it, and loads the snapshot of the first round."""

from pathlib import Path

from kipcheck.conformance.campaign.corpus import snapshots
from kipcheck.conformance.campaign.corpus.entries import Damaged, Snapshot
from kipcheck.conformance.campaign.corpus.snapshots import SnapshotMissing, SnapshotStore, save, snapshot_store
from kipcheck.conformance.campaign.manifest import NAME, Manifest, UnusableCampaign
from kipcheck.conformance.core.files.output_folder import CORPUS, OF_A_CAMPAIGN, OutputFolder


def require_no_unfinished(out: Path) -> None:
    """Errors: ``Unfit`` if the folder contains an unfinished campaign."""
    if (out / NAME).exists() and not (found := Manifest.read(out)).complete:
        why = f"{out} contains an unfinished campaign ({found.stopped_by})"
        raise UnusableCampaign(f"{why}: continue it with --resume {out}, or use another --out")


def checked_folder(out: Path) -> OutputFolder:
    """The folder of the campaign. Errors: ``output_folder.Unusable`` if it contains files that kipcheck did not
    write.
    """
    folder = OutputFolder(out)
    folder.check(*OF_A_CAMPAIGN)
    return folder


def clear_for_new(out: Path) -> None:
    """Removes the files of an earlier campaign, except its corpus. Errors: ``Unusable``; OSError."""
    folder = OutputFolder(out)
    folder.claim(NAME)
    folder.remove(*(kind for kind in OF_A_CAMPAIGN if kind is not CORPUS))


def earlier_snapshot(out: Path) -> Path | None:
    """The newest snapshot of an earlier campaign in the folder."""
    try:
        name = (out / snapshots.NAME / snapshots.LATEST).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return next(
        (each for each in SnapshotStore(out).files() if each.name == name and each != snapshots.snapshot_path(out, "")),
        None,
    )


def starting_corpus(place: Path | None) -> Snapshot:
    """The newest snapshot in the folder of an earlier campaign, or the snapshot in a file.

    Errors: ``Unfit``; OSError.
    """
    if place is None:
        return Snapshot.empty()
    try:
        return Snapshot.load(place.read_bytes()) if place.is_file() else snapshot_store(place).latest()
    except Damaged as wrong:
        raise UnusableCampaign(f"the corpus {place} cannot be read: {wrong}") from None
    except (LookupError, SnapshotMissing) as missing:
        raise UnusableCampaign(f"no corpus to start with: {missing}") from None


def first_snapshot(out: Path, digest: str) -> Snapshot:
    """The snapshot of the first round. Errors: ``Unfit``."""
    if not digest:
        return Snapshot.empty()
    path = snapshots.snapshot_path(out, digest)
    try:
        return Snapshot.load(path.read_bytes())
    except (OSError, Damaged) as wrong:
        raise UnusableCampaign(f"the first snapshot of the campaign cannot be read: {path}: {wrong}") from None


__all__ = [
    "checked_folder",
    "clear_for_new",
    "earlier_snapshot",
    "first_snapshot",
    "require_no_unfinished",
    "save",
    "starting_corpus",
]
