"""Scripts for Streams groups: an operator upgrades members one by one to another release, with faults.

A script has a plan: the binaries that every member runs in turn, with members in any order. Some plans follow a
documented upgrade path, some go back, some mix any binaries. ``streams`` uses the edition's release and its future
release; ``streams-mixed`` uses members of any releases, on documented paths.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from random import Random
from typing import Any, Final, NamedTuple, TypeAlias

from kipcheck.conformance.core.files.releases_table import listed, named, since
from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.edition import Edition, Standing, edition
from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.protocols.cluster.components import Node as Place
from kipcheck.conformance.protocols.streams.blobs import future_of
from kipcheck.conformance.protocols.streams.model.group_model import State, StreamsMembers, streams_group_model
from kipcheck.conformance.protocols.streams.model.members import FUTURE, OWN
from kipcheck.conformance.protocols.streams.model.release_members import binary
from kipcheck.conformance.protocols.streams.model.rules import LINES
from kipcheck.conformance.protocols.streams.ops import MEMBERS, OPERATIONS, Deploy, Event, ShutDown, Start
from kipcheck.conformance.protocols.upgrade.ops import Crash, Expire, Lose, Move, Restart, Settle
from kipcheck.conformance.protocols.upgrade.script_strategies import Operator
from kipcheck.strategies.compiled import compiled
from kipcheck.strategies.events import Conversations, Swarm, event
from kipcheck.strategies.nodes import Flag, Integer, Node, OneOf, Pick, Record, Row, Scalar, record
from kipcheck.strategies.operations import nodes

# Deployments


def literal(plain: Any) -> Node:
    """A node for this value only."""
    match plain:
        case dict():
            return record(**{name: literal(each) for name, each in plain.items()})
        case list():
            return Row(tuple(map(literal, plain)))
    return Pick((plain,))


def _subtopology(id: int, *sources: str, repartition: Iterable[str] = (), stores: Any = (), **more: Any) -> Any:
    fields = {"id": id, "sources": [*sources], "repartition": [*repartition], "copartition": [], "topology": None}
    return {**fields, "stores": [{"name": name, "logged": logged} for name, logged in stores], **more}


STATELESS: Final = [_subtopology(0, "t")]
STATEFUL: Final = [_subtopology(0, "t", stores=[("counts", True)])]
BOTH: Final = [_subtopology(0, "t"), _subtopology(1, "u", stores=[("counts", True), ("scratch", False)])]
CHAIN: Final = [_subtopology(0, "t", repartition=["r"]), _subtopology(1, "r", stores=[("sums", True)])]
LONG_CHAIN: Final = [
    _subtopology(0, "t", repartition=["r"]),
    _subtopology(1, "r", repartition=["s"]),
    _subtopology(2, "s", stores=[("sums", True)]),
]
FORKED: Final = [
    _subtopology(0, "t", repartition=["r", "s"]),
    _subtopology(1, "r", stores=[("counts", True)]),
    _subtopology(2, "s"),
]
JOINED: Final = [_subtopology(0, "t", "u", stores=[("left", True), ("right", True)], copartition=[["t", "u"]])]
JOINED_LATER: Final = [
    _subtopology(0, "t", repartition=["r"]),
    _subtopology(1, "r", "u", stores=[("joined", True)], copartition=[["r", "u"]]),
]
NAMED: Final = [
    _subtopology(0, "t", stores=[("counts", True)], topology="counting"),
    _subtopology(0, "u", topology="passing"),
]
SHAPES: Final[tuple[tuple[Any, tuple[str, ...]], ...]] = (
    (STATELESS, ("t",)),
    (STATEFUL, ("t",)),
    (BOTH, ("t", "u")),
    (CHAIN, ("t",)),
    (LONG_CHAIN, ("t",)),
    (FORKED, ("t",)),
    (JOINED, ("t", "u")),
    (JOINED_LATER, ("t", "u")),
)
"""Subtopologies, and the external topics that they read."""
SIZES: Final = (1, 2, 3, 4)
TAGS: Final[tuple[Any, ...]] = (
    [],
    [["zone", "z1"]],
    [["zone", "z1"], ["zone", "z2"]],
    [["zone", "z1"], ["rack", "r1"], ["zone", "z2"]],
)
NAMED_SINCE: Final = Release.parse(since("topology-names"))


def _sizes(topics: tuple[str, ...], subtopologies: Any) -> Node:
    """Copartitioned topics have one size."""
    if any(each["copartition"] for each in subtopologies):
        return OneOf(tuple(literal(dict.fromkeys(topics, size)) for size in SIZES))
    return record(**dict.fromkeys(topics, Integer(1, SIZES[-1])))


def _deployment(subtopologies: Any, topics: Node) -> Record:
    topology = record(subtopologies=literal(subtopologies), standbys=Integer(0, 2))
    usual = record(topology=topology, topics=topics, end_points=Flag(), tags=OneOf(tuple(map(literal, TAGS))))
    return Record(usual.fields, (("newest_leads", Pick((True,))),))


def deployments(named: bool, chained: bool = True) -> OneOf:
    """All deployments; ``named``: also topologies with names; ``chained``: also chains of repartition topics."""
    shapes = (*SHAPES, (NAMED, ("t", "u"))) if named else SHAPES
    if not chained:
        shapes = tuple(each for each in shapes if each[0] is not LONG_CHAIN)
    return OneOf(tuple(_deployment(subtopologies, _sizes(topics, subtopologies)) for subtopologies, topics in shapes))


LACKING: Final = OneOf(
    (
        *(_deployment(subtopologies, literal({})) for subtopologies, _ in SHAPES),
        _deployment(BOTH, record(t=Integer(1, 4))),
        _deployment(JOINED, record(u=Integer(1, 4))),
        _deployment(JOINED_LATER, record(u=Integer(1, 4))),
        _deployment(JOINED, literal({"t": 1, "u": 2})),
    )
)
"""A source topic is missing, or two copartitioned topics have different sizes."""

# Upgrade paths


class Binary(NamedTuple):
    release: str = OWN
    upgrade_from: str | None = None


Path: TypeAlias = tuple[Binary, ...]
NEW: Final = Binary()
AHEAD: Final = Binary(FUTURE)
PATHS: Final[Mapping[str, Path]] = {
    "up": (NEW, AHEAD),
    "up and back": (NEW, AHEAD, NEW),
    "down": (AHEAD, NEW),
    "again": (NEW, NEW),
    "mixed": (),
}
MODERN: Final = listed("streams-modern")
"""Any of these can be mixed, and upgraded with one rolling upgrade."""
PROBING: Final = listed("streams-probing")
"""Releases with version probing and only the eager protocol."""
LAST_STOP: Final = named("last-before-4")
"""The newest release to which an eager one can be upgraded."""
ANCIENT: Final = listed("streams-old")
OLDEST: Final = ANCIENT[0]
"""Searches for ever for the size of the second of two chained repartition topics."""
STOPS: Final = tuple(each for each in (*PROBING, *MODERN) if Release.parse(each) <= Release.parse(LAST_STOP))
OPERATOR: Final = Operator(
    OPERATIONS, MEMBERS, (Lose, Expire, Crash), restarts=0.25, moves=0.62, fails=0.74, most_moves=6
)


def line(release: str) -> str:
    """``2.3`` for 2.3.1, ``0.10.2`` for 0.10.2.2: the value of ``upgrade.from``."""
    return next(each for each in LINES if f"{release}.".startswith(f"{each}."))


class Plan(NamedTuple):
    """Parameters of a few scripts."""

    path: Path
    any_of: tuple[Binary, ...]
    """Used instead of a path, where that is empty."""
    members: tuple[str, ...]
    deployed: Any
    """As plain data; None to keep the default."""


def _mixed_path(random: Random, draft: bool) -> tuple[Path, tuple[Binary, ...]]:
    """A path from release to release, or modern releases in any order."""
    if draft:
        old = random.choice([*ANCIENT[:1], *ANCIENT[2:]])
        return (Binary(old), Binary(OWN, line(old)), NEW), ()
    way = random.random()
    if way < 0.3:
        return (), tuple(map(Binary, random.sample(MODERN, 3)))
    if way < 0.55:
        return tuple(map(Binary, sorted(random.sample(MODERN, random.choice((2, 3))), key=Release.parse))), ()
    if way < 0.8:
        old, new = random.choice(PROBING), random.choice(STOPS)
        path = (Binary(old), Binary(new)) if new in PROBING else (Binary(old), Binary(new, line(old)), Binary(new))
        return path, ()
    old, new = random.choice(ANCIENT), random.choice(STOPS)
    return (Binary(old), Binary(new, line(old)), Binary(new)), ()


def _plan(random: Random, here: Edition, mixed: bool) -> Plan:
    draft = here.standing is Standing.DRAFT
    members = MEMBERS[: random.choice((2, 3, 3, 3, 4))]
    if mixed:
        path, any_of = _mixed_path(random, draft)
    else:
        path, any_of = PATHS[random.choice([*PATHS])], (NEW, AHEAD)
    named = not mixed and not draft and Release.parse(here.release) >= NAMED_SINCE
    declared = deployments(named, chained=OLDEST not in {each.release for each in path})
    if not mixed and random.random() < 0.1:
        declared = LACKING
    return Plan(path, any_of, members, compiled(declared)(random) if random.random() < 0.8 else None)


def likely(state: State, swarm: Swarm, random: Random) -> Step | None:
    """The next event: an operator's or a fault."""
    plan: Plan = swarm.traits
    group, chance = OPERATOR.group(state), random.random()
    known = [name for name in MEMBERS if group.nodes[name].kind]
    if not known and plan.deployed is not None and state.deployed == Deploy() and "stream-deploy" in swarm.verbs:
        return Step("operator", "stream-deploy", plan.deployed)
    if len(known) < len(plan.members):
        if known and chance < 0.15:
            return OPERATIONS.step_of(Move(random.choice(known), 2))
    elif (found := OPERATOR.usual(group, swarm, chance, random)) is not None:
        return OPERATIONS.step_of(found)
    elif group.running and chance < 0.76 and "stream-shut-down" in swarm.verbs:
        return OPERATIONS.step_of(ShutDown(random.choice(group.running)))
    return OPERATIONS.step_of(_started(group.nodes, plan, random))


