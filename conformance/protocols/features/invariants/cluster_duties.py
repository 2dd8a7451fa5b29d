"""What a cluster of KIP-584's draft must do: apply legal requests, register compatible brokers, answer clients.

Each invariant reads answers, as those of ``cluster`` do. A controller that refuses everything breaks them.
"""

from collections.abc import Iterator
from typing import Final

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.declare.invariant import RightAnswer, impact
from kipcheck.conformance.protocols.features.invariants.cluster import (
    KIP,
    NONE,
    WRITERS,
    ClusterStep,
    Contents,
    Span,
    Spans,
    Update,
    breach,
    brokers,
    contents_of,
    judged,
    listed,
    node,
    on,
    results,
    surrounded,
    trace,
    updates,
)

PLACE = 26

NOT_CONTROLLER, UNAUTHORIZED = "NOT_CONTROLLER", "CLUSTER_AUTHORIZATION_FAILED"
REQUESTS: Final = ("update-features", "validate-features")
MOVES_BROKERS: Final = ("start-broker", "stop-broker", "broker-watch")


# Legal updates


def _kept_back(history: History) -> Iterator[Update]:
    """Refused updates to levels that every registered broker supports."""
    for each in judged(history, applied=False):
        known = each.before.registered & each.step.brokers.keys()
        ranges = [each.step.brokers[number].get(each.feature) for number in known]
        if ranges and all(own is not None and own.low <= each.level <= own.high for own in ranges):
            yield each


@impact("An allowed update of a feature is refused", "refused peer", "guards", "stuck-upgrade", links=KIP)
@updates("feature-cluster/applies-legal-updates", "584-06", "584-08", "584-12", "584-62", "584-68", "584-69",
         applies_to=on(*REQUESTS))  # fmt: skip
def applies_legal_updates(history: History) -> Iterator[Violation]:
    """A level that every registered broker supports is finalized or raised, and a flagged deletion made."""
    for each in _kept_back(history):
        if each.level >= 1 and not each.flag and (each.span is None or each.level > each.span.high):
            yield breach(each.step, f"{each.why} was refused", "applied", f"refused: {each.error}", "upgrade")
    for each in judged(history, applied=False):
        if each.level < 1 and each.flag and each.span is not None:
            yield breach(each.step, f"{each.why} was refused", "applied", f"refused: {each.error}", "deletion")


@impact("An allowed downgrade of a feature is refused", "refused peer", "guards", "stuck-upgrade", links=KIP)
@updates("feature-cluster/lowers-with-the-flag", "584-07", "584-11", grade=Grade.SHOULD, applies_to=on(*REQUESTS))
def lowers_with_the_flag(history: History) -> Iterator[Violation]:
    """A flagged downgrade to a level that every registered broker supports is applied, unless a rule forbids it."""
    for each in _kept_back(history):
        span = each.span
        if span is not None and each.flag and max(span.low, 1) <= each.level < span.high:
            yield breach(each.step, f"{each.why} was refused", "applied", f"refused: {each.error}", "downgrade")


@impact("The controller refuses requests as a whole", "refused peer", "guards", "stuck-upgrade", links=KIP)
@updates("feature-cluster/controller-answers", "584-78", "584-14", applies_to=on(*REQUESTS))
def controller_answers(history: History) -> Iterator[Violation]:
    """The controller answers a request that has permission with results, not with a top-level error."""
    for step in trace(history):
        if step.verb not in REQUESTS or step.accepted or step.op.step.body.get("unauthorized"):
            continue
        elected = step.before.elected
        if elected is not None and step.op.step.body.get("to") in (None, elected):
            why = f"broker {elected} is the controller, and the request has permission"
            yield breach(step, why, "a result for each update", f"refused: {step.error}", "whole")


@impact("Anyone may change features, at any broker", "wrong data", "gating", "misled-operator", links=KIP)
@updates("feature-cluster/refuses-strangers", "584-54", "584-78", "584-13", applies_to=on("update-features"))
def refuses_strangers(history: History) -> Iterator[Violation]:
    """A request at another broker fails with NOT_CONTROLLER, and one without permission as unauthorized."""
    for step in trace(history):
        if step.verb != "update-features":
            continue
        elsewhere = step.op.step["to"] is not None and step.op.step["to"] != step.before.elected
        expected = [NOT_CONTROLLER] * elsewhere + [UNAUTHORIZED] * bool(step.op.step.body.get("unauthorized"))
        nobody = step.before.elected is None and step.error == NOT_CONTROLLER
        if expected and step.error not in expected and not nobody:
            why = f"the request is sent {'to another broker' if elsewhere else 'without permission'}"
            observed = f"refused: {step.error}" if step.error else "results"
            yield breach(step, why, f"refused: {' or '.join(expected)}", observed, *expected)


