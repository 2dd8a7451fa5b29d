"""Values of the checks of codecs: those that omit a field, and those that straddle the sizes of buffers."""

from random import Random

import pytest

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import History, Observation, Op, Refused, Replied
from kipcheck.conformance.core.values.verdict import Grade
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.codec.checks.example_values import inhabited
from kipcheck.conformance.protocols.codec.checks.family import Subject, subject
from kipcheck.conformance.protocols.codec.checks.large_values import each_large, large, sizes
from kipcheck.conformance.protocols.codec.checks.partial_values import partial
from kipcheck.conformance.protocols.codec.invariants.sizes import STRADDLED
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.tests.support.loops import for_each

JOIN = subject("apache", "JoinGroupRequest", 3)


def omitted(of: Subject) -> set[str]:
    """The paths of the fields that are omitted."""
    found = set()
    for whole, part in partial(of.layout, inhabited(of.layout), Random(0)):
        found |= set(_missing(whole, part, ""))
    return found


def _missing(whole: object, part: object, path: str) -> list[str]:
    if isinstance(whole, dict) and isinstance(part, dict):
        gone = [path + name for name in whole if name not in part]
        return gone + [each for name in part for each in _missing(whole[name], part[name], f"{path}{name}.")]
    if isinstance(whole, list) and isinstance(part, list):
        return [each for one, other in zip(whole, part, strict=True) for each in _missing(one, other, path)]
    return []


def test_every_field_with_a_default_of_its_own_is_omitted_at_any_depth() -> None:
    assert omitted(JOIN) >= {"rebalanceTimeoutMs"}
    commit = omitted(subject("apache", "OffsetCommitRequest", 6))
    assert commit >= {"generationIdOrMemberEpoch", "topics.partitions.committedLeaderEpoch"}
    assert len(commit) == 4, "and two of the others"


def judged(of: Subject, check: str, steps: tuple[object, ...], answers: list[Observation], invariant: str) -> list[str]:
    case = Case(check, of.edition, Role.CODEC, steps)  # type: ignore[arg-type]
    ops = tuple(Op(n, each, answer, n) for n, (each, answer) in enumerate(zip(case.steps, answers, strict=True)))
    found = next(each for each in all_invariants(Role.CODEC) if each.id == invariant)
    return ["/".join(each.shape) for each in found.search(History(case, "a codec", ops))]


def encoded(of: Subject, **fields: object) -> Replied:
    value = {"sessionTimeoutMs": 1, "rebalanceTimeoutMs": -1, "groupId": "g"} | fields
    return Replied((("hex", of.layout.encode(value).hex()),))


@pytest.mark.parametrize(
    ("answer", "shapes"),
    [
        (encoded(JOIN), []),
        (Refused("TypeError", "missing rebalance_timeout_ms"), []),
        (encoded(JOIN, rebalanceTimeoutMs=0), ["omitted/another value/int32"]),
    ],
)
def test_an_omitted_field_has_its_default_or_is_demanded(answer: Observation, shapes: list[str]) -> None:
    plain = JOIN.layout.codec.to_json(JOIN.layout.decode(bytes.fromhex(dict(encoded(JOIN).payload)["hex"])))
    part = {name: each for name, each in plain.items() if name != "rebalanceTimeoutMs"}
    steps = (JOIN.step("encode", value=plain), JOIN.step("encode", value=part))
    assert judged(JOIN, "wire/omitted-fields", steps, [encoded(JOIN), answer], "wire/fills-in-defaults") == shapes


def test_an_omitted_field_that_may_be_null_and_has_no_default_of_its_own_may_be_null() -> None:
    of = subject("apache", "MetadataRequest", 1)
    steps = (of.step("encode", value={}),)
    wrong = ["omitted/another value/nullable array"]
    for answer, shapes in (("ffffffff", []), ("00000000", []), ("00000001000161", wrong)):
        given: list[Observation] = [Replied((("hex", answer),))]
        assert judged(of, "wire/omitted-fields", steps, given, "wire/fills-in-defaults") == shapes


HOSTS = "000000010000000000000000" + "00000000"
WHOLE = {"version": 1, "activeTasks": [], "standbyTasks": [], "partitionsByHost": []}
TASK = {"topicGroupId": 0, "partition": 0}


