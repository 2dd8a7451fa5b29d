"""The scenarios of the matrix, as scripts of an operator.

In a cell (from, to) a group that runs ``from`` is upgraded to ``to``; in ``downgrade`` a group that runs ``to`` is
downgraded to ``from``. Members start one by one in the order of their names, and the first is the leader.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations, product
from typing import Final, NamedTuple, TypeAlias, final

from kipcheck.conformance.matrix import scenario_names
from kipcheck.conformance.matrix.release_lines import Version
from kipcheck.conformance.protocols.streams.model.members import FUTURE, Store, Subtopology, Topology
from kipcheck.conformance.protocols.streams.ops import Deploy, Event, Start
from kipcheck.conformance.protocols.upgrade.ops import Crash, Move, Settle

Script: TypeAlias = tuple[Event, ...]
NAMES: Final = ("a", "b", "c")
NEWEST_LEADS: Final = Deploy(newest_leads=True)
"""The next leader after the leader has ended is not specified: the scripts try the member that has been in the group
longest, and the one that joined last."""
LEADS: Final[tuple[Script, ...]] = ((), (NEWEST_LEADS,))
STATEFUL: Final = Deploy(Topology((Subtopology(0, ("t",), stores=(Store("s"),)),), standbys=1), end_points=True)
"""Standbys and end points have to survive, so that tasks and standbys can be found."""
SETTLE: Final = Settle()
THERE_AND_BACK: Final = (NAMES, NAMES[::-1])
"""Orders in which the first leader is restarted first, and last."""


@final
@dataclass(frozen=True, slots=True)
class MemberSetup:
    """The release and configuration with which a member starts."""

    release: str
    upgrade_from: str | None = None

    def start(self, member: str, instance: str | None = None) -> Start:
        return Start(member, self.release, self.upgrade_from, instance)


class Pair(NamedTuple):
    """The two releases of a cell."""

    old: Version
    new: Version

    @property
    def before(self) -> MemberSetup:
        return MemberSetup(self.old.patch)

    @property
    def after(self) -> MemberSetup:
        return MemberSetup(self.new.patch)


def scripts(scenario: str, pair: Pair) -> Iterator[Script]:
    """All scripts of a cell."""
    yield from dict.fromkeys(_SCRIPTS[scenario](pair))


def possible(scenario: str, pair: Pair) -> str:
    """The reason why a cell does not exist; empty if it does."""
    if pair.old.patch == FUTURE:
        return "the future version is only an upgrade target"
    if scenario == scenario_names.JOIN or pair.old < pair.new:
        return ""
    if scenario == scenario_names.DOWNGRADE:
        return "a downgrade goes from --to to --from, so --from must be the older release"
    return f"{scenario} needs a later release as --to; use --scenario downgrade for the other direction"


# Parts of scripts


def running(kind: MemberSetup, names: tuple[str, ...] = NAMES) -> Script:
    """A group of such members in a stable state."""
    return (*map(kind.start, names), SETTLE)


def rolled(order: tuple[str, ...], kind: MemberSetup) -> Script:
    """Restarts the members one after the other."""
    return tuple(event for each in order for event in (kind.start(each), SETTLE))


def threaded(kind: MemberSetup) -> Script:
    """A group of two instances, the first of which has two threads."""
    return (kind.start("a"), kind.start("d", "a"), kind.start("b"), SETTLE)


def rolled_threads(order: str, kind: MemberSetup) -> Script:
    """Restarts the instances; an instance stops with all its threads."""
    both = (kind.start("a"), kind.start("d", "a"), SETTLE)
    alone = (kind.start("b"), SETTLE)
    return both + alone if order == "ab" else alone + both


# Scenarios


def _join(pair: Pair) -> Iterator[Script]:
    old, new = pair.before, pair.after
    yield (*running(old, ("a",)), new.start("b"), SETTLE)
    # The next subscription shows how the new member handled its assignment.
    yield (*running(old, ("a", "b")), new.start("c"), SETTLE, Crash("b"), SETTLE)
    yield (*threaded(old)[:2], SETTLE, new.start("b"), SETTLE)
    yield (STATEFUL, *running(old, ("a", "b")), new.start("c"), SETTLE)


def _bounces(before: MemberSetup, after: MemberSetup) -> Iterator[Script]:
    for order in permutations(NAMES):
        yield (*running(before), *rolled(order, after))
    for deployed, order in product((NEWEST_LEADS, STATEFUL), THERE_AND_BACK):
        yield (deployed, *running(before), *rolled(order, after))
    for threads in ("ab", "ba"):
        yield (*threaded(before), *rolled_threads(threads, after))


def _bounce(pair: Pair) -> Iterator[Script]:
    yield from _bounces(pair.before, pair.after)


def _downgrade(pair: Pair) -> Iterator[Script]:
    yield from _bounces(pair.after, pair.before)


def _two_bounce(pair: Pair) -> Iterator[Script]:
    first, second = MemberSetup(pair.new.patch, pair.old.line), pair.after
    for order in permutations(NAMES):
        yield (*running(pair.before), *rolled(order, first), *rolled(order, second))
    yield (*running(pair.before), *rolled(NAMES, first), *rolled(NAMES[::-1], second))
    for deployed in (NEWEST_LEADS, STATEFUL):
        yield (deployed, *running(pair.before), *rolled(NAMES, first), *rolled(NAMES, second))
    yield (*threaded(pair.before), *rolled_threads("ba", first), *rolled_threads("ab", second))


def _offline(pair: Pair) -> Iterator[Script]:
    ends = tuple(map(Crash, NAMES))
    for pause in ((SETTLE,), ()):
        yield (*running(pair.before), *ends, *pause, *running(pair.after))
    yield (*running(pair.before), *ends, SETTLE, *running(pair.after, NAMES[::-1]))
    yield (STATEFUL, *running(pair.before), *ends, SETTLE, *running(pair.after))


def _failure(pair: Pair) -> Iterator[Script]:
    for leads, order in zip(LEADS, THERE_AND_BACK, strict=True):
        yield from _failing(leads + running(pair.before), order, pair.before, pair.after)


def _two_bounce_failure(pair: Pair) -> Iterator[Script]:
    """A failure in the first bounce, then one in the second."""
    first, second = MemberSetup(pair.new.patch, pair.old.line), pair.after
    for leads, order in zip(LEADS, THERE_AND_BACK, strict=True):
        group = leads + running(pair.before)
        for script in _failing(group, order, pair.before, first):
            yield script + rolled(order, second)
        yield from _failing(group + rolled(order, first), order, first, second)


def _failing(group: Script, order: tuple[str, ...], old: MemberSetup, new: MemberSetup) -> Iterator[Script]:
    """A bounce of the group, in each script with one failure."""
    for done, bounced in enumerate(order):
        so_far = group + rolled(order[:done], new)
        for ended in NAMES:
            for back in (old, new):
                remaining = rolled(_still_to_bounce(order, done, ended, back, new), new)
                for bounce in _until(bounced, new):
                    yield so_far + bounce + _dies(ended, back) + remaining


def _until(bounced: str, new: MemberSetup) -> Iterator[Script]:
    """Restarts a member, and lets the group proceed to some point."""
    start, others = new.start(bounced), [each for each in NAMES if each != bounced]
    joined = Move(bounced, 4)
    yield start, SETTLE
    # The group noticed the stop first, and all members have rejoined: the leader is about to assign.
    assigning: Script = (Crash(bounced), SETTLE, start, joined, *(Move(each, 4) for each in others))
    yield assigning
    # The member has its assignment, and is about to apply it.
    yield (*assigning, *(Move(each, 3) for _ in range(2) for each in others), Move(bounced, 3))


def _dies(member: str, back: MemberSetup) -> Script:
    """The other members notice the stop before the restart."""
    return (Crash(member), SETTLE, back.start(member), SETTLE)


def _still_to_bounce(
    order: tuple[str, ...], done: int, ended: str, back: MemberSetup, new: MemberSetup
) -> tuple[str, ...]:
    """The members still to be restarted after one stopped and came back; that one, too, if it came back as the old
    release.
    """
    remaining = tuple(each for each in order[done + 1 :] if back != new or each != ended)
    return remaining if back == new or ended in remaining else (*remaining, ended)


_SCRIPTS: Final[Mapping[str, Callable[[Pair], Iterator[Script]]]] = {
    scenario_names.JOIN: _join,
    scenario_names.BOUNCE: _bounce,
    scenario_names.TWO_BOUNCE: _two_bounce,
    scenario_names.OFFLINE: _offline,
    scenario_names.DOWNGRADE: _downgrade,
    scenario_names.FAILURE: _failure,
    scenario_names.TWO_BOUNCE_FAILURE: _two_bounce_failure,
}
