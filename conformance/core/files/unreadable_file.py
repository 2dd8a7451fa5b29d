"""Error messages for files that cannot be read."""

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
