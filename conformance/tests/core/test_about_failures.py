"""Tags, fixes and effects belong to the failure at hand, and not to its invariant."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

import pytest

from kipcheck.conformance.core.files.remedies import fix_of, remedies
from kipcheck.conformance.core.files.tags import DEFECT
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.failure_pattern import FailurePattern
from kipcheck.conformance.core.values.impacts import Severity, severity_rank
from kipcheck.conformance.protocols.declare.invariant import impact
from kipcheck.conformance.protocols.invariants import all_effects, all_invariants, effect_of, tags_of, tags_vocabulary

HANG = ("died", "decode", "timeout", "")


def test_a_pattern_is_about_the_first_words_of_a_shape() -> None:
    pattern = FailurePattern("wire/*", ("refused", "*Error"), "Join*")
    assert pattern.fits("wire/decodes", ("refused", "KeyError", "more"), "JoinGroupRequest")
    assert not pattern.fits("wire/decodes", ("refused",), "JoinGroupRequest")
    assert not pattern.fits("wire/decodes", ("refused", "Exception"), "JoinGroupRequest")
    assert not pattern.fits("wire/decodes", ("refused", "KeyError"), "SyncGroupRequest")
    assert not pattern.fits("assign/answers", ("refused", "KeyError"), "JoinGroupRequest")


def test_a_hang_is_neither_a_crash_nor_a_lack_of_memory() -> None:
    assert tags_of("survives", HANG, "HeartbeatRequest") == ["resources", "hang", "CWE-400"]
    memory = tags_of("survives", ("died", "decode", "memory"), "JoinGroupRequest")
    assert "memory" in memory and "hang" not in memory and "CVE-2022-34917" in memory
    assert "CVE-2022-34917" not in tags_of("survives", ("died", "assign", "memory"), "sticky")


def test_a_failure_has_no_defect_of_another_one() -> None:
    assert "KAFKA-7962" not in tags_of("assign/answers", ("refused", "assign", "KeyError", "roundrobin"), "roundrobin")
    assert "KAFKA-7962" in tags_of("assign/answers", ("refused", "assign", "KeyError", "sticky"), "sticky")
    for id, tags in tags_vocabulary().invariants.items():
        if id.startswith("member/") and any(map(DEFECT.fullmatch, tags.links)):
            assert not any(map(DEFECT.fullmatch, tags_of(id, ("some", "shape"), "member"))), id


def test_a_lost_throttle_time_has_nothing_to_do_with_lengths() -> None:
    fix = fix_of("wire/decodes", ("misread", "int32", "int", "int"), "ApiVersionsResponse")
    assert fix is not None and "error" in fix
    assert "length" not in fix and "count" not in fix
    lengths = fix_of("wire/refuses", ("accepted", "length", "string"), "HeartbeatRequest")
    assert lengths is not None and "length" in lengths


def test_a_failure_without_a_fitting_remedy_has_none() -> None:
    assert fix_of("wire/decodes", ("misread", "int32", "int", "int"), "HeartbeatResponse") is None
    assert fix_of("unheard/of", ("any",), "") is None
    assert remedies()["grp-05"].fix, "a requirement keeps its remedy"


@pytest.mark.parametrize(
    ("shape", "severity"), [(HANG, Severity.CRASH), (("died", "decode", "crashed"), Severity.CRASH)]
)
def test_the_first_effect_that_fits_applies(shape: tuple[str, ...], severity: Severity) -> None:
    effect = effect_of("survives", shape, "HeartbeatRequest")
    assert effect is not None and effect.severity is severity
    assert ("hang" in effect.title) == (shape == HANG)


def test_severities_are_ordered() -> None:
    words = ["double processing", "stuck group", "crash or hang", "wrong data", "refused peer", "trivia"]
    assert sorted([words[3], *words[4:], *words[:3]], key=severity_rank) == words
    assert severity_rank("of a later release") == len(words)


def test_what_invariants_declare_is_found_without_an_entry_of_a_file() -> None:
    assert tags_of("features/epoch-grows", ("epoch", "stays"), "features") == ["epochs", "stale-view", "KIP-584"]
    effect = effect_of("features/epoch-grows", ("epoch", "stays"), "features")
    assert effect is not None and effect.severity is Severity.WRONG_DATA


PREDICTS = re.compile(r"^(A|The) (broker|coordinator) (refuses|fences|closes)\b")
OBSERVED = "client/asks-what-is-offered"
"""Its violation is the end of the connection itself."""


def test_an_effect_that_predicts_an_answer_says_something_else_where_the_answer_has_no_error() -> None:
    found = [each for each in all_effects() if PREDICTS.search(each.title) and each.pattern.invariant != OBSERVED]
    assert len(found) == 5 and all(each.accepted for each in found), found
    for each in all_effects():
        if each.accepted:
            id = each.pattern.invariant
            assert effect_of(id, ("x",), "client") == effect_of(id, ("x",), "client", 25) == each
            accepted = effect_of(id, ("x",), "client", 0)
            assert accepted is not None and (accepted.title, accepted.severity) == (each.accepted, Severity.TRIVIA)
            assert not PREDICTS.search(accepted.title)
            tags = tags_of(id, ("x",), "client", 0)
            assert tags == [one for one in tags_of(id, ("x",), "client") if one not in tags_vocabulary().effects]


def test_an_impact_below_its_invariant_is_an_error() -> None:
    with pytest.raises(LookupError, match="is not declared as an invariant yet"):
        impact("A title", "trivia", "epochs", "stale-view")(lambda history: iter(()))


CLIENTS: Final = [each for each in all_invariants(Role.CLIENT) if each.id.startswith("client/")]


def test_each_law_of_clients_has_a_fix_for_any_failure() -> None:
    assert len(CLIENTS) > 60
    assert [each.id for each in CLIENTS if not fix_of(each.id, ("any", "shape"), "client")] == []


SHARP: Final[Mapping[str, Sequence[tuple[str, ...]]]] = {
    "client/calls-back-once": [("assigned",), ("revoked", "closes"), ("lost",)],
    "client/calls-back-in-time": [("assigned",), ("given up",), ("no call", "eager")],
    "client/claims-what-it-owns": [("owned", "too many"), ("owned", "too few"), ("generation",),
                                   ("owned", "after its membership ended")],
    "client/commits-as-a-member": [("member id", "member"), ("generation", "membership over")],
    "client/commits-before-it-leaves": [("left out", "to join"), ("left out", "to leave")],
    "client/joins-with-its-id": [("no id", "x"), ("an id", "x"), ("another id", "x")],
    "client/names-its-instance": [("JoinGroup", "another instance id"), ("Heartbeat", "no instance id"),
                                  ("SyncGroup", "an instance id"), ("OffsetCommit", "version without it")],
    "client/names-its-topics": [("topics", "omits"), ("topics", "adds")],
    "client/assigns-to-everybody": [("member missing", "no topics"), ("stranger",), ("member twice",), ("follower",)],
    "client/assigns-each-partition-once": [("two owners", "claimed by 0"), ("named twice", "x"), ("idle",),
                                           ("no such topic",), ("no such partition",), ("not subscribed",)],
    "client/ends-when-stopped": [("hangs",), ("crashed", "exit code 1"), ("ended", "exit code 0")],
    "client/starts-at-the-committed-offset": [("elsewhere",), ("not asked",)],
    "client/waits-for-offsets": [("refused", "x"), ("not answered yet",)],
}  # fmt: skip
"""Law with a title that names several defects -> the shapes of its failures."""


def test_the_title_of_a_clients_failure_names_what_was_observed() -> None:
    for id, shapes in SHARP.items():
        titles = [effect_of(id, shape, "client") for shape in shapes]
        assert all(each is not None and each.pattern.shape and ", or " not in each.title for each in titles), id
        assert len({each.title for each in titles if each}) >= len(shapes) - 1, id
    several = {each.pattern.invariant for each in all_effects() if ", or " in each.title and not each.pattern.shape}
    assert {each.id for each in CLIENTS} & several <= SHARP.keys()
