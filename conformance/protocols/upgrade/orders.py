"""Scripts of the two bounces in every order of the members, and of members without a common assignor."""

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Final

from kipcheck.conformance.protocols.cluster.kinds import COOPERATES, OLD, READY
from kipcheck.conformance.protocols.upgrade.ops import MEMBERS

NUMBERS: Final = (2, 3)
"""Of members."""
UNLIKE: Final = (
    "roll a old; roll b old; settle; roll c cooperative; settle; roll c ready; settle",
    "roll a cooperative; roll b cooperative; settle; roll c old; settle; roll c ready; settle",
    "roll a old; settle; roll b ready; settle; roll c cooperative; settle; stop a; settle; roll c cooperative; settle",
    "roll a cooperative; settle; roll b ready; settle; roll c old; settle; stop a; settle; roll c old; settle",
)
"""A member with cooperative assignors alone joins one with eager ones alone, and the reverse, with and without a member
that has both: it is refused until the group has an assignor that it has."""


def bounce_scripts() -> Iterator[str]:
    """Without a failure each order of the first bounce with each of the second; with one member that is killed at its
    turn the same order twice; and bounces that do not wait for the group."""
    for number in NUMBERS:
        orders = [*permutations(MEMBERS[:number])]
        for first in orders:
            for second in orders:
                yield script(first, second)
                if first == second or number == min(NUMBERS):
                    for killed in range(2 * number):
                        yield script(first, second, killed)
            yield script(first, first, waits=False)
    yield from UNLIKE


def script(first: Sequence[str], second: Sequence[str], killed: int | None = None, waits: bool = True) -> str:
    """``killed``: the number of the turn, over both bounces, at which a member is killed in place of being stopped."""
    steps = [*(f"roll {each} {OLD}" for each in sorted(first)), "settle"]
    turns = [*((each, READY) for each in first), *((each, COOPERATES) for each in second)]
    for number, (member, kind) in enumerate(turns):
        steps += [f"crash {member}"] if number == killed else []
        steps += [f"roll {member} {kind}"]
        steps += ["settle"] if waits or number + 1 in (len(first), len(turns)) else []
    return "; ".join(steps)
