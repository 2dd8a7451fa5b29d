"""Invariants of controllers of feature versions with ZooKeeper, as released. Each reads answers, not the model."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any, Final, TypeAlias

from kipcheck.conformance.core.values.cached_on_history import cached_on_history
from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.declare.invariant import RightAnswer, impact, invariant
from kipcheck.conformance.protocols.declare.trace import AnsweredStep, plain_steps
from kipcheck.conformance.protocols.features.ops import zookeeper as ops
from kipcheck.conformance.protocols.features.ops.cluster import Supported

PLACE = 40

LIFE: Final = "zookeeper-features/life"
life = partial(invariant, role=Role.CONTROLLER, checks=(LIFE,))
NONE, INVALID, NOT_CONTROLLER = "NONE", "INVALID_REQUEST", "NOT_CONTROLLER"
BELOW: Final = "2.6"
"""The inter-broker version below the migration version."""
KIP: Final = ("KIP-584",)


Spans: TypeAlias = Mapping[str, tuple[int, int]]
"""Levels by feature."""


@dataclass(frozen=True, slots=True)
class Node:
    """/feature, as far as it is known."""

    exists: bool
    enabled: bool = False
    epoch: int | None = 0
    """None: not known."""
    finalized: Spans = field(default_factory=dict)
    version: int = 0


def node_of(found: Mapping[str, Any]) -> Node:
    return Node(found["exists"], found["enabled"], found["epoch"], spans(found["finalized"]), found["version"])


def spans(found: Any) -> Spans:
    return {each["feature"]: (each["low"], each["high"]) for each in found}


def spans_of(declared: Iterable[Supported]) -> Spans:
    return {each.feature: (each.low, each.high) for each in declared}


@dataclass(frozen=True, slots=True)
class KnownNode:
    inter_broker: str | None = None
    """Of the controller that started last."""
    node: Node | None = None
    """None: not known."""
    caches: Mapping[int, int] = field(default_factory=dict)
    """The epoch that each broker answered since it read the node last; -1: none."""
    declared: Mapping[int, Spans] = field(default_factory=dict)
    """The features with which brokers registered."""
    own: Spans = field(default_factory=dict)
    """Those of the controller."""
    taken_in: frozenset[int] = frozenset()
    """The registered brokers that the controller has certainly taken in: it skips those that are incompatible."""

    def with_declared(self, declared: Mapping[int, Spans], node: Node | None) -> "KnownNode":
        """``node``: what the controller knows as it looks at the registrations; None: not known."""
        finalized = node.finalized if node is not None and node.enabled else {}
        found = frozenset(each for each in declared if node is not None and fits(declared[each], finalized))
        return replace(self, declared=declared, taken_in=found)


@dataclass(frozen=True, slots=True)
class ZkStep(AnsweredStep[Step, Mapping[str, Any], KnownNode]):
    def known_after(self) -> KnownNode:
        known = self.before
        match ops.OPERATIONS.event_of(self.request):
            case ops.StartController(inter_broker):
                began, own = inter_broker if self.accepted else None, known.declared.get(0, {})
                found = known.node
                if found is not None and not found.exists and began != BELOW:
                    found = Node(True, True, 0, own)
                return replace(known.with_declared(known.declared, found), inter_broker=began, node=None, own=own)
            case ops.DeleteNode():
                return replace(known, node=Node(False))
            case ops.ReadZkNode() if self.accepted:
                return replace(known, node=node_of(self.answer))
            case ops.WriteNode(features, disabled):
                node = Node(True, not disabled, None, spans_of(features), 1)
                return replace(known, node=node, inter_broker=known.inter_broker if self.accepted else None)
            case ops.DeclareFeatures(broker, supported):
                return known.with_declared({**known.declared, broker: spans_of(supported)}, known.node)
            case ops.ZkUpdate():
                return replace(known, node=None)
            case ops.ReadFeature(broker):
                return replace(known, caches={each: at for each, at in known.caches.items() if each != broker})
            case ops.AskZkFeatures(broker) if self.accepted:
                return replace(known, caches={**known.caches, broker: self.answer["epoch"]})
            case _:
                return known


@cached_on_history
def trace(history: History) -> tuple[ZkStep, ...]:
    """A conversation begins with a new cluster, which has no node."""
    return plain_steps(history, KnownNode(node=Node(False)), ZkStep)


def on(*verbs: str) -> Callable[[Case, Step], bool]:
    return lambda case, step: step.verb in verbs


def _breach(step: ZkStep, why: str, expected: object, observed: object, shape: str) -> Violation:
    return Violation(why, (step.op.index,), str(expected), str(observed), shape=(shape,))


def _errors(history: History) -> Iterator[tuple[ZkStep, Mapping[str, str]]]:
    """The answered requests to a controller, with the error of each feature."""
    for step in trace(history):
        if step.verb == "zk-update" and step.accepted:
            yield step, {each["feature"]: each["error"] for each in step.answer["results"]}


@impact("An update is refused with another error", "trivia", "error-codes", "misled-operator", links=KIP)
@life("zookeeper-features/errors", "584-38", applies_to=on("zk-update"))
def errors(history: History) -> Iterator[Violation]:
    """A refused update has the error INVALID_REQUEST; below the migration version the whole request has it."""
    for step, found in _errors(history):
        wrong = sorted({*found.values()} - {NONE, INVALID})
        if wrong:
            yield _breach(step, f"an update was refused with {wrong[0]}", INVALID, wrong[0], "error")
    for step in trace(history):
        if step.verb == "zk-update" and step.before.inter_broker == BELOW and step.error != INVALID:
            why = "the controller is below the migration version"
            yield _breach(step, why, f"refused: {INVALID}", step.error or "results", "below")


@impact("A feature is finalized that no release has", "wrong data", "gating", "incompatible-broker", links=KIP)
@life("zookeeper-features/nothing-is-finalized", "584-49", grade=Grade.INFO, applies_to=on("zk-update", "zk-node"))
def nothing_is_finalized(history: History) -> Iterator[Violation]:
    """Where no broker declares a feature, as in every release, no level of a feature is ever finalized."""
    for step, found in _errors(history):
        if step.before.declared:
            continue
        for each in step.request["updates"]:
            if each["level"] >= 1 and found.get(each["feature"]) == NONE:
                yield _breach(step, f"{each['feature']} was set to {each['level']}", INVALID, NONE, "accepted")


@impact("The status of the features is wrong", "wrong data", "durability", "stuck-upgrade", links=KIP)
@life("zookeeper-features/status-follows-version", "584-19", "584-20", "584-21", "584-22",
      applies_to=on("zk-controller", "zk-node"))  # fmt: skip
def status_follows_version(history: History) -> Iterator[Violation]:
    """After a controller has started, the node exists, and is enabled exactly at the migration version or above."""
    began: str | None = None
    for step in trace(history):
        if step.verb == "zk-controller":
            began = step.request["inter_broker"] if step.accepted else None
        elif step.verb in ("zk-delete-node", "zk-write-node", "zk-update"):
            began = None
        elif step.verb == "zk-node" and step.accepted and began is not None:
            expected, found = began != BELOW, step.answer["enabled"]
            if not step.answer["exists"] or found is not expected:
                shape = ("enabled" if found else "disabled") if step.answer["exists"] else "missing"
                yield _breach(
                    step, f"a controller at {began} started", "enabled" if expected else "disabled", shape, shape
                )


@impact("The epoch of the features falls", "wrong data", "epochs", "stale-view", links=KIP)
@life("zookeeper-features/epoch-counts-writes", "584-20", "584-21",
      applies_to=on("zk-controller", "zk-update", "zk-node"), right_answer=RightAnswer.SEVERAL)  # fmt: skip
def epoch_counts_writes(history: History) -> Iterator[Violation]:
    """A start of a controller, or a request, raises the epoch by one if it changes the node, and else leaves it."""
    for step, node, after in _writes(history, "zk-controller", "zk-update"):
        changes = replace(node, epoch=0) != replace(after, epoch=0)
        if node.exists and node.epoch is not None and after.exists and after.epoch != node.epoch + changes:
            why = f"the epoch was {node.epoch}, and the node {'changed' if changes else 'stayed'}"
            yield _breach(step, why, node.epoch + changes, after.epoch, "counted")


def _writes(history: History, *verbs: str) -> Iterator[tuple[ZkStep, Node, Node]]:
    """The answered steps that may write a known node, with it before and after."""
    for step, later in pairwise(trace(history)):
        node = step.before.node
        if step.verb in verbs and step.accepted and later.verb == "zk-node" and later.accepted and node is not None:
            yield step, node, node_of(later.answer)


def fits(supported: Spans, finalized: Spans) -> bool | None:
    """Whether a broker supports what is finalized; None: all but a lowest level, which releases see differently."""
    found: bool | None = True
    for name, (low, high) in finalized.items():
        own = supported.get(name)
        if own is None or not own[0] <= high <= own[1]:
            return False
        if low < own[0]:
            found = None
    return found


def _reads(history: History) -> Iterator[tuple[ZkStep, int, Node]]:
    """Brokers that read a known node at the migration version, with the epoch that they knew."""
    for step in trace(history):
        cached = step.before.caches.get(step.request.body.get("broker", -1))
        known = cached is not None and step.before.inter_broker not in (None, BELOW)
        if step.verb == "zk-read" and known and cached is not None and step.before.node is not None:
            yield step, cached, step.before.node


@impact("A broker goes back to older features", "wrong data", "epochs", "stale-view", links=KIP)
@life("zookeeper-features/lower-epoch-stops", "584-42", "584-24", applies_to=on("zk-read", "zk-features", "zk-node"))
def lower_epoch_stops(history: History) -> Iterator[Violation]:
    """A broker whose cache has a higher epoch than the node stops; with an equal or a lower one it does not."""
    for step, cached, node in _reads(history):
        if node.epoch is None or not fits(step.before.declared.get(step.request["broker"], {}), node.finalized):
            continue
        stops = node.exists and node.enabled and node.epoch < cached
        if stops is step.accepted:
            why = f"its cache had epoch {cached}, and the node has epoch {node.epoch if node.exists else 'none'}"
            expected, observed = ("it stops", "it stays") if stops else ("it stays", "it stops")
            yield _breach(step, why, expected, observed, "stays" if stops else "stops")


@impact("A broker answers with features that are gone", "wrong data", "epochs", "stale-view", links=KIP)
@life("zookeeper-features/cache-is-cleared", "584-42", "584-26", applies_to=on("zk-read", "zk-features", "zk-node"))
def cache_is_cleared(history: History) -> Iterator[Violation]:
    """A broker that reads a deleted or disabled node forgets features and epoch; else it has the node's epoch."""
    for step, later in pairwise(trace(history)):
        node = step.before.node
        same = later.verb == "zk-features" and later.request.body.get("broker") == step.request.body.get("broker")
        if step.verb == "zk-read" and step.accepted and later.accepted and same and node is not None:
            known = node.exists and node.enabled and step.before.inter_broker not in (None, BELOW)
            expected = node.epoch if known else -1
            if expected is not None and later.answer["epoch"] != expected and step.before.inter_broker is not None:
                yield _breach(
                    later, "it read the node", expected, later.answer["epoch"], "kept" if not known else "other"
                )
