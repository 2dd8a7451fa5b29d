"""Every request and answer with a wire form is written and read back unchanged in every version of its message."""

from dataclasses import fields, is_dataclass
from enum import Enum
from random import Random
from typing import Any, Final, get_args, get_origin, get_type_hints

import pytest

from kipcheck.conformance.core.operations import wire_form
from kipcheck.conformance.core.operations.field_annotations import Wire
from kipcheck.conformance.core.operations.wire_form import SAME, Context, Inexpressible, Value, message_of
from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.protocols.group import ops as group
from kipcheck.conformance.protocols.group.errors import ERROR
from kipcheck.conformance.wire.schema import Layout, spec

GROUP: Final = (
    *(each.made for each in group.OPERATIONS.requests.values()),
    *(each.made for each in group.OPERATIONS.answers.values()),
)
CONTEXT: Final = Context(
    {"error": ERROR, "blob": Value(str.encode, bytes.decode), "topic": SAME, "session": SAME, "timeout": SAME},
    {"group": "g"},
)
UNPLACED: Final = {"request": 0, "to": 0, "fresh": ""}
TEXTS: Final = ("", "a", "a-1", "é")
NUMBERS: Final = (-1, 0, 1, 2**31 - 1)
DRAWS: Final = 60
TOPIC_IDS: Final = {"OffsetCommitRequest v10", "OffsetFetchResponse v10"}
"""Versions that name topics by ids, which the context lacks."""

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
        return random.choice([*made])
    return random.random() < 0.5 if made is bool else random.choice(NUMBERS if made is int else TEXTS)


def expected(value: Any, wire: Wire) -> Any:
    """The value of a field that a version has, as it is read."""
    if wire.is_sorted:
        return tuple(sorted(value))
    return None if wire.blank_is_null and value == "" else value


def _check(made: type, layout: Layout) -> int:
    """Writes and reads drawn values; how many the version can have."""
    random, hints = Random(f"{made.__name__}/{layout}"), get_type_hints(made)
    notes = get_type_hints(made, include_extras=True)
    wires = {name: extra for name in notes for extra in getattr(notes[name], "__metadata__", ())
             if isinstance(extra, Wire)}  # fmt: skip
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


@pytest.mark.parametrize("made", GROUP, ids=lambda made: str(made.__name__))
def test_a_message_is_written_and_read_back_in_every_version(made: type) -> None:
    for layout in spec(APACHE, message_of(made)):
        if str(layout) in TOPIC_IDS:
            with pytest.raises(Inexpressible, match="topic_id"):
                wire_form.check(made, layout, CONTEXT)
        else:
            wire_form.check(made, layout, CONTEXT)
            assert (_check(made, layout) > 0) is (str(layout) not in ALL_BY_NULL), layout
