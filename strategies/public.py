"""The public strategies: families of values and bytes as Hypothesis strategies.

All take ``versions``: one number, several, or None for every version of the edition; examples shrink to lower versions.
All raise LookupError when called for an unknown edition, message or version, and TypeError or ValueError for arguments
of another form: nothing fails later, in a draw.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from random import Random
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import kipcheck.conformance.targets  # noqa: F401 - lets editions such as maven:4.1.0 find their jars
from kipcheck.conformance.core.files.releases_table import named
from kipcheck.conformance.protocols.assignment import strategies as membership
from kipcheck.conformance.protocols.assignment.model.assignment import Group
from kipcheck.conformance.protocols.assignment.ops import assign
from kipcheck.conformance.protocols.store_upgrade.ops import Append
from kipcheck.conformance.protocols.streams.strategies.applications import application_of, groups as streams_members
from kipcheck.conformance.wire.byte_map import ByteMap
from kipcheck.conformance.wire.constructs import byte_map
from kipcheck.strategies import cluster_features, versions as strategies_versions
from kipcheck.strategies.arguments import names
from kipcheck.strategies.as_hypothesis import chosen_from, made
from kipcheck.strategies.body import Body, Damaged, Frame, body_node, body_of, frame_node, frame_of
from kipcheck.strategies.damage import KINDS, USUAL, Corruption, apply_corruption
from kipcheck.strategies.events import Conversations
from kipcheck.strategies.messages import from_layout, layouts
from kipcheck.strategies.nodes import Integer, Node, OneOf, Pick, Seq, record
from kipcheck.strategies.operations import nodes

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

VersionChoice: TypeAlias = int | Iterable[int] | None


def values(
    message: str, *, versions: VersionChoice = None, edition: str = "apache"
) -> "SearchStrategy[dict[str, Any]]":
    """Plain dicts as ``layout(edition, message, version).decode`` returns them, of one of the versions."""
    return made(_any([from_layout(each) for each in layouts(edition, message, versions)]))


def bodies(message: str, *, versions: VersionChoice = None, edition: str = "apache") -> "SearchStrategy[Body]":
    """The bytes of a message without header or size, with its version and value."""
    return made(_any([body_node(each) for each in layouts(edition, message, versions)]), body_of)


def frames(message: str, *, versions: VersionChoice = None, edition: str = "apache") -> "SearchStrategy[Frame]":
    """Requests or responses as sent over a connection: size, header, body, and their values.

    Errors: LookupError also where the message is neither.
    """
    return made(_any([frame_node(each) for each in layouts(edition, message, versions)]), frame_of)


def damaged(
    message: str, *, versions: VersionChoice = None, edition: str = "apache", kinds: Iterable[str] | None = None
) -> "SearchStrategy[Damaged]":
    """Damaged bodies: the body before, the bytes after, and whether a reader must refuse, must accept or may do either.
    ``kinds`` are keys of ``kipcheck.strategies.damage.KINDS``; None for all kinds without large inputs.

    Errors: LookupError also for an unknown kind.
    """
    chosen = USUAL if kinds is None else names("kinds", kinds)
    for kind in chosen:
        if kind not in KINDS:
            raise LookupError(f"unknown kind of damage {kind!r}; known: {', '.join(KINDS)}")
    if not chosen:
        raise LookupError("no kind of damage was given")

    def aimed(drawn: dict[str, Any]) -> tuple[Body, ByteMap, list[Corruption]]:
        """The damage of the drawn kind, or of the next kind that applies to this body."""
        body = body_of(drawn["body"])
        mapped = byte_map(body.layout, body.value)
        first = chosen.index(drawn["kind"])
        found = ([*KINDS[kind].find(mapped)] for kind in (*chosen[first:], *chosen[:first]))
        return body, mapped, next(filter(None, found), [])

    node = record(kind=Pick(chosen), body=_any([body_node(each) for each in layouts(edition, message, versions)]))
    return chosen_from(made(node, aimed).filter(_can_be_damaged), _one_of).filter(_was_damaged)


def _one_of(target: tuple[Body, ByteMap, list[Corruption]]) -> tuple[int, Callable[[int], Damaged | None]]:
    body, mapped, corruptions = target

    def done(at: int) -> Damaged | None:
        damage = apply_corruption(mapped, corruptions[at])
        return None if damage is None else Damaged(body, damage)

    return len(corruptions), done


def _can_be_damaged(target: tuple[Body, ByteMap, list[Corruption]]) -> bool:
    return bool(target[2])


def _was_damaged(done: Damaged | None) -> bool:
    return done is not None


def version_mixes(
    messages: str | Sequence[str] = strategies_versions.GROUP_MESSAGES,
    *,
    members: strategies_versions.Members = (2, 4),
    releases: str | None = None,
) -> "SearchStrategy[list[dict[str, Any]]]":
    """Groups of members of several releases, each with the versions it uses: ``strategies.versions.version_mix``.

    Errors: LookupError where no release in ``releases`` (``2.3.0-3.9.2, 4.0.1+``) supports any of the messages.
    """
    return made(strategies_versions.version_mix(messages, members=members, releases=releases))


def subscription_streams(
    *, versions: VersionChoice = None, members: strategies_versions.Members = (2, 4), edition: str = "apache"
) -> "SearchStrategy[list[Body]]":
    """The subscriptions of one group in mixed versions, with user data of every assignor that writes some."""
    return _streams(strategies_versions.subscription_stream(versions=versions, members=members, edition=edition))


def assignment_streams(
    *, versions: VersionChoice = None, members: strategies_versions.Members = (2, 4), edition: str = "apache"
) -> "SearchStrategy[list[Body]]":
    """The assignments of one group in mixed versions, with Streams assignments among their user data."""
    return _streams(strategies_versions.assignment_stream(versions=versions, members=members, edition=edition))


def join_group_streams(
    *, versions: VersionChoice = None, members: strategies_versions.Members = (2, 4), edition: str = "apache"
) -> "SearchStrategy[list[Body]]":
    """The JoinGroup requests of one group, in mixed versions of the API and of the subscriptions inside."""
    return _streams(strategies_versions.join_group_stream(versions=versions, members=members, edition=edition))


def api_versions_streams(
    *, versions: VersionChoice = None, members: strategies_versions.Members = (2, 4), releases: str | None = None
) -> "SearchStrategy[list[Body]]":
    """The ApiVersions responses of the brokers of one cluster, each with the ranges of some release."""
    return _streams(strategies_versions.api_versions_stream(versions=versions, members=members, releases=releases))


def version_ranges(
    *, features: Sequence[str] = cluster_features.FEATURES, highest: int = 4, lowest: int = 1
) -> "SearchStrategy[dict[str, tuple[int, int]]]":
    """What a broker supports: for some of the features the lowest and the highest level."""
    return made(cluster_features.ranges_node(features, lowest, highest), cluster_features.ranges_of)


def feature_fleets(
    *, brokers: strategies_versions.Members = (1, 4), releases: str | None = None
) -> "SearchStrategy[list[dict[str, Any]]]":
    """The brokers of one cluster in a rolling upgrade: ``broker``, ``release`` and ``supported``, as the binaries of
    that release declare it.

    Errors: LookupError where no release in ``releases`` (``3.9.0-4.1.0``) has features.
    """
    return made(cluster_features.fleet_node(brokers, releases), cluster_features.fleet_of)


def feature_pictures(
    *, brokers: strategies_versions.Members = (1, 4), edition: str = "apache", version: int = 3
) -> "SearchStrategy[list[Body]]":
    """The ApiVersions responses of the brokers of one cluster while features change: some brokers are behind, and an
    epoch always stands for the same contents, which each broker supports.
    """
    layouts(edition, cluster_features.RESPONSE, version)
    return made(cluster_features.pictures_node(brokers), partial(cluster_features.pictures_of, edition, version))


def feature_update_requests(
    *, versions: VersionChoice = None, edition: str = "apache", features: Sequence[str] = cluster_features.FEATURES
) -> "SearchStrategy[Body]":
    """UpdateFeatures requests: upgrades, downgrades with and without permission, deletions, unknown names."""
    found = [
        (each.version, cluster_features.update_node(each.slots, features))
        for each in layouts(edition, cluster_features.UPDATE, versions)
    ]
    nodes: list[Node] = [record(version=Pick((version,)), value=node) for version, node in found]
    return made(_any(nodes), partial(cluster_features.update_of, edition))


def rolls(
    *, brokers: strategies_versions.Members = (2, 4), old: str = named("last-before-4"), new: str = "4.3.1"
) -> "SearchStrategy[list[dict[str, Any]]]":
    """Rolling upgrades: each broker is restarted once, in any order; in between some brokers stop and start again, and
    features are updated. A step is ``{"do": "restart", "broker": 1, "release": RELEASE}``, or ``stop``, ``start``, or
    ``{"do": "update", "feature": ..., "level": ...}``.

    Errors: LookupError for a release without features.
    """
    return made(
        cluster_features.roll_node(brokers),
        partial(
            cluster_features.roll_of, cluster_features.features_of(old), cluster_features.features_of(new), old, new
        ),
    )


def groups(*, claims: bool = False, static: bool = False, racks: bool = False) -> "SearchStrategy[dict[str, Any]]":
    """Groups of consumers: ``topics`` and ``members``, as in the files that ``kipcheck assign`` reads.

    Owned partitions are consistent. With ``claims`` some are stale, claimed twice, or of topics that are deleted or not
    subscribed to; ``static``: some members have an instance id; ``racks``: some members and replicas have a rack.
    """
    knobs: dict[str, Node] = {}
    if claims:
        knobs |= {"claims": membership.CLAIMS, "ghosts": membership.GHOSTS, "generations": membership.STALE}
        knobs["wishes"] = membership.WISHES
    if static:
        knobs["instances"] = membership.INSTANCES
    if racks:
        knobs |= {"replicas": membership.REPLICAS, "places": membership.PLACES}
    node = record(group=membership.USUAL, **knobs)
    return made(node, lambda drawn: _as_file(membership.group_with_knobs(drawn))).filter(_has_members)


def _has_members(group: Mapping[str, Any]) -> bool:
    return bool(group["members"])


def streams_groups(*, cooperative: bool = False, named: bool = False) -> "SearchStrategy[dict[str, Any]]":
    """Streams applications and the members of a group of them, as in the files that ``kipcheck subscribe`` reads:
    previous tasks, offsets of their state, threads of one instance, end points, tags.

    No task was run by two members. ``cooperative``: consumers list owned partitions; ``named``: some topologies have
    names.
    """
    return made(streams_members(named), partial(application_of, cooperative=cooperative))


def changelogs() -> "SearchStrategy[list[dict[str, Any]]]":
    """The records of a store's changelog during an upgrade of KIP-258's draft: ``key``, ``value`` (None deletes),
    ``timestamp`` and ``version`` of the format, both versions in any order. The values are the bytes in that format.
    """
    return made(Seq(nodes(Append, drawn={"version": Pick((1, 2))})["append-record"], 0, LONGEST), _records)


def _records(drawn: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for body in (each["body"] for each in drawn):
        value = None if body["value"] is None else bytes.fromhex(body["value"])
        if value is not None and body["version"] == 2:
            value = body["timestamp"].to_bytes(8, "big", signed=True) + value
        record = {"key": bytes.fromhex(body["key"]), "value": value, "timestamp": body["timestamp"]}
        found.append({**record, "version": body["version"]})
    return found


LONGEST: Final = 12
"""Records of a changelog."""


def steps(machine: str, *, edition: str = "apache") -> "SearchStrategy[dict[str, Any]]":
    """Single steps for a machine: ``actor``, ``verb`` and ``body``, as in a case.

    Errors: LookupError for an unknown machine, or one that the edition lacks.
    """
    return made(_conversations(machine, edition).declaration.item)


def conversations(
    machine: str, *, edition: str = "apache", deep: bool = False
) -> "SearchStrategy[list[dict[str, Any]]]":
    """Sequences of steps. ``deep``: drawn with the model, as runs draw them, so that they reach deep states; then
    examples shrink to fewer of the same steps. Errors: as ``steps``.
    """
    found = _conversations(machine, edition)
    if not deep:
        return made(found.declaration)
    kept = Seq(Integer(0, RARELY), found.max_steps, found.max_steps)
    return made(record(seed=Integer(0, SEEDS), kept=kept), partial(_drawn, found))


def _conversations(machine: str, edition: str) -> Conversations[Any, Any]:
    """Imports the machines when needed, since that takes a while."""
    found: Conversations[Any, Any] = import_module("kipcheck.conformance.protocols.conversations").talk(
        machine, edition
    )
    return found


SEEDS: Final = (1 << 32) - 1
RARELY: Final = 15
"""A step is left out once in so many draws, and more often when shrinking."""


def _drawn(found: Conversations[Any, Any], choices: Mapping[str, Any]) -> list[dict[str, Any]]:
    random = Random(choices["seed"])
    steps = found.draw(random, found.swarm(random))
    data = [{"actor": each.actor, "verb": each.verb, "body": dict(each.body)} for each in steps]
    return [each for each, stays in zip(data, choices["kept"], strict=False) if stays] or data[:1]


def _as_file(group: Group) -> dict[str, Any]:
    operation = assign("", group.topics, group.members).body
    topics = {
        each["name"]: each["partitions"]
        if each["racks"] is None
        else {"partitions": each["partitions"], "racks": each["racks"]}
        for each in operation["topics"]
    }
    members = {each["id"]: {name: part for name, part in each.items() if name != "id"} for each in operation["members"]}
    return {"topics": topics, "members": members}


def _streams(node: Seq) -> "SearchStrategy[list[Body]]":
    return made(node, _all_bodies)


def _all_bodies(drawn: list[dict[str, Any]]) -> list[Body]:
    return [*map(body_of, drawn)]


def _any(nodes: list[Node]) -> Node:
    return nodes[0] if len(nodes) == 1 else OneOf(tuple(nodes))
