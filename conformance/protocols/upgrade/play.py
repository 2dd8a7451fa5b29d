"""Declares the models ``cluster`` (consumers, their coordinator and a network) and ``bounce`` (a rolling upgrade)."""

from collections.abc import Mapping
from typing import Final

from kipcheck.conformance.core.values.edition import KIP_429, Edition
from kipcheck.conformance.protocols.assignment.model.assignment import Topic
from kipcheck.conformance.protocols.cluster.components import Scope as ClusterScope
from kipcheck.conformance.protocols.cluster.kinds import COOPERATES, DEFAULT_TOPICS, OLD, READY
from kipcheck.conformance.protocols.cluster.laws import laws
from kipcheck.conformance.protocols.cluster.model import Cluster
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
from kipcheck.conformance.protocols.group.play import FIRE, STORE
from kipcheck.conformance.protocols.upgrade.model.upgrade import (
    consumers,
    coordinator,
    for_old_brokers,
    has_upgrade,
    upgrade_model,
)
from kipcheck.conformance.protocols.upgrade.ops import OPERATIONS

MEMBERS: Final = ("a", "b", "c")
SUPPORTED_EDITIONS: Final = "apache, apache@RELEASE from 2.4.0 on, and kip-429"
VERBS: Final[Mapping[str, str]] = {
    "starts": "its process starts, subscribes and sends a JoinGroup",
    "arrives": "its oldest request reaches the coordinator",
    "hears": "it receives the response in flight, and polls",
    "beats": "it sends a heartbeat whose response carries news",
    "retries": "its back-off ends",
    "crashes": "its process ends",
    "breaks": "its connection breaks: the outcome of its request is unknown to it",
    "repeats": "its oldest request arrives, and will arrive a second time",
}
DOES: Final = Verb(
    "does", MEMBERS, "a member moves, or a fault affects it",
    (Field("verb", Kind(f"one of {', '.join(VERBS)}", VERBS.__contains__),
           "; ".join(f"{verb}: {meaning}" for verb, meaning in VERBS.items())),),
)  # fmt: skip
ROLLS: Final = Verb("rolls", ("coordinator",), "the group is stable, and the operator continues with the next member")
MISHAPS: Final[Mapping[str, Bound]] = {
    "crashes": Bound(1, "number of processes that end and restart", (0, 1, 2)),
    "losses": Bound(0, "number of connections that break with a request in flight", (0, 1, 2)),
    "late": Bound(0, "number of timers that expire although their member is alive", (0, 1, 2)),
    "repeats": Bound(0, "number of requests that arrive twice", (0, 1, 2)),
}
SIZES: Final[Mapping[str, Bound]] = {
    "members": Bound(3, "number of consumers", (1, 2, 3)),
    "partitions": Bound(3, "number of partitions of the only topic", (1, 2, 3, 4)),
}
KINDS: Final[Mapping[str, str]] = {"eager": OLD, "both": READY, "cooperative": COOPERATES}
"""Rebalance protocol of the members -> the kind of member that supports it."""
PATHS: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "two-bounces": ((READY, COOPERATES), OLD),
    "first-bounce": ((READY,), OLD),
    "second-bounce": ((COOPERATES,), READY),
    "skipped": ((COOPERATES,), OLD),
    "back": ((READY, OLD), COOPERATES),
}
"""Upgrade path -> the kinds that all members are rolled to, in order, and the kind they start as."""


def _cluster_product(
    edition: Edition, scope: Scope, kind: str, script: tuple[tuple[int, str], ...] = (), by_version: bool = True
) -> Product:
    topic, members = Topic(DEFAULT_TOPICS[0], scope["partitions"]), MEMBERS[: scope["members"]]
    # On the path "skipped" the operator does not wait for members whose join is refused.
    patient = scope.get("path") != "skipped"
    bounds = ClusterScope(**{name: scope[name] for name in MISHAPS}, script=script, patient=patient)
    partitions = tuple((topic.name, number) for number in range(topic.partitions))
    spoken = (lambda request: request) if by_version else for_old_brokers
    kinds = (kind,) * len(members)
    return Cluster(
        coordinator(edition, by_version), consumers(edition, (topic,)), members, bounds, kinds, laws(partitions), spoken
    )


def _plain_product(edition: Edition, scope: Scope) -> Product:
    return _cluster_product(edition, scope, KINDS[scope["protocol"]])


def _upgrade_product(edition: Edition, scope: Scope) -> Product:
    if scope["brokers"] == "before" and edition != KIP_429:
        raise LookupError(f"brokers=before requires edition {KIP_429}: released brokers choose no leader by version")
    bounces, first = PATHS[scope["path"]]
    script = tuple((member, kind) for kind in bounces for member in range(1, scope["members"] + 1))
    return _cluster_product(edition, scope, first, script, by_version=scope["brokers"] == "newest")


def _editions(edition: Edition) -> str | None:
    return None if has_upgrade(edition) else SUPPORTED_EDITIONS


CLUSTER = Playable(
    name="cluster",
    about="consumers, their coordinator, and the network between them",
    editions=_editions,
    world=_plain_product,
    moves=(DOES, FIRE, STORE),
    dials={**SIZES, **MISHAPS, "protocol": Bound("cooperative", "rebalance protocol of all members", tuple(KINDS))},
)

BOUNCE = Playable(
    name="bounce",
    about="a group that an operator upgrades or downgrades member by member, whenever the group is stable",
    editions=_editions,
    world=_upgrade_product,
    verbs=verbs(OPERATIONS),
    moves=(DOES, ROLLS, FIRE, STORE),
    conversation=lambda edition: Conversation(
        "group", upgrade_model(edition), OPERATIONS.event_of, OPERATIONS.parse_shorthand
    ),
    dials={
        **SIZES,
        **MISHAPS,
        "path": Bound("two-bounces", "upgrade path", tuple(PATHS)),
        "brokers": Bound(
            "newest", "before: brokers as before the draft, where the first member leads", ("newest", "before")
        ),
    },
)
PLAYABLES = (CLUSTER, BOUNCE)
