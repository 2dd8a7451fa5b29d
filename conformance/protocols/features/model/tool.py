"""KIP-584's tool for operators: what its commands ask of a cluster, and what is left of it (section CLI tool usage)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self, TypeVar, assert_never, final

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.core.values.nearest import hint
from kipcheck.conformance.protocols.features.model.cluster import Broker, FeatureCluster, Node, State as ClusterState
from kipcheck.conformance.protocols.features.model.draft_rules import NONE
from kipcheck.conformance.protocols.features.model.ranges import Range, Ranges, ranges
from kipcheck.conformance.protocols.features.ops import tool as ops
from kipcheck.conformance.protocols.features.ops.cluster import Answered, Requested, UpdateFeatures

ADD, UPGRADE, DOWNGRADE, DELETE = "Add", "Upgrade", "Downgrade", "Delete"
DELETION: Final = 0
"""The level that asks for a deletion."""
Own = TypeVar("Own", bound="Cluster")
Levels = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster as the tool sees it."""

    brokers: tuple[Ranges, ...] = ()
    """What each broker supports."""
    node: Node | None = None
    """/features; None: it does not exist, so that nothing is finalized."""

    @property
    def active(self) -> bool:
        """Whether feature versioning is enabled, so that what is finalized counts."""
        return self.node is not None and self.node.enabled

    def finalized(self) -> dict[str, Range]:
        return dict(self.node.features) if self.node is not None and self.node.enabled else {}

    def cluster(self) -> ClusterState:
        """As the model of clusters has it, with a controller that has registered every broker.

        A node that does not exist is created by the first write, which gives it version 0, as ZooKeeper does.
        """
        brokers = tuple(Broker(number, supported) for number, supported in enumerate(self.brokers))
        node = self.node if self.node is not None else Node(-1)
        return ClusterState(node, brokers, controller=0, term=1, registered=frozenset(range(len(brokers))))

    def after(self, cluster: ClusterState) -> Self:
        return self if cluster.node is None or cluster.node.epoch < 0 else replace(self, node=cluster.node)


@dataclass(frozen=True, slots=True)
class Change:
    """An update that the tool asks for."""

    kind: str
    feature: str
    level: int
    """``DELETION`` of a deletion."""

    @property
    def requested(self) -> Requested:
        """Naming a feature under --downgrade or --delete sets the flag (584-63)."""
        return Requested(self.feature, self.level, self.kind in (DOWNGRADE, DELETE))


# What is asked for


def upgrades(cluster: Cluster, levels: Levels) -> list[Change]:
    """To the levels that the tool knows; a feature that has such a level, or a higher one, stays."""
    finalized = cluster.finalized()
    return [_raise(finalized, name, level) for name, level in sorted(levels.items())
            if name not in finalized or finalized[name].high < level]  # fmt: skip


def downgrades(cluster: Cluster, levels: Levels) -> list[Change]:
    """To the levels that the tool knows; a finalized feature that it does not know is deleted."""
    changes = []
    for name, span in sorted(cluster.finalized().items()):
        if name not in levels:
            changes.append(Change(DELETE, name, DELETION))
        elif levels[name] < span.high:
            changes.append(Change(DOWNGRADE, name, levels[name]))
    return changes


Listed = Sequence[tuple[str, int]]


def named_changes(
    cluster: Cluster, levels: Levels, upgrade: Listed, downgrade: Listed, delete: Sequence[str]
) -> list[Change]:
    """The three lists of ``update``, each by name. ``levels``: features that the tool knows. Errors: ValueError."""
    finalized = cluster.finalized()
    raised = [_raise(finalized, name, level) for name, level in sorted(upgrade)]
    lowered = [Change(DOWNGRADE, name, level) for name, level in sorted(downgrade)]
    changes = [*raised, *lowered, *(Change(DELETE, name, DELETION) for name in sorted(delete))]
    if not changes:
        raise ValueError("nothing to update: use --upgrade, --downgrade or --delete")
    names = [each.feature for each in changes]
    known = {*finalized, *(name for each in cluster.brokers for name, _ in each), *levels}
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"the feature {name} is named twice: name it once")
        if name not in known:
            raise ValueError(
                f"unknown feature {name!r}: it is not finalized, and no broker supports it{hint(name, known)}"
            )
    return changes


