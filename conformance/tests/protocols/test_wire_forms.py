"""Every request and answer with a wire form is written and read back unchanged in every version of its message."""

from dataclasses import fields, is_dataclass, replace
from enum import Enum
from random import Random
from typing import Any, Final, get_args, get_origin, get_type_hints
from uuid import UUID

import pytest

from kipcheck.conformance.core.operations import wire_form
from kipcheck.conformance.core.operations.field_annotations import Wire
from kipcheck.conformance.core.operations.wire_form import SAME, Context, Inexpressible, Value, message_of
from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.protocols.consumer_group import heartbeat as consumer_group
from kipcheck.conformance.protocols.group import ops as group
from kipcheck.conformance.protocols.group.errors import ERROR, KNOWN
from kipcheck.conformance.protocols.streams_group import heartbeat as streams_group
from kipcheck.conformance.wire.schema import Layout, spec

GROUP: Final = (
    *(each.made for each in group.OPERATIONS.requests.values()),
    *(each.made for each in group.OPERATIONS.answers.values()),
)
CONSUMER_GROUP: Final = (consumer_group.Heartbeat, consumer_group.HeartbeatAnswer)
STREAMS_GROUP: Final = (
    streams_group.Heartbeat, streams_group.HeartbeatAnswer, streams_group.Describe, streams_group.Description,
)  # fmt: skip
TEXTS: Final = ("", "a", "a-1", "é")
IDS: Final = {each: UUID(int=number) for number, each in enumerate(TEXTS, 1)}
NAMES: Final = {id: each for each, id in IDS.items()}
CONTEXT: Final = Context(
    {
        "error": ERROR,
        "blob": Value(str.encode, bytes.decode),
        "topic_id": Value(IDS.__getitem__, NAMES.__getitem__),
        **dict.fromkeys(("topic", "session", "timeout", "regex", "internal_topic"), SAME),
    },
    {"group": "g"},
)
UNPLACED: Final = {"request": 0, "to": 0, "fresh": ""}
NUMBERS: Final = (-1, 0, 1, 127)
DRAWS: Final = 60
ALL_BY_NULL: Final = {"OffsetFetchRequest v0", "OffsetFetchRequest v1"}
"""Versions that cannot fetch the offsets of all topics."""
REPEATED: Final = {"topics": [{"name": "t", "partitions": [{"partitionIndex": 0}, {"partitionIndex": 1}]}]}
"""The rows of an OffsetCommit that its answer repeats."""


def drawn(random: Random, made: Any) -> Any:
    """A value of a type; a number fits in every field of a message."""
    options = [each for each in get_args(made) if each is not type(None)]
    if get_origin(made) is tuple:
        count = random.randrange(4) if options[1:] == [...] else 1
        parts = options[:1] if options[1:] == [...] else options
        return tuple(drawn(random, each) for _ in range(count) for each in parts)
    if type(None) in get_args(made):
        return None if random.random() < 0.3 else drawn(random, options[0])
    if is_dataclass(made):
        hints = get_type_hints(made)
        return made(**{each.name: drawn(random, hints[each.name]) for each in fields(made)})  # type: ignore[operator]
    if isinstance(made, type) and issubclass(made, Enum):
        return random.choice([*KNOWN.values()])
    return random.random() < 0.5 if made is bool else random.choice(NUMBERS if made is int else TEXTS)


def wires_of(made: type) -> dict[str, Wire]:
    """By field."""
    notes = get_type_hints(made, include_extras=True).items()
    extras = ((name, extra) for name, note in notes for extra in getattr(note, "__metadata__", ()))
    return {name: extra for name, extra in extras if isinstance(extra, Wire)}


def expected(value: Any, wire: Wire) -> Any:
    """The value of a field that a version has, as it is read."""
    if isinstance(value, tuple):
        found = [expected(each, wire) for each in value] if value and is_dataclass(value[0]) else value
        return tuple(sorted(found) if wire.is_sorted else found)
    if is_dataclass(value) and not isinstance(value, type):
        wires = wires_of(type(value))
        return replace(value, **{name: expected(getattr(value, name), wire) for name, wire in wires.items()})
    return None if wire.blank_is_null and value == "" else value


def _check(made: type, layout: Layout) -> int:
    """Writes and reads drawn values; how many the version can have."""
    random, hints = Random(f"{made.__name__}/{layout}"), get_type_hints(made)
    wires = wires_of(made)
    lacking, count = wire_form.lacking(made, layout), 0
    for _ in range(DRAWS):
        values = {each.name: drawn(random, hints[each.name]) for each in fields(made)}
        others = {name: value for name, value in UNPLACED.items() if name in values}
        version = {"version": layout.version} if "version" in values else {}
        message = made(**{**values, **others, **version})
        try:
            data = layout.encode(wire_form.write(message, layout, CONTEXT, REPEATED))
        except Inexpressible:
            continue
        found: Any = wire_form.read(made, layout, layout.decode(data), CONTEXT, **others)
        for name, wire in wires.items():
            if name not in lacking:
                assert getattr(found, name) == expected(values[name], wire), (name, layout)
        again = layout.encode(wire_form.write(found, layout, CONTEXT, REPEATED))
        assert wire_form.read(made, layout, layout.decode(again), CONTEXT, **others) == found
        count += 1
    return count


@pytest.mark.parametrize("made", (*GROUP, *CONSUMER_GROUP, *STREAMS_GROUP), ids=lambda made: str(made.__name__))
def test_a_message_is_written_and_read_back_in_every_version(made: type) -> None:
    for layout in spec(APACHE, message_of(made)):
        assert (_check(made, layout) > 0) is (str(layout) not in ALL_BY_NULL), layout


def test_a_version_that_names_topics_by_ids_needs_the_ids() -> None:
    without = replace(CONTEXT, values={name: value for name, value in CONTEXT.values.items() if name != "topic_id"})
    for made in (group.Commit, group.Fetched):
        *others, newest = spec(APACHE, message_of(made))
        for layout in others:
            wire_form.check(made, layout, without)
        with pytest.raises(Inexpressible, match="topic_id"):
            wire_form.check(made, newest, without)
    with pytest.raises(Inexpressible, match="there is no topic_id"):
        wire_form.write(group.Commit(10, "", None, -1, ()), spec(APACHE, "OffsetCommitRequest").at(10), without)
