"""Caches answers of released jars on disk: the same jars give the same answer to the same request.

All processes share one file. A damaged file is replaced, and where no file can be written, nothing is cached.
"""

import contextlib
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

WAIT_SECONDS: Final = 30.0
"""How long to wait while another process writes."""
AT_ONCE: Final = 500
"""Keys in one query: SQLite limits the number of parameters."""


class AnswerCache:
    """Maps keys to answers, both text. No method raises."""

    def __init__(self, path: Path | None) -> None:
        """``path``: the database file; None disables the cache."""
        self._path = path
        self._open: sqlite3.Connection | None = None
        self._begin()

    def get(self, keys: Iterable[str]) -> Mapping[str, str]:
        """The cached answers, by key; keys without one are left out."""
        wanted = list(keys)
        found: dict[str, str] = {}
        try:
            for at in range(0, len(wanted), AT_ONCE):
                if self._open is None:
                    break
                some = wanted[at : at + AT_ONCE]
                placeholders = ",".join("?" * len(some))
                found.update(self._open.execute(f"SELECT key, answer FROM answers WHERE key IN ({placeholders})", some))
        except sqlite3.DatabaseError as wrong:
            self._recover(wrong)
        return found

    def put(self, answers: Mapping[str, str]) -> None:
        if self._open is None or not answers:
            return
        try:
            with self._open:
                self._open.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?)", list(answers.items()))
        except sqlite3.DatabaseError as wrong:
            self._recover(wrong)

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _begin(self) -> None:
        if self._path is None:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._open = sqlite3.connect(self._path, timeout=WAIT_SECONDS)
            # No journal file, and no waiting for the disk: a crash can only cost time here.
            self._open.execute("PRAGMA journal_mode = MEMORY")
            self._open.execute("PRAGMA synchronous = OFF")
            self._open.execute("CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer TEXT) WITHOUT ROWID")
        except OSError:
            self._path = None
        except sqlite3.DatabaseError as wrong:
            self._recover(wrong)

    def _recover(self, wrong: sqlite3.DatabaseError) -> None:
        """Replaces a damaged file, and disables the cache where the database cannot be used at all."""
        self.close()
        path, self._path = self._path, None
        if path is None or isinstance(wrong, sqlite3.OperationalError):
            return
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
            fresh = AnswerCache(path)
            self._path, self._open = fresh._path, fresh._open
