"""``kipcheck corpus seeds``: writes seed inputs for fuzzers as files, and a dictionary of protocol words."""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from random import Random
from typing import NamedTuple

from kipcheck.conformance.core.files.output_folder import OutputFolder
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.engine.export import input_files
from kipcheck.conformance.protocols.checks import FAMILIES
from kipcheck.conformance.wire import Layout
from kipcheck.conformance.wire.framing import encode_request
from kipcheck.conformance.wire.schema import messages, spec
from kipcheck.golden.vectors import vectors
from kipcheck.strategies.damage import USUAL, damages

DICTIONARY = "kipcheck.dict"
CODEC = next(each for each in FAMILIES if each.role is Role.CODEC)


class Seed(NamedTuple):
    message: str
    version: int
    data: bytes
    origin: str

    @property
    def path(self) -> str:
        return input_files.named(f"{self.message}/v{self.version}", self.data)


def write(out: Path, edition_name: str, globs: Sequence[str], seed: int, values: int) -> int:
    """Writes all seeds below ``out``, which may contain others already; returns their number.

    Errors: LookupError for an unknown edition or message; OSError; ``output_folder.Unusable``.
    """
    count = input_files.write(out, seeds(edition_name, globs, seed, values))
    OutputFolder(out).claim(DICTIONARY)
    (out / DICTIONARY).write_text(dictionary(edition_name, globs), "utf-8", newline="\n")
    return count


def seeds(edition_name: str, globs: Sequence[str], seed: int, values: int) -> Iterator[Seed]:
    """Equal arguments give equal seeds in the same order. Errors: LookupError."""
    selected = _wanted(edition_name, globs)
    for vector in vectors():
        if vector.edition == edition_name and vector.message in selected:
            yield Seed(vector.message, vector.version, vector.data, "golden")
    for message in selected:
        for layout in spec(edition(edition_name), message):
            yield from _of(edition_name, layout, seed, values)


def _wanted(edition_name: str, globs: Sequence[str]) -> tuple[str, ...]:
    known = messages(edition(edition_name))
    selected = tuple(each for each in known if any(fnmatchcase(each, glob) for glob in globs))
    if not selected:
        raise LookupError(f"no message matches {' or '.join(globs)} in {edition_name}; messages: {', '.join(known)}")
    return selected


def _of(edition_name: str, layout: Layout, seed: int, values: int) -> Iterator[Seed]:
    about = layout.message, layout.version
    subject = CODEC.subject(edition_name, *about)
    examples = [(name, make(subject)) for name, make in CODEC.examples[:values]]
    for number in range(values):
        random = Random(f"{seed}/{layout.message}/{layout.version}/{number}")
        kind, value = examples[number] if number < len(examples) else ("drawn", CODEC.draw(subject, random))
        yield Seed(*about, layout.encode(value), kind)
        for each in damages(layout, value, random, USUAL):
            yield Seed(*about, each.data, f"{kind}, {each.kind}")


# ---- words


def dictionary(edition_name: str, globs: Sequence[str]) -> str:
    """In the format of afl++ and libFuzzer: a line for each word, ``name="\\x00\\x01"``."""
    words = dict(_words(edition_name, globs))
    return "".join(f'{name}="{_escaped(data)}"\n' for name, data in words.items())


def _escaped(data: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in data)


def _words(edition_name: str, globs: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    yield from WORDS.items()
    for text in NAMES:
        yield f"text_{_identifier(text)}", len(text).to_bytes(2, "big") + text.encode()
        yield f"compact_{_identifier(text)}", bytes([len(text) + 1]) + text.encode()
    for message in _wanted(edition_name, globs):
        declared = spec(edition(edition_name), message)
        if declared.api_key is not None and declared.kind == "request":
            for layout in declared:
                head = encode_request(edition_name, message, layout.version, 0, None, layout.defaults())[:4]
                yield f"{message}_v{layout.version}", head


def _identifier(text: str) -> str:
    return "".join(each if each.isalnum() else "_" for each in text)


NAMES = ("range", "roundrobin", "sticky", "cooperative-sticky", "stream", "consumer", "metadata.version")
"""Texts that receivers compare with known names."""
WORDS = {
    "null_text": b"\xff\xff",
    "null_bytes": b"\xff\xff\xff\xff",
    "empty_text": b"\0\0",
    "no_elements": b"\0\0\0\0",
    "compact_null": b"\0",
    "compact_empty": b"\x01",
    "no_tags": b"\0",
    "unknown_tag": b"\x01\x64\x01\x00",
    "largest_int16": b"\x7f\xff",
    "largest_int32": b"\x7f\xff\xff\xff",
    "least_int32": b"\x80\0\0\0",
    "largest_int64": b"\x7f\xff\xff\xff\xff\xff\xff\xff",
    "none_int64": b"\xff\xff\xff\xff\xff\xff\xff\xff",
    "largest_varint": b"\xff\xff\xff\xff\x07",
    "negative_varint": b"\xff\xff\xff\xff\x0f",
    "endless_varint": b"\xff\xff\xff\xff\xff\xff",
    "long_zero_varint": b"\x80\x80\x80\x80\x00",
    "modified_nul": b"\xc0\x80",
    "surrogate": b"\xed\xa0\x80",
}
