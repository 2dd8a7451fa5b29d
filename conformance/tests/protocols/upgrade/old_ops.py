"""The steps and observed events of a group of consumers that is upgraded, as JSON, shorthand and sentences."""

from collections.abc import Collection
from typing import Final, TypeAlias, get_args

from kipcheck.conformance.protocols.assignment.model.assignment import partition_names
from kipcheck.conformance.protocols.cluster.kinds import (
    DEFAULT_TOPICS,
    KINDS,
    TOPICS,
)
from kipcheck.conformance.protocols.upgrade.ops import (
    MEMBERS,
    Assigned,
    Counted,
    Crash,
    Ended,
    Event,
    Expire,
    Failed,
    Formed,
    Gave,
    Joining,
    Lose,
    Move,
    ObservedEvent,
    OldBrokers,
    PutOut,
    Restart,
    Restless,
    Rests,
    Roll,
    RollStreams,
    Settle,
    SteppedDown,
    Stop,
    StreamsLed,
    Took,
)
from kipcheck.conformance.tests.protocols.upgrade import old_script_codec as script_codec
from kipcheck.conformance.tests.protocols.upgrade.old_script_codec import ScriptCodec

ObservedAt: TypeAlias = script_codec.ObservedAt[ObservedEvent]


def _checked(event: Event) -> Event:
    if isinstance(event, Roll):
        _check_known("kind of member", event.kind, KINDS)
        for each in event.topics:
            _check_known("topic", each, dict(TOPICS))
    if not isinstance(event, OldBrokers | Settle):
        _check_known("member", event.member, MEMBERS)
    return event


def _check_known(what: str, name: str, there: Collection[str]) -> None:
    if name not in there:
        raise ValueError(f"unknown {what} {name!r}: use one of {', '.join(there)}")


def _text(event: Event) -> str:
    match event:
        case Roll(member, kind, topics):
            return f"roll {member} {kind}" + (f" {','.join(topics)}" if topics != DEFAULT_TOPICS else "")
        case RollStreams(member, version):
            return f"streams {member} {version}"
    raise TypeError(f"{event} has the form of its verb")


def _parsed(words: list[str]) -> Event | None:
    match words:
        case ["roll", member, kind, *topics] if kind in KINDS and len(topics) < 2:
            return Roll(member, kind, tuple(topics[0].split(",")) if topics else DEFAULT_TOPICS)
        case ["streams", member, version] if version.isdigit():
            return RollStreams(member, int(version))
    return None


CODEC: Final = ScriptCodec[Event, ObservedEvent](
    events={
        "old-brokers": OldBrokers,
        "roll": Roll,
        "stop": Stop,
        "crash": Crash,
        "revive": Restart,
        "lose": Lose,
        "expire": Expire,
        "move": Move,
        "settle": Settle,
        "roll-streams": RollStreams,
    },
    observed=get_args(ObservedEvent),
    records={Formed: Joining, Rests: Joining},
    checked=_checked,
    text_of=_text,
    parsed=_parsed,
    forms=("roll MEMBER KIND [TOPICS]", "streams MEMBER VERSION"),
)
"""Shorthand: ``roll a old; roll b ready t,u; settle; crash a; revive a; lose b; expire b; move b 3; stop c;
old-brokers; streams a 6``."""
step_of, event_of, to_json, from_json = CODEC.step_of, CODEC.event_of, CODEC.to_json, CODEC.from_json
shorthand, parse_shorthand = CODEC.shorthand, CODEC.parse_shorthand
answer_of, observations = CODEC.answer_of, CODEC.observations


def describe(event: ObservedEvent) -> str:
    """A sentence for reports."""
    match event:
        case Took(member, generation, partitions):
            return f"{member} takes over {partition_names(partitions)} (generation {generation})"
        case Gave(member, partitions, lost):
            return f"{member} {'loses' if lost else 'revokes'} {partition_names(partitions)}"
        case Ended(member):
            return f"the process of {member} ends"
        case PutOut(member):
            return f"the coordinator removes {member} from the group"
        case Formed(generation, leader, protocol, members):
            participants = ", ".join(f"{each.member} uses version {each.version}" for each in members)
            return f"generation {generation}: {participants}; {leader} leads, with assignor {protocol}"
        case Assigned(member, _, partitions, error):
            return f"{member} receives the assignment {partition_names(partitions)}" + (
                f", error {error}" if error else ""
            )
        case Counted(member, total):
            return f"num.incompatible.rebalance of {member} is {total}"
        case StreamsLed(generation, leader, version):
            return f"generation {generation}: {leader} leads, and supports versions up to {version}"
        case SteppedDown(member, version):
            return f"the leader makes {member} downgrade to version {version}"
        case Failed(member, error):
            return f"{member} fails with {error}"
        case Rests(generation, members):
            return f"the group with {len(members)} members is at rest in generation {generation}"
        case Restless():
            return "the group does not come to rest"