@impact("An update has no result", "trivia", "answers", "misled-operator", links=KIP)
@updates("feature-cluster/a-result-each", "584-79", "584-12", applies_to=on(*REQUESTS))
def a_result_each(history: History) -> Iterator[Violation]:
    """An answered request has one result for each of its updates, in the name of its feature."""
    for step in trace(history):
        if step.verb in REQUESTS and step.accepted and "results" in step.answer:
            asked = sorted(each["feature"] for each in step.op.step["updates"])
            found = sorted(each["feature"] for each in step.answer["results"])
            if {*asked} != {*found} or len(found) > len(asked):
                yield breach(step, f"the request names {', '.join(asked)}", str(asked), str(found), "results")


@impact("Features change while they are disabled", "wrong data", "gating", "incompatible-broker", links=KIP)
@updates("feature-cluster/disabled-refuses", "584-22", applies_to=on(*REQUESTS))
def disabled_refuses(history: History) -> Iterator[Violation]:
    """While the node is disabled no update succeeds."""
    for step in trace(history):
        disabled = step.contents is not None and step.contents.epoch >= 0 and not step.contents.enabled
        for name, error in results(step).items() if disabled else ():
            if error == NONE:
                yield breach(step, f"the node is disabled, and {name} is updated", "a refusal", "applied", "disabled")


@impact("An update that was validated is lost", "wrong data", "atomicity", "misled-operator", links=KIP)
@updates("feature-cluster/controller-writes", "584-15", "584-59", right_answer=RightAnswer.SEVERAL,
         applies_to=on("validate-features", "write-features", "features-node"))  # fmt: skip
def controller_writes(history: History) -> Iterator[Violation]:
    """The controller that validated a request, and was not deposed, writes it: every good update is in the node."""
    found = trace(history)
    for place, step in enumerate(found):
        if step.verb == "write-features" and step.before.waiting == step.op.step["broker"]:
            if not step.accepted:
                why = "this controller validated the request, and was not deposed"
                yield breach(step, why, "results", f"refused: {step.error}", "refused")
                continue
            after = _reading(found[place + 1 :], WRITERS)
            if after is not None:
                yield from _missing(_validation(found[:place]), step, after)


def _validation(before: tuple[ClusterStep, ...]) -> ClusterStep:
    return next(step for step in reversed(before) if step.verb == "validate-features")


def _missing(validation: ClusterStep, step: ClusterStep, after: Contents) -> Iterator[Violation]:
    good = {each["feature"] for each in step.answer["results"] if each["error"] == NONE}
    asked = validation.op.step["updates"]
    for each in asked:
        span = after.finalized.get(each["feature"])
        found = span.high if span else 0
        once = sum(one["feature"] == each["feature"] for one in asked) == 1
        if each["feature"] in good and once and found != max(each["level"], 0):
            why = f"an update of {each['feature']} to {each['level']} was written"
            yield breach(step, why, f"level {max(each['level'], 0)}", f"level {found}", "missing", at=after.at)


def _reading(later: tuple[ClusterStep, ...], ends: tuple[str, ...]) -> Contents | None:
    """The next reading of the node, without one of these steps before it."""
    for step in later:
        if step.verb in ends:
            return None
        if step.verb == "features-node":
            return contents_of(step.op) if step.accepted else None
    return None


# The life of the node


def _elections(history: History) -> Iterator[tuple[ClusterStep, int, Contents, bool]]:
    """Elections of live brokers, the reading after each, and whether it is the first one."""
    found, first = trace(history), True
    for place, step in enumerate(found):
        if step.verb == "elect-controller" and step.op.step["broker"] in step.brokers:
            after = _reading(found[place + 1 :], (*WRITERS, *MOVES_BROKERS))
            if after is not None:
                yield step, step.op.step["broker"], after, first
            first = False


@impact("A new cluster finalizes no features", "refused peer", "durability", "stuck-upgrade", links=KIP)
@node("feature-cluster/new-cluster-finalizes", "584-19", applies_to=on("elect-controller", "features-node"))
def new_cluster_finalizes(history: History) -> Iterator[Violation]:
    """The first controller, at the migration version, finalizes every supported feature at its latest level."""
    for step, number, after, first in _elections(history):
        if not first or number in step.before.old or not after.enabled:
            continue
        shared = _shared(step)
        if dict(after.finalized) not in (shared, dict(step.brokers[number])):
            why = f"a new cluster begins, whose brokers support {listed(shared)}"
            yield breach(step, why, listed(shared), listed(after.finalized), "finalized", at=after.at)


