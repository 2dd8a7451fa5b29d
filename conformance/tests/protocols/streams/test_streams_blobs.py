"""User data of Streams members: values and their bytes, in the hands of each release."""

from dataclasses import replace

import pytest

from kipcheck.conformance.clients.java.programs import JavaCodec, Order, java_judge, parts
from kipcheck.conformance.protocols.assignment.model.assignment import Topic
from kipcheck.conformance.protocols.streams.blobs import (
    ILLEGAL_ARGUMENT,
    TASK_ASSIGNMENT,
    UNDERFLOW,
    UNKNOWN_TAIL,
    EncodedBinary,
    future_of,
    latest,
    read_assignment,
    read_subscription,
    write_assignment,
    write_subscription,
)
from kipcheck.conformance.protocols.streams.model.members import (
    FUTURE,
    LATEST_OFFSET,
    NO_REBALANCE,
    NO_VERSION,
    AssignmentInfo,
    AssignmentResult,
    Fatal,
    Joining,
    Memory,
    Settings,
    Share,
    SubscriptionInfo,
    TaskId,
    Topology,
)
from kipcheck.conformance.tests.wire.test_jars import LINES

PROCESS = "01020304-0506-0708-090a-0b0c0d0e0f10"
SENT = SubscriptionInfo(
    0, 0, PROCESS, (TaskId(0, 2), TaskId(1, 0)), (TaskId(0, 1),), "höst:9092",
    ((TaskId(0, 1), 5), (TaskId(0, 2), 7), (TaskId(1, 0), LATEST_OFFSET)), -128, 4, (("rack", "a"), ("zone", "ü")),
)  # fmt: skip
"""All that a subscription may say; each version has a place for some of it."""
GIVEN = AssignmentInfo(
    0, 3, (TaskId(0, 1), TaskId(0, 1), TaskId(1, 0)), ((TaskId(0, 0), (("t", 0), ("u", 0))),),
    (("a:9092", (("t", 1), ("u", 1))), ("b:1", (("v", 0),))), (("b:1", (("t", 0), ("u", 0))),), 3, 1700000000000,
)  # fmt: skip
RELEASES = ("0.10.0.1", "0.10.1.1", "1.1.1", "2.0.1", "2.4.1", "2.6.0", "2.8.2", "3.1.2", "3.9.2", "4.3.1")


def kept_of_subscription(version: int) -> SubscriptionInfo:
    """What is left of ``SENT`` in a version."""
    kept = replace(SENT, used=version, latest=11 if version >= 3 else NO_VERSION)
    if version < 2:
        kept = replace(kept, end_point=None)
    kept = replace(kept, sums=()) if version < 7 else replace(kept, active=(), standby=())
    return replace(
        kept, unique=-128 if version >= 8 else 0, error=4 if version >= 9 else 0,
        tags=SENT.tags if version >= 11 else (),
    )  # fmt: skip


def kept_of_assignment(version: int) -> AssignmentInfo:
    return replace(
        GIVEN, used=version, supported=3 if version >= 3 else NO_VERSION, hosts=GIVEN.hosts if version >= 2 else (),
        standby_hosts=GIVEN.standby_hosts if version >= 6 else (), error=3 if version >= 4 else 0,
        next_ms=GIVEN.next_ms if version >= 7 else NO_REBALANCE,
    )  # fmt: skip


@pytest.mark.parametrize("release", RELEASES)
def test_what_a_release_writes_it_reads_again_and_so_do_we(release: str) -> None:
    for version in range(1, latest(release) + 1):
        subscription = replace(SENT, used=version, latest=11)
        data = write_subscription(subscription, release)
        for reader in (release, None):
            assert read_subscription(data, reader) == kept_of_subscription(version), (version, reader)
        data = write_assignment(replace(GIVEN, used=version), release)
        misread = version == 1 and release == "0.10.1.1"
        for reader in (release, None):
            kept = kept_of_assignment(version)
            assert read_assignment(data, reader) == (replace(kept, used=2) if misread and reader else kept)


