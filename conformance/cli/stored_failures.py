"""Finds the files of stored failures that a command names."""

from pathlib import Path

from kipcheck.conformance.core.files.unreadable_file import unreadable
from kipcheck.conformance.engine.findings.failures import FOLDER


def failure_file(named: str, out: Path) -> Path:
    """A file or folder, or the file of a failure with this id in ``out``.

    Errors: LookupError, with the places that have no such failure.
    """
    path, by_id = Path(named), out / FOLDER / f"{named}.json"
    if path.exists():
        return path
    if by_id.is_file():
        return by_id
    if path.name != named or path.suffix:
        raise LookupError(unreadable(FileNotFoundError(), path))
    raise LookupError(f"no failure {named} in {by_id.parent}, and no such file or folder in {Path.cwd()}")
