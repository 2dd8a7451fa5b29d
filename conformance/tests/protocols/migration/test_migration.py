"""Groups with members of both protocols: the way to a consumer group and back, and what the policy forbids."""

from kipcheck.conformance.core.operations.declaration import declared
from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.release import NEWEST
from kipcheck.conformance.core.values.verdict import Result
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.protocols.consumer_group.rules import Config, Rules
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.migration.checks import BACK, EXPRESSED, FORMED, RESTED, SHARED, TAKEN_OVER
from kipcheck.conformance.protocols.migration.invariants import MEMBERS, takeover_without_rebalance
from kipcheck.conformance.protocols.migration.model import MixedGroup
from kipcheck.conformance.protocols.migration.mutants import KeepsExpressions, RebalancesForClassicSuccessors
from kipcheck.conformance.protocols.migration.ops import OPERATIONS, Received
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.targets.protocol import Adapter
from kipcheck.conformance.tests.support.loops import for_each
from kipcheck.conformance.tests.support.sessions import history_of

NEW = Rules.of(NEWEST)


def answers(text: str, machine: MixedGroup | None = None) -> list[str]:
    """Of each step: the error, and generation or epoch, the assignment, and who leads."""
    machine = machine or MixedGroup(NEW)
    state, found = machine.initial(), []
    for step in OPERATIONS.parse_shorthand(text):
        state, actions = machine.step(state, OPERATIONS.event_of(step))
        for action in actions:
            answer = declared(type(action)).written(action)
            parts = [answer.get("received"), answer.get("class"), answer.get("epoch"), answer.get("generation")]
            parts += ["leads"] if isinstance(action, Received) and action.leads else []
            given = answer.get("assignment")
            parts += [] if given is None else ["".join(str(number) for _, number in given) or "-"]
            found.append(" ".join(str(each) for each in parts if each is not None))
    return found


def test_a_group_is_upgraded_and_downgraded() -> None:
    assert answers(BACK) == [
        "parked", "NONE 1 leads", "NONE 012", "2 -",  # a joins, and waits for a partition of x
        "REBALANCE_IN_PROGRESS", "NONE 1", "NONE 01", "NONE 2", "NONE 01", "2 2", "-1",
        "REBALANCE_IN_PROGRESS", "NONE 3 leads", "nothing", "NONE 012", "NONE",
    ]  # fmt: skip


@for_each(
    [
        ("disabled", f"{FORMED}; join a on t none; classic-beat x", ["GROUP_ID_NOT_FOUND", "NONE"]),
        ("downgrade", f"{FORMED}; join a on t none; classic-beat x", ["GROUP_ID_NOT_FOUND", "NONE"]),
        ("upgrade", f"{FORMED}; join a on t none; leave a; classic-join x on t", ["-1", "NONE 2"]),
        ("disabled", f"{FORMED}; classic-leave x; join a on t none", ["NONE", "2 012"]),
    ]
)
def test_the_policy_of_the_broker_decides(policy: str, text: str, last: list[str]) -> None:
    assert answers(text, MixedGroup(NEW, Config(policy=policy)))[-2:] == last


@for_each(
    [
        # A consumer that is silent for its session time.
        ((f"{FORMED}; join a on t none; {2 * 'pass 15000; classic-join x on t told; classic-sync x; '}pass 15000; "
         "classic-beat x; classic-join x on t told"), "NONE 3 leads"),
        # A member of the classic protocol that is, or that does not join again in time.
        (f"{FORMED}; join a on t none; pass 20000; classic-beat x", "UNKNOWN_MEMBER_ID"),
        (f"{FORMED}; join a on t none; classic-beat x; {2 * 'pass 15000; beat a told; classic-beat x; '}classic-beat x",
         "UNKNOWN_MEMBER_ID"),
        # Members of an empty consumer group are those of a new classic one.
        ("join a on t none; leave a; classic-join x on t; pass 3000; receive x", "NONE 1 leads"),
    ]
)  # fmt: skip
def test_members_are_removed_in_time(text: str, last: str) -> None:
    assert answers(text)[-1] == last


def test_releases_fail_on_a_group_without_a_protocol() -> None:
    class Failing(MixedGroup):
        fails_at_first = True

    text = "classic-join x on t; join a on t none; receive x"
    assert answers(text) == ["parked", "1 02", "REBALANCE_IN_PROGRESS"]
    assert answers(text, Failing(NEW)) == ["parked", "UNKNOWN_SERVER_ERROR", "REBALANCE_IN_PROGRESS"]


@for_each(
    [
        # A client of the classic protocol takes over from another one, in a consumer group: its partitions stay.
        (("join a on t none; classic-join x on t as i; classic-sync x; classic-join y on t as i; classic-sync y; "
         "classic-beat x"), ["2 012", "NONE 2", "NONE -", "NONE 2", "NONE -", "FENCED_INSTANCE_ID"]),
        # A consumer takes over from the only classic member, without a rebalance.
        ((f"{FORMED}; classic-leave x; classic-join x on t as i; pass 3000; receive x; classic-sync x of t over x; "
         "join a on t none as i; classic-beat x"), ["3 012", "FENCED_INSTANCE_ID"]),
        # It does not take over from another consumer; a client of the classic protocol does, which has no rebalance.
        (("join a on t none as i; join b on t none as i; classic-join x on t as i; classic-sync x; beat a told as i; "
         "classic-beat x"), ["2 012", "UNRELEASED_INSTANCE_ID", "NONE 2", "NONE 012", "GROUP_ID_NOT_FOUND", "NONE"]),
        # It has to join again where it subscribes to other topics.
        ("join a on t none as i; classic-join x on u as i; classic-beat x; classic-join x on u as i",
         ["2 012", "NONE 0", "ILLEGAL_GENERATION", "NONE 3 leads"]),
        # A member id and the instance id of another member, or of none.
        ("join a on t none; classic-join x on t; classic-join x on t as i", ["NONE 2", "UNKNOWN_MEMBER_ID"]),
        ("join a on t none; classic-join x on t as i; classic-join y on t; classic-join y on t as i",
         ["NONE 2", "NONE 2", "FENCED_INSTANCE_ID"]),
    ]
)  # fmt: skip
def test_static_members_take_over(text: str, last: list[str]) -> None:
    assert answers(text)[-len(last) :] == last