def test_what_is_a_set_is_read_in_order() -> None:
    backwards = replace(SENT, used=11, latest=11, sums=SENT.sums[::-1], tags=SENT.tags[::-1], active=(), standby=())
    assert read_subscription(write_subscription(backwards)) == kept_of_subscription(11)
    backwards = replace(SENT, used=3, latest=11, active=SENT.active[::-1])
    assert read_subscription(write_subscription(backwards)) == kept_of_subscription(3)
    ((task, owned),), (host, *others) = GIVEN.standby, GIVEN.hosts
    assignment = replace(
        GIVEN, used=11, standby=((TaskId(2, 0), ()), (task, owned[::-1])), hosts=(*others, (host[0], host[1][::-1]))
    )
    assert read_assignment(write_assignment(assignment)) == replace(
        kept_of_assignment(11), standby=((task, owned), (TaskId(2, 0), ()))
    )
    assert (
        read_assignment(write_assignment(replace(assignment, active=assignment.active[::-1]))).active
        == assignment.active[::-1]
    )


def test_a_task_of_a_named_topology() -> None:
    named = TaskId(0, 1, "topö")
    subscription = SubscriptionInfo(11, 11, PROCESS, sums=((named, 5),))
    assert read_subscription(write_subscription(subscription, "3.9.2"), "4.3.1") == subscription
    assignment = AssignmentInfo(10, 11, (named,), ((named, (("t", 1),)),))
    assert read_assignment(write_assignment(assignment, "3.9.2"), "3.1.2") == assignment
    with pytest.raises(Fatal, match=TASK_ASSIGNMENT):
        write_subscription(replace(subscription, used=9))
    with pytest.raises(Fatal, match=TASK_ASSIGNMENT):
        write_assignment(replace(assignment, used=9))


def test_version_1_as_0_10_1_to_1_1_write_it_has_the_end_point_behind() -> None:
    subscription, assignment = replace(SENT, used=1), replace(GIVEN, used=1)
    short, long = write_subscription(subscription, "2.0.1"), write_subscription(subscription, "1.1.1")
    assert long == short + len("höst:9092".encode()).to_bytes(4, "big") + "höst:9092".encode()
    assert len(write_assignment(assignment, "1.1.1")) > len(write_assignment(assignment, "0.10.0.1"))
    assert read_subscription(long, "0.10.0.1") == kept_of_subscription(1) == read_subscription(long, "1.1.1")


@pytest.mark.parametrize(("edition", "number", "before"), [("apache", 12, "2.0.1"), ("kip-268", 4, "kip-268")])
def test_the_future_is_read_whole_by_the_future_and_two_numbers_of_it_by_others(
    edition: str, number: int, before: str
) -> None:
    future = future_of(edition)
    assert latest(future) == number
    subscription = SubscriptionInfo(number, number, PROCESS, end_point="a:1")
    data = write_subscription(subscription, future)
    assert data.endswith(UNKNOWN_TAIL)
    assert read_subscription(data, future) == subscription
    assert read_subscription(data, before) == SubscriptionInfo(number, number)
    assignment = AssignmentInfo(number, number, (TaskId(0, 0),))
    data = write_assignment(assignment, future)
    assert read_assignment(data, future) == assignment
    with pytest.raises(Fatal, match=TASK_ASSIGNMENT):
        read_assignment(data, before)


def test_whoever_knows_all_reads_the_future_too_and_of_bytes_that_are_none_of_ours_two_numbers() -> None:
    subscription = SubscriptionInfo(12, 12, PROCESS)
    assert read_subscription(write_subscription(subscription, FUTURE)) == subscription
    assert read_subscription(bytes.fromhex("0000000c 0000000d aa")) == SubscriptionInfo(12, 13)
    assert read_subscription(bytes.fromhex("0000004d 0000004e")) == SubscriptionInfo(77, 78)


