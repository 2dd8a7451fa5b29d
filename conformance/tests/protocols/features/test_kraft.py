"""Controllers of feature versions in KRaft, by release: what was observed on brokers, and the shapes of responses."""

from collections.abc import Callable, Iterator

import pytest

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.features.invariants.kraft import (
    asks_unregistered,
    downgrade_gated,
    error_changes_nothing,
    v0_flag_is_ignored,
    within_controllers,
)
from kipcheck.conformance.protocols.features.model.kraft import KraftController, State, hash_order
from kipcheck.conformance.protocols.features.model.kraft_rules import Rules
from kipcheck.conformance.protocols.features.model.ranges import Range
from kipcheck.conformance.protocols.features.ops.kraft import OPERATIONS
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.tests.support.sessions import history_of

BAD = "INVALID_UPDATE_VERSION"
WHOLE = "broker 1 metadata.version:1-21,kraft.version:0-1; "


def last(release: str, text: str) -> tuple[State, str]:
    """The last answer in short: top-level error, or the results."""
    machine = KraftController(Rules.of(release))
    state, answer = machine.initial(), {}
    for each in OPERATIONS.parse_shorthand(text):
        state, actions = machine.step(state, OPERATIONS.event_of(each))
        answer = OPERATIONS.answer_of(actions)
    if answer["status"] == "rejected":
        return state, f"top {answer['class']}"
    return state, " ".join(f"{each['feature']}={each['error']}" for each in answer.get("results", ())) or "-"


@pytest.mark.parametrize(
    ("release", "text", "answer"),
    [
        # The same level, and the shapes of each version.
        ("3.3.2", "kraft-update v1 metadata.version:7", "metadata.version=NONE"),
        ("3.9.2", "kraft-update v0 metadata.version:21 validate", "metadata.version=NONE"),
        ("4.0.0", "kraft-update v1 metadata.version:25", "metadata.version=NONE"),
        ("4.4.0", "kraft-update v2 metadata.version:33", "-"),
        ("4.4.0", "kraft-update v2", "-"),
        ("3.3.2", "kraft-update v1", "-"),
        # Refusals: per feature up to 3.9, at top level from 4.0 on.
        *(("3.9.2", f"kraft-update v1 metadata.version:{each}", f"metadata.version={BAD}")
          for each in ("22", "0!", "-1!", "21~0", "21~4", "21~99", "20", "3!!", "21~1000")),
        *(("4.3.1", f"kraft-update v{version} metadata.version:{each}", f"top {BAD}")
          for each in ("31", "6!", "0!", "-1!", "30~99", "29", "29!", "29!!") for version in (1, 2)),
        # A step down that changes no record.
        ("3.3.2", "kraft-update v1 metadata.version:6!", f"metadata.version={BAD}"),
        ("3.9.2", "kraft-update v1 metadata.version:20!", "metadata.version=NONE"),
        ("3.9.2", "kraft-update v1 metadata.version:20!!", "metadata.version=NONE"),
        ("4.0.0", "kraft-update v1 metadata.version:24!", "metadata.version=NONE"),
        ("4.4.0", "kraft-update v1 metadata.version:32!", f"top {BAD}"),
        # Version 0 has a downgrade flag that no KRaft controller reads (584-44), and no validate-only.
        ("3.9.2", "kraft-update v0 metadata.version:20!", f"metadata.version={BAD}"),
        # Features that no node knows: a live 3.3.2 with a broker refuses level 0, as does 4.0.
        ("3.3.2", "broker 1 metadata.version:1-7; kraft-update v1 kip.check:0", f"kip.check={BAD}"),
        ("3.9.2", WHOLE + "kraft-update v1 kip.check:0", "kip.check=NONE"),
        ("3.9.2", WHOLE + "kraft-update v1 kip.check:1", f"kip.check={BAD}"),
        ("4.0.0", "kraft-update v1 kip.check:0!", f"top {BAD}"),
        ("3.9.2", WHOLE + "kraft-update v1 :0", "=NONE"),
        ("4.0.0", "kraft-update v1 :0", f"top {BAD}"),
        # Duplicates, partial success, all or nothing.
        ("3.9.2", WHOLE + "kraft-update v1 metadata.version:99,metadata.version:20!", "metadata.version=NONE"),
        ("3.9.2", "kraft-update v1 metadata.version:20!,x:1", f"metadata.version=NONE x={BAD}"),
        ("4.0.0", "kraft-update v1 metadata.version:24!,group.version:2", f"top {BAD}"),
        # Other features go down to 0, and again; no dependency is broken.
        ("4.0.0", "format 25 group.version:1; kraft-update v1 group.version:0!!", "group.version=NONE"),
        ("4.0.0", "kraft-update v1 group.version:0", "group.version=NONE"),
        ("4.0.0", "format 22; kraft-update v1 eligible.leader.replicas.version:1", f"top {BAD}"),
        ("4.0.0", "format 22; kraft-update v2 eligible.leader.replicas.version:1,metadata.version:23", "-"),
        ("4.0.0", "format 20; kraft-update v2 kraft.version:1", f"top {BAD}"),
        ("4.0.2", "format 20; kraft-update v2 kraft.version:1", "-"),
        ("4.1.2", "format 20 kraft.version:1; kraft-update v2 kraft.version:0!", f"top {BAD}"),
        # A quorum that was formatted with kraft.version 1: its controller counts from 0.
        ("3.9.2", "format 21 kraft.version:1; kraft-update v1 kraft.version:0", "kraft.version=NONE"),
        ("3.9.2", "kraft-update v1 kraft.version:1; kraft-update v1 kraft.version:0", f"kraft.version={BAD}"),
        ("4.0.2", "format 25 kraft.version:1; kraft-update v1 kraft.version:1!", f"top {BAD}"),
        # Nodes of another release, and a controller that has not registered (from 3.7 on).
        ("3.9.2", "format 20; broker 1 metadata.version:1-20; kraft-update v1 metadata.version:21",
         f"metadata.version={BAD}"),
        ("3.9.2", "format 20 with 1; kraft-update v1 metadata.version:21", f"metadata.version={BAD}"),
        ("3.9.2", "format 14 with 1; kraft-update v1 metadata.version:15", "metadata.version=NONE"),
        ("3.6.2", "format 13 with 1; kraft-update v1 metadata.version:14", "metadata.version=NONE"),
        ("3.6.2", "format 13 with 1; controller 1 metadata.version:1-13; kraft-update v1 metadata.version:14",
         f"metadata.version={BAD}"),
    ],
)  # fmt: skip
def test_answers(release: str, text: str, answer: str) -> None:
    assert last(release, text)[1] == answer


