"""Inputs for other fuzzers as files: one for each, named by its bytes, and an index that says where they come from."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Protocol

INDEX: Final = "index.tsv"


class Input(Protocol):
    @property
    def path(self) -> str: ...
    @property
    def data(self) -> bytes: ...
    @property
    def origin(self) -> str: ...


def named(folder: str, data: bytes, suffix: str = "") -> str:
    """The path of an input, of its bytes alone: whatever they come from, the same input has the same name."""
    return f"{folder}/{hashlib.blake2b(data, digest_size=10).hexdigest()}{suffix}"


def write(out: Path, inputs: Iterable[Input]) -> int:
    """All of them below ``out``, which may hold others already; how many there are. Errors: OSError."""
    origins: dict[str, str] = {}
    for each in inputs:
        if each.path not in origins:
            origins[each.path] = each.origin
            file = out / each.path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(each.data)
    out.mkdir(parents=True, exist_ok=True)
    rows = (f"{path}\t{origin}\n" for path, origin in sorted(origins.items()))
    (out / INDEX).write_text("".join(rows), "utf-8", newline="\n")
    return len(origins)
