"""KIP-848: members of one group join, send heartbeats, revoke partitions or fail to, fall silent and leave."""

from kipcheck.conformance.apis.consumer_group import BEAT, PASS, event_of, step_of
from kipcheck.conformance.models.consumer_group import CLIENTS, PASSES, SUBSCRIPTIONS, ConsumerGroup, Event, State
from kipcheck.strategies.events import Conversations, event
from kipcheck.strategies.nodes import Integer, OneOf, Pick, Row, record

_HEARTBEAT = record(
    client=Pick(CLIENTS),
    says=Pick(("stay", "join", "leave")),
    behind=Integer(-1, 2),
    topics=OneOf((Pick((None,)), *(Row(tuple(Pick((topic,)) for topic in each)) for each in SUBSCRIPTIONS))),
    owned=Pick(("told", None, "none", "before")),
)

CONSUMER_GROUPS: Conversations[State, Event] = Conversations(
    ConsumerGroup(),
    step_of,
    event_of,
    events={BEAT: event("client", BEAT, _HEARTBEAT), PASS: event("time", PASS, ms=Pick(PASSES))},
    progress=frozenset({BEAT}),
    max_steps=30,
)
