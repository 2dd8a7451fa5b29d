"""Stores snapshots of a corpus: ``corpus/DIGEST.jsonl.gz`` in the folder of a campaign, one for each round.

A damaged or missing snapshot is rebuilt from the rows of the ledger, which determine it.
"""

import re
from collections.abc import Generator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kipcheck.conformance.campaign.corpus.entries import Damaged, Snapshot, grown, merged
from kipcheck.conformance.campaign.files import SetAside, put, set_aside
from kipcheck.conformance.campaign.report import row_files
from kipcheck.conformance.campaign.rows import Row
from kipcheck.conformance.core.files.output_folder import OutputFolder, Unusable

NAME: Final = "corpus"
SUFFIX: Final = ".jsonl.gz"
EMPTY: Final = "empty"
FILE: Final = re.compile(rf"([0-9a-f]{{16}}|{EMPTY}){re.escape(SUFFIX)}")
DIGEST: Final = re.compile(r"[0-9A-Za-z]+")
LATEST: Final = "latest"
"""The file with the name of the newest snapshot."""


class SnapshotMissing(LookupError):
    """A snapshot is missing and cannot be rebuilt."""


def snapshot_path(folder: Path, digest: str) -> Path:
    return folder / NAME / f"{digest or EMPTY}{SUFFIX}"


def save(folder: Path, snapshot: Snapshot) -> Path:
    """Saves the newest snapshot. Errors: ``Full``; OSError; ``Unusable``."""
    path = snapshot_path(folder, snapshot.digest)
    OutputFolder(folder).claim(f"{NAME}/{path.name}", f"{NAME}/{LATEST}", durable=True)
    put(path, snapshot.dump())
    put(path.with_name(LATEST), f"{path.name}\n".encode())
    return path


@dataclass(slots=True)
class SnapshotStore:
    """The snapshots of a campaign, read from files or, if these are missing or damaged, rebuilt from rows."""

    folder: Path
    rounds: Sequence[int] = ()
    """Those of which there are rows."""
    set_aside: list[SetAside] = field(default_factory=list)
    """Damaged files found so far."""

    def snapshot(self, digest: str) -> Snapshot:
        """The snapshot with that digest; an empty digest stands for the empty snapshot. Errors: ``Lost``."""
        if not digest:
            return Snapshot.empty()
        if not DIGEST.fullmatch(digest):  # it comes from a manifest or a row, and becomes a file name
            raise SnapshotMissing(f"invalid digest of a snapshot: {digest!r:.80}")
        found = self.read(snapshot_path(self.folder, digest))
        return found if found is not None and found.digest == digest else self._rebuilt(digest)

    def latest(self) -> Snapshot:
        """The snapshot for the next round. Errors: ``Lost``.

        Without rows it is the newest that was saved; if that is not known, the union of all files.
        """
        for round_ in reversed(self.rounds):
            if (begun_with := self._starting_digest(round_)) is not None:
                return grown(self.snapshot(begun_with), self._rows(round_))
        found = self._newest()
        return merged(each for each in map(self.read, self.files()) if each is not None) if found is None else found

    def _newest(self) -> Snapshot | None:
        """The snapshot that ``latest`` names; None if that cannot be read."""
        with suppress(OSError, UnicodeDecodeError):
            name = (self.folder / NAME / LATEST).read_text("utf-8").strip()
            return next((self.read(each) for each in self.files() if each.name == name), None)
        return None

    def files(self) -> list[Path]:
        """In the order of their names; other files in the folder are ignored."""
        return sorted(each for each in (self.folder / NAME).glob(f"*{SUFFIX}") if FILE.fullmatch(each.name))

    def _rows(self, round_: int) -> Generator[Row, None, None]:
        scan = row_files.Scan(self.folder, [round_])
        try:
            yield from scan
        finally:
            self.set_aside += scan.set_aside

    def _starting_digest(self, round_: int) -> str | None:
        """The digest of the snapshot that a round started with; None: there are no rows of it."""
        with closing(self._rows(round_)) as rows:
            return next((row.corpus for row in rows if row.stage == "hold"), None)

    def _rebuilt(self, digest: str) -> Snapshot:
        round_ = next((each for each in self.rounds if self._starting_digest(each) == digest), None)
        begun_with = None if round_ is None else self._starting_digest(round_ - 1)
        if round_ is None or begun_with is None:
            raise SnapshotMissing(
                f"{snapshot_path(self.folder, digest)} is missing, and there are no rows to rebuild it"
            )
        found = grown(self.snapshot(begun_with), self._rows(round_ - 1))
        if found.digest != digest:
            raise SnapshotMissing(
                f"{snapshot_path(self.folder, digest)} is missing, and the rows lead to another one, {found.digest}"
            )
        path = snapshot_path(self.folder, digest)
        with suppress(OSError, Unusable):
            OutputFolder(self.folder).claim(f"{NAME}/{path.name}", durable=True)
            put(path, found.dump())  # for the next time
        return found

    def read(self, path: Path) -> Snapshot | None:
        """None if the file does not exist; a damaged file is set aside."""
        try:
            return Snapshot.load(path.read_bytes())
        except FileNotFoundError:
            return None
        except Damaged as why:
            self.set_aside.append(set_aside(path, str(why)))
            return None


def snapshot_store(folder: Path) -> SnapshotStore:
    """Of a campaign with its ledger, or of a folder that contains only a corpus.

    Errors: LookupError if the folder has neither.
    """
    if not any((folder / name).is_dir() for name in (NAME, row_files.NAME)):
        raise LookupError(f"{folder} has neither a corpus nor a ledger of a campaign")
    return SnapshotStore(folder, row_files.rounds(folder))


def set_aside_damaged(folder: Path) -> list[SetAside]:
    """Sets damaged snapshots aside: a resumed campaign rebuilds them, except the first."""
    found = SnapshotStore(folder)
    for path in found.files():
        found.read(path)
    return found.set_aside
