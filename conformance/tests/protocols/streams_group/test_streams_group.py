"""KIP-1071: the machine by hand and explored, and what laws read from answers that a machine would not give."""

import pytest

from kipcheck.conformance.core.operations.declaration import declared
from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.history import History, Observation, Op, Refused, Replied
from kipcheck.conformance.explore.exploration import explored
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.streams_group import mutants, play
from kipcheck.conformance.protocols.streams_group.model import StreamsGroup
from kipcheck.conformance.protocols.streams_group.ops import OPERATIONS
from kipcheck.conformance.protocols.streams_group.rules import Rules
from kipcheck.conformance.protocols.streams_group.state import Member, Owned, State

LAWS = {each.id.removeprefix("streams-group/"): each for each in all_invariants(Role.COORDINATOR)}
FENCED, UNKNOWN, INVALID, NO_GROUP, BAD_TOPOLOGY = (
    "FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID", "INVALID_REQUEST", "GROUP_ID_NOT_FOUND", "STREAMS_INVALID_TOPOLOGY",
)  # fmt: skip
JOINED = "join a runs t at 1 none"


def answers(text: str) -> list[str]:
    """Of each step: the error, or the epoch, with tasks, statuses and the state, if there are any."""
    machine = StreamsGroup()
    state, found = machine.initial(), []
    for step in OPERATIONS.parse_shorthand(text):
        state, actions = machine.step(state, OPERATIONS.event_of(step))
        for action in actions:
            answer = declared(type(action)).written(action)
            tasks = answer.get("tasks")
            parts = [answer.get("class"), answer.get("state"), answer.get("epoch")]
            parts += [] if tasks is None else ["".join(f"{name}{number}" for name, number in tasks) or "-"]
            parts += answer.get("statuses", [])
            found.append(" ".join(str(each) for each in parts if each is not None))
    return found


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("join a runs t,u at 1 none", "2 t0t1t2u0u1"),
        ("join a runs t,v at 0 none", "2 - MISSING_SOURCE_TOPICS"),
        ("join a runs v at 0 none; describe", "NotReady 2"),
        ("join a", INVALID),
        ("join a runs t at 0", INVALID),
        ("join a runs t at 0 none flaw timeout", INVALID),
        ("join a runs t at 0 none flaw changelog", BAD_TOPOLOGY),
        ("describe", NO_GROUP),
        ("leave a", NO_GROUP),
        (f"{JOINED}; leave b", UNKNOWN),
        (f"{JOINED}; beat a+1 told", FENCED),
        (f"{JOINED}; beat a told flaw standby", INVALID),
        (f"{JOINED}; beat a flaw standby", "2"),
        (f"{JOINED}; beat a told flaw task", INVALID),
        (f"{JOINED}; away a", INVALID),
        (f"{JOINED}; join b runs u at 0 none", "3 - STALE_TOPOLOGY"),
        (f"{JOINED}; join b runs u at 1 none", INVALID),
        (f"{JOINED}; join b runs t at 2 none", INVALID),
        (f"{JOINED}; consume", NO_GROUP),
        (f"consume; {JOINED}", NO_GROUP),
        (f"{JOINED}; leave a; describe", "Empty 3"),
        (f"{JOINED}; leave a; join b runs u at 1 none", INVALID),
        (f"{JOINED}; leave a; {JOINED}", "4 t0t1t2"),
        (f"{JOINED}; pass 45000; beat a told", UNKNOWN),
        # A member that does not revoke in time is removed.
        (f"{JOINED}; join b runs t at 1 none; beat a; pass 15000; beat a; pass 15000; beat a", UNKNOWN),
    ],
)
def test_the_machine_answers(text: str, last: str) -> None:
    assert answers(text)[-1] == last


def test_a_task_is_handed_over() -> None:
    rounds = "beat a; describe; beat b told; beat a told; describe; beat b told; describe"
    text = f"{JOINED}; join b runs t at 1 none; {rounds}"
    assert answers(text) == [
        "2 t0t1t2", "3 -", "2 t0t1", "Reconciling 3", "3", "3", "Reconciling 3", "3 t2", "Stable 3",
    ]  # fmt: skip


def found(law: str, text: str, *observed: Observation) -> list[str]:
    case = Case("streams-group/epochs", "apache", Role.COORDINATOR, OPERATIONS.parse_shorthand(text))
    ops = tuple(Op(at, *each, at + 1) for at, each in enumerate(zip(case.steps, observed, strict=True)))
    return [each.expected for each in LAWS[law].search(History(case, "t", ops))]


