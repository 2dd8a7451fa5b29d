"""Groups with members of both protocols: the way to a consumer group and back, and what the policy forbids."""

from kipcheck.conformance.core.operations import declared
from kipcheck.conformance.core.release import NEWEST
from kipcheck.conformance.protocols.consumer_group.rules import Config, Rules
from kipcheck.conformance.protocols.migration.checks import BACK, FORMED
from kipcheck.conformance.protocols.migration.model import MixedGroup
from kipcheck.conformance.protocols.migration.ops import OPERATIONS, Received
from kipcheck.conformance.tests.support.loops import for_each

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
