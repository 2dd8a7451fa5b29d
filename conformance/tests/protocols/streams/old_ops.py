"""The steps and observed events of a Streams group, as JSON and shorthand. User data stay encoded, as hex."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias, get_args

from kipcheck.conformance.protocols.streams.model.members import (
    OWN,
    Rejoin,
    TaskId,
)
from kipcheck.conformance.protocols.streams.ops import (
    MEMBERS,
    Deploy,
    Event,
    Formed,
    JoinMetadata,
    ObservedEvent,
    Present,
    Rests,
    ShutDown,
    Start,
)
from kipcheck.conformance.protocols.upgrade.ops import (
    Crash,
    Expire,
    Lose,
    Move,
    Restart,
    Settle,
)
from kipcheck.conformance.tests.protocols.streams.old_topologies import (
    plain_topics,
    plain_topology,
    topics_of,
    topology_of,
)
from kipcheck.conformance.tests.protocols.upgrade import old_script_codec as script_codec
from kipcheck.conformance.tests.protocols.upgrade.old_script_codec import ScriptCodec

ObservedAt: TypeAlias = script_codec.ObservedAt[ObservedEvent]


def _checked(event: Event) -> Event:
    if not isinstance(event, Deploy | Settle) and event.member not in MEMBERS:
        raise ValueError(f"unknown member {event.member!r}: use one of {', '.join(MEMBERS)}")
    return event


def _deploy(
    topology: Mapping[str, Any],
    topics: Mapping[str, int],
    end_points: bool = False,
    tags: Iterable[tuple[str, str]] = (),
    newest_leads: bool = False,
) -> Deploy:
    ours = tuple((key, value) for key, value in tags)
    return Deploy(topology_of(topology), topics_of(topics), end_points, ours, newest_leads)


def _text(event: Event) -> str:
    match event:
        case Deploy(topology, topics):
            sizes = " ".join(f"{each.name}:{each.partitions}" for each in topics)
            standbys = f", {topology.standbys} standbys" if topology.standbys else ""
            leads = ", newest leads" if event.newest_leads else ""
            return f"deploy {sizes or 'no topics'} ({len(topology.subtopologies)} subtopologies{standbys}{leads})"
        case Start(member, release, upgrade_from, instance):
            binary = release if upgrade_from is None else f"{release}<{upgrade_from}"
            return f"start {member} {binary}" + ("" if instance is None else f" of {instance}")
    raise TypeError(f"{event} has the form of its verb")


def _parsed(words: list[str]) -> Event | None:
    match words:
        case ["start", member, *of] if len(of) in (0, 1) or (len(of) == 3 and of[1] == "of"):
            release, _, upgrade_from = (of[0] if of else OWN).partition("<")
            return Start(member, release, upgrade_from or None, of[2] if len(of) == 3 else None)
    return None


def _tasks(names: Iterable[str]) -> tuple[TaskId, ...]:
    return tuple(map(TaskId.parse, names))


def _names(tasks: Iterable[TaskId]) -> list[str]:
    return [*map(str, tasks)]


CODEC: Final = ScriptCodec[Event, ObservedEvent](
    events={
        "stream-deploy": Deploy,
        "stream-start": Start,
        "stream-stop": Crash,
        "stream-restart": Restart,
        "stream-lose": Lose,
        "stream-expire": Expire,
        "stream-shut-down": ShutDown,
        "stream-move": Move,
        "stream-settle": Settle,
    },
    observed=get_args(ObservedEvent),
    records={Formed: JoinMetadata, Rests: Present},
    checked=_checked,
    text_of=_text,
    parsed=_parsed,
    forms=("start MEMBER [RELEASE[<UPGRADE_FROM>] [of INSTANCE]]",),
    prefix="stream-",
    makers={"stream-deploy": _deploy},
    writers={
        "topology": plain_topology,
        "topics": plain_topics,
        "data": lambda data: data.hex() if isinstance(data, bytes) else data,
        "active": _names,
        "standby": _names,
    },
    readers={
        "data": lambda data: None if data is None else bytes.fromhex(data),
        "active": _tasks,
        "standby": _tasks,
        "rejoin": lambda values: Rejoin(*values),
    },
)
"""Shorthand: ``start a 2.0.1; start b 2.4.1<2.3; start c own; start d future of c; move a 3; lose b; expire b; stop b;
restart b; shut-down b; settle``. A deployment is written with its sizes, and cannot be parsed."""
step_of, event_of, to_json, from_json = CODEC.step_of, CODEC.event_of, CODEC.to_json, CODEC.from_json
shorthand, parse_shorthand = CODEC.shorthand, CODEC.parse_shorthand
answer_of, observations = CODEC.answer_of, CODEC.observations
