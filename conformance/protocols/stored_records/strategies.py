"""What is drawn: records that a broker writes with all settings, and bytes of every version that it loads."""

from random import Random

from kipcheck.conformance.core.case import Step
from kipcheck.conformance.core.edition import edition
from kipcheck.conformance.protocols.stored_records.model import ENVIRONMENT_EVENTS, State, StoredRecords
from kipcheck.conformance.protocols.stored_records.ops import OPERATIONS, Event, Read, Write
from kipcheck.strategies.events import Conversations, Swarm
from kipcheck.strategies.operations import nodes


def likely(state: State, swarm: Swarm, random: Random) -> Step | None:
    """Any of the typical records, whether the release takes it or not: its refusals are judged, too."""
    return OPERATIONS.step_of(random.choice(ENVIRONMENT_EVENTS))


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
