"""A Streams group that is upgraded, or taken back, member by member: in words, and in every order of events."""

from collections.abc import Mapping
from typing import Final

from kipcheck.conformance.apis.streams import event_of, spoken
from kipcheck.conformance.apis.streams_blobs import future_of
from kipcheck.conformance.core.edition import KIP_268, Edition, Standing
from kipcheck.conformance.core.release import Release
from kipcheck.conformance.models.assignment import Topic
from kipcheck.conformance.models.streams.binaries import binary
from kipcheck.conformance.models.streams.group_model import Fleet
from kipcheck.conformance.models.streams.laws import laws
from kipcheck.conformance.models.streams.members import FUTURE, Store, Subtopology, Topology
from kipcheck.conformance.models.streams.operations import MEMBERS, OWN, STATELESS, TOPICS, Deploy
from kipcheck.conformance.models.streams.product import Stage, World as Upgrading
from kipcheck.conformance.models.streams.tasks import work
from kipcheck.conformance.play.declare import (
    FLAG,
    INTEGER,
    TEXT,
    Conversation,
    Dial,
    Field,
    Kind,
    Playable,
    Scope,
    Verb,
    World,
)
from kipcheck.conformance.play.group import FIRE

WHERE: Final = "apache, apache@RELEASE from 0.10.0.0 on, and kip-268"
CLASSES: Final = (
    "0.10.0.1", "0.10.1.1", "1.1.1", "2.0.1", "2.1.1", "2.2.2", "2.3.1", "2.4.1", "2.5.1", "2.6.0", "2.6.3", "2.8.2",
    "3.0.2", "3.9.2", "4.3.1",
)  # fmt: skip
"""A release of each kind of behaviour."""
BINARIES: Final = (OWN, FUTURE, *CLASSES)
UNSET: Final = "none"
LINES: Final = ("0.10.0", "0.10.2", "1.1", "2.3")
RESTARTS: Final = ("same", "either")
MOVES: Final[Mapping[str, str]] = {
    "arrives": "its oldest request reaches the coordinator",
    "hears": "it hears the answer that is on its way, and ends of it",
    "beats": "it hears that the others join afresh, and does",
    "crashes": "its process ends, and starts again",
    "changes": "its process ends, and starts again as the other binary",
}
DOES: Final = Verb(
    "does", MEMBERS[:3], "something happens to a member",
    (Field("verb", Kind(f"one of {', '.join(MOVES)}", MOVES.__contains__),
           "; ".join(f"{verb}: {meaning}" for verb, meaning in MOVES.items())),),
)  # fmt: skip
BOUNCES: Final = Verb(
    "bounces", ("coordinator",), "the group is at peace, and the operator bounces a member",
    (Field("member", Kind(f"one of {', '.join(MEMBERS)}", MEMBERS.__contains__), "which one"),),
)  # fmt: skip


def _editions(edition: Edition) -> str | None:
    released = edition.standing is Standing.RELEASED and Release.parse(edition.release) >= Release.parse("0.10.0.0")
    return None if edition == KIP_268 or released else WHERE


def fleet(edition: Edition) -> Fleet:
    """Played by models alone, which exchange values."""
    own = edition.name if edition == KIP_268 else edition.release
    return Fleet(lambda settings: binary(settings, edition), own, future_of(edition.name))


def upgrading(made: Fleet, scope: Scope) -> World:
    """A world of the members of a fleet."""
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
    world.laws = laws(consumers, kinds, work(topology, topics).tasks, world.most_rounds)
    return world


MEMBER: Final = BOUNCES.fields[0]
OPERATOR: Final = ("operator",)
LIST: Final = Kind("list", lambda value: isinstance(value, list))
OBJECT: Final = Kind("object", lambda value: isinstance(value, dict))


def _about(verb: str, meaning: str, shorthand: str, *fields: Field) -> Verb:
    return Verb(f"stream-{verb}", OPERATOR, meaning, fields, shorthand)


OPERATIONS: Final = (
    _about("deploy", "what all members run from now on; before anything else", "",
           Field("topology", OBJECT, "subtopologies, and standbys of each"),
           Field("topics", OBJECT, "that exist, with their partitions"),
           Field("end_points", FLAG, "has each member an application.server?", needed=False),
           Field("tags", LIST, "one for each member in turn, as [key, value]", needed=False)),
    _about("start", "a member starts; one that runs ends first, without a word", "start a 2.4.1<2.3", MEMBER,
           Field("release", TEXT, "own, future, or an exact patch; own where nothing is said", needed=False),
           Field("upgrade_from", TEXT.or_null(), "upgrade.from", needed=False),
           Field("instance", TEXT.or_null(), "whose thread it is; its own where nothing is said", needed=False)),
    _about("stop", "a member ends without a word, and stays away", "stop a", MEMBER),
    _about("restart", "a member that ended starts as what it was", "restart a", MEMBER),
    _about("lose", "a member's connection breaks: what is under way is lost", "lose a", MEMBER),
    _about("expire", "a member that is alive is taken for dead", "expire a", MEMBER),
    _about("shut-down", "a member asks the whole application to shut down (2.8 on)", "shut-down a", MEMBER),
    _about("move", "a member makes so many moves, while all others wait", "move a 3", MEMBER,
           Field("moves", INTEGER, "how many; one where nothing is said", needed=False)),
    _about("settle", "time passes until nothing more happens by itself", "settle"),
)  # fmt: skip
"""Of a conversation: what an operator does, and what goes wrong."""

STREAMS: Final = Playable(
    name="streams",
    about="a Kafka Streams group that an operator upgrades, or takes back, in any order of its members",
    editions=_editions,
    world=lambda edition, scope: upgrading(fleet(edition), scope),
    verbs=OPERATIONS,
    moves=(DOES, BOUNCES, FIRE),
    conversation=lambda edition: Conversation("group", fleet(edition), event_of, spoken),
    dials={
        "members": Dial(3, "each an instance of one thread", (1, 2, 3)),
        "partitions": Dial(1, "of the one topic", (1, 2, 3)),
        "standbys": Dial(0, "copies of each task, which has state then", (0, 1)),
        "from": Dial(OWN, "what members run to begin with", BINARIES),
        "to": Dial(FUTURE, "what they become, in any order", BINARIES),
        "upgrade-from": Dial(UNSET, "set in a first of two bounces, to the line of the old release", (UNSET, *LINES)),
        "crashes": Dial(1, "processes that end, and start again", (0, 1, 2)),
        "restarts": Dial("either", "as what they were, or also as the other binary", RESTARTS),
    },
)