def _raise(finalized: Mapping[str, Range], name: str, level: int) -> Change:
    return Change(UPGRADE if name in finalized else ADD, name, level)


# What is done, and shown


def rows(cluster: Cluster) -> list[ops.Row]:
    """The features that the first broker supports, and those that are finalized."""
    finalized = cluster.finalized()
    supported = dict(cluster.brokers[0]) if cluster.brokers else {}
    epoch = cluster.node.epoch if cluster.node is not None and cluster.active else None
    names = sorted({*finalized, *supported})
    found = []
    for name in names:
        low, high = supported.get(name, (None, None))
        least, most = finalized.get(name, (None, None))
        found.append(ops.Row(name, low, high, least, most, epoch))
    return found


def lines(cluster: Cluster, changes: Sequence[Change], errors: Sequence[str]) -> list[ops.Line]:
    """A line for each change, and its result."""
    finalized = cluster.finalized()
    return [
        ops.Line(each.kind, each.feature, finalized[each.feature].high if each.feature in finalized else None,
             each.level if each.level != DELETION else None, error)
        for each, error in zip(changes, errors, strict=True)
    ]  # fmt: skip


def applied(cluster: Own, requests: Sequence[Requested]) -> tuple[Own, list[str]]:
    """After one request with all updates, and the error of each, as the draft's controller answers it."""
    if not requests:
        return cluster, []
    after, actions = FeatureCluster().step(cluster.cluster(), UpdateFeatures(tuple(requests)))
    (answer,) = actions
    assert isinstance(answer, Answered)  # the cluster has a controller, and it is asked with permission
    return cluster.after(after), [each.error for each in answer.results]


@final
@dataclass(frozen=True, slots=True)
class State(Cluster):
    known: tuple[tuple[str, int], ...] = ()
    """What the tool knows: the highest level of each feature."""


class FeatureTool:
    """The tool, on a cluster with a controller."""

    def initial(self) -> State:
        return State()

    def step(self, state: State, event: ops.Event, /) -> Transition[State, ops.Action]:
        match event:
            case ops.ToolBroker(supported):
                own = ranges({each.feature: (each.low, each.high) for each in supported})
                return Transition(replace(state, brokers=(*state.brokers, own)))
            case ops.ToolKnows(levels):
                known = {each.feature: each.level for each in levels}
                return Transition(replace(state, known=tuple(sorted(known.items()))))
            case ops.ToolDescribe():
                return Transition(state, (ops.Described(tuple(self.rows(state))),))
            case ops.ToolUpgradeAll(dry_run):
                return self.run(state, upgrades(state, dict(state.known)), dry_run)
            case ops.ToolDowngradeAll(dry_run):
                return self.run(state, self.downgrades(state), dry_run)
            case ops.ToolUpdate():
                try:
                    changes = self.named(state, event)
                except ValueError as wrong:
                    return Transition(state, (ops.Misused(str(wrong)),))
                return self.run(state, changes, event.dry_run)
            case _:
                assert_never(event)

    def rows(self, state: State) -> Sequence[ops.Row]:
        return rows(state)

    def downgrades(self, state: State) -> list[Change]:
        return downgrades(state, dict(state.known))

    def named(self, state: State, event: ops.ToolUpdate) -> list[Change]:
        """Errors: ValueError."""
        upgrade, downgrade = ([(each.feature, each.level) for each in listed]
                              for listed in (event.upgrade, event.downgrade))  # fmt: skip
        return named_changes(state, dict(state.known), upgrade, downgrade, event.delete)

    def run(self, state: State, changes: Sequence[Change], dry_run: bool) -> Transition[State, ops.Action]:
        """The tool works out what a dry run would do from what it read, and sends no request."""
        requests = [self.requested(each) for each in changes]
        after, errors = self.applied(state, requests)
        sends = self.sends(dry_run)
        found = ops.Ran(tuple(lines(state, changes, errors)), tuple(requests) if sends else (), self.exit(errors))
        return Transition(after if sends else state, (found,))

    def applied(self, state: State, requests: Sequence[Requested]) -> tuple[State, list[str]]:
        """After a request, and the error of each update."""
        return applied(state, requests)

    def requested(self, change: Change) -> Requested:
        return change.requested

    def sends(self, dry_run: bool) -> bool:
        return not dry_run

    def exit(self, errors: Sequence[str]) -> int:
        return 0 if all(each == NONE for each in errors) else 1