def _started(nodes: Mapping[str, Place], plan: Plan, random: Random) -> Start:
    """Upgrades one of the members that are least advanced."""
    far = {name: _stage(nodes[name], plan.path) for name in plan.members}
    least = min(far.values())
    member = random.choice([name for name, at in far.items() if at == least])
    instance = random.choice(plan.members) if random.random() < 0.15 else None
    to = plan.path[min(least + 1, len(plan.path) - 1)] if plan.path else random.choice(plan.any_of)
    return Start(member, to.release, to.upgrade_from, None if instance == member else instance)


def _stage(node: Place, path: Path) -> int:
    """The index of a member's binary on the path; -1 if it never ran."""
    if not node.kind:
        return -1
    _, release, upgrade_from, _ = node.kind.split("/")
    runs = Binary(release, upgrade_from or None)
    return max((at for at, each in enumerate(path) if each == runs), default=0)


# Conversations


def _conversations(name: str, mixed: bool) -> Conversations[State, Event]:
    here = edition(name)
    draft = here.standing is Standing.DRAFT
    if draft and here.name != "kip-268":
        raise ValueError(f"edition {here} specifies nothing about Streams")
    own = here.name if draft else here.release
    named = not mixed and not draft and Release.parse(here.release) >= NAMED_SINCE
    releases: tuple[Scalar, ...] = (OWN, FUTURE)
    if mixed:
        releases = (OWN, *ANCIENT) if draft else (*MODERN, *PROBING, *ANCIENT)
    binaries = {"release": Pick(releases), "upgrade_from": Pick((None, *LINES))}
    events = {
        **nodes(*OPERATIONS.of(Settle)),
        **nodes(Start, drawn=binaries),
        **nodes(*OPERATIONS.of(Move)),
        "stream-deploy": event("operator", "stream-deploy", OneOf((*deployments(named).options, *LACKING.options))),
        **nodes(*OPERATIONS.of(*OPERATOR.faults, Restart, ShutDown)),
    }
    return Conversations(
        streams_group_model(StreamsMembers(lambda settings: binary(settings, here), own, future_of(here.name))),
        OPERATIONS.step_of,
        OPERATIONS.event_of,
        events=events,
        progress=frozenset({"stream-settle", "stream-start", "stream-deploy"}),
        likely=likely,
        traits=lambda random: _plan(random, here, mixed),
        possible=OPERATOR.possible,
        # Members of different releases meet on documented paths only, not by chance.
        enabled_shares=(1.0,) if mixed else (1.0, 0.97, 0.9),
        near_shares=(0.0,) if mixed else (0.0, 0.0, 0.1),
        max_steps=18,
        usual_steps=5,
    )


@cache
def streams_scripts(edition_name: str) -> Conversations[State, Event]:
    """The edition's release and its future release. Errors: ValueError for an edition without Streams."""
    return _conversations(edition_name, mixed=False)


@cache
def mixed_streams_scripts(edition_name: str) -> Conversations[State, Event]:
    """Any releases. Errors: ValueError for an edition without Streams."""
    return _conversations(edition_name, mixed=True)
