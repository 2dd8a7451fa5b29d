"""Scripts of an application of the edition's release, beside members of other metadata versions."""

from collections.abc import Iterator
from typing import Final

from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.release import Release, lines
from kipcheck.conformance.protocols.streams.blobs import latest
from kipcheck.conformance.protocols.streams.model.members import FUTURE
from kipcheck.conformance.protocols.streams.rolling import Pair

LEADS: Final = "start a own; settle; start b {0}; settle; stop a; settle; restart a; settle; stop b; settle"
"""It meets the other one as the leader, returns when the other one leads, and remains."""
FOLLOWS: Final = "start a {0}; settle; start b own; settle; stop a; settle; restart a; settle"
"""It meets a leader, leads after it, and meets it again."""
EXPIRES: Final = "start a own; start b future; settle; expire a; settle"
REFUSED: Final = "start a own<9.9; settle"
TWO_BOUNCES: Final = (
    "start a {0}; start b {0}; settle; start a own<{1}; settle; start b own<{1}; settle; start a own; settle; "
    "start b own; settle"
)
MOST: Final = 3
"""Other releases of a kind: the nearest ones."""


def scripts(edition_name: str) -> Iterator[tuple[str, str]]:
    """Each with what is special about it."""
    own = edition(edition_name).release
    pairs = [*_pairs(own)]
    others = [FUTURE, *(_other(own, pair) for pair in pairs if not pair.needs_two)]
    for other in others:
        yield LEADS.format(other), f"leads {other}"
        yield FOLLOWS.format(other), f"follows {other}"
    yield EXPIRES, "expires"
    yield REFUSED, "unknown upgrade.from"
    for pair in pairs:
        if pair.needs_two and pair.new == own:
            yield TWO_BOUNCES.format(pair.old, pair.line), f"two bounces from {pair.old}"
        elif pair.needs_two:
            yield LEADS.format(f"{pair.new}<{pair.line}"), f"leads {pair.new}<{pair.line}"


def _pairs(own: str) -> Iterator[Pair]:
    """With other metadata versions, each by its newest release: the nearest older and newer ones that take one bounce,
    and those that take two."""
    newest = {latest(release): release for release in lines("streams")}
    newest.pop(latest(own), None)
    at = Release.parse(own)
    older = [Pair(release, own) for release in reversed(newest.values()) if Release.parse(release) < at]
    newer = [Pair(own, release) for release in newest.values() if Release.parse(release) > at]
    for pairs in (older, newer):
        for needs_two in (False, True):
            fitting = [pair for pair in pairs if pair.needs_two is needs_two and pair.has_a_way]
            yield from fitting[:MOST]


def _other(own: str, pair: Pair) -> str:
    return pair.old if pair.new == own else pair.new
