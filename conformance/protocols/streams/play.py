"""Declares the model ``streams``: a Kafka Streams group that is upgraded or downgraded member by member."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from kipcheck.conformance.core.files.releases_table import listed, patches
from kipcheck.conformance.core.values.edition import KIP_268, Edition, Standing
from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.protocols.assignment.model.assignment import Topic
from kipcheck.conformance.protocols.declare.play import (
    Bound,
    Conversation,
    Field,
    Kind,
    Playable,
    Product,
    Scope,
    Verb,
    verbs,
)
from kipcheck.conformance.protocols.group.play import FIRE
from kipcheck.conformance.protocols.streams.blobs import future_of
from kipcheck.conformance.protocols.streams.model.group_model import StreamsMembers, streams_group_model
from kipcheck.conformance.protocols.streams.model.laws import laws
from kipcheck.conformance.protocols.streams.model.members import FUTURE, OWN, Store, Subtopology, Topology
from kipcheck.conformance.protocols.streams.model.product import Stage, UpgradeProduct as Upgrading
from kipcheck.conformance.protocols.streams.model.release_members import binary
from kipcheck.conformance.protocols.streams.model.tasks import work
from kipcheck.conformance.protocols.streams.ops import MEMBERS, OPERATIONS, STATELESS, TOPICS, Deploy

SUPPORTED_EDITIONS: Final = "apache, apache@RELEASE from 0.10.0.0 on, and kip-268"
CLASSES: Final = listed("streams-behaviours")
"""One release for each distinct behaviour."""
BINARIES: Final = (OWN, FUTURE, *CLASSES)
UNSET: Final = "none"
LINES: Final = ("0.10.0", "0.10.2", "1.1", "2.3")
RESTARTS: Final = ("same", "either")
MOVES: Final[Mapping[str, str]] = {
    "arrives": "its oldest request reaches the coordinator",
    "hears": "it receives the response in flight, which ends its thread",
    "beats": "a heartbeat reports that the others rejoin, and it joins too",
    "crashes": "its process ends and restarts",
    "changes": "its process ends and restarts with the other binary",
}
DOES: Final = Verb(
    "does", MEMBERS[:3], "a member moves, or a fault affects it",
    (Field("verb", Kind(f"one of {', '.join(MOVES)}", MOVES.__contains__),
           "; ".join(f"{verb}: {meaning}" for verb, meaning in MOVES.items())),),
)  # fmt: skip
BOUNCES: Final = Verb(
    "bounces", ("coordinator",), "the group is stable, and the operator bounces a member",
    (Field("member", Kind(f"one of {', '.join(MEMBERS)}", MEMBERS.__contains__), "name of the member"),),
)  # fmt: skip


def _editions(edition: Edition) -> str | None:
    released = edition.standing is Standing.RELEASED and Release.parse(edition.release) >= Release.parse(patches()[0])
    return None if edition == KIP_268 or released else SUPPORTED_EDITIONS


def streams_members(edition: Edition) -> StreamsMembers:
    """Members of a Streams group: each is a model, and user data are values."""
    own = edition.name if edition == KIP_268 else edition.release
    return StreamsMembers(lambda settings: binary(settings, edition), own, future_of(edition.name))


def upgrade_product(made: StreamsMembers, scope: Scope) -> Product:
    """The product machine of a rolling upgrade of this group's members."""
    topics = (Topic(TOPICS[0].name, scope["partitions"]),)
    topology = STATELESS
    if scope["standbys"]:
        topology = Topology((Subtopology(0, ("t",), stores=(Store("counts"),)),), scope["standbys"])
    members = MEMBERS[: scope["members"]]
    upgrade_from = None if scope["upgrade-from"] == UNSET else scope["upgrade-from"]
    path: list[Stage] = [(scope["from"], None), (scope["to"], upgrade_from)]
    if upgrade_from is not None:
        path.append((scope["to"], None))
    if path[0] == path[-1]:
        path = path[:1]
    consumers = made.consumers(Deploy(topology, topics))
    world = Upgrading(
        made.brokers, consumers, members, path, (TOPICS[0].name,), scope["crashes"], scope["restarts"] == "either"
    )
    kinds = [world.kind(member, stage) for member in members for stage in range(len(path))]
    world.laws = laws(consumers, kinds, work(topology, topics).tasks, world.max_rounds)
    return world


VERBS: Final = tuple(
    replace(each, fields=tuple(one for one in each.fields if one.name != "newest_leads")) for each in verbs(OPERATIONS)
)
"""Without the field that says who leads next: a person has no need of it."""

STREAMS: Final = Playable(
    name="streams",
    about="a Kafka Streams group that an operator upgrades or downgrades, with its members in any order",
    editions=_editions,
    world=lambda edition, scope: upgrade_product(streams_members(edition), scope),
    verbs=VERBS,
    moves=(DOES, BOUNCES, FIRE),
    conversation=lambda edition: Conversation(
        "group", streams_group_model(streams_members(edition)), OPERATIONS.event_of, OPERATIONS.parse_shorthand
    ),
    dials={
        "members": Bound(3, "number of instances, each with one thread", (1, 2, 3)),
        "partitions": Bound(1, "number of partitions of the only topic", (1, 2, 3)),
        "standbys": Bound(0, "number of standby replicas; above 0, tasks are stateful", (0, 1)),
        "from": Bound(OWN, "release that the members run at the start", BINARIES),
        "to": Bound(FUTURE, "release that the members are upgraded to, in any order", BINARIES),
        "upgrade-from": Bound(
            UNSET, "upgrade.from in the first of two bounces: the line of the old release", (UNSET, *LINES)
        ),
        "crashes": Bound(1, "number of processes that end and restart", (0, 1, 2)),
        "restarts": Bound("either", "binary after a crash: the same, or either of the two", RESTARTS),
    },
)
PLAYABLES = (STREAMS,)
