"""Invariants of a cluster of KIP-584's draft: what brokers answer and decide, repeated requests, deprecation.

Each invariant reads answers, as those of ``cluster`` do.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.declare.invariant import RightAnswer, impact
from kipcheck.conformance.protocols.features.invariants.cluster import (
    KIP,
    WRITERS,
    ClusterStep,
    Contents,
    Spans,
    breach,
    brokers,
    contents_of,
    listed,
    node,
    on,
    spans,
    surrounded,
    trace,
    updates,
)

PLACE = 25
IBP: Final = "ibp_feature"
"""The feature that takes the place of the static inter-broker version."""
TOP_LEVEL: Final = ("NOT_CONTROLLER", "CLUSTER_AUTHORIZATION_FAILED")
"""All top-level errors of the draft."""


# What brokers answer


def _expected(step: ClusterStep) -> tuple[int, Spans] | None:
    """Epoch and levels in the answer of a broker, which it read from known contents; None: they are not known."""
    number = step.op.step["broker"]
    contents = step.before.read.get(number)
    if contents is None:
        return None
    shown = contents.enabled and number not in step.before.old
    return (contents.epoch, contents.finalized) if shown else (-1, {})


@impact("A broker answers with features that never existed", "wrong data", "epochs", "stale-view", links=KIP)
@node("feature-cluster/answers-what-it-read", "584-26", "584-55", applies_to=on("broker-features"))
def answers_what_it_read(history: History) -> Iterator[Violation]:
    """A broker answers with the epoch and the features of the node that it read last; without them if they are off."""
    for step in trace(history):
        expected = _expected(step) if step.verb == "broker-features" and step.accepted else None
        if expected is not None:
            found = (step.answer["epoch"], spans(step.answer["finalized"]))
            if found != expected:
                why = f"broker {step.op.step['broker']} read epoch {expected[0]} with {listed(expected[1])}"
                observed = f"epoch {found[0]} with {listed(found[1])}"
                part = "epoch" if found[0] != expected[0] else "features"
                at = step.before.read[step.op.step["broker"]].at
                yield breach(step, why, f"epoch {expected[0]} with {listed(expected[1])}", observed, part, at=at)


@impact("A broker answers with levels that it does not support", "wrong data", "guards", "stale-view", links=KIP)
@node("feature-cluster/own-supported", "584-55", "584-22", applies_to=on("broker-features"))
def own_supported(history: History) -> Iterator[Violation]:
    """A broker answers with the levels that it supports itself, and with none below the migration version."""
    for step in trace(history):
        number = step.op.step.body.get("broker", -1)
        if step.verb == "broker-features" and step.accepted and number in step.brokers:
            own, found = step.brokers[number], spans(step.answer["supported"])
            if own != found:
                why = f"broker {number} supports {listed(own)}, and answers {listed(found)}"
                yield breach(step, why, listed(own), listed(found), "supported")


# By what brokers decide


def _decisions(history: History) -> Iterator[tuple[ClusterStep, int, str]]:
    """Decisions of live brokers, with the number of the broker, and the observed version."""
    for step in trace(history):
        number = step.op.step.body.get("broker", -1)
        if step.verb == "inter-broker-version" and step.accepted and number in step.brokers:
            yield step, number, _version(step.answer["level"], step.answer["dynamic"])


def _version(level: int, dynamic: bool) -> str:
    return f"version {level} of the {'feature' if dynamic else 'static setting'}"


@impact("Brokers decide by the wrong inter-broker version", "wrong data", "gating", "incompatible-broker", links=KIP)
@brokers("feature-cluster/level-decides", "584-32", applies_to=on("broker-features", "inter-broker-version"))
def level_decides(history: History) -> Iterator[Violation]:
    """At the migration version, a broker decides by the level of ibp_feature that it answers, else by its setting."""
    for step, number, found in _decisions(history):
        known = step.before.answered.get(number)
        if known is not None:
            static = step.before.static[number]
            dynamic = static > 0 and IBP in known
            expected = _version(known[IBP].high if dynamic else static, dynamic)
            if found != expected:
                why = f"broker {number} has the static version {static}, and answers {listed(known)}"
                yield breach(step, why, expected, found, "dynamic" if dynamic else "static")


@impact("An upgrade needs a second rolling restart", "refused peer", "gating", "stuck-upgrade", links=KIP)
@brokers("feature-cluster/one-roll", "584-56", applies_to=on("broker-watch", "inter-broker-version"))
def one_roll(history: History) -> Iterator[Violation]:
    """A broker that read a finalized ibp_feature decides by its level, without a restart, whatever its setting is."""
    for step, number, found in _decisions(history):
        contents = step.before.read.get(number)
        if contents is None or not contents.enabled or IBP not in contents.finalized or number in step.before.old:
            continue
        expected = _version(contents.finalized[IBP].high, True)
        if found != expected:
            why = f"broker {number} read {IBP} {contents.finalized[IBP]}"
            yield breach(step, why, expected, found, "level", at=contents.at)


# The node, and what happens to it


@impact("A dropped level stays finalized", "wrong data", "guards", "incompatible-broker", links=KIP)
@node("feature-cluster/minimum-follows-brokers", "584-18",
      applies_to=on("elect-controller", "handle-registration", "update-features", "features-node"))  # fmt: skip
def minimum_follows_brokers(history: History) -> Iterator[Violation]:
    """A finalized minimum is, or is raised to, the highest supported minimum among registered brokers, no further."""
    for step, before, after in surrounded(history, "elect-controller", "handle-registration"):
        if after.at != step.op.index + 1 or not (before.enabled and after.enabled):
            continue
        for name in before.finalized.keys() & after.finalized.keys():
            lows = [own[name].low for number, own in step.brokers.items() if number in after.registered and name in own]
            expected, found = max((before.finalized[name].low, *lows)), after.finalized[name].low
            if found != expected:
                why = f"the minimum of {name} was {before.finalized[name].low}; registered brokers support {lows}"
                yield breach(step, why, str(expected), str(found), "minimum", at=after.at)
    for step, before, after in surrounded(history, "update-features"):
        for name in after.finalized.keys() - before.finalized.keys() if step.accepted and before.enabled else ():
            lows = [
                own[name].low for number, own in step.brokers.items() if number in before.registered and name in own
            ]
            if lows and after.finalized[name].low != max(lows):
                why = f"{name} was added, and registered brokers support it from {lows} on"
                yield breach(step, why, str(max(lows)), str(after.finalized[name].low), "added", at=after.at)


@impact("Finalized levels are lost in a restart", "wrong data", "durability", "stuck-upgrade", links=KIP)
@node("feature-cluster/outlives-restarts", "584-57", "584-80", applies_to=on("features-node"))
def outlives_restarts(history: History) -> Iterator[Violation]:
    """Starts, stops and readings of brokers leave the node as it is."""
    for step in trace(history):
        if step.verb == "features-node" and step.accepted and step.contents is not None:
            before, after = step.contents, contents_of(step.op)
            if _plain(before) != _plain(after):
                why = f"no request and no controller came between, and {listed(before.finalized)} was finalized"
                yield breach(step, why, listed(before.finalized), listed(after.finalized), "changed", at=before.at)


def _plain(contents: Contents) -> tuple[int, bool, Spans]:
    return contents.epoch, contents.enabled, contents.finalized


# Requests


@impact("A request fails as a whole because of one update", "trivia", "error-codes", "misled-operator", links=KIP)
@updates("feature-cluster/top-level-errors", "584-62", "584-14", applies_to=on("update-features"))
def top_level_errors(history: History) -> Iterator[Violation]:
    """A request fails as a whole only at another broker than the controller, or without permission."""
    for step in trace(history):
        if step.verb == "update-features" and step.error not in ("", *TOP_LEVEL):
            why = f"a request failed with {step.error}, which is an error of single updates"
            yield breach(step, why, "a result for each update", step.error, "whole")


class Asked(NamedTuple):
    """A request, and what is known of its effect."""

    updates: Any
    before: Contents | None
    """The node when it was sent, where that is known."""
    at: int
    done: bool
    """Whether it was applied, as far as that is possible: it was answered, or the node changed."""

    def followed(self, contents: Contents) -> "Asked":
        """After the node was read."""
        moved = self.before is not None and _plain(self.before) != _plain(contents)
        return self._replace(done=self.done or moved)


@impact("A repeated request changes features again", "wrong data", "atomicity", "misled-operator", links=KIP)
@updates(
    "feature-cluster/repeat-changes-nothing", "584-33", right_answer=RightAnswer.SEVERAL,
    applies_to=on("update-features", "lose-update", "features-node"),
)  # fmt: skip
def repeat_changes_nothing(history: History) -> Iterator[Violation]:
    """A request that was applied, its answer lost or not, changes nothing when it is repeated with none between."""
    asked: Asked | None = None
    node: Contents | None = None
    repeat: tuple[ClusterStep, Contents, int] | None = None
    for step in trace(history):
        if step.verb == "features-node" and step.accepted:
            after = contents_of(step.op)
            if repeat is not None and _plain(repeat[1]) != _plain(after):
                yield _changed(*repeat, after)
            asked, node, repeat = asked and asked.followed(after), after, None
        elif step.verb in (*WRITERS, "start-broker", "stop-broker") or not step.accepted:
            again, before = _request(step), asked
            same = before is not None and again is not None and before.updates == again
            repeat = (step, node, before.at) if same and before and before.done and node is not None else None
            done = step.verb == "update-features" or bool(same and before and before.done)
            asked = None if again is None else Asked(again, node, step.op.index, done)
            node = None


def _request(step: ClusterStep) -> Any:
    """The updates of a request to the controller; None of another step, and of one with a top-level error."""
    if step.verb not in ("update-features", "lose-update") or step.error or step.op.step.body.get("to") is not None:
        return None
    return step.op.step["updates"]


def _changed(step: ClusterStep, before: Contents, first: int, after: Contents) -> Violation:
    expected, found = (f"epoch {each.epoch} with {listed(each.finalized)}" for each in (before, after))
    return breach(step, f"a request was repeated, and the node had {expected}", expected, found, step.verb, at=first)