@pytest.mark.parametrize(
    ("release", "text", "levels", "records"),
    [
        ("3.9.2", "kraft-update v1 metadata.version:21", {"metadata.version": 21}, 2),  # redundant
        ("3.9.2", "kraft-update v1 metadata.version:20! validate", {"metadata.version": 21}, 1),
        ("3.9.2", "kraft-update v0 kraft.version:1 validate", {"metadata.version": 21, "kraft.version": 1}, 2),
        ("3.9.2", "kraft-update v1 metadata.version:20!,x:1", {"metadata.version": 20}, 2),
        ("3.9.2", "format 21 kraft.version:1; kraft-update v1 kraft.version:0!",
         {"metadata.version": 21, "kraft.version": 1}, 3),  # the quorum has it
        ("4.0.0", "kraft-update v1 metadata.version:24!,x:1", {"metadata.version": 25}, 1),
        ("4.0.2", "kraft-update v1 kraft.version:1", {"metadata.version": 25}, 2),  # accepted, without effect
        ("4.1.2", "kraft-update v1 kraft.version:1", {"metadata.version": 27, "kraft.version": 1}, 2),
        ("4.4.0", "kraft-update v1 kraft.version:1,group.version:2", {"metadata.version": 33}, 1),  # judged before it
        ("4.4.0", "kraft-update v1 kraft.version:1,metadata.version:7",
         {"metadata.version": 33, "kraft.version": 1}, 1),  # and metadata.version later
        ("4.4.0", "kraft-update v1 kraft.version:1,metadata.version:7 validate", {"metadata.version": 33}, 1),
    ],
)  # fmt: skip
def test_levels(release: str, text: str, levels: dict[str, int], records: int) -> None:
    state, _ = last(release, text)
    assert (dict(state.shown()), state.epoch) == (levels, records)


