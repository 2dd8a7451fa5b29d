"""Rolling upgrades of three members between neighbouring lines of releases, and some that are further apart, with one
that is killed in the middle."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from kipcheck.conformance.core.files.releases_table import since, table
from kipcheck.conformance.core.values.release import Release, lines
from kipcheck.conformance.protocols.assignment.model.membership import COOPERATIVE
from kipcheck.conformance.protocols.streams.blobs import latest
from kipcheck.conformance.protocols.streams.invariants.trace import FIRST_PROBED
from kipcheck.conformance.protocols.streams.model.rules import Rules

MEMBERS: Final = "abc"


class Pair(NamedTuple):
    """The newest patches of two lines, one after the other."""

    old: str
    new: str

    @property
    def needs_two(self) -> bool:
        """Whether the old release fails at the new version, or only the new one is cooperative: then there are two
        bounces, the first with ``upgrade.from``."""
        old, new = Rules.of(self.old), Rules.of(self.new)
        blind = latest(self.old) < min(FIRST_PROBED, latest(self.new))
        return blind or (COOPERATIVE in new.supports(None) and COOPERATIVE not in old.supports(None))

    @property
    def line(self) -> str:
        """The value of ``upgrade.from``."""
        return self.old.rpartition(".")[0]

    @property
    def has_a_way(self) -> bool:
        """Whether the group can be upgraded without stopping it: not from 0.10.0 to 0.10.1 (268-41)."""
        return not self.needs_two or self.line in Rules.of(self.new).accepts


def pairs() -> Iterator[Pair]:
    """Of all lines with a way from one to the next, and of releases that users leave by one upgrade."""
    newest = lines("streams")
    yield from (each for each in map(Pair, newest, newest[1:]) if each.has_a_way)
    yield from (Pair(old, new) for old, new in table()["streams-upgrades"]["leaps"])


def pairs_of_streams_groups() -> Iterator[Pair]:
    """Those whose releases both have streams groups (KIP-1071)."""
    first = Release.parse(since("kip-1071"))
    yield from (each for each in pairs() if Release.parse(each.old) >= first)


def script(pair: Pair) -> str:
    """Each bounce restarts a, b and c. Before b's first turn it is killed, and restarts as it was."""
    old, new = pair
    first = f"{new}<{pair.line}" if pair.needs_two and pair.has_a_way else new
    steps = [*(f"start {each} {old}" for each in MEMBERS), "settle"]
    for bounce in dict.fromkeys((first, new)):
        for each in MEMBERS:
            if bounce == first and each == MEMBERS[1]:
                steps += [f"stop {each}", f"restart {each}", "settle"]
            steps += [f"start {each} {bounce}", "settle"]
    return "; ".join(steps)
