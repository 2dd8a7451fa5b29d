"""Subscriptions and assignments as values."""

import pytest

from kipcheck.conformance.wire.embedded import (
    Assignment,
    Subscription,
    assigned,
    read_assignment,
    read_subscription,
)
from kipcheck.conformance.wire.errors import Entries, Refused, TooManyEntries

OWNED = (("t", 0), ("t", 2), ("u", 1))


def test_a_subscription_is_read_as_far_as_its_version_has_it() -> None:
    for version in range(4):
        wrote = Subscription(version, ("t", "u"), OWNED, 7, "r" if version == 3 else None, b"x")
        expected = Subscription(
            version, ("t", "u"), OWNED if version >= 1 else (), 7 if version >= 2 else -1, wrote.rack, b"x"
        )
        assert read_subscription(wrote.written) == expected
    later = b"\0\x09" + Subscription(3, ("t",), OWNED).written[2:] + b"more"
    assert read_subscription(later) == Subscription(9, ("t",), OWNED)


def test_an_assignment_is_read_as_it_is_written() -> None:
    for version in range(4):
        share = Assignment(version, OWNED, b"x")
        assert read_assignment(share.written) == share and assigned(share.written) == OWNED
    assert read_assignment(b"") == Assignment(0, ())
    assert read_assignment(Assignment(0, tuple(reversed(OWNED))).written).partitions == OWNED


def test_what_cannot_be_read_is_refused_and_entries_are_counted() -> None:
    cut = Assignment(0, OWNED).written[:-4]
    with pytest.raises(Refused):
        read_assignment(cut)
    assert assigned(cut) == OWNED and assigned(cut[:-1]) is None
    with pytest.raises(TooManyEntries):
        read_subscription(Subscription(1, ("t", "u"), OWNED).written, entries=Entries(2))
