"""Error messages for files that cannot be read or written, and connections that cannot be opened."""

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


def unconnected(error: OSError) -> str:
    """Why there is no connection to a program."""
    return "nothing listens there" if isinstance(error, ConnectionRefusedError) else error.strerror or str(error)
