"""Exports a corpus for other fuzzers: the bytes, or the conversations, of its values."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from kipcheck.conformance.campaign.corpus.entries import value_of
from kipcheck.conformance.campaign.rows import Kept
from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.engine.export import input_files
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.wire import layout as layout_of
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.znodes import ZNode


class Exported(NamedTuple):
    folder: str
    """``MESSAGE/vN``, or the id of the check."""
    data: bytes
    origin: str
    suffix: str = ""

    @property
    def path(self) -> str:
        return input_files.named(self.folder, self.data, self.suffix)


def readable(entry: Kept) -> bool:
    """Whether the entry belongs to a current declaration."""
    try:
        _value(entry)
    except (LookupError, ValueError):
        return False
    return True


def exported(entries: Iterable[Kept]) -> Iterator[Exported]:
    """All inputs that an entry's check makes of its value: bytes for codecs, otherwise conversations as JSON.

    Errors: LookupError or ValueError for an entry that is not ``readable``.
    """
    for entry in entries:
        check, (subject, value) = CHECKS[entry.check], _value(entry)
        origin = f"{entry.check}, {entry.id}"
        for sample in check.about_value(subject, value, 0, 0):
            labelled = f"{origin}, {sample.kind}" if sample.kind else origin
            if check.role is Role.CODEC:
                for step in sample.case.steps:
                    if (data := _bytes(sample.case, step)) is not None:
                        yield Exported(f"{step['message']}/v{step['version']}", data, labelled)
            else:
                yield Exported(entry.check, json.dumps(sample.case.plain, indent=1).encode() + b"\n", labelled, ".json")


def _value(entry: Kept) -> tuple[Any, Any]:
    """Subject and value. Errors: LookupError, ValueError."""
    check = CHECKS[entry.check]
    subject = check.family.subject(entry.edition, entry.subject, entry.version)
    return subject, value_of(check.declaration(subject), entry.value)


def _bytes(case: Case, step: Step) -> bytes | None:
    """The bytes that a codec reads, or the encoded form of a value that it writes. None: the value cannot be
    encoded.
    """
    if "hex" in step.body:
        return bytes.fromhex(step["hex"])
    layout = layout_of(case.edition, step["message"], step["version"])
    try:
        return layout.encode(step["value"] if isinstance(layout, ZNode) else layout.codec.from_json(step["value"]))
    except Refused:
        return None
