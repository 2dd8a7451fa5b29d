"""The subscriptions of other members, as bytes."""

from typing import Any

import pytest

from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.live.client.other_members import HUGE, Other, assignment, partitions_in
from kipcheck.conformance.protocols.client.ops import Member
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.schema import spec

SUBSCRIPTION = "ConsumerProtocolSubscription"


def read(data: bytes, version: int, lenient: bool = False) -> dict[str, Any]:
    found: dict[str, Any] = spec(APACHE, SUBSCRIPTION).at(version).decode(data, lenient=lenient)
    return found


@pytest.mark.parametrize("version", range(4))
def test_a_sound_subscription_is_read_whole(version: int) -> None:
    wants = Member(topics=("t", "gone"), owned=(1, 2), back=3, version=version)
    found = read(Other("a", wants).metadata("range", 10), version)
    assert found["topics"] == ["t", "gone"]
    assert found.get("ownedPartitions", []) == ([{"topic": "t", "partitions": [1, 2]}] if version else [])
    assert found.get("generationId", 7) == 7


def test_a_member_shows_what_the_leader_gave_it() -> None:
    other = Other("a")
    assert not other.take(assignment({("t", 0), ("t", 1)}))
    assert read(other.metadata("cooperative-sticky", 4), 1)["ownedPartitions"] == [{"topic": "t", "partitions": [0, 1]}]
    data = read(other.metadata("sticky", 4), 0)["userData"]
    shown = spec(APACHE, "StickyAssignorUserData").at(1).decode(data)
    assert shown == {"previousAssignment": [{"topic": "t", "partitions": [0, 1]}], "generation": 4}
    assert read(other.metadata("range", 4), 0)["userData"] is None
    assert other.take(assignment({("t", 1), ("t", 2)})) and not other.take(assignment({("t", 1), ("t", 2), ("t", 3)}))
    assert not partitions_in(b"\0") and not partitions_in(b"\0\0\0\0\0\x09")


def test_user_data_may_be_anything() -> None:
    sizes = {}
    for data in ("none", "sticky", "noise", "huge"):
        found = read(Other("a", Member(topics=("t",), owned=(0,), data=data)).metadata("range", 1), 0)
        sizes[data] = -1 if found["userData"] is None else len(found["userData"])
    assert sizes["none"] == -1 and 0 < sizes["noise"] < sizes["sticky"] < sizes["huge"] == HUGE


@pytest.mark.parametrize("damage", ["cut", "empty", "long", "negative"])
def test_damaged_metadata_is_refused_by_kafkas_reader_too(damage: str) -> None:
    data = Other("a", Member(topics=("t",), version=1, damage=damage)).metadata("range", 1)  # type: ignore[arg-type]
    with pytest.raises(Refused):
        read(data, 1, lenient=True)


@pytest.mark.parametrize("version", range(4))
def test_metadata_of_a_later_version_begins_with_all_that_is_known(version: int) -> None:
    data = Other("a", Member(topics=("t",), version=version, damage="future")).metadata("range", 1)
    known = Other("a", Member(topics=("t",), version=3)).metadata("range", 1)
    assert int.from_bytes(data[:2], "big") == 9
    assert data[2:].startswith(known[2:]) and len(data) > len(known)


@pytest.mark.parametrize("version", range(4))
def test_bytes_behind_metadata_are_for_a_later_reader(version: int) -> None:
    data = Other("a", Member(topics=("t",), version=version, damage="tail")).metadata("range", 1)
    known = Other("a", Member(topics=("t",), version=version)).metadata("range", 1)
    assert data.startswith(known) and len(data) > len(known)
    assert read(data, version, lenient=True)["topics"] == ["t"]