@pytest.mark.parametrize(
    ("data", "release", "made"),
    [
        ("00000004 00000004", "1.1.1", TASK_ASSIGNMENT),
        ("00000003 00000003", "1.1.1", TASK_ASSIGNMENT),
        ("00000000 00000004", "1.1.1", TASK_ASSIGNMENT),
        ("00000004", "2.0.1", UNDERFLOW),
        ("00000000 00000004", "2.0.1", SubscriptionInfo(0, 4)),
        ("ffffffff 00000004", "2.4.1", SubscriptionInfo(-1, 4)),
        ("0000000a ffffffff", "2.4.1", SubscriptionInfo(10, -1)),
        ("0000000c ffffffff", "2.5.1", ILLEGAL_ARGUMENT),
        ("0000000c 0000000b", "3.9.2", ILLEGAL_ARGUMENT),
        ("0000000c 0000000c", "3.9.2", SubscriptionInfo(12, 12)),
        ("00000000 0000000b", "3.9.2", UNDERFLOW),
        ("00000000" + "00" * 24, "3.9.2", ILLEGAL_ARGUMENT),
        ("", "3.9.2", UNDERFLOW),
    ],
)
def test_two_numbers_in_the_hands_of_a_leader(data: str, release: str, made: object) -> None:
    try:
        found: object = read_subscription(bytes.fromhex(data), release)
    except Fatal as fatal:
        found = fatal.kind
    assert found == made


def test_a_subscription_that_supports_less_than_it_speaks() -> None:
    data = write_subscription(SubscriptionInfo(3, 2, PROCESS), "2.0.1")
    assert read_subscription(data, "2.4.1").latest == 2 == read_subscription(data).latest
    with pytest.raises(Fatal, match=ILLEGAL_ARGUMENT):
        read_subscription(data, "2.5.0")


@pytest.mark.parametrize(
    ("data", "release", "made"),
    [
        ("00000000 00000000 00000000 00000000", "1.1.1", 0),
        ("00000000 00000000 00000000 00000000", "1.1.0", 2),
        ("00000000 00000000 00000000", "0.10.0.1", TASK_ASSIGNMENT),
        ("00000000 00000000 00000000", "2.0.1", TASK_ASSIGNMENT),
        ("00000003 00000003 00000000", "2.0.1", TASK_ASSIGNMENT),
        ("00000003 00000003 ffffffff 00000000 00000000", "2.0.1", ILLEGAL_ARGUMENT),
        ("00000003 00000003 ffffffff 00000000 00000000", "4.3.1", TASK_ASSIGNMENT),
        ("00000004 00000004 00000000 00000000 00000000 00000000", "2.0.1", TASK_ASSIGNMENT),
        ("00000003 00000063 00000000 00000000 00000000 ff", "2.0.1", 3),
        ("", "2.0.1", TASK_ASSIGNMENT),
    ],
)
def test_odd_assignments(data: str, release: str, made: object) -> None:
    try:
        found: object = read_assignment(bytes.fromhex(data), release).used
    except Fatal as fatal:
        found = fatal.kind
    assert found == made


def test_what_is_above_a_release_is_not_written_by_it() -> None:
    with pytest.raises(Fatal, match="between 1 and 3; was: 4"):
        write_subscription(SubscriptionInfo(4, 4), "2.0.1")
    with pytest.raises(Fatal, match="between 1 and 11; was: 12"):
        write_assignment(AssignmentInfo(12, 12), "3.9.2")


class Echo:
    """Speaks values, and says what it heard."""

    settings = Settings("2.0.1", Topology(()), PROCESS)
    latest = 3
    supports = ("eager",)

    def __init__(self) -> None:
        self.heard: list[object] = []

    def initial(self) -> Memory:
        return Memory(3)

    def subscribe(self, memory: Memory, topics: tuple[str, ...], /) -> tuple[Memory, SubscriptionInfo]:
        return memory, SubscriptionInfo(memory.used, 3, PROCESS)

    def lead(
        self, memory: Memory, topics: tuple[Topic, ...], members: tuple[Joining, ...], /
    ) -> tuple[Memory, dict[str, Share]]:
        self.heard += [each.data for each in members]
        return memory, {"a": Share((("t", 0),), AssignmentInfo(3, 3, (TaskId(0, 0),)))}

    def assigned(self, memory: Memory, share: Share, /) -> AssignmentResult:
        self.heard.append(share.data)
        return AssignmentResult(memory)


