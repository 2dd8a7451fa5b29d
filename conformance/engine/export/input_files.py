"""Writes inputs for other fuzzers: a file for each, named by a digest of its bytes, and an index of their origins."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Protocol

from kipcheck.conformance.core.files.output_folder import INPUTS, LINK, UNLISTED, OutputFolder, Unusable

INDEX: Final = "index.tsv"


class Input(Protocol):
    @property
    def path(self) -> str: ...
    @property
    def data(self) -> bytes: ...
    @property
    def origin(self) -> str: ...


def named(folder: str, data: bytes, suffix: str = "") -> str:
    """The path of an input. It depends on the bytes only, so equal inputs have equal names whatever their origin."""
    return f"{folder}/{hashlib.blake2b(data, digest_size=10).hexdigest()}{suffix}"


def write(out: Path, inputs: Iterable[Input]) -> int:
    """Writes all inputs below ``out``, which may contain others already; returns their number.

    Errors: OSError; ``output_folder.Unusable`` if a file that kipcheck did not write has the name of one.
    """
    origins: dict[str, str] = {}
    OutputFolder(out).check(INPUTS)
    for each in inputs:
        if each.path not in origins:
            origins[each.path] = each.origin
            _put(out / each.path, each.data)
    OutputFolder(out).claim(INDEX)
    rows = (f"{path}\t{origin}\n" for path, origin in sorted(origins.items()))
    (out / INDEX).write_text("".join(rows), "utf-8", newline="\n")
    return len(origins)


def _put(file: Path, data: bytes) -> None:
    """The name is a digest of the bytes, so an existing file of that name is either this input or not kipcheck's."""
    if file.is_symlink():
        raise Unusable.by(file, LINK)
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    elif file.read_bytes() != data:
        raise Unusable.by(file, UNLISTED)
