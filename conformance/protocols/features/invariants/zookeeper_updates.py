"""Invariants of controllers with ZooKeeper whose brokers declare features, and of nodes that other programs write."""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import Any, Final

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.declare.invariant import RightAnswer, impact, invariant
from kipcheck.conformance.protocols.features.invariants.zookeeper import (
    BELOW,
    INVALID,
    LIFE,
    NONE,
    KnownNode,
    Node,
    Spans,
    ZkStep,
    _breach as breach,
    _writes as writes,
    fits,
    on,
    trace,
)
from kipcheck.conformance.protocols.features.ops.kraft import SAFE_DOWNGRADE, UNSAFE_DOWNGRADE, UPGRADE

PLACE = 45

UPDATES: Final = "zookeeper-features/updates"
both = partial(invariant, role=Role.CONTROLLER, checks=(LIFE, UPDATES))
updates = partial(invariant, role=Role.CONTROLLER, checks=(UPDATES,))
KIP: Final = ("KIP-584",)


@impact(
    "A broker stays that does not support what is finalized", "wrong data", "guards", "incompatible-broker", links=KIP
)
@both("zookeeper-features/incompatible-broker-stops", "584-23", "584-24",
      applies_to=on("zk-read", "zk-controller", "zk-write-node"))  # fmt: skip
def incompatible_broker_stops(history: History) -> Iterator[Violation]:
    """A broker that does not support a finalized feature stops as it starts, or is notified; another one does not."""
    for step in trace(history):
        known = step.before
        if step.verb == "zk-write-node":
            node = step.known_after().node
            supported, active = known.own, known.inter_broker not in (None, BELOW)
        elif step.verb == "zk-controller":
            node, supported = known.node, known.declared.get(0, {})
            active = step.request["inter_broker"] != BELOW
        elif step.verb == "zk-read" and known.inter_broker is not None:
            node, supported = known.node, known.declared.get(step.request["broker"], {})
            active = known.inter_broker != BELOW
        else:
            continue
        if node is None:
            continue
        fit = fits(supported, node.finalized) if node.exists and node.enabled and active else True
        if fit is False and step.accepted:
            yield breach(step, "a finalized feature is not supported", "it stops", "it stays", "stays")
        elif fit and not step.accepted and step.verb != "zk-read":
            yield breach(step, "every finalized feature is supported", "it stays", "it stops", "stops")


@impact("Features stay finalized in a cluster that cannot have them", "wrong data", "gating", "incompatible-broker",
        links=KIP)  # fmt: skip
@both(
    "zookeeper-features/disabled-is-empty",
    "584-20",
    "584-21",
    applies_to=on("zk-controller", "zk-node"),
    right_answer=RightAnswer.SEVERAL,
)
def disabled_is_empty(history: History) -> Iterator[Violation]:
    """A controller below the migration version leaves no features; one that enables the node finalizes none."""
    for step, node, after in writes(history, "zk-controller"):
        below = step.request["inter_broker"] == BELOW
        if node.exists and (below or not node.enabled):
            expected: Mapping[str, int] = {}
        elif node.exists:
            expected = highs(node.finalized)
        else:
            continue
        if highs(after.finalized) != expected:
            why = "the controller is below the migration version" if below else "the controller started"
            yield breach(step, why, expected, highs(after.finalized), "below" if below else "above")


@impact("A new cluster begins without its features", "refused peer", "gating", "stuck-upgrade", links=KIP)
@updates(
    "zookeeper-features/new-node-has-all",
    "584-19",
    applies_to=on("zk-controller", "zk-node"),
    right_answer=RightAnswer.SEVERAL,
)
def new_node_has_all(history: History) -> Iterator[Violation]:
    """A controller at the migration version that finds no node finalizes all that it supports at its latest level."""
    for step, node, after in writes(history, "zk-controller"):
        expected = highs(step.before.declared.get(0, {})) if step.request["inter_broker"] != BELOW else {}
        if not node.exists and highs(after.finalized) != expected:
            yield breach(step, "there was no node", expected, highs(after.finalized), "created")


@impact("A broker registers in the form of another inter-broker version", "wrong data", "gating", "misled-operator",
        links=KIP)  # fmt: skip
@invariant("zookeeper-features/registration-follows-version", "584-22", "584-01", role=Role.CONTROLLER, checks=(LIFE,),
           applies_to=on("zk-registration"))  # fmt: skip
def registration_follows_version(history: History) -> Iterator[Violation]:
    """A broker that has read the node is registered in version 5 from the migration version on, and below it in 4."""
    registered: dict[int, str] = {}
    for step in trace(history):
        began = step.before.inter_broker
        if step.verb == "zk-read":
            registered.pop(step.request["broker"], None)
            if step.accepted and began is not None:
                registered[step.request["broker"]] = began
        elif step.verb == "zk-registration" and step.accepted and not step.before.declared:
            inter_broker = registered.get(step.request["broker"])
            if inter_broker is None:
                continue
            expected, found = 4 if inter_broker == BELOW else 5, step.answer
            if not found["exists"] or found["version"] != expected or found["supported"]:
                shape = "form" if found["exists"] else "missing"
                yield breach(step, f"the broker is at {inter_broker}", f"version {expected}", found["version"], shape)


def highs(found: Spans) -> dict[str, int]:
    return {name: high for name, (_, high) in found.items()}