@for_each(
    [
        ("classic-join x on t v4; classic-join x on t v4", ["2 012", "MEMBER_ID_REQUIRED", "NONE 2"]),
        ("classic-join x on t v4; leave a; classic-join x on t v4", ["MEMBER_ID_REQUIRED", "-1", "UNKNOWN_MEMBER_ID"]),
        ("classic-join x on t as i v4", ["2 012", "NONE 2"]),
    ]
)
def test_ids_are_given_out(text: str, last: list[str]) -> None:
    assert answers(f"join a on t none; {text}")[-len(last) :] == last


def test_releases_share_out_partitions_that_have_an_owner() -> None:
    class Sharing(MixedGroup):
        assigns_unreleased = True

    assert answers(TAKEN_OVER)[-5:] == ["2", "NONE 2", "REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION", "parked"]
    assert answers(TAKEN_OVER, Sharing(NEW))[-4:] == ["NONE 2", "NONE 2", "ILLEGAL_GENERATION", "parked"]


@for_each(
    [("4.0.1", "NONE"), ("4.0.2", "REBALANCE_IN_PROGRESS"), ("4.1.0", "NONE"), ("4.1.1", "REBALANCE_IN_PROGRESS")]
)
def test_a_successor_with_other_topics_makes_the_others_join_again(release: str, beat: str) -> None:
    """Not in the first patches of 4.0 and 4.1 (KAFKA-19546), where it alone has the new generation."""

    class Released(MixedGroup):
        assigns_unreleased = True

    found = answers(f"{RESTED}classic-join y on t,u as j; classic-sync y; classic-beat x", Released(Rules.of(release)))
    assert found[-2:] == ["ILLEGAL_GENERATION", beat]


@for_each([("4.2.1", "NONE 2"), ("4.3.1", "INCONSISTENT_GROUP_PROTOCOL")])
def test_a_disabled_migration_keeps_classic_members_out(release: str, last: str) -> None:
    machine = MixedGroup(Rules.of(release), Config(policy="disabled"))
    assert answers("join a on t none; classic-join x on t", machine)[-1] == last


@for_each(
    [
        ("classic-join y on t as i", ["epoch 2"]),
        ("classic-join y on t,u as i", []),
        ("classic-join y on t by range,roundrobin as i", []),
        ("away a as j; classic-join y on t as j", []),
        ("beat a on t,u told as j; classic-join y on t as i", []),
        ("classic-join z on t; classic-join y on t as i", []),
    ]
)
def test_only_an_unchanged_successor_in_a_group_at_rest_owes_the_epoch(end: str, owed: list[str]) -> None:
    case = Case(MEMBERS, "apache", Role.COORDINATOR, OPERATIONS.parse_shorthand(f"{RESTED}{end}"))
    history = history_of(RebalancesForClassicSuccessors(), case)
    assert [each.expected for each in takeover_without_rebalance(history)] == owed


@for_each(
    [
        "classic-join y on t,u; pass 30000; receive y; join b on t none; classic-join x on t,u told; join a on t none",
        "classic-join x on t,u told; pass 30000; receive x; join b on u none as i; classic-join y; join a on u none",
    ],
)
def test_an_answer_that_is_read_late_makes_no_member_certain(text: str) -> None:
    """The coordinator may have removed the client since it answered its JoinGroup."""
    steps = tuple(OPERATIONS.parse_shorthand(text))
    case = Case("migration/members", "apache", Role.COORDINATOR, steps)
    laws = [each for each in all_invariants(Role.COORDINATOR) if each.id.startswith("migration/")]
    found = judge(history_of(Reference(), case), laws)
    assert [each.invariant for each in found if each.result is Result.FAIL] == []


@for_each(
    [
        (KeepsExpressions(), EXPRESSED, {"migration/co-subscription"}),
        (Reference(), EXPRESSED, set()),
        # What a leader assigned before the group was upgraded is the leader's matter.
        (Reference(), f"{FORMED.replace('of t', 'of u')}; join a on t none; classic-sync x", set()),
        (Reference(), f"{SHARED}; classic-join x on u told; classic-sync x; classic-join x on u told; classic-sync x",
         set()),
    ]
)  # fmt: skip
def test_classic_members_get_partitions_of_their_topics(made: Adapter, text: str, laws: set[str]) -> None:
    case = Case(MEMBERS, f"apache@{NEWEST}", Role.COORDINATOR, OPERATIONS.parse_shorthand(text))
    owed = [each for each in all_invariants(Role.COORDINATOR) if each.id.startswith("migration/")]
    found = judge(history_of(made, case), owed)
    assert {each.invariant for each in found if each.result is Result.FAIL} == laws
