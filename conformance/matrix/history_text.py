"""A history of the matrix as JSON for reports, with every field of the user data in it explained."""

import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.core.values.plain import kind_of
from kipcheck.conformance.matrix.play import JudgedScript
from kipcheck.conformance.protocols.streams import blobs as streams_blobs, ops
from kipcheck.conformance.protocols.streams.model.members import Blob, Fatal
from kipcheck.conformance.wire.explain import Row, explain
from kipcheck.conformance.wire.schema import spec

Plain = dict[str, Any]
KINDS: Final = {streams_blobs.SUBSCRIPTION: "subscription", streams_blobs.ASSIGNMENT: "assignment"}


def history_json(judged: JudgedScript) -> Plain:
    """A history as in ``matrix.schema.json``, without the fields that belong to its cell."""
    case = judged.history.case
    return {
        "case": case.id,
        "edition": case.edition,
        "target": judged.history.target,
        "rounds": judged.rounds,
        "script": ops.OPERATIONS.shorthand(case.steps),
        "plain": case.plain,
        "members": members(judged),
        "broken": [
            {
                "invariant": each.invariant.id,
                "requirements": [*each.invariant.requirements],
                "why": each.violation.why,
                "steps": [*each.violation.at],
                "grade": each.invariant.grade.value,
            }
            for each in judged.broken
        ],
        "steps": [
            {
                "step": ops.OPERATIONS.shorthand([step]),
                "rounds": sum(isinstance(each, ops.Formed) for each in happenings),
                "seen": [observed_json(each) for each in happenings],
            }
            for step, happenings in zip(case.steps, judged.seen, strict=True)
        ],
    }


def members(judged: JudgedScript) -> list[Plain]:
    """The started members, with their instances and their releases in order."""
    found: dict[str, Plain] = {}
    for each in map(ops.OPERATIONS.event_of, judged.history.case.steps):
        if isinstance(each, ops.Start):
            member = found.setdefault(each.member, {"name": each.member, "instance": each.instance, "releases": []})
            setting = "" if each.upgrade_from is None else f" (upgrade.from={each.upgrade_from})"
            member["releases"].append(f"{each.release}{setting}")
    return [*found.values()]


@lru_cache(maxsize=1 << 14)
def observed_json(event: ops.ObservedEvent) -> Plain:
    found = {
        "what": kind_of(event),
        "text": ops.OBSERVED.describe(event),
        "member": getattr(event, "member", None),
        "used": dict(used_versions(event)),
        "blobs": [*blobs(event)],
    }
    return found | ({"guilty": True} if isinstance(event, ops.Died | ops.Refused) else {})


def used_versions(event: ops.ObservedEvent) -> Iterator[tuple[str, int]]:
    """Metadata versions, by member."""
    match event:
        case ops.Formed(_, _, members):
            for each in members:
                yield from ((each.member, version) for version in _version(streams_blobs.SUBSCRIPTION, each.data))
        case ops.Sent():
            yield from ((event.member, version) for version in _version(streams_blobs.ASSIGNMENT, event.data))
        case ops.Began() | ops.Applied():
            yield event.member, event.used
        case ops.Rests(_, present):
            yield from ((each.member, each.used) for each in present)


def _version(message: str, data: Blob) -> Iterator[int]:
    assert isinstance(data, bytes)
    try:
        yield (
            streams_blobs.read_subscription(data)
            if message == streams_blobs.SUBSCRIPTION
            else streams_blobs.read_assignment(data)
        ).used
    except Fatal:
        return


def blobs(event: ops.ObservedEvent) -> Iterator[Plain]:
    match event:
        case ops.Formed(_, _, members):
            yield from (_blob(each.member, streams_blobs.SUBSCRIPTION, each.data) for each in members)
        case ops.Sent():
            yield _blob(event.member, streams_blobs.ASSIGNMENT, event.data)


def _blob(member: str, message: str, data: Blob) -> Plain:
    assert isinstance(data, bytes)
    return {"member": member, "kind": KINDS[message], "hex": data.hex(), "rows": rows(message, data)}


@lru_cache(maxsize=1 << 16)
def rows(message: str, data: bytes) -> list[Plain]:
    """Empty for data of an unknown version."""
    newest = streams_blobs.latest(None)
    version = struct.unpack_from(">i", data)[0] if len(data) >= 4 else 0
    if not 1 <= version <= newest + 1:
        return []
    # The future version begins with the same fields as the newest one.
    layout = spec(APACHE, message).at(min(version, newest))
    explained = explain(layout, struct.pack(">i", layout.version) + data[4:], lenient=True)
    return [_row(each, data, version) for each in explained.rows]


def _row(row: Row, data: bytes, version: int) -> Plain:
    value = version if row.offset == 0 else row.value
    return {
        "offset": row.offset,
        "hex": data[row.offset : row.offset + row.size].hex(),
        "field": row.path or row.type,
        "value": row.meaning if value is None else str(value),
    }
