"""Consumers and their coordinator, joined by a network; and a group of them that is upgraded, member by member."""

from collections.abc import Iterable, Mapping
from typing import Final

from kipcheck.conformance.apis.upgrade_script import event_of, spoken
from kipcheck.conformance.core.edition import KIP_429, Edition
from kipcheck.conformance.models.assignment import Topic
from kipcheck.conformance.models.cluster import Cluster
from kipcheck.conformance.models.cluster_components import Scope as ClusterScope
from kipcheck.conformance.models.cluster_laws import laws
from kipcheck.conformance.models.operations import COOPERATES, EVERYBODYS, KINDS as MEMBER_KINDS, OLD, READY, TOPICS
from kipcheck.conformance.models.upgrade import Bounce, as_before, bounces_in, consumers, coordinator
from kipcheck.conformance.play.declare import INTEGER, Conversation, Dial, Field, Kind, Playable, Scope, Verb, World
from kipcheck.conformance.play.group import FIRE, STORE

MEMBERS: Final = ("a", "b", "c")
WHERE: Final = "apache, apache@RELEASE from 2.4.0 on, and kip-429"
VERBS: Final[Mapping[str, str]] = {
    "starts": "its process starts, subscribes and asks to join",
    "arrives": "its oldest request reaches the coordinator",
    "hears": "it hears the answer that is on its way, and polls",
    "beats": "it sends a heartbeat that has something to tell it",
    "retries": "its back-off is over",
    "crashes": "its process ends",
    "breaks": "its connection breaks: it does not know what came of its request",
    "repeats": "its oldest request arrives, and will arrive once more",
}
DOES: Final = Verb(
    "does", MEMBERS, "something happens to a member",
    (Field("verb", Kind(f"one of {', '.join(VERBS)}", VERBS.__contains__),
           "; ".join(f"{verb}: {meaning}" for verb, meaning in VERBS.items())),),
)  # fmt: skip
ROLLS: Final = Verb("rolls", ("coordinator",), "the group is at peace, and the operator goes on with the next member")
MISHAPS: Final[Mapping[str, Dial]] = {
    "crashes": Dial(1, "processes that end, and are started again", (0, 1, 2)),
    "losses": Dial(0, "connections that break with a request under way", (0, 1, 2)),
    "late": Dial(0, "timers that run out although the member that they wait for is alive", (0, 1, 2)),
    "repeats": Dial(0, "requests that arrive twice", (0, 1, 2)),
}
SIZES: Final[Mapping[str, Dial]] = {
    "members": Dial(3, "consumers", (1, 2, 3)),
    "partitions": Dial(3, "of the one topic", (1, 2, 3, 4)),
}
KINDS: Final[Mapping[str, str]] = {"eager": OLD, "both": READY, "cooperative": COOPERATES}
"""What members speak, and what such a kind of member is called."""
PATHS: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "two-bounces": ((READY, COOPERATES), OLD),
    "first-bounce": ((READY,), OLD),
    "second-bounce": ((COOPERATES,), READY),
    "skipped": ((COOPERATES,), OLD),
    "back": ((READY, OLD), COOPERATES),
}
"""What all members become, one kind after the other, and what they are to begin with."""


def _made(
    edition: Edition, scope: Scope, kind: str, script: tuple[tuple[int, str], ...] = (), by_version: bool = True
) -> World:
    topic, members = Topic(EVERYBODYS[0], scope["partitions"]), MEMBERS[: scope["members"]]
    # Who skips the path does not wait for members that are refused.
    patient = scope.get("path") != "skipped"
    bounds = ClusterScope(**{name: scope[name] for name in MISHAPS}, script=script, patient=patient)
    partitions = tuple((topic.name, number) for number in range(topic.partitions))
    spoken = (lambda request: request) if by_version else as_before
    kinds = (kind,) * len(members)
    return Cluster(
        coordinator(edition, by_version), consumers(edition, (topic,)), members, bounds, kinds, laws(partitions), spoken
    )


def _cluster(edition: Edition, scope: Scope) -> World:
    return _made(edition, scope, KINDS[scope["protocol"]])


def _bounce(edition: Edition, scope: Scope) -> World:
    if scope["brokers"] == "before" and edition != KIP_429:
        raise LookupError(f"brokers=before is of {KIP_429} alone: as released no leader is chosen by version")
    bounces, first = PATHS[scope["path"]]
    script = tuple((member, kind) for kind in bounces for member in range(1, scope["members"] + 1))
    return _made(edition, scope, first, script, by_version=scope["brokers"] == "newest")


def _editions(edition: Edition) -> str | None:
    return None if bounces_in(edition) else WHERE


def _one_of(names: Iterable[str]) -> Kind:
    known = (*names,)
    return Kind(f"one of {', '.join(known)}", known.__contains__)


MEMBER: Final = Field("member", _one_of(MEMBERS), "which one")
OPERATOR: Final = ("operator",)
OPERATIONS: Final = (
    Verb("old-brokers", OPERATOR, "before anything else: the group is coordinated as before the draft", (),
         "old-brokers"),
    Verb("roll", OPERATOR, "a member stops as it should, if it runs, and starts as another kind", (
        MEMBER,
        Field("kind", _one_of(MEMBER_KINDS), "of its binary and configuration"),
        Field("topics", _one_of(name for name, _ in TOPICS).listed(), "what it subscribes to", needed=False),
    ), "roll a old"),
    Verb("stop", OPERATOR, "a member leaves as it should", (MEMBER,), "stop a"),
    Verb("crash", OPERATOR, "a member's process ends", (MEMBER,), "crash a"),
    Verb("revive", OPERATOR, "a member that stopped or crashed starts as what it was", (MEMBER,), "revive a"),
    Verb("lose", OPERATOR, "a member's connection breaks: what is under way is lost", (MEMBER,), "lose a"),
    Verb("expire", OPERATOR, "a member that is alive is taken for dead", (MEMBER,), "expire a"),
    Verb("move", OPERATOR, "a member makes so many moves, while all others wait", (
        MEMBER, Field("moves", INTEGER, "how many; one where nothing is said", needed=False),
    ), "move a 3"),
    Verb("settle", OPERATOR, "time passes until nothing more happens by itself", (), "settle"),
    Verb("roll-streams", OPERATOR, "an instance of a Streams group starts with such metadata", (
        MEMBER, Field("version", INTEGER, "of the metadata"),
    ), "streams a 6"),
)  # fmt: skip
"""Of a conversation: what an operator does, and what goes wrong."""


CLUSTER = Playable(
    name="cluster",
    about="consumers and their coordinator, joined by a network",
    editions=_editions,
    world=_cluster,
    moves=(DOES, FIRE, STORE),
    dials={**SIZES, **MISHAPS, "protocol": Dial("cooperative", "what all members speak", tuple(KINDS))},
)

BOUNCE = Playable(
    name="bounce",
    about="a group that an operator upgrades, or takes back, member by member, whenever it is at peace",
    editions=_editions,
    world=_bounce,
    verbs=OPERATIONS,
    moves=(DOES, ROLLS, FIRE, STORE),
    conversation=lambda edition: Conversation("group", Bounce(edition), event_of, spoken),
    dials={
        **SIZES,
        **MISHAPS,
        "path": Dial("two-bounces", "what is rolled over it", tuple(PATHS)),
        "brokers": Dial("newest", "before: as before the draft, first come, first served", ("newest", "before")),
    },
)