def _shared(step: ClusterStep) -> dict[str, Span]:
    """The levels of each feature that all live brokers support."""
    each = [*step.brokers.values()]
    names = set.intersection(*({*own} for own in each))
    spans = {name: Span(max(own[name].low for own in each), min(own[name].high for own in each)) for name in names}
    return {name: span for name, span in spans.items() if span.low <= span.high}


@impact("An upgraded cluster finalizes features by itself", "wrong data", "gating", "unsafe-downgrade", links=KIP)
@node("feature-cluster/enables-empty", "584-20", applies_to=on("elect-controller", "features-node"))
def enables_empty(history: History) -> Iterator[Violation]:
    """A disabled node that becomes enabled has no finalized features."""
    for step, before, after in surrounded(history, "elect-controller"):
        if before.epoch >= 0 and not before.enabled and after.enabled and after.finalized:
            why = "the node was disabled, and a controller at the migration version was elected"
            yield breach(step, why, "no features", listed(after.finalized), "finalized", at=after.at)


@impact("Finalized levels are lost in an election", "wrong data", "durability", "stuck-upgrade", links=KIP)
@node("feature-cluster/election-keeps", "584-57", "584-80", applies_to=on("elect-controller", "features-node"))
def election_keeps(history: History) -> Iterator[Violation]:
    """An election that changes no status leaves every finalized level, and adds none."""
    for step, before, after in surrounded(history, "elect-controller"):
        if before.epoch < 0 or before.enabled is not after.enabled:
            continue
        was, found = _highs(before), _highs(after)
        if was != found:
            why = f"broker {step.op.step['broker']} was elected, and {was} was finalized"
            yield breach(step, why, str(was), str(found), "levels", at=after.at)


def _highs(contents: Contents) -> dict[str, int]:
    return {name: span.high for name, span in contents.finalized.items()}


# Brokers


@impact("A compatible broker is not registered", "refused peer", "guards", "stuck-upgrade", links=KIP)
@brokers("feature-cluster/compatible-broker-registers", "584-81", "584-25",
         applies_to=on("elect-controller", "handle-registration", "features-node"))  # fmt: skip
def compatible_broker_registers(history: History) -> Iterator[Violation]:
    """The controller registers a live broker that supports every finalized level when it handles its registration."""
    found = trace(history)
    for place, step in enumerate(found):
        number = step.op.step.body.get("broker", -1)
        elects = step.verb == "elect-controller" and number in step.brokers
        if not elects and not (step.verb == "handle-registration" and step.before.elected is not None):
            continue
        after = _reading(found[place + 1 :], (*WRITERS, *MOVES_BROKERS))
        if after is None or after.epoch < 0:
            continue
        for each in sorted(step.brokers) if elects else [number] if number in step.brokers else []:
            if each not in after.registered and _fits(step.brokers[each], after):
                why = f"broker {each} supports what is finalized: {listed(after.finalized)}"
                yield breach(step, why, f"broker {each} registered", "not registered", step.verb, at=after.at)


def _fits(own: Spans, contents: Contents) -> bool:
    """Whether a broker supports every finalized level, or none counts."""
    found = contents.finalized if contents.enabled else {}
    return all(name in own and own[name].low <= span.high <= own[name].high for name, span in found.items())


@impact("A broker stops although it checks nothing", "refused peer", "guards", "stuck-upgrade", links=KIP)
@brokers("feature-cluster/unchecked-broker-stays", "584-22", applies_to=on("start-broker", "broker-watch"))
def unchecked_broker_stays(history: History) -> Iterator[Violation]:
    """A broker below the migration version is not stopped, and none is while the node is absent or disabled."""
    began = False
    for step in trace(history):
        began = began or step.verb == "elect-controller"
        if step.verb not in ("start-broker", "broker-watch") or step.accepted:
            continue
        starts = step.verb == "start-broker"
        number = step.op.step["broker"]
        old = step.op.step.body.get("before_migration", False) if starts else number in step.before.old
        if old or not began or (step.contents is not None and not step.contents.enabled):
            why = f"broker {number} is below the migration version" if old else "no features are enabled"
            yield breach(step, why, "it stays", "it stops", step.verb)


@impact("A broker does not answer clients", "refused peer", "answers", "stale-view", links=KIP)
@brokers("feature-cluster/live-broker-answers", "584-26", "584-55", "584-32",
         applies_to=on("broker-features", "inter-broker-version"))  # fmt: skip
def live_broker_answers(history: History) -> Iterator[Violation]:
    """Every live broker answers ApiVersions, and decides by some inter-broker version."""
    for step in trace(history):
        asked = step.verb in ("broker-features", "inter-broker-version")
        if asked and not step.accepted and step.op.step["broker"] in step.brokers:
            yield breach(step, f"broker {step.op.step['broker']} is live", "an answer", step.error, step.verb)
