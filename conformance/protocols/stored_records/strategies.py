"""What is drawn: records that a broker writes with all settings, and bytes of every version that it loads."""

from collections.abc import Iterable, Iterator
from random import Random
from typing import Any

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.protocols.declare.check import Conversation
from kipcheck.conformance.protocols.stored_records.model import ENVIRONMENT_EVENTS, State, StoredRecords
from kipcheck.conformance.protocols.stored_records.ops import OPERATIONS, Event, Read, Write
from kipcheck.conformance.protocols.stored_records.settings import STEPS
from kipcheck.strategies.events import Conversations, Swarm
from kipcheck.strategies.operations import nodes


def likely(state: State, swarm: Swarm, random: Random) -> Step | None:
    """Any of the typical records, whether the release takes it or not: its refusals are judged, too."""
    return OPERATIONS.step_of(random.choice(ENVIRONMENT_EVENTS))


def writes(subject: Any) -> Iterable[Conversation]:
    """Each record with each setting; of each line of versions the first, the last, and one past the last."""
    yield from _given("settings", (each for each in ENVIRONMENT_EVENTS if isinstance(each, Write)))
    for line, steps in STEPS.items():
        names = dict.fromkeys(f"{line}-IV{step}" for step in (0, steps - 1, steps))
        yield Conversation(tuple(OPERATIONS.step_of(Write("GroupMetadataValue", name)) for name in names), "names")


def reads(subject: Any) -> Iterable[Conversation]:
    """Each record in each version."""
    return _given("versions", (each for each in ENVIRONMENT_EVENTS if isinstance(each, Read)))


def _given(kind: str, events: Iterable[Event]) -> Iterator[Conversation]:
    return (Conversation((OPERATIONS.step_of(each),), kind) for each in events)


def records(name: str) -> Conversations[State, Event]:
    """Errors: LookupError for an unknown edition."""
    return Conversations(
        StoredRecords(edition(name).release),
        OPERATIONS.step_of,
        OPERATIONS.event_of,
        events=nodes(Write, Read),
        progress=frozenset({"write-record", "read-record"}),
        max_steps=6,
        likely=likely,
    )


CONVERSATIONS = {OPERATIONS.machine: records}
