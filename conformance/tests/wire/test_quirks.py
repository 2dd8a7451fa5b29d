"""What old readers of Streams let pass, in both lenient readings; the jars say the same on every line."""

from collections import Counter
from functools import partial
from random import Random

import pytest

from kipcheck.conformance.clients.java.programs import Order, java_judge, parts
from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.tests.support.agreement import CONSUMER, STREAMS, drawn, generated, keepable, of
from kipcheck.conformance.tests.wire.test_jars import LINES
from kipcheck.conformance.wire import constructs, layout
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.schema import Layout
from kipcheck.strategies.damage import damages

NO_TASKS = bytes(4)
BELOW_ZERO = b"\xff" * 4
UUID = bytes(16)


def outcomes(at: Layout, data: bytes) -> list[object]:
    """Of both lenient readings: the value, or the class of the refusal."""
    found: list[object] = []
    for read in (at.codec.decode_lenient, partial(constructs.read, at, lenient=True)):
        try:
            found.append(read(data))
        except Refused as refused:
            found.append(refused.kind)
    return found


@pytest.mark.parametrize(("release", "passes"), [("0.10.0.1", True), ("2.4.1", True), ("2.5.0", False)])
def test_a_count_below_zero_in_a_subscription(release: str, passes: bool) -> None:
    data = b"\0\0\0\1" + UUID + BELOW_ZERO + NO_TASKS
    for found in outcomes(layout(f"apache@{release}", "SubscriptionInfo", 1), data):
        assert (found == "null") is not passes
        assert not passes or (isinstance(found, dict) and found["prevTasks"] == [] == found["standbyTasks"])


@pytest.mark.parametrize(("release", "passes"), [("2.0.1", True), ("3.9.2", True), ("4.3.0", True), ("4.3.1", False)])
def test_a_count_below_zero_of_hosts(release: str, passes: bool) -> None:
    at = layout(f"apache@{release}", "AssignmentInfo", 2)
    for found in outcomes(at, b"\0\0\0\2" + NO_TASKS + NO_TASKS + BELOW_ZERO):
        assert (found == "null") is not passes
        assert not passes or (isinstance(found, dict) and found["partitionsByHost"] == [])
    assert outcomes(at, b"\0\0\0\2" + NO_TASKS + BELOW_ZERO + NO_TASKS) == ["null", "null"]


@pytest.mark.parametrize("tail", ["", "00000003616263", "00000009", "ff"])
def test_the_tail_of_version_1_stays_unread_in_the_releases_that_write_it(tail: str) -> None:
    data = b"\0\0\0\1" + UUID + NO_TASKS + NO_TASKS + bytes.fromhex(tail)
    found = outcomes(layout("apache@1.1.1", "SubscriptionInfo", 1), data)
    assert [isinstance(each, dict) and each["userEndPoint"] for each in found] == [b"", b""]
    data = b"\0\0\0\1" + NO_TASKS + NO_TASKS + bytes.fromhex(tail)
    found = outcomes(layout("apache@1.1.1", "AssignmentInfo", 1), data)
    assert [isinstance(each, dict) and each["partitionsByHost"] for each in found] == [[], []]


def test_strict_reading_lets_none_of_it_pass() -> None:
    with pytest.raises(Refused):
        layout("apache@2.4.1", "SubscriptionInfo", 1).decode(b"\0\0\0\1" + UUID + BELOW_ZERO + NO_TASKS)
    with pytest.raises(Refused):
        layout("apache@1.1.1", "SubscriptionInfo", 1).decode(b"\0\0\0\1" + UUID + NO_TASKS + NO_TASKS)


def modest(subscription: object) -> bool:
    """Does it support less than it speaks? From 2.5 on that is refused: a rule of values, not of layouts."""
    if not isinstance(subscription, dict):
        return False
    return bool(subscription.get("latestSupportedVersion", 0) < subscription.get("version", 0))


def noise(data: bytes, random: Random) -> bytes:
    """One byte is another, too many or missing."""
    at = random.randrange(len(data) + 1)
    other = random.choice((b"", b"\0", b"\xff", b"\x80", random.randbytes(1)))
    return data[:at] + other + data[at + random.randrange(2) :]


@pytest.mark.jars
@pytest.mark.all_jars
@pytest.mark.parametrize("release", LINES)
def test_every_line_reads_damaged_bytes_as_our_lenient_reading_does(release: str) -> None:
    have = parts(release)
    old = Release.parse(release) < Release.parse("2.4.0")
    found = [at for message in STREAMS if "streams" in have for at in of(release, message)]
    found += [at for message in CONSUMER for at in of(release, message)] if old else generated(release)
    compared: Counter[str] = Counter()
    with java_judge({release: have}) as judge:
        for at in found:
            random = Random(f"{release} {at}")
            values = [keepable(at, value, release) if at.message in STREAMS else value for value in drawn(at, 4)]
            datas = [each.data for value in values for each in damages(at, value, random)]
            datas += [noise(at.encode(value), random) for value in values for _ in range(4)]
            orders = (Order("decode", at.message, at.version, hex=data.hex(), release=release) for data in datas)
            for data, answer in zip(datas, judge.answers(orders), strict=True):
                if answer.status == "unsupported":
                    assert at.message.endswith(("Key", "Value")), answer
                    continue
                ours = outcomes(at, data)
                if answer.thrown == "java.lang.IllegalArgumentException" and all(map(modest, ours)):
                    compared["modest"] += 1
                    continue
                accepted = [isinstance(each, dict) for each in ours]
                assert accepted == [answer.status == "accepted"] * 2, f"{at} {data.hex()}: {ours}, {answer}"
                # The classes that keep maps are compared in substance elsewhere.
                flat = at.message in CONSUMER and Release.parse(release) < Release.parse("2.7.0")
                if accepted[0] and not flat and at.message not in STREAMS:
                    assert at.codec.to_json(at.decode(data, lenient=True)) == answer.value, f"{at} {data.hex()}"
                compared[answer.status] += 1
    assert compared["accepted"] > 5 and compared["rejected"] + compared["internal"] > 5