@pytest.mark.parametrize(
    ("edition", "version", "omitted", "wrong", "shapes"),
    [
        ("apache@1.1.1", 1, "partitionsByHost", {}, []),
        ("apache@1.1.1", 1, "partitionsByHost", {"activeTasks": [TASK]}, ["misread/array/list/list"]),
        ("apache@1.1.1", 1, "standbyTasks", {}, ["misread/array/list/_Absent"]),
        ("apache@1.1.1", 2, "partitionsByHost", {"version": 2}, ["misread/array/list/_Absent"]),
    ],
)
def test_an_old_reader_leaves_out_the_hosts_of_version_1(
    edition: str, version: int, omitted: str, wrong: dict[str, object], shapes: list[str]
) -> None:
    of = subject(edition, "AssignmentInfo", version)
    steps = (of.step("decode", hex=f"{version:08x}{HOSTS[8:]}"),)
    value = {name: each for name, each in (WHOLE | wrong).items() if name != omitted}
    given: list[Observation] = [Replied((("value", value),))]
    assert judged(of, "wire/two-readings", steps, given, "wire/decodes") == shapes


ALL = [each for each in CHECKS["wire/sizes"].family.subjects("apache")]


@pytest.mark.integration
@for_each(ALL)
def test_large_values_straddle_their_size(of: Subject) -> None:
    value = inhabited(of.layout)
    end = len(of.layout.encode(value))
    for size in sizes(of.layout):
        for seed in range(3):
            found = large(of.layout, value, size, Random(seed))
            if found is not None:
                assert size - 1 <= len(of.layout.encode(found)) <= size + 2 * end + 256


def test_the_size_is_in_fields_of_every_kind() -> None:
    """The place at which a message passes the size: not always within the field that was enlarged."""
    of = subject("apache", "OffsetCommitRequest", 7)
    value = inhabited(of.layout)
    ends = {len(of.layout.encode(found or {})) - STRADDLED[0] for n in range(60)
            if (found := large(of.layout, value, STRADDLED[0], Random(n)))}  # fmt: skip
    assert {-1, 1} <= ends
    assert max(ends) > 20
    assert len(list(each_large(of.layout, value, STRADDLED[0]))) >= 4


@pytest.mark.parametrize(("size", "word"), [(size, str(size)) for size in STRADDLED])
def test_a_message_that_is_cut_at_a_size_is_found_and_the_shape_names_the_size(size: int, word: str) -> None:
    of = subject("apache", "SyncGroupResponse", 5)
    value = of.layout.defaults()
    (found,) = each_large(of.layout, {**value, "assignment": b"a"}, size)
    data = of.layout.encode(found)
    cut = Replied((("hex", data[: size - 1].hex()),))
    shapes = judged(of, "wire/sizes", (of.encode(found),), [cut], "wire/any-size")
    assert shapes == [f"size/encode/written/{word}"]
    whole = Replied((("hex", data.hex()),))
    assert judged(of, "wire/sizes", (of.encode(found),), [whole], "wire/any-size") == []


def test_a_small_value_that_is_wrong_too_is_not_a_matter_of_size() -> None:
    of = subject("apache", "SyncGroupResponse", 5)
    value = {**of.layout.defaults(), "assignment": b"a"}
    (found,) = each_large(of.layout, value, STRADDLED[0])
    no: list[Observation] = [Refused("ValueError", "no"), Refused("ValueError", "no")]
    assert judged(of, "wire/sizes", (of.encode(value), of.encode(found)), no, "wire/any-size") == []


@pytest.mark.parametrize(
    ("message", "version", "field", "value", "id", "grade"),
    [
        ("JoinGroupRequest", 4, "groupInstanceId", "i", "wire/refuses-absent-essentials", Grade.MUST),
        ("UpdateFeaturesRequest", 0, "validateOnly", True, "wire/refuses-absent-essentials", Grade.MUST),
        ("ListGroupsRequest", 3, "statesFilter", ["Empty"], "wire/refuses-absent-fields", Grade.SHOULD),
        ("FindCoordinatorRequest", 3, "coordinatorKeys", ["g"], "wire/refuses-other-forms", Grade.INFO),
        ("LeaveGroupRequest", 3, "memberId", "m", "wire/refuses-other-forms", Grade.INFO),
    ],
)
def test_what_a_version_lacks_is_graded_by_what_it_does(
    message: str, version: int, field: str, value: object, id: str, grade: Grade
) -> None:
    of = subject("apache", message, version)
    asked = of.step("encode", value={**of.layout.codec.to_json(of.layout.defaults()), field: value})
    case = Case("wire/absent-fields", "apache", Role.CODEC, (asked,))
    history = History(case, "a codec", (Op(0, asked, Replied((("hex", ""),)), 0),))
    found = {each.id: each.grade for each in all_invariants(Role.CODEC)
             if each.applies_to(case, asked) and list(each.search(history))}  # fmt: skip
    assert found == {id: grade}