def test_a_binary_behind_bytes() -> None:
    echo = Echo()
    binary = EncodedBinary(echo)
    _, subscription = binary.subscribe(binary.initial(), ("t",))
    assert isinstance(subscription, bytes)
    ahead = write_subscription(SubscriptionInfo(12, 12, PROCESS), FUTURE)
    _, shares = binary.lead(Memory(3), (), (Joining("a", ("t",), subscription), Joining("b", ("t",), ahead)))
    assert isinstance(shares["a"].data, bytes) and shares["a"].partitions == (("t", 0),)
    binary.assigned(Memory(3), shares["a"])
    assert echo.heard == [
        SubscriptionInfo(3, 3, PROCESS), SubscriptionInfo(12, 12), AssignmentInfo(3, 3, (TaskId(0, 0),)),
    ]  # fmt: skip
    newer = write_assignment(AssignmentInfo(4, 4), "2.1.0")
    with pytest.raises(Fatal, match=TASK_ASSIGNMENT):
        binary.assigned(Memory(3), Share((), newer))


BODY = "00" * 16
ODD = {
    "SubscriptionInfo": (
        "", "00000004", "00000004 00000004", "00000003 00000003", "00000000 00000004", "ffffffff 00000004",
        "0000000c 0000000c", "0000000c ffffffff", "0000000c 0000000b", f"00000000 {BODY} 00000000 00000000",
        f"00000001 {BODY} ffffffff 00000000", f"00000002 {BODY} 00000000 00000000 ffffffff",
        f"00000002 {BODY} 00000000 00000000 00000009 61", f"00000002 {BODY} 00000009 00000000",
        f"00000003 00000002 {BODY} 00000000 00000000 00000000", f"00000003 ffffffff {BODY} 00000000 00000000 00000000",
        f"00000002 {BODY} 00000000 00000000 00000000 ff",
    ),
    "AssignmentInfo": (
        "", "00000003", "00000000 00000000 00000000 00000000", "00000001 00000000 00000000",
        "00000003 00000003 00000000",
        "00000003 00000003 ffffffff 00000000 00000000", "00000003 00000003 00000000 ffffffff 00000000",
        "00000003 00000003 00000000 00000000 ffffffff", "00000063 00000063", "ffffffff 00000000",
        "00000003 00000063 00000000 00000000 00000000 ff", "00000001 00000001 00000000",
    ),
}  # fmt: skip


def as_the_jar(judge: JavaCodec, release: str) -> None:
    """What is odd is taken as the release takes it, or refused with its exception."""
    refused = 0
    for message, read in (("SubscriptionInfo", read_subscription), ("AssignmentInfo", read_assignment)):
        for text in ODD[message]:
            data = bytes.fromhex(text)
            version = int.from_bytes(data[:4], "big", signed=True)
            theirs = judge.one(Order("decode", message, version, hex=data.hex(), release=release))
            found: object
            try:
                found = read(data, release).used
            except Fatal as fatal:
                found = fatal.kind
                refused += 1
            assert found == (theirs.thrown or theirs.value["version"]), f"{message} {text}"
    assert refused > 5


@pytest.mark.jars
@pytest.mark.parametrize("release", ["3.9.2", "4.3.1"])
def test_odd_bytes_are_read_as_the_newest_jars_read_them(judge: JavaCodec, release: str) -> None:
    as_the_jar(judge, release)


@pytest.mark.jars
@pytest.mark.all_jars
def test_odd_bytes_are_read_as_every_line_reads_them() -> None:
    every = [each for each in LINES if "streams" in parts(each)]
    with java_judge({release: ("streams",) for release in every}) as judge:
        for release in every:
            as_the_jar(judge, release)