def beaten(epoch: int, tasks: str | None = None, *statuses: str) -> Replied:
    given = None if tasks is None else [["t", int(each)] for each in tasks]
    return Replied((("epoch", epoch), ("tasks", given), ("statuses", list(statuses))))


def test_a_member_that_is_late_may_have_lost_its_tasks() -> None:
    text = f"{JOINED}; join b runs t at 1 none; pass 45000; beat b told"
    early = f"{JOINED}; join b runs t at 1 none; pass 15000; beat b told"
    observed = beaten(2, "012"), beaten(3, ""), Replied(()), beaten(3, "2")
    assert found("one-owner", text, *observed) == []
    assert found("one-owner", early, *observed) == ["t-2 to no other member yet"]


def described(state: str, epoch: int, assignment_epoch: int) -> Replied:
    epochs = (("epoch", epoch), ("assignment_epoch", assignment_epoch), ("topology_epoch", 0))
    return Replied((("state", state), *epochs, ("topology", ["t"]), ("members", [])))


def test_only_a_group_that_all_have_left_owes_no_assignment() -> None:
    left, silent = f"{JOINED}; leave a; describe", f"{JOINED}; pass 45000; describe"
    assert found("empty-owes-nothing", left, beaten(2, "012"), beaten(-1), described("Empty", 3, 2)) == ["3"]
    assert found("empty-owes-nothing", left, beaten(2, "012"), beaten(-1), described("Empty", 3, 3)) == []
    assert found("empty-owes-nothing", silent, beaten(2, "012"), Replied(()), described("Assigning", 3, 2)) == []


def test_a_join_gives_up_what_a_member_had() -> None:
    text = f"{JOINED}; join b runs t at 1 none; {JOINED}; beat b told"
    observed = beaten(2, "012"), beaten(3, ""), beaten(3, "01"), beaten(3, "2")
    assert found("one-owner", text, *observed) == found("revoked-first", text, *observed) == []


def test_an_old_epoch_is_a_repetition_only_with_assigned_tasks() -> None:
    text = f"{JOINED}; join b runs t at 1 none; leave b; beat a told; beat a-2 before; beat a-2"
    observed = beaten(2, "012"), beaten(3, ""), beaten(-1), beaten(4), beaten(4), beaten(4)
    assert found("stale-epoch-fenced", text, *observed) == ["refused: FENCED_MEMBER_EPOCH"]
    refused = (*observed[:4], Refused(FENCED, ""), Refused(FENCED, ""))
    assert found("repetition-taken", text, *refused) == ["accepted"]


def test_either_error_is_right_for_another_topology() -> None:
    text = f"{JOINED}; join b runs u at 1 none"
    for error in (INVALID, "STREAMS_INVALID_TOPOLOGY_EPOCH"):
        assert found("one-topology", text, beaten(2, "012"), Refused(error, "")) == []
    assert len(found("one-topology", text, beaten(2, "012"), beaten(3, ""))) == 1


# Exploration


class ForgetsWhoHasToWait(StreamsGroup):
    """A member that waits for tasks counts as settled."""

    def computed(self, state: State, member: Member, owned: Owned, epoch: int) -> Member:
        return super().computed(state, member, owned, epoch)._replace(waiting=False)


class StepsBack(StreamsGroup):
    """The epoch of a member falls while it revokes."""

    def computed(self, state: State, member: Member, owned: Owned, epoch: int) -> Member:
        found = super().computed(state, member, owned, epoch)
        return found._replace(epoch=epoch - 1) if found.pending else found


@pytest.mark.parametrize(
    ("machine", "broken"),
    [
        (StreamsGroup(), None),
        (StreamsGroup(Rules.of("4.2.1")), None),
        (mutants.GivesRunningTasks(), "one-owner"),
        (mutants.GivesTasksBeingRevoked(), "revoked-first"),
        (ForgetsWhoHasToWait(), "stable-is-complete"),
        (StepsBack(), "epochs-rise"),
        (mutants.ForgetsItsEpoch(), "group-epoch-rises"),
    ],
)
def test_all_orders_are_explored(machine: StreamsGroup, broken: str | None) -> None:
    (model,) = play.PLAYABLES
    at = edition("apache")
    scope = model.scope("members=2,epochs=4", at)
    search = explored(model, at, scope, play.product(machine, scope), 100_000, None).search
    assert search.complete is (broken is None)
    assert (search.breach and search.breach.law) == (broken and f"streams-group/{broken}")
