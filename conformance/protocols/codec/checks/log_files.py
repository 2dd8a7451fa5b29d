"""Checks of codecs for the files beside a log: producer snapshots and checkpoints."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from random import Random
from typing import Any, Final, TypeAlias

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.protocols.codec import invariants
from kipcheck.conformance.protocols.codec.checks.family import Subject, claimed, coverage, place
from kipcheck.conformance.protocols.codec.strategies import FILES, as_log_file
from kipcheck.conformance.protocols.declare.check import Check, Conversation, Family
from kipcheck.conformance.protocols.declare.invariant import invariants_of
from kipcheck.conformance.wire import layout as layout_of
from kipcheck.conformance.wire.log_file_layouts import log_file_messages
from kipcheck.conformance.wire.log_files import CLEANER, EPOCHS, METADATA, SNAPSHOT, VERSIONS
from kipcheck.strategies.compiled import compiled

Value: TypeAlias = dict[str, Any]


def subjects(edition_name: str) -> Iterator[Subject]:
    for message in log_file_messages(edition(edition_name)):
        yield Subject(edition_name, layout_of(edition_name, message, VERSIONS[message]))


def subject(edition_name: str, message: str, version: int | None) -> Subject:
    assert version is not None
    return Subject(edition_name, layout_of(edition_name, message, version))


def drawn(subject: Subject, random: Random) -> Value:
    value: Value = compiled(FILES[subject.name])(random)
    return value


LOG_FILES: Family[Subject] = Family(
    Role.CODEC,
    subjects,
    subject,
    claimed,
    node=lambda subject: FILES[subject.name],
    draw=drawn,
    exhibits=lambda history, violation: [],
    coverage=coverage,
    place=place,
)


def round_trip(subject: Subject, value: Value, random: Random) -> Iterator[Conversation]:
    """Writes the file, reads it, and writes what was read."""
    file = as_log_file(subject.name, value)
    data = subject.layout.encode(file)
    yield Conversation((subject.encode(file),), "to write")
    yield Conversation((subject.decode(data), subject.recode(data)), "plain")


def flawed(subject: Subject, value: Value, random: Random) -> Iterator[Conversation]:
    """The file with one flaw, for each flaw."""
    data = subject.layout.encode(as_log_file(subject.name, value))
    for kind, spoil in FLAWS[subject.name].items():
        yield Conversation((subject.decode(spoil(data)),), kind)


def flawed_again(subject: Subject, value: Value, kind: str) -> Iterable[Conversation]:
    data = subject.layout.encode(as_log_file(subject.name, value))
    return (Conversation((subject.decode(FLAWS[subject.name][kind](data)),), kind),)


Spoil: TypeAlias = Callable[[bytes], bytes]


def _with_line(number: int, text: bytes) -> Spoil:
    """Replaces a line."""

    def spoil(data: bytes) -> bytes:
        lines = data.split(b"\n")
        return b"\n".join([*lines[:number], text, *lines[number + 1 :]])

    return spoil


def _counted(data: bytes) -> int:
    return int(data.split(b"\n")[1])


LINES: Final[Mapping[str, Spoil]] = {
    "another version": _with_line(0, b"1"),
    "version as text": _with_line(0, b"v"),
    "count too high": lambda data: _with_line(1, b"%d" % (_counted(data) + 1))(data),
    "count as text": _with_line(1, b"x"),
    "a word of a line": lambda data: _with_line(1, b"%d" % (_counted(data) + 1))(data) + b"0\n",
}
FLAWS: Final[Mapping[str, Mapping[str, Spoil]]] = {
    SNAPSHOT: {
        "another version": lambda data: b"\0\2" + data[2:],
        "another checksum": lambda data: data[:2] + bytes([data[2] ^ 1]) + data[3:],
        "a changed byte": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
        "cut off": lambda data: data[:-1],
        "nothing": lambda data: b"",
    },
    EPOCHS: LINES,
    CLEANER: LINES,
    METADATA: {
        "no topic": lambda data: data.split(b"\n")[0],
        "topic without bits": _with_line(1, b"topic_id: AAAAAAAAAAAAAAAAAAAAAA"),
        "topic as text": _with_line(1, b"topic_id: no uuid!"),
        "no key": _with_line(1, b"AAAAAAAAAAAAAAAAAAAAAg"),
        "version as text": _with_line(0, b"version: v"),
        "nothing": lambda data: b"",
    },
}

LOG_FILE_CHECKS: tuple[Check[Subject], ...] = (
    Check(
        "log-files/round-trip",
        "the files beside a log are written and read as in every release",
        LOG_FILES,
        round_trip,
        values=12,
        invariants=invariants_of("log-files/round-trip", part=invariants),
    ),
    Check(
        "log-files/flaws",
        "damaged files beside a log are refused",
        LOG_FILES,
        flawed,
        values=3,
        invariants=invariants_of("log-files/flaws", part=invariants),
        again=flawed_again,
    ),
)
