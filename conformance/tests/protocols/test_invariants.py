"""Every planted defect is found by its own invariant, in the values a check draws by default, and shrunk."""

import pytest

from kipcheck.conformance.core.values.case import Case, Role, step
from kipcheck.conformance.core.values.history import (
    Died,
    History,
    Lost,
    Observation,
    Op,
    Refused as Refusal,
    Replied,
    Unsupported,
)
from kipcheck.conformance.core.values.verdict import Result
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.protocols.codec.invariants.wire import words
from kipcheck.conformance.protocols.codec.two_decoders import difference
from kipcheck.conformance.protocols.invariants import all_invariants


@pytest.mark.parametrize(
    ("wanted", "got", "path"),
    [
        ({"a": 1}, {"a": 1}, None),
        ({"a": 1}, {"a": True}, "a"),
        ({"a": 0}, {"a": None}, "a"),
        ({"a": []}, {"a": None}, "a"),
        ({"a": ""}, {"a": None}, "a"),
        ({"a": 0.0}, {"a": -0.0}, "a"),
        ({"a": float("nan")}, {"a": float("nan")}, None),
        ({"a": 1}, {}, "a"),
        ({}, {"a": None}, "a"),
        ({"a": [{"b": [1, 2]}]}, {"a": [{"b": [1, 3]}]}, "a[0].b[1]"),
        ({"a": [1]}, {"a": [1, 2]}, "a"),
    ],
)
def test_the_first_difference_is_found(wanted: object, got: object, path: str | None) -> None:
    found = difference(wanted, got)
    assert (found and found.path) == path


def test_the_words_of_an_error_do_not_change_from_case_to_case() -> None:
    one = words("JoinGroupRequest v3: unpack_from requires a buffer of at least 42 bytes at 'abc'")
    other = words("SyncGroupResponse v0: unpack_from requires a buffer of at least 7 bytes at 'xyz'")
    assert one == other == "requires a buffer of at least bytes at"


def judged(message: str, version: int, hex: str, observation: Observation) -> dict[str, Result]:
    """By every invariant that the step concerns."""
    asked = step("codec", "decode", message=message, version=version, hex=hex)
    case = Case("test", "apache", Role.CODEC, (asked,))
    history = History(case, "somebody", (Op(0, asked, observation, 1),))
    return {each.invariant: each.result for each in judge(history, all_invariants(Role.CODEC))}


NO = Refusal("ValueError")


@pytest.mark.parametrize(
    ("message", "version", "hex", "why"),
    [
        ("HeartbeatResponse", 0, "00000001", "bytes after the end"),
        ("MetadataRequest", 4, "0000000002", "a boolean above 1"),
        ("LeaveGroupRequest", 0, "0001ff0000", "text that is no UTF-8"),
        ("LeaveGroupRequest", 0, "fffe0000", "a negative length, which is null to Kafka"),
        ("HeartbeatResponse", 4, "000000000000ffffffff0f", "-1 tags, which older releases read as none"),
        ("HeartbeatResponse", 4, "0000000000008000", "a varint longer than its number needs"),
        ("ApiVersionsResponse", 1, "000100000000", "cut off, or an answer in v0"),
    ],
)
def test_where_readers_differ_both_answers_pass(message: str, version: int, hex: str, why: str) -> None:
    accepted = Replied((("value", {}),))
    for observation in (NO, accepted):
        results = judged(message, version, hex, observation)
        results.pop("wire/reads-alike", None)  # an INFO: how it is read where it is accepted
        assert Result.FAIL not in results.values(), (why, results)


def test_a_size_past_the_end_is_refused_also_where_a_reader_may_skip_the_data() -> None:
    whole = "0000" + "01" + "00000000" + "01" + "00" + "0b" + "02" + "0261" + "0001" + "0002" + "00"
    assert judged("ApiVersionsResponse", 3, whole[:-4], Replied((("value", {}),)))["wire/refuses"] is Result.FAIL
    inside = "0000" + "01" + "00000000" + "01" + "00" + "03" + "02" + "7f61"
    assert "wire/refuses" not in judged("ApiVersionsResponse", 3, inside, Replied((("value", {}),)))


def test_the_answer_in_v0_to_an_unsupported_version_may_be_read_as_either() -> None:
    in_v3 = "0023" + "01" + "00000000" + "00"
    for observation in (NO, Replied((("value", {"errorCode": 35, "apiKeys": []}),))):
        assert Result.FAIL not in judged("ApiVersionsResponse", 3, in_v3, observation).values()
    other_error = "002a" + "01" + "00000000" + "00"
    assert judged("ApiVersionsResponse", 3, other_error, NO)["wire/decodes"] is Result.FAIL


def test_of_the_v0_answer_that_is_accepted_error_and_range_are_read() -> None:
    in_v0 = "0023" + "00000001" + "0012" + "0000" + "0002"
    known = [{"apiKey": 18, "minVersion": 0, "maxVersion": 2}]
    right = {"errorCode": 35, "apiKeys": known, "throttleTimeMs": 0, "finalizedFeaturesEpoch": -1}
    for value, result in (
        (right, Result.PASS),
        ({**right, "errorCode": 0}, Result.FAIL),
        ({**right, "apiKeys": []}, Result.FAIL),
        ({**right, "apiKeys": [{**known[0], "maxVersion": 3}]}, Result.FAIL),
    ):
        accepted = judged("ApiVersionsResponse", 3, in_v0, Replied((("value", value),)))
        assert accepted["wire/reads-answer-in-v0"] is result, value
    refused = judged("ApiVersionsResponse", 3, in_v0, NO)
    assert (refused["wire/reads-answer-in-v0"], refused["wire/falls-back-to-v0"]) == (Result.PASS, Result.FAIL)


def test_what_was_not_answered_is_not_passed() -> None:
    assert judged("HeartbeatResponse", 0, "0000", Unsupported("no"))["wire/decodes"] is Result.SKIP
    assert judged("HeartbeatResponse", 0, "0000", Lost("gone"))["wire/decodes"] is Result.UNKNOWN
    died = judged("HeartbeatResponse", 0, "0000", Died("crashed"))
    assert (died["wire/decodes"], died["survives"]) == (Result.UNKNOWN, Result.FAIL)


@pytest.mark.parametrize(("count", "result"), [(10_000, Result.FAIL), (10_001, Result.PASS)])
def test_a_decoder_may_limit_the_number_of_tagged_fields(count: int, result: Result) -> None:
    """HeartbeatResponse v4: kafka-clients 4.2.2 refuses more than 10,000 in one struct."""

    def two_bytes(number: int) -> bytes:
        """A varint."""
        return bytes((number & 127 | 128, number >> 7))

    tags = two_bytes(count) + b"".join((bytes((n,)) if n < 128 else two_bytes(n)) + b"\x00" for n in range(count))
    found = judged("HeartbeatResponse", 4, (bytes(6) + tags).hex(), NO)
    assert found["wire/skips-unknown-tags"] is result
