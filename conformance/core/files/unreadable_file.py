"""Error messages for files that cannot be read or written, and programs that cannot be started."""

import json
from pathlib import Path


def unreadable(error: OSError, path: Path | str | None = None) -> str:
    """One sentence with the path, and for a missing relative one the folder it is relative to."""
    named = Path(path if path is not None else error.filename or ".")
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return f"{named} cannot be read: no such file" + ("" if named.is_absolute() else f" in {Path.cwd()}")
    if isinstance(error, IsADirectoryError):
        return f"{named} cannot be read: it is a folder"
    if isinstance(error, PermissionError):
        return f"{named} cannot be read: permission denied"
    return f"{named} cannot be read: {error.strerror or error}"


def unwritable(error: OSError, path: Path | str) -> str:
    """One sentence with the path that the error names, or else ``path``, and what to do."""
    named = Path(error.filename or path)
    if isinstance(error, FileExistsError | NotADirectoryError):
        return f"{named} cannot be written: a file is in the place of a folder: name another folder"
    if isinstance(error, FileNotFoundError):
        return f"{named} cannot be written: there is no folder {named.parent}"
    if isinstance(error, IsADirectoryError):
        return f"{named} cannot be written: it is a folder: name a file"
    return f"{named} cannot be written: {error.strerror or error}"


def not_text(error: ValueError | RecursionError) -> str:
    """Why a file is neither JSON nor UTF-8, and where."""
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON at line {error.lineno}, column {error.colno}: {error.msg}"
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is not UTF-8"
    return f"not JSON: {error}"


def unstarted(error: OSError, program: str = "") -> str:
    """Why a program, or a connection to one, cannot be begun."""
    if isinstance(error, FileNotFoundError | PermissionError) and (named := error.filename or program):
        return f"{named} is no program that can be run: {error.strerror}"
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens there"
    return error.strerror or str(error)
