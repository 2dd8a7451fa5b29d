"""Finds the requirement that a history of the matrix breaks, with a reason that fits into one line."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from kipcheck.conformance.core.files.releases_table import since, span
from kipcheck.conformance.core.values.impacts import effect_of
from kipcheck.conformance.core.values.release import Release, releases
from kipcheck.conformance.core.values.verdict import Grade
from kipcheck.conformance.matrix.play import JudgedScript
from kipcheck.conformance.matrix.release_lines import line_of
from kipcheck.conformance.matrix.scenario_names import (
    BOUNCE,
    DOWNGRADE,
    FAILURE,
    JOIN,
    OFFLINE,
    TWO_BOUNCE,
    TWO_BOUNCE_FAILURE,
)
from kipcheck.conformance.protocols.streams.invariants.trace import Life, Round, ThreadFailure, binds, streams_trace
from kipcheck.conformance.protocols.streams.model.members import FUTURE
from kipcheck.conformance.protocols.streams.model.rules import EAGER_LINES, FIXED, LINES

SCENARIO_REQUIREMENTS: Final = {
    JOIN: "268-22", BOUNCE: "268-22", TWO_BOUNCE: "268-13", OFFLINE: "268-23", DOWNGRADE: "268-26", FAILURE: "268-26",
    TWO_BOUNCE_FAILURE: "268-26",
}  # fmt: skip
"""The requirement of each scenario, for failures without a clause of their own."""
DURING: Final = {
    "subscribe": "when it subscribes", "lead": "when it has to assign", "assigned": "of its assignment",
    "error": "on an error code",
}  # fmt: skip
EAGER_ONLY: Final = releases(span("eager-streams"))
COOPERATIVE_ONLY: Final = Release.parse(since("cooperative-streams"))
"""Since this release only the cooperative protocol is offered."""
REFUSED: Final = "a member does not start"
HANDED_OVER: Final = "streams/handed-over"
"""The invariant broken by old leaders that ignore the partitions that members still own."""


class Cause(NamedTuple):
    step: int
    rank: int
    """In one step, the death of a thread comes before other violations, and a description before the laws."""
    requirement: str
    reason: str
    effect: str
    """What a user observes, as the end of a sentence."""


def first_cause(judged: JudgedScript, scenario: str) -> Cause | None:
    """The first failure; None if there is none."""
    return min((*_deaths(judged, scenario), *_violations(judged, scenario)), default=None)


def refusal(judged: JudgedScript) -> Cause:
    """The cause of a refused configuration, for a history with one."""
    refused = judged.refused
    assert refused is not None
    for index, step in enumerate(judged.history.case.steps):
        setting = step.body.get("upgrade_from")
        if step.body.get("member") == refused.member and setting is not None:
            why = f"upgrade.from={setting} is refused by {step['release']}: {refused.why}"
            return Cause(index, 0, _refusing(step["release"], setting), _line(why), REFUSED)
    return Cause(0, 0, "268-55", _line(f"{refused.member} does not start: {refused.why}"), REFUSED)


def _refusing(release: str, setting: str) -> str:
    at = Release.parse(release)
    if setting in EAGER_LINES and at >= COOPERATIVE_ONLY:
        return "268-39"
    if at in releases(FIXED):
        return "268-41"
    return "268-08" if at in EAGER_ONLY else "268-55"


def _deaths(judged: JudgedScript, scenario: str) -> Iterator[Cause]:
    known = [(round, fell) for round in streams_trace(judged.history).rounds for fell in round.failures]
    for index, died in judged.deaths:
        found = next(((round, fell) for round, fell in known if fell.at == index and fell.event == died), None)
        requirement = _of_death(*found, scenario) if found else SCENARIO_REQUIREMENTS[scenario]
        who = found[1].life or died.member if found else died.member
        why = f"{who} dies {DURING.get(died.during, died.during)}: {died.kind.rpartition('.')[2]}: {died.why}"
        yield Cause(index, 0, requirement, _line(why), "a stream thread dies")


def _of_death(round: Round, fell: ThreadFailure, scenario: str) -> str:
    life, during = fell.life, fell.event.during
    if life is None:
        return SCENARIO_REQUIREMENTS[scenario]
    match during:
        case "subscribe" if life.latest < _adopted_version(round, life):
            return "268-33"
        case "lead" if round.futures and binds("268-14", life.release):
            return _old_leader(round, life, scenario)
        case "lead" | "error" if round.is_hard_mix:
            return "268-32"
        case "assigned":
            return _of_assignment(round, life, scenario)
    return SCENARIO_REQUIREMENTS[scenario]


def _old_leader(round: Round, life: Life, scenario: str) -> str:
    """268-41 in two-bounce if a newer member is of line 0.10.1 and has upgrade.from set; otherwise 268-14."""
    if scenario in (TWO_BOUNCE, TWO_BOUNCE_FAILURE) and any(
        each.life is not None and each.life.upgrade_from is not None and line_of(each.life.release) == LINES[1]
        for each in round.futures
    ):
        return "268-41"
    return "268-14"


def _adopted_version(round: Round, life: Life) -> int:
    return max((each.event.used for each in round.processed if each.life is life), default=0)


def _of_assignment(round: Round, life: Life, scenario: str) -> str:
    for each in round.given:
        if each.life is life and each.info is not None and each.info.used > life.latest:
            return "268-42" if each.info.error else "268-11"
    reference = round.subscribed(life)
    newer = reference is not None and any(
        each.life is life and each.info is not None and each.info.used > reference.info.used for each in round.given
    )
    return "268-35" if newer and life.bound("268-35") else SCENARIO_REQUIREMENTS[scenario]


def _violations(judged: JudgedScript, scenario: str) -> Iterator[Cause]:
    ran = {each.life.release for each in streams_trace(judged.history).observed if each.life is not None}
    for invariant, violation in judged.broken:
        bound = [each for each in invariant.requirements if any(binds(each, release) for release in ran)]
        requirement = (
            SCENARIO_REQUIREMENTS[scenario]
            if SCENARIO_REQUIREMENTS[scenario] in bound
            else next(iter(bound or invariant.requirements))
        )
        exact = [Release.parse(each) for each in ran - {FUTURE}]
        if invariant.id == HANDED_OVER and any(each in EAGER_ONLY for each in exact):
            requirement = "268-39" if max(exact) >= COOPERATIVE_ONLY else "268-38"
        rank = 1 if invariant.grade is Grade.INFO else 2
        effect = effect_of(invariant.id, (), "")
        title = invariant.id if effect is None else effect.title[0].lower() + effect.title[1:]
        yield Cause(max(violation.at, default=0), rank, requirement, _line(violation.why), title)


def _line(text: str) -> str:
    return " ".join(text.split())[:400]