def results(step: ZkStep) -> Mapping[str, str]:
    return {each["feature"]: each["error"] for each in step.answer["results"]}


def due(step: ZkStep, update: Mapping[str, Any], known: KnownNode, node: Node) -> str | None:
    """The result that the KIP gives an update, from the finalized and the declared levels; None: it leaves it open."""
    name, level, version = update["feature"], update["level"], step.request["version"]
    kind = update.get("upgrade_type", UPGRADE)
    if version and kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return INVALID
    lowers = kind in (SAFE_DOWNGRADE, UNSAFE_DOWNGRADE)
    current = node.finalized.get(name) if node.enabled else None
    if not name or (level < 1 and (current is None or not lowers)):
        return INVALID
    if level < 1:
        return NONE
    supported = (known.own, *known.declared.values())
    if any(fits(each, {name: (level, level)}) is False for each in supported):
        return INVALID
    if any(each[name][0] > known.own[name][0] for each in supported):
        return None  # up to 3.2 the lowest level is finalized, too, which the other broker does not support
    if current is None:
        return None if lowers else NONE
    low, high = current
    if level == high or lowers is (level > high):
        return INVALID
    return None if level < low or (version and kind == UNSAFE_DOWNGRADE) else NONE


def judged(history: History) -> Iterator[tuple[ZkStep, Mapping[str, Any], str, str]]:
    """What is due for the updates of requests that name each feature once, to a controller with a compatible node."""
    for step in trace(history):
        known, node = step.before, step.before.node
        if step.verb != "zk-update" or not step.accepted or node is None or not node.exists:
            continue
        names = [each["feature"] for each in step.request.body.get("updates", ())]
        skips = known.taken_in != known.declared.keys() or known.own != known.declared.get(0, {})
        if known.inter_broker in (None, BELOW) or len({*names}) < len(names) or skips:
            continue
        for each in step.request.body.get("updates", ()):
            expected = due(step, each, known, node)
            if expected is not None:
                yield step, each, expected, results(step).get(each["feature"], "no result")


@impact("A legal update is refused", "refused peer", "gating", "stuck-upgrade", links=KIP)
@updates("zookeeper-features/applies-legal-updates", "584-08", "584-09", "584-10", "584-75", applies_to=on("zk-update"))
def applies_legal_updates(history: History) -> Iterator[Violation]:
    """A level that every broker supports is finalized, raised, lowered with the flag, or deleted with it."""
    for step, update, expected, found in judged(history):
        if expected == NONE and found != NONE:
            yield breach(step, f"{update['feature']}:{update['level']} is legal", NONE, found, f"refused {found}")


@impact("An illegal update is applied", "wrong data", "gating", "incompatible-broker", links=KIP)
@updates("zookeeper-features/refuses-illegal-updates", "584-08", "584-09", "584-10", "584-75", "584-38",
         applies_to=on("zk-update"))  # fmt: skip
def refuses_illegal_updates(history: History) -> Iterator[Violation]:
    """What a live broker does not support, an equal level, and a level against its flag is refused: INVALID_REQUEST."""
    for step, update, expected, found in judged(history):
        if expected == INVALID and found != INVALID:
            yield breach(step, f"{update['feature']}:{update['level']} is illegal", INVALID, found, "accepted")


@impact("The node differs from the results", "wrong data", "atomicity", "misled-operator", links=KIP)
@updates(
    "zookeeper-features/results-are-applied",
    "584-12",
    applies_to=on("zk-update", "zk-node"),
    right_answer=RightAnswer.SEVERAL,
)
def results_are_applied(history: History) -> Iterator[Violation]:
    """After a request, the node has the levels of the successful updates, and else what it had."""
    for step, node, after in writes(history, "zk-update"):
        requested = step.request.body.get("updates", ())
        names = [each["feature"] for each in requested]
        if not node.exists or len({*names}) < len(names) or step.before.inter_broker is None:
            continue
        expected, found = dict(highs(node.finalized)) if node.enabled else {}, results(step)
        for each in requested:
            if found.get(each["feature"]) == NONE:
                expected.pop(each["feature"], None)
                if each["level"] >= 1:
                    expected[each["feature"]] = each["level"]
        applied = NONE in found.values()
        if highs(after.finalized) != (expected if applied or node.enabled else highs(node.finalized)):
            shape = "success" if applied else "refusal"
            yield breach(step, "the node was read after the request", expected, highs(after.finalized), shape)


@impact("A broker shows features that the cluster does not have", "wrong data", "epochs", "stale-view", links=KIP)
@both("zookeeper-features/shows-the-node", "584-26", "584-55", applies_to=on("zk-features"))
def shows_the_node(history: History) -> Iterator[Violation]:
    """A broker that has just read an enabled node at the migration version shows its features."""
    for step, later in pairwise(trace(history)):
        node, began = step.before.node, step.before.inter_broker
        same = later.verb == "zk-features" and later.request.body.get("broker") == step.request.body.get("broker")
        if step.verb != "zk-read" or not (step.accepted and later.accepted and same) or began in (None, BELOW):
            continue
        found = {each["feature"]: each["high"] for each in later.answer["finalized"]}
        if node is not None and node.enabled and found != highs(node.finalized):
            yield breach(later, "it has read the node", highs(node.finalized), found, "other")