def test_names_are_judged_in_the_order_of_a_java_hash_map() -> None:
    """A JVM listed a HashMap of these names so."""
    names = ["metadata.version", "kraft.version", "transaction.version", "group.version", "share.version", "", "x"]
    assert hash_order(names) == [
        "group.version", "", "kraft.version", "metadata.version", "share.version", "x", "transaction.version",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("release", "supported", "error"),
    [
        ("3.9.2", {"metadata.version": Range(1, 21), "kraft.version": Range(0, 1)}, "NONE"),
        ("3.9.2", {"metadata.version": Range(1, 21)}, "UNSUPPORTED_VERSION"),
        ("3.7.2", {"metadata.version": Range(1, 21)}, "NONE"),
        ("3.9.2", {"metadata.version": Range(1, 20), "kraft.version": Range(0, 1)}, "UNSUPPORTED_VERSION"),
        ("3.9.2", {"metadata.version": Range(1, 21), "kraft.version": Range(0, 0)}, "UNSUPPORTED_VERSION"),
        ("3.9.2", {}, "UNSUPPORTED_VERSION"),
        ("4.0.2", {"kraft.version": Range(0, 1)}, "INVALID_REGISTRATION"),
        ("4.0.2", {"kraft.version": Range(0, 0)}, "UNSUPPORTED_VERSION"),
        ("3.8.1", {"metadata.version": Range(1, 21), "x": Range(1, 1)}, "UNSUPPORTED_VERSION"),
        ("3.7.2", {"metadata.version": Range(1, 21), "x": Range(1, 1)}, "NONE"),
    ],
)
def test_a_broker_registers_only_with_every_finalized_level(
    release: str, supported: dict[str, Range], error: str
) -> None:
    machine = KraftController(Rules.of(release))
    state = State((("kraft.version", 1), ("metadata.version", 21)))
    assert machine.registration_error(state, supported) == error


def test_up_to_3_9_a_broker_without_metadata_version_supports_level_1() -> None:
    assert KraftController(Rules.of("3.9.2")).registration_error(State((("metadata.version", 1),)), {}) == "NONE"


def breaches(
    edition: str, text: str, law: Callable[[History], Iterator[Violation]] = error_changes_nothing
) -> tuple[Violation, ...]:
    reference = Reference()
    reference.configure(edition)
    case = Case("kraft-features/updates", edition, Role.CONTROLLER, OPERATIONS.parse_shorthand(text))
    return tuple(law(history_of(reference, case)))


@pytest.mark.parametrize("request_", ["kraft.version:1,metadata.version:0", "kraft.version:1,x:1"])
def test_the_breach_of_a_release_is_found_and_edition_apache_has_it_not(request_: str) -> None:
    text = f"levels; kraft-update v2 {request_}; levels"
    for release in ("4.1.0", "4.4.0"):
        assert [each.shape for each in breaches(f"apache@{release}", text)] == [("kraft.version",)]
    assert not breaches("apache@4.0.2", text)
    assert not breaches("apache", text)


@pytest.mark.parametrize(
    ("edition", "level", "accepted"),
    [("apache@3.6.2", 13, False), ("apache@3.7.2", 14, True), ("apache@4.4.0", 14, True), ("apache@4.4.0", 15, False),
     ("apache", 14, False), ("apache", 15, False)],
)  # fmt: skip
def test_a_controller_that_is_behind_is_asked_where_controllers_register(
    edition: str, level: int, accepted: bool
) -> None:
    """Below level 15, no release from 3.7 on asks it; edition ``apache`` does."""
    text = f"format {level} with 1; controller 1 metadata.version:7-{level}; levels; kraft-update v1 metadata.version:"
    assert not breaches(edition, f"{text}{level + 1}", within_controllers)
    assert [each.shape for each in breaches(edition, f"{text}{level + 1}", asks_unregistered)] == [
        ("range",)
    ] * accepted


def test_a_level_that_is_shown_as_before_did_not_fall() -> None:
    """3.9 and 4.0 accept updates of kraft.version without effect, where the quorum was formatted with a level."""
    text = "format 21 kraft.version:1; levels; kraft-update v{} kraft.version:0{}; levels"
    assert not breaches("apache@3.9.2", text.format(1, ""), downgrade_gated)
    assert not breaches("apache@3.9.2", text.format(0, "!"), v0_flag_is_ignored)


@pytest.mark.parametrize(
    ("release", "newest", "features"),
    [("3.3.0", 7, 1), ("3.3.2", 7, 1), ("3.7.2", 19, 1), ("3.9.2", 21, 2), ("4.0.0", 25, 5), ("4.1.2", 27, 6),
     ("4.3.1", 30, 7), ("4.4.0", 33, 7)],
)  # fmt: skip
def test_what_a_release_supports(release: str, newest: int, features: int) -> None:
    rules = Rules.of(release)
    assert (rules.newest, len([*rules.declares()])) == (newest, features)


def test_earlier_releases_have_no_such_controller() -> None:
    with pytest.raises(ValueError, match=r"2\.8\.2 has no KRaft controller of feature versions; the first is 3\.3\.0"):
        Rules.of("2.8.2")


def test_shorthand_comes_back() -> None:
    text = (
        "format 25 group.version:1 with 1,2; format 7; broker 1 metadata.version:1-7; controller 2 gone; "
        "kraft-update v1 metadata.version:6!,group.version:0!!,x:1~99,:-1 validate; kraft-update v2; levels"
    )
    assert OPERATIONS.shorthand(OPERATIONS.parse_shorthand(text)) == text
