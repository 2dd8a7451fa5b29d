"""What controllers of feature versions in KRaft must do, as released, and what no release of them takes.

An update is legal if the table of releases says so: the levels of the leading controller's own release, those that each
node declared, and the rules of upgrade types. A controller that refuses everything breaks the first of these.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.history import History, Refused, Replied
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.declare.invariant import impact
from kipcheck.conformance.protocols.features.invariants import kraft
from kipcheck.conformance.protocols.features.model.kraft_rules import DISABLED, Rules

PLACE = 35

KIP: Final = ("KIP-584",)
UPGRADE: Final = 1
TYPES: Final = (UPGRADE, *kraft.DOWNGRADES)
WITHOUT_RESULTS: Final = 2
"""The version of UpdateFeatures from which on a response of 4.0 has no results."""
Update = Mapping[str, Any]


def rules_of(history: History) -> Rules:
    return Rules.of_edition(edition(history.case.edition))


def _requests(history: History) -> Iterator[kraft.KraftStep]:
    return (step for step in kraft.trace(history) if step.verb == "kraft-update")


def _is_repeated(step: kraft.KraftStep) -> bool:
    names = [each["feature"] for each in step.request["updates"]]
    return len({*names}) < len(names)


def _taken(step: kraft.KraftStep) -> Iterator[Update]:
    """The updates that were applied, or found valid; the last one of a feature counts."""
    if not isinstance(step.op.observation, Replied):
        return
    refused = {each["feature"] for each in step.answer["results"] if each["error"] != kraft.NONE}
    asked = {each["feature"]: each for each in step.request["updates"]}
    yield from (each for name, each in asked.items() if name not in refused)


# Legal updates


def _is_legal(step: kraft.KraftStep, update: Update, rules: Rules) -> bool:
    """Whether an update is legal beyond doubt. The conditions of the quorum for kraft.version are not known."""
    name: str = update["feature"]
    level: int = update["level"]
    stated = step.before.stated
    if name == kraft.KRAFT or stated is None or not rules.supported.get(name, DISABLED).holds(level):
        return False
    if name not in rules.supported or not _is_supported(step, name, level, rules):
        return False
    before = stated.get(name, 0)
    if not _is_typed(step, update, before):
        return False
    if name == kraft.METADATA:
        return level >= rules.first_bootstrap and (level >= before or not rules.changes_metadata(level, before))
    return _metadata(step, stated) >= rules.needs.get((name, level), 0)


def _is_supported(step: kraft.KraftStep, name: str, level: int, rules: Rules) -> bool:
    """Whether each node declared the level."""
    nodes = (*step.before.brokers.values(), *step.before.controllers.values())
    if rules.undeclared_refused and any(name not in each for each in nodes):
        return False
    silent = {*step.before.quorum} - {0, *step.before.controllers}
    ranges = [each.get(name, (0, 0)) for each in nodes]
    return not silent and all(low <= level <= high for low, high in ranges)


def _is_typed(step: kraft.KraftStep, update: Update, before: int) -> bool:
    """Whether the upgrade type fits; a request of version 0 has none (584-44)."""
    kind: int = update["upgrade_type"]
    level: int = update["level"]
    if step.request["version"] == 0:
        return kind == UPGRADE and level >= before
    if level == before:
        return kind in TYPES
    return kind == UPGRADE if level > before else kind in kraft.DOWNGRADES


def _metadata(step: kraft.KraftStep, stated: kraft.Levels) -> int:
    """metadata.version after the request."""
    asked = {each["feature"]: each["level"] for each in step.request["updates"]}
    level: int = asked.get(kraft.METADATA, stated.get(kraft.METADATA, 0))
    return level


@impact("An allowed update of a feature is refused", "refused peer", "guards", "stuck-upgrade", links=KIP)
@kraft.updates(
    "kraft-features/applies-legal-updates", "584-06", "584-07", "584-12", "584-34", "584-36", "584-37", "584-40",
    "584-45", "584-76", "584-82", applies_to=kraft.on(*kraft.ALL),
)  # fmt: skip
def applies_legal_updates(history: History) -> Iterator[Violation]:
    """An update that the rules of the release allow, within the range of every node, is applied."""
    rules = rules_of(history)
    for step in _requests(history):
        if step.before.stated is None or _is_repeated(step):
            continue
        asked = step.request["updates"]
        legal = [each for each in asked if _is_legal(step, each, rules)]
        if not isinstance(step.op.observation, Replied):
            if len(legal) == len(asked) or (legal and not rules.all_or_nothing):
                why = f"levels are {dict(step.before.stated)}, and each update is legal"
                yield kraft.breach(step, why, "applied", f"refused: {step.error}", "whole")
            continue
        errors = {each["feature"]: each["error"] for each in step.answer["results"]}
        for each in legal:
            if errors.get(each["feature"], kraft.NONE) != kraft.NONE:
                why = f"{each['feature']} is at {step.before.stated.get(each['feature'], 0)}; asked: {each['level']}"
                kind = "metadata" if each["feature"] == kraft.METADATA else "feature"
                yield kraft.breach(step, why, "applied", f"refused: {errors[each['feature']]}", kind)


@impact("An update has no result", "trivia", "answers", "misled-operator", links=KIP)
@kraft.updates("kraft-features/a-result-each", "584-79", "584-12", applies_to=kraft.on("kraft-update"))
def a_result_each(history: History) -> Iterator[Violation]:
    """An answered request has a result for each of its features, but in version 2 of 4.0 and later."""
    all_or_nothing = rules_of(history).all_or_nothing
    for step in _requests(history):
        if isinstance(step.op.observation, Replied):
            without = all_or_nothing and step.request["version"] >= WITHOUT_RESULTS
            asked = set[str]() if without else {each["feature"] for each in step.request["updates"]}
            found = {each["feature"] for each in step.answer["results"]}
            if asked != found:
                why = f"UpdateFeatures v{step.request['version']}"
                yield kraft.breach(step, why, f"results of {sorted(asked)}", f"of {sorted(found)}", "results")


@impact("An update leaves the epoch as it is", "wrong data", "epochs", "stale-view", links=KIP)
@kraft.updates("kraft-features/epoch-rises", "584-43", "584-37", applies_to=kraft.READS)
def epoch_rises(history: History) -> Iterator[Violation]:
    """An update that succeeds raises the epoch, as a record is written, also for a level that is finalized already."""
    for step in _requests(history):
        following, before = step.following, step.before.epoch
        if before is None or following is None or following.step.verb != "kraft-levels":
            continue
        written = {*step.applied} - {kraft.KRAFT}
        if written and isinstance(following.observation, Replied) and following.observation["epoch"] <= before:
            why = f"the epoch was {before}, and {', '.join(sorted(written))} succeeded"
            observed = following.observation["epoch"]
            yield kraft.breach(step, why, f"above {before}", observed, "stays", read=True)


@impact("A controller shows other levels than the cluster has", "wrong data", "durability", "stale-view", links=KIP)
@kraft.updates("kraft-features/levels-stay", "584-80", "584-83", "584-57", applies_to=kraft.on(*kraft.ALL))
def levels_stay(history: History) -> Iterator[Violation]:
    """A reading shows the levels of the new cluster, or those read before, until a request changes them."""
    for step in kraft.trace(history):
        stated = step.before.stated
        if step.verb != "kraft-levels" or stated is None or not isinstance(step.op.observation, Replied):
            continue
        expected = {name: level for name, level in stated.items() if name != kraft.KRAFT}
        found = {each["feature"]: each["level"] for each in step.answer["levels"] if each["feature"] != kraft.KRAFT}
        if found != expected:
            yield kraft.breach(step, "no request came between", str(expected), found, "levels")


@impact("The levels of features cannot be read", "refused peer", "answers", "stale-view", links=KIP)
@kraft.updates("kraft-features/levels-are-read", "584-83", "584-26", applies_to=kraft.on("kraft-levels"))
def levels_are_read(history: History) -> Iterator[Violation]:
    """The finalized levels can always be read."""
    for op in history.ops:
        if op.step.verb == "kraft-levels" and isinstance(op.observation, Refused):
            yield Violation("levels were read", (op.index,), "the levels", op.observation.error, shape=("refused",))


# What is refused


@impact("A level is finalized that the controller does not support", "crash or hang", "guards", "incompatible-broker",
        links=KIP)  # fmt: skip
@kraft.updates("kraft-features/within-the-release", "584-06", "584-31", "584-36", applies_to=kraft.on("kraft-update"))
def within_the_release(history: History) -> Iterator[Violation]:
    """No level is taken that the release of the leading controller lacks, and from 4.0 on no name that it lacks."""
    rules = rules_of(history)
    for step in _requests(history):
        for each in _taken(step):
            name, level = each["feature"], each["level"]
            own = rules.supported.get(name, DISABLED)
            if not own.holds(level) or (rules.known_only and name not in rules.supported):
                why = f"{name} was set to {level}, and release {rules.release} supports {own}"
                kind = "level" if name in rules.supported else "name"
                yield kraft.breach(step, why, f"refused: {kraft.REFUSED}", "applied", kind)


@impact("An update of an unknown type is applied", "wrong data", "gating", "unsafe-downgrade", links=KIP)
@kraft.updates("kraft-features/knows-the-type", "584-34", applies_to=kraft.on("kraft-update"))
def knows_the_type(history: History) -> Iterator[Violation]:
    """An update whose upgrade type is none of upgrade, safe downgrade and unsafe downgrade is refused."""
    for step in _requests(history):
        for each in _taken(step) if step.request["version"] > 0 else ():
            if each["upgrade_type"] not in TYPES:
                why = f"an update of {each['feature']} has the type {each['upgrade_type']}"
                yield kraft.breach(step, why, f"refused: {kraft.REFUSED}", "applied", "type")


@impact("metadata.version falls below the first level of a cluster", "crash or hang", "gating", "unsafe-downgrade",
        links=("KIP-778",))  # fmt: skip
@kraft.updates("kraft-features/first-level", "584-45", applies_to=kraft.on("kraft-update"))
def first_level(history: History) -> Iterator[Violation]:
    """metadata.version is never set below the least level of a new cluster."""
    rules = rules_of(history)
    for step in _requests(history):
        for each in _taken(step):
            if each["feature"] == kraft.METADATA and each["level"] < rules.first_bootstrap:
                why = f"metadata.version was set to {each['level']}; the least is {rules.first_bootstrap}"
                yield kraft.breach(step, why, f"refused: {kraft.REFUSED}", "applied", "level")


@impact("A feature is used without what it needs", "wrong data", "gating", "incompatible-broker", links=("KIP-1022",))
@kraft.updates("kraft-features/dependencies", "584-82", applies_to=kraft.READS)
def dependencies(history: History) -> Iterator[Violation]:
    """A level that needs a metadata.version is refused below it, unless the same request raises it."""
    rules = rules_of(history)
    for step in _requests(history):
        for each in _taken(step) if step.before.stated is not None else ():
            assert step.before.stated is not None
            least = rules.needs.get((each["feature"], each["level"]), 0)
            if _metadata(step, step.before.stated) < least:
                why = f"{each['feature']} {each['level']} needs metadata.version {least}"
                yield kraft.breach(step, why, f"refused: {kraft.REFUSED}", "applied", "dependency")
