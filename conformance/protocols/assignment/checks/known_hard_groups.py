"""First values of assignment checks: groups that released leaders got wrong, and that random draws seldom produce."""

from collections.abc import Callable, Iterable
from typing import Any

from kipcheck.conformance.protocols.assignment.strategies import GENERATION, MEMBERS, TOPICS, Value

Topic = tuple[str, str]
"""The subscribers of a topic and the owners of its partitions, as letters; ``-`` for no owner."""


def group(members: str, *topics: Topic) -> Value:
    described = [{"readers": list(readers), "runs": _runs(owners)} for readers, owners in topics]
    return {
        "members": [each in members for each in MEMBERS],
        "topics": [*described, *[None] * (len(TOPICS) - len(described))],
    }


def _runs(owners: str) -> list[dict[str, Any]]:
    """Runs of consecutive partitions with one owner, at most three."""
    runs: list[dict[str, Any]] = []
    for each in owners.replace("-", " "):
        if runs and runs[-1]["by"] == each.strip():
            runs[-1]["size"] += 1
        else:
            runs.append({"by": each.strip(), "size": 1})
    return runs


def claimed(value: Value, claims: Iterable[tuple[str, str, int]] = (), older: str = "") -> Callable[[object], Value]:
    """The value with additional claims (member, topic, partition); ``older``: members that claim in the generation
    before."""
    return lambda subject: {
        "group": value,
        "claims": [{"by": by, "topic": topic, "number": number, "size": 1} for by, topic, number in claims],
        "generations": [GENERATION - (each in older) for each in MEMBERS],
    }


CLAIMS = (
    # KAFKA-12984: two claim one partition in one generation, and both got it (2.5.1 to 2.8.0).
    claimed(group("abc", ("abc", "aab")), [("b", "t0", 0)]),
    # KAFKA-14639: a claim of the previous generation was ignored (2.8.1 to 3.4.0).
    claimed(group("abc", ("abc", "bba")), older="b"),
    # The older claim is after the newer one in the list, and before it.
    claimed(group("ab", ("ab", "aa")), [("b", "t0", 0)], older="b"),
    claimed(group("ab", ("ab", "bb")), [("a", "t0", 0)], older="a"),
    # An older claim of a member that no longer subscribes to the topic, and of one without a subscription: a partition
    # that has to move goes back to it (AbstractStickyAssignor, prevAssignment).
    claimed(group("abc", ("ab", "b"), ("abc", "b")), [("c", "t0", 0)], older="c"),
    claimed(group("abc", ("ab", "aa")), [("c", "t0", 0)], older="c"),
    # The owner of a partition has two more than a member with an older claim, and another one could move to it: the
    # search of all releases since 2.4.1 prefers the older claim.
    claimed(group("abc", ("abc", "a"), ("b", "-"), ("abc", "abb")), [("c", "t0", 0)], older="c"),
)
