"""Answers the operator of a Streams application: which way leads from one release to another.

Every sentence rests on a cell that was run, or states that something was not run. Pure: the cells are arguments.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, final

from kipcheck.conformance.core.files.releases_table import span
from kipcheck.conformance.core.values.release import Release, releases
from kipcheck.conformance.matrix.cells import BREAKS, OK, REFUSED
from kipcheck.conformance.matrix.release_lines import Version
from kipcheck.conformance.matrix.scenario_names import (
    BOUNCE,
    DOWNGRADE,
    FAILURE,
    JOIN,
    OFFLINE,
    SCENARIOS,
    TWO_BOUNCE,
    TWO_BOUNCE_FAILURE,
)
from kipcheck.conformance.matrix.scenarios import Pair, possible
from kipcheck.conformance.protocols.streams.model.members import FUTURE
from kipcheck.conformance.protocols.streams.model.rules import LINES, Rules
from kipcheck.reports.matrix import BROKEN, CONDITIONAL, UNKNOWN, WORKS
from kipcheck.reports.phrases import some

WAYS: Final = (BOUNCE, TWO_BOUNCE, OFFLINE)
"""From the least effort to the most."""
FAILURES: Final[Mapping[str, str]] = {BOUNCE: FAILURE, TWO_BOUNCE: TWO_BOUNCE_FAILURE}
"""A way -> the scenario of a failure on it."""
PREDICTED: Final = {OK: "it works", BREAKS: "it breaks", REFUSED: "the configuration is refused"}
FORMATS: Final = {
    "foreign-key joins (KAFKA-13769)": ("old-foreign-keys", "new-foreign-keys"),
    "aggregations of tables (KIP-904)": ("old-changes", "new-changes"),
}
"""What an application may have -> behaviours of releases before and after its records in internal topics changed
(SubscriptionWrapperSerde, ChangedSerializer)."""


class Ran(NamedTuple):
    """The result of a cell that was run."""

    verdict: str
    rounds: int = 0
    requirement: str | None = None
    effect: str | None = None
    """What a user observes if it breaks."""

    @property
    def why(self) -> str:
        return f"{self.effect or 'a requirement is violated'}{self.clause}"

    @property
    def clause(self) -> str:
        return f" ({self.requirement})" if self.requirement else ""

    @property
    def rebalances(self) -> str:
        return f"at most {some(self.rounds, 'rebalance')}"


class Sentence(NamedTuple):
    result: str
    text: str


@final
@dataclass(frozen=True, slots=True)
class PairCells:
    """What is known of the scenarios of a pair of releases."""

    pair: Pair
    ran: Mapping[str, Ran]
    expected: Callable[[str], str | None]
    """The verdict that predictions and known deviations expect of a scenario; None without a prediction."""

    def not_run(self, scenario: str) -> str:
        expected = self.expected(scenario)
        return f"predicted: {PREDICTED[expected]}" if expected else "not predicted"


@final
@dataclass(frozen=True, slots=True)
class Answer:
    pair: Pair
    way: str | None
    """The scenario that is advised; None if no way that was run works."""
    head: Sentence
    more: tuple[Sentence, ...]
    configuration: tuple[str, ...] = ()
    """Lines of a properties file, with comments; empty if nothing has to be configured."""

    @property
    def plain(self) -> dict[str, Any]:
        """As ``answers`` of ``matrix.schema.json``."""
        return {
            "from": self.pair.old.name, "to": self.pair.new.name, "way": self.way, "result": self.head.result,
            "text": self.head.text, "more": [each._asdict() for each in self.more],
            "configuration": [*self.configuration],
        }  # fmt: skip


def answer(cells: PairCells, detour: Callable[[Pair], Version | None] = lambda pair: None) -> Answer:
    """``detour``: a release by way of which two upgrades are predicted to work."""
    pair = cells.pair
    if pair.new <= pair.old:
        return _no_upgrade(cells)
    changed = changed_formats(pair)
    found = {way: sentence for way in ways(pair) if (sentence := way_sentence(cells, way)) is not None}
    more: list[Sentence] = []
    way, head = None, Sentence(UNKNOWN, "no way of an upgrade was run.")
    if found:
        way = min(found, key=lambda each: _rank(each, found[each]))
        head = found.pop(way)
        more = [found[each] for each in found if head.result != WORKS or each == BOUNCE]
    if head.result in (CONDITIONAL, BROKEN) and (by_way_of := detour(pair)) is not None:
        more.append(_detour(pair, by_way_of))
    if changed:
        more.append(_formats(pair, changed))
    return Answer(
        pair, way if head.result != BROKEN else None,
        Sentence(head.result, f"{pair.old.name} to {pair.new.name}: {head.text}"),
        tuple(Sentence(each.result, each.text[0].upper() + each.text[1:]) for each in (*more, *_other(cells))),
        configuration(pair) if way == TWO_BOUNCE and head.result != BROKEN and pair.new.patch != FUTURE else (),
    )  # fmt: skip


# The ways of an upgrade


def accepted(version: Version) -> tuple[str, ...]:
    """The values of ``upgrade.from`` that a release accepts; empty if it ignores the setting. All for the future."""
    return LINES if version.patch == FUTURE else Rules.of(version.patch).accepts


def ways(pair: Pair) -> tuple[str, ...]:
    """The ways in the order of choice. With ``upgrade.from`` members write the old formats: where formats changed, two
    bounces come first. A release that ignores the setting has none.
    """
    order = (TWO_BOUNCE, BOUNCE, OFFLINE) if changed_formats(pair) else WAYS
    return tuple(each for each in order if each != TWO_BOUNCE or accepted(pair.new))


def configuration(pair: Pair) -> tuple[str, ...]:
    """The settings of two bounces."""
    return (
        f"# first bounce: restart each member as {pair.new.patch} with this line; wait after each for a stable group",
        f"upgrade.from={pair.old.line}",
        f"# second bounce, when all members run {pair.new.patch}: remove the line, and restart each again",
    )


def way_sentence(cells: PairCells, way: str) -> Sentence | None:
    """None if the way was not run."""
    pair, ran = cells.pair, cells.ran.get(way)
    if ran is None:
        return None
    if ran.verdict == REFUSED:
        return Sentence(BROKEN, f"{pair.new.name} refuses upgrade.from={pair.old.line}{ran.clause}.")
    subject, works, breaks, more = {
        BOUNCE: ("one rolling bounce", "works", "breaks", ""),
        TWO_BOUNCE: ("two rolling bounces", "work", "break", f" (the first with upgrade.from={pair.old.line})"),
        OFFLINE: ("an offline upgrade", "works", "breaks", f" (stop all members, then start all as {pair.new.name})"),
    }[way]
    if ran.verdict == BREAKS:
        return Sentence(BROKEN, f"{subject} {breaks}{more}: {ran.why}.")
    if way == OFFLINE:
        return Sentence(CONDITIONAL, f"{subject} {works}{more}: {ran.rebalances}.")
    return _with_failure(cells, FAILURES[way], f"{subject} {works}", f"{more}: {ran.rebalances} after each restart")


def _rank(way: str, sentence: Sentence) -> int:
    """Operators decide whether all members stop, and not whether one fails."""
    return {WORKS: 0, CONDITIONAL: 1 if way == OFFLINE else 2, UNKNOWN: 2, BROKEN: 3}[sentence.result]


def _with_failure(cells: PairCells, scenario: str, works: str, rebalances: str) -> Sentence:
    ran = cells.ran.get(scenario)
    if ran is None:
        only = f"{works} if no member fails meanwhile{rebalances}; failures were not run ({cells.not_run(scenario)})."
        return Sentence(UNKNOWN, only)
    if ran.verdict == OK:
        return Sentence(WORKS, f"{works}{rebalances}, {ran.rebalances} if a member fails meanwhile.")
    return Sentence(CONDITIONAL, f"{works} only if no member fails meanwhile{rebalances}; with a failure {ran.why}.")


def _detour(pair: Pair, by_way_of: Version) -> Sentence:
    steps = (
        f"kipcheck matrix --from {old.name} --to {new.name}"
        for old, new in ((pair.old, by_way_of), (by_way_of, pair.new))
    )
    return Sentence(
        UNKNOWN, f"by way of {by_way_of.name} it is predicted to work, and was not run: {'; '.join(steps)}."
    )


def changed_formats(pair: Pair) -> tuple[str, ...]:
    """What in an application writes records into internal topics in a format that the old release cannot read."""
    if FUTURE in (pair.old.patch, pair.new.patch):
        return ()
    old, new = (Release.parse(each.patch) for each in pair)
    return tuple(
        what
        for what, (before, after) in FORMATS.items()
        if old in releases(span(before, "streams")) and new in releases(span(after, "streams"))
    )


def _formats(pair: Pair, changed: tuple[str, ...]) -> Sentence:
    old, new = pair.old.name, pair.new.name
    remedy = f"{new} does not accept upgrade.from={pair.old.line}, with which it would write the old one"
    if pair.old.line in accepted(pair.new):
        remedy = f"with upgrade.from={pair.old.line} it writes the old one: bounce twice, and set it before a way back"
    text = (
        f"the records of {' and '.join(changed)} were not run: {new} writes a format that {old} cannot read; {remedy}."
    )
    return Sentence(UNKNOWN, text)


# Other sentences


def _other(cells: PairCells) -> Iterator[Sentence]:
    pair = cells.pair
    ignored = TWO_BOUNCE in cells.ran and not accepted(pair.new)
    if ignored:
        yield Sentence(UNKNOWN, f"{pair.new.name} ignores upgrade.from, so two bounces are the same as one.")
    yield from _join(cells)
    if (back := cells.ran.get(DOWNGRADE)) is not None:
        subject = f"the way back to {pair.old.name}, one member after the other,"
        if back.verdict == OK:
            yield Sentence(CONDITIONAL, f"{subject} works if no member fails: {back.rebalances} after each restart.")
        else:
            yield Sentence(BROKEN, f"{subject} breaks: {back.why}.")
    if pair.new.patch == FUTURE:
        yield Sentence(UNKNOWN, "the release future is kipcheck's model of one with a metadata version more than any.")
    yield from _not_run(cells)


def _not_run(cells: PairCells) -> Iterator[Sentence]:
    missing = [each for each in SCENARIOS if each not in cells.ran and not possible(each, cells.pair)]
    if missing:
        yield Sentence(UNKNOWN, f"not run: {', '.join(f'{each} ({cells.not_run(each)})' for each in missing)}.")


def _join(cells: PairCells) -> Iterator[Sentence]:
    old, new = cells.pair
    ran = cells.ran.get(JOIN)
    if ran is None:
        return
    without = " without upgrade.from" if old < new and new.patch != FUTURE and old.line in accepted(new) else ""
    if ran.verdict == OK:
        yield Sentence(WORKS, f"a {new.name} member{without} may join a {old.name} group: {ran.rebalances}.")
    else:
        yield Sentence(BROKEN, f"a {new.name} member{without} may not join a {old.name} group: {ran.why}.")


def _no_upgrade(cells: PairCells) -> Answer:
    """Of equal releases, and of a later release as the first: only ``join`` has such a cell."""
    old, new = cells.pair
    title = f"{old.name} to {new.name}"
    joins = [*_join(cells)]
    if old == new and joins:
        return Answer(cells.pair, None, Sentence(joins[0].result, f"{title}: {joins[0].text}"), ())
    back = f"kipcheck matrix --from {new.name} --to {old.name} --scenario downgrade"
    head = Sentence(UNKNOWN, f"{title}: the way back to {new.name} was not run: {back}.")
    return Answer(cells.pair, None, head, tuple(Sentence(each.result, f"A{each.text[1:]}") for each in joins))
