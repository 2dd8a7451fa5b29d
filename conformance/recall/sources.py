"""A digest of kipcheck's sources: kept results count as long as those are the same that decide them."""

import hashlib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

PACKAGES: Final = ("core", "wire", "machines", "protocols", "targets", "clients", "live", "log_directory", "engine")
"""Those that a run consists of; beside them strategies, golden, and the requirements."""
OF_FACTS: Final = ("facts.py", "mutant_process.py", "mutant_run.py", "why.py", "python_copies.py", "go_copies.py")
"""The modules of this package by which the facts of cases are recorded and compared."""
KNOWN: Final = "known"
"""The folder of the lists of known deviations."""


@cache
def digest(measured_by: tuple[str, ...] = (), with_known: bool = False) -> str:
    """Of the sources that decide how a run ends. ``measured_by``: modules of this package that decide the result too.
    ``with_known``: the lists of known deviations do so."""
    root = Path(str(files("kipcheck")))
    own = root / "conformance"
    places = [*(own / each for each in PACKAGES), root / "strategies", root / "golden"]
    left_out = {"__pycache__", *(() if with_known else (KNOWN,))}
    found = [path for path in _files(places) if left_out.isdisjoint(path.relative_to(root).parts)]
    found += [own / "requirements.toml", *(own / "recall" / each for each in measured_by)]
    made = hashlib.sha256()
    for path in sorted(found):
        made.update(f"{path.relative_to(root)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return made.hexdigest()[:16]


def _files(places: Iterable[Path]) -> list[Path]:
    return [path for place in places for path in place.rglob("*") if path.is_file()]
