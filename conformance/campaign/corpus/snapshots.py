"""Snapshots of a corpus in files: ``corpus/DIGEST.jsonl.gz`` below the folder of a campaign, one for each round.

The ledger can do without them: from the rows of a round follows the snapshot of the next, so that one that is damaged
or gone is made again, and is the same again.
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kipcheck.conformance.campaign.corpus.entries import Damaged, Snapshot, grown, united
from kipcheck.conformance.campaign.files import SetAside, put, set_aside
from kipcheck.conformance.campaign.report import row_files
from kipcheck.conformance.campaign.rows import Row
from kipcheck.conformance.core.output_folder import OutputFolder, Unusable

NAME: Final = "corpus"
SUFFIX: Final = ".jsonl.gz"
EMPTY: Final = "empty"
FILE: Final = re.compile(rf"([0-9a-f]{{16}}|{EMPTY}){re.escape(SUFFIX)}")
DIGEST: Final = re.compile(r"[0-9A-Za-z]+")
LATEST: Final = "latest"
"""Holds the name of the newest of them."""


class Lost(LookupError):
    """A snapshot that is nowhere, and cannot be made again."""


def place(folder: Path, digest: str) -> Path:
    return folder / NAME / f"{digest or EMPTY}{SUFFIX}"


def save(folder: Path, snapshot: Snapshot) -> Path:
    """As the newest of them. Errors: ``Full``; OSError; ``Unusable``."""
    path = place(folder, snapshot.digest)
    OutputFolder(folder).claim(f"{NAME}/{path.name}", f"{NAME}/{LATEST}", durable=True)
    put(path, snapshot.dump())
    put(path.with_name(LATEST), f"{path.name}\n".encode())
    return path


@dataclass(slots=True)
class Shelf:
    """The snapshots of a campaign, read from its files or, where these fail, made from its rows."""

    folder: Path
    rows: Mapping[int, list[Row]] = field(default_factory=dict)
    """By round."""
    set_aside: list[SetAside] = field(default_factory=list)
    """What was found to be damaged so far."""

    @classmethod
    def of(cls, folder: Path, rows: Iterable[Row]) -> "Shelf":
        by_round: dict[int, list[Row]] = {}
        for row in rows:
            by_round.setdefault(row.round, []).append(row)
        return cls(folder, by_round)

    def snapshot(self, digest: str) -> Snapshot:
        """The one of that digest; of an empty one, that of nothing. Errors: ``Lost``."""
        if not digest:
            return Snapshot.empty()
        if not DIGEST.fullmatch(digest):  # it came from a manifest or a row, and is the name of a file
            raise Lost(f"{digest!r:.80} is the digest of no snapshot")
        found = self.read(place(self.folder, digest))
        return found if found is not None and found.digest == digest else self._made_again(digest)

    def latest(self) -> Snapshot:
        """What the next round would begin with. Errors: ``Lost``.

        Where there are no rows that is the newest that was saved there; where it cannot be told which that is, all
        that the files hold together.
        """
        if self.rows:
            last = max(self.rows)
            return grown(self.snapshot(self._begun(last)), self.rows[last])
        found = self._newest()
        return united(each for each in map(self.read, self.files()) if each is not None) if found is None else found

    def _newest(self) -> Snapshot | None:
        """As whoever saved it said; None where that cannot be read."""
        with suppress(OSError, UnicodeDecodeError):
            name = (self.folder / NAME / LATEST).read_text("utf-8").strip()
            return next((self.read(each) for each in self.files() if each.name == name), None)
        return None

    def files(self) -> list[Path]:
        """By their names: others that somebody put there are none, and are left alone."""
        return sorted(each for each in (self.folder / NAME).glob(f"*{SUFFIX}") if FILE.fullmatch(each.name))

    def _begun(self, round_: int) -> str:
        """The digest that a round began with, as all of its rows say."""
        return next((row.corpus for row in self.rows.get(round_, ()) if row.stage == "hold"), "")

    def _made_again(self, digest: str) -> Snapshot:
        round_ = next((each for each in sorted(self.rows) if self._begun(each) == digest), None)
        if round_ is None or round_ - 1 not in self.rows:
            raise Lost(f"{place(self.folder, digest)} is gone, and no rows are there to make it again")
        found = grown(self.snapshot(self._begun(round_ - 1)), self.rows[round_ - 1])
        if found.digest != digest:
            raise Lost(f"{place(self.folder, digest)} is gone, and of the rows comes another, {found.digest}")
        path = place(self.folder, digest)
        with suppress(OSError, Unusable):
            OutputFolder(self.folder).claim(f"{NAME}/{path.name}", durable=True)
            put(path, found.dump())  # for the next time
        return found

    def read(self, path: Path) -> Snapshot | None:
        """None where there is none; one that is damaged is set aside."""
        try:
            return Snapshot.load(path.read_bytes())
        except FileNotFoundError:
            return None
        except Damaged as why:
            self.set_aside.append(set_aside(path, str(why)))
            return None


def shelf(folder: Path) -> Shelf:
    """Of a campaign, with its ledger, or of a folder that holds nothing but a corpus.

    Errors: LookupError where there is neither; ``ledger.Unread``; OSError.
    """
    if not any((folder / name).is_dir() for name in (NAME, row_files.NAME)):
        raise LookupError(f"{folder} has neither a corpus nor a ledger of a campaign")
    held = row_files.read(folder)
    found = Shelf.of(folder, held.rows.values())
    found.set_aside.extend(held.set_aside)
    return found


def checked(folder: Path) -> list[SetAside]:
    """Sets aside those that are damaged: a campaign that goes on makes them again, all but what it began with."""
    found = Shelf(folder)
    for path in found.files():
        found.read(path)
    return found.set_aside
