"""What can happen to a consumer: each rule alone, what is drawn, mutated and reduced, and failures of earlier runs."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.history import Died, History, Observation, Op, Refused, Replied
from kipcheck.conformance.core.values.verdict import Result
from kipcheck.conformance.engine.execution.judge import judge, possible_part
from kipcheck.conformance.engine.execution.replay import replay
from kipcheck.conformance.protocols.declare.check import Impossible
from kipcheck.conformance.protocols.group.model.messages import Join, Joined
from kipcheck.conformance.protocols.group.ops import Elapse
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.member.checks import CHECKS as MEMBER_CHECKS, MEMBER
from kipcheck.conformance.protocols.member.model.client import Client, ClientState
from kipcheck.conformance.protocols.member.model.conversation_repair import mended, possible_event
from kipcheck.conformance.protocols.member.model.possible import RULES, Pending, Situation, Stage
from kipcheck.conformance.protocols.member.model.rules import rules_of
from kipcheck.conformance.protocols.member.ops import (
    OPERATIONS,
    AnswerReceived,
    CommitOffsets,
    Disconnected,
    Event,
    Open,
    Poll,
    Subscribe,
)
from kipcheck.conformance.protocols.member.possible_conversations import impossible
from kipcheck.conformance.protocols.member.strategies.conversations import conversations
from kipcheck.conformance.protocols.member.target import ConsumerAdapter
from kipcheck.conformance.protocols.mutants import MUTANTS
from kipcheck.conformance.targets.protocol import Adapter, observed, operation
from kipcheck.conformance.tests.support.loops import some_by_default
from kipcheck.strategies.compiled import compiled
from kipcheck.strategies.mutate import mutate
from kipcheck.strategies.parse import belongs

STORED: list[dict[str, Any]] = json.loads(Path(__file__).with_name("member_failures.json").read_text())
"""Failures of earlier runs, with the answers of kafka-python 3.0.12, and the rule that each breaks."""
MEMBERS = ("apache", "apache@3.3.1", "apache@2.3.1", "apache@1.1.1")
OWNS = "open range; subscribe t; poll; joined 1; synced t:0; poll; "
COMMITS = OWNS + "commit t:0=1; "
LEADS = "open range; subscribe t; poll; joined 1 leader=m1 members=m1"
STATIC = "open range as=i; subscribe t; poll; "
ASKED = 'member-told {"answer": "joined", "generation": 1, "leader": "n1", "member": "m1", '


def conversation(text: str, edition_name: str = "apache") -> Case:
    return Case("member/errors", edition_name, Role.MEMBER, OPERATIONS.parse_shorthand(text))


def rules_broken(text: str, edition_name: str = "apache") -> list[tuple[int, str]]:
    """The numbers of the steps that cannot happen, and the rules."""
    return [(each.step + 1, each.rule) for each in impossible(conversation(text, edition_name), ())]


# The rules


BROKEN = [
    ("calls-a-consumer", "subscribe t", "open range; subscribe t"),
    ("calls-a-consumer", "open range; close; poll", "open range; close; open range; poll"),
    ("calls-a-consumer", "open range,incremental; poll", "open range,roundrobin; poll"),
    *(
        ("one-call-at-a-time", COMMITS + call, f"{COMMITS}committed; {call}")
        for call in ("poll", "subscribe t", "unsubscribe", "commit t:0=2", "close", "open range")
    ),
    ("one-call-at-a-time", OWNS + "unsubscribe; subscribe t", OWNS + "unsubscribe; left; subscribe t"),
    ("answers-requests", "open range; subscribe t; joined 1", "open range; subscribe t; poll; joined 1"),
    ("answers-requests", OWNS + "disconnected; beat", OWNS + "elapse 3000; beat"),
    ("answers-requests", OWNS + "commit t:0=1; committed; committed", OWNS + "commit t:0=1; committed"),
    ("in-order", COMMITS + "elapse 3000; beat", COMMITS + "elapse 3000; committed; beat"),
    (
        "in-order",
        OWNS + "elapse 3000; subscribe u; poll; joined 2",
        OWNS + "elapse 3000; subscribe u; poll; beat; joined 2",
    ),
    ("ends-in-time", "open range; subscribe t; poll; elapse 65001", "open range; subscribe t; poll; elapse 65000"),
    ("ends-in-time", OWNS + "elapse 33001", OWNS + "elapse 33000"),
    (
        "ends-in-time",
        "open range; subscribe t; poll; joined 1; elapse 20000; elapse 10001",
        "open range; subscribe t; poll; joined 1; elapse 20000; elapse 10000",
    ),
    ("ends-in-time", OWNS + "elapse 20000; elapse 20000", OWNS + "elapse 20000; disconnected; elapse 20000"),
    (
        "offered-protocol",
        "open range; subscribe t; poll; joined 1 by=sticky",
        "open range; subscribe t; poll; joined 1",
    ),
    (
        "offered-protocol",
        f'open range; subscribe t; poll; {ASKED}"protocol": "range", "protocol_type": "connect"}}',
        f'open range; subscribe t; poll; {ASKED}"protocol": "range", "protocol_type": "consumer"}}',
    ),
    *(
        (
            "offered-protocol",
            f'open range,sticky; subscribe t; poll; joined 1; member-told {{"answer": "synced", "{name}": "{wrong}"}}',
            f'open range,sticky; subscribe t; poll; joined 1; member-told {{"answer": "synced", "{name}": "{right}"}}',
        )
        for name, wrong, right in (("protocol", "sticky", "range"), ("protocol_type", "connect", "consumer"))
    ),
    (
        "sent-instances",
        "open range; subscribe t; poll; joined FENCED_INSTANCE_ID",
        STATIC + "joined FENCED_INSTANCE_ID",
    ),
    ("sent-instances", OWNS + "elapse 3000; beat FENCED_INSTANCE_ID", OWNS + "elapse 3000; beat ILLEGAL_GENERATION"),
    ("sent-instances", COMMITS + "committed FENCED_INSTANCE_ID", COMMITS + "committed ILLEGAL_GENERATION"),
    (
        "keeps-id",
        "open range; subscribe t; poll; joined MEMBER_ID_REQUIRED me=m1; poll; joined 1 me=m2 leader=n1",
        "open range; subscribe t; poll; joined MEMBER_ID_REQUIRED me=m2; poll; joined 1 me=m2 leader=n1",
    ),
    (
        "keeps-id",
        "open range; subscribe t; poll; joined MEMBER_ID_REQUIRED",
        "open range; subscribe t; poll; joined MEMBER_ID_REQUIRED me=m1",
    ),
    (
        "keeps-id",
        "open range; subscribe t; poll; joined NOT_COORDINATOR me=m1",
        "open range; subscribe t; poll; joined NOT_COORDINATOR",
    ),
    ("generations-grow", "open range; subscribe t; poll; joined 0", "open range; subscribe t; poll; joined 1"),
    (
        "generations-grow",
        OWNS + "subscribe u; poll; joined 1",
        OWNS + "subscribe u; poll; joined 3",
    ),
    (
        "generations-grow",
        OWNS + "unsubscribe; left; subscribe t; poll; joined 1 me=m2 leader=n1",
        STATIC + "joined 1; synced t:0; poll; unsubscribe; subscribe t; poll; joined 1 me=m2 leader=n1",
    ),
    ("leader-knows-members", "open range; subscribe t; poll; joined 1 leader=m1", LEADS),
    ("leader-knows-members", "open range; subscribe t; poll; joined 1 leader=m1 members=m2", LEADS + ",m2"),
    ("leader-knows-members", LEADS + ",m2,m2", LEADS + ",m2,m3"),
    ("leader-knows-members", LEADS + ",m2/i,m3/i", LEADS + ",m2/i,m3/j"),
    ("leader-knows-members", "open range; subscribe t; poll; joined 1 members=m1,m2", LEADS + ",m2"),
    ("leader-knows-members", LEADS.replace("subscribe t;", "subscribe u;"), LEADS),
    ("leader-knows-members", LEADS + "/i", LEADS),
    ("leader-knows-members", LEADS + " skip", STATIC + "joined 1 leader=m1 members=m1/i skip"),
    (
        "leader-knows-members",
        *(
            f'open range; subscribe t; poll; {ASKED.replace("n1", "m1")}"protocol": "range", "members": '
            f'[["m1", null, {{"topics": ["t"]}}], ["n1", null, {{"topics": ["t"], "generation": {newest}}}]]}}'
            for newest in (1, 0)
        ),
    ),
    (
        "fitting-error",
        "open range; subscribe t; poll; joined ILLEGAL_GENERATION",
        "open range; subscribe t; poll; joined UNKNOWN_MEMBER_ID",
    ),
    ("fitting-error", STATIC + "joined MEMBER_ID_REQUIRED me=m1", STATIC + "joined 1"),
    (
        "fitting-error",
        "open range; subscribe t; poll; joined 1; synced COORDINATOR_LOAD_IN_PROGRESS",
        "open range; subscribe t; poll; joined 1; synced REBALANCE_IN_PROGRESS",
    ),
    (
        "fitting-error",
        "open range; commit t:0=1; committed REBALANCE_IN_PROGRESS",
        COMMITS + "committed REBALANCE_IN_PROGRESS",
    ),
    ("relays-assignment", LEADS + "; synced t:0", LEADS + "; synced t:0 t:1"),
    (
        "remembers-members",
        COMMITS + "elapse 3000; committed UNKNOWN_MEMBER_ID; beat",
        COMMITS + "elapse 3000; committed UNKNOWN_MEMBER_ID; beat UNKNOWN_MEMBER_ID",
    ),
    (
        "remembers-members",
        COMMITS + "elapse 3000; committed ILLEGAL_GENERATION; beat REBALANCE_IN_PROGRESS",
        COMMITS + "elapse 3000; committed ILLEGAL_GENERATION; beat ILLEGAL_GENERATION",
    ),
    (
        "remembers-members",
        COMMITS + "elapse 3000; committed ILLEGAL_GENERATION; poll; beat UNKNOWN_MEMBER_ID; joined 2",
        COMMITS + "elapse 3000; committed ILLEGAL_GENERATION; poll; beat ILLEGAL_GENERATION; joined 2",
    ),
]


@pytest.mark.parametrize(("rule", "text", "instead"), BROKEN)
def test_each_rule_is_broken_by_the_last_step_of_one_conversation_and_kept_by_one_like_it(
    rule: str, text: str, instead: str
) -> None:
    assert rules_broken(text) == [(len(OPERATIONS.parse_shorthand(text)), rule)]
    assert rules_broken(instead) == []


def test_no_rule_is_without_a_conversation_that_breaks_it() -> None:
    assert {each.id for each in RULES} == {rule for rule, _, _ in BROKEN}
    assert all(each.sentence.endswith(".") and each.source for each in RULES)
    assert len({each.id for each in RULES}) == len(RULES)


def test_old_members_join_without_an_id_and_get_no_protocol_type() -> None:
    assert rules_broken("open range; subscribe t; poll; joined MEMBER_ID_REQUIRED me=m1", "apache@2.0.1") == [
        (4, "fitting-error")
    ]


def test_an_explanation_names_the_rule_and_the_request() -> None:
    (found,) = impossible(conversation(OWNS + "elapse 40000"), ())
    assert found == Impossible(
        6,
        "ends-in-time",
        "No request is pending longer than its timeout: at the deadline the connection is closed. "
        "Heartbeat is pending for 37000 ms, and ends after 30000 ms.",
    )


def test_of_a_version_0_join_the_session_is_the_limit() -> None:
    joins = [Join(version, "", None, "consumer", (), 40_000, 90_000) for version in (0, 1)]
    assert [Pending(each, 1_000).ends_ms for each in joins] == [46_000, 96_000]


# What is drawn, mutated and reduced


@pytest.mark.parametrize("seed", some_by_default(range(len(MEMBERS)), 2))
@pytest.mark.parametrize("check", MEMBER_CHECKS, ids=lambda check: str(check.id))
def test_drawn_cases_can_happen(check: Any, seed: int) -> None:
    edition_name = "kip-429" if check.id == "member/draft" else MEMBERS[seed]
    (subject,) = check.family.subjects(edition_name)
    node = check.declaration(subject)
    for sample in check.samples(subject, seed, 12):
        if sample.kind != "often":  # it answers also what only a member with too many heartbeats sends
            assert list(impossible(sample.case, ())) == []
        if sample.value:  # a given conversation has none
            assert sample.case.data == list(sample.value) and belongs(node, sample.value)


@pytest.mark.parametrize("edition_name", [*MEMBERS, "kip-429"])
def test_whatever_is_declared_becomes_as_many_steps_that_can_happen(edition_name: str) -> None:
    check, random = MEMBER_CHECKS[0], Random(edition_name)
    subject = MEMBER.subject("apache", "member", None) if edition_name == "apache" else None
    talks = conversations(edition_name)
    draw = compiled(talks.declaration)
    for number in range(60):
        value = draw(random)
        for _ in range(number % 3):
            value = mutate(talks.declaration, value, random)
        raw = tuple(Step(**each) for each in value)
        steps = talks.mended(raw)
        assert len(steps) == len(raw)
        assert not any(impossible(Case(check.id, edition_name, Role.MEMBER, steps), ()))
        assert talks.mended(steps) == steps
        if subject is not None:
            (case,) = check.cases(subject, value, 0, number, "")
            assert case.steps == steps


def test_a_step_that_cannot_happen_is_replaced_by_what_is_due() -> None:
    rules = rules_of(edition("apache"))
    assert rules is not None
    stage = Stage(Client(rules))

    def instead(text: str) -> Step:
        events = [OPERATIONS.event_of(each) for each in OPERATIONS.parse_shorthand(text)]
        *_, last = mended(stage, events)
        return OPERATIONS.step_of(last)

    def steps(text: str) -> Step:
        return OPERATIONS.parse_shorthand(text)[-1]

    assert instead("poll").verb == "member-open"
    assert instead(COMMITS + "poll") == steps("committed")
    assert instead(COMMITS + "elapse 3000; beat ILLEGAL_GENERATION") == steps("committed")
    assert instead(OWNS + "beat") == steps("poll")
    assert instead(OWNS + "elapse 60000") == steps("elapse 20000")
    assert instead(OWNS + "elapse 20000; elapse 20000") == steps("elapse 10000")
    assert instead(OWNS + "elapse 33000; elapse 200") == steps("disconnected")
    assert instead(COMMITS + "disconnected; poll") == steps("elapse 200")
    assert instead(COMMITS + "elapse 3000; committed UNKNOWN_MEMBER_ID; beat") == steps("beat UNKNOWN_MEMBER_ID")
    assert instead(COMMITS + "elapse 3000; committed ILLEGAL_GENERATION; beat") == steps("beat ILLEGAL_GENERATION")
    assert instead("open range; subscribe t; poll; joined 60; synced t:0; subscribe u; poll; joined 60") == steps(
        "joined COORDINATOR_NOT_AVAILABLE"
    )
    joined = OPERATIONS.event_of(
        instead("open sticky; subscribe t; poll; joined 0 me=m2 leader=m2 by=range members=m2/i,n1,n1")
    )
    assert isinstance(joined, AnswerReceived) and isinstance(joined.answer, Joined)
    assert (joined.answer.generation, joined.answer.protocol, joined.answer.leader) == (1, "sticky", "m2")
    assert [(id, instance) for id, instance, _ in joined.answer.members] == [("m2", None), ("n1", None)]


def test_where_nothing_can_happen_the_draw_fails() -> None:
    class Stopped(Stage):
        def broken(self, scene: Any, event: Any) -> Any:
            yield RULES[0], "nothing can happen"

    rules = rules_of(edition("apache"))
    assert rules is not None
    stage = Stopped(Client(rules))
    with pytest.raises(AssertionError, match="instead of Poll"):
        possible_event(stage, stage.initial(), Poll())


def test_a_commit_that_ends_at_once_blocks_no_call() -> None:
    situation = Situation().begun(Open()).begun(Subscribe(("t",))).begun(CommitOffsets((("t", 0, 1),)))
    assert situation.commits and not situation.begun(Open()).commits
    assert not situation.begun(Disconnected()).pending and situation.begun(Elapse(5)).now_ms == 5
    assert rules_broken("open range; subscribe t; commit t:0=1; poll") == []


# Histories: the consumer's own requests decide


def played(adapter: Adapter, text: str) -> History:
    case = conversation(text)
    adapter.configure(case.edition)
    answers = (adapter.answer({"case": 0, **operation(each)}) for each in case.steps)
    return History(case, "it", tuple(Op(at, case.steps[at], observed(each), at + 1) for at, each in enumerate(answers)))


def test_no_violation_after_a_step_that_cannot_happen_counts() -> None:
    law = [each for each in all_invariants(Role.MEMBER) if each.id == "member/callbacks-in-their-time"]
    for text, result in (
        (OWNS + "elapse 60000", Result.PASS),
        (OWNS + "elapse 30000; disconnected; elapse 30000", Result.FAIL),
    ):
        history = played(MUTANTS["calls-in-the-background"].made(), text)
        assert any(law[0].search(history))
        assert [each.result for each in judge(history, law)] == [result]
    assert len(possible_part(played(MUTANTS["calls-in-the-background"].made(), OWNS + "elapse 60000; poll")).ops) == 6


def test_an_answer_to_a_request_that_a_target_did_not_send_is_left_out() -> None:
    case = conversation(OWNS + "elapse 3000; beat; poll")
    answers = [each.observation for each in played(ConsumerAdapter(), OWNS + "elapse 3000; beat; poll").ops]
    silent = Replied((("status", "accepted"), ("actions", ())))
    ops = [Op(at, step, answer, at + 1) for at, (step, answer) in enumerate(zip(case.steps, answers, strict=True))]
    ops[6] = Op(6, case.steps[6], silent, 7)
    assert [(each.step, each.rule, each.idle) for each in impossible(case, ops)] == [(7, "answers-requests", True)]
    whole = History(case, "it", tuple(ops))
    assert [each.index for each in possible_part(whole).ops] == [0, 1, 2, 3, 4, 5, 6, 8]
    assert list(impossible(case, [*ops[:2], Op(2, case.steps[2], Died("crashed"), 3)])) == []
    refused = [Op(0, case.steps[0], Refused("CONFIG"), 1), Op(1, case.steps[1], silent, 2)]
    assert [each.rule for each in impossible(case, refused)] == ["calls-a-consumer"]


def test_editions_without_consumers_have_no_rules() -> None:
    assert list(impossible(Case("member/errors", "kip-584", Role.MEMBER, OPERATIONS.parse_shorthand("poll")), ())) == []


# Failures of earlier runs


def stored(each: dict[str, Any]) -> tuple[Case, list[Op]]:
    steps = tuple(Step(*step) for step, _ in each["steps"])
    answers: list[Observation] = [
        Refused("CONFIG") if actions is None else Replied((("status", "accepted"), ("actions", tuple(actions))))
        for _, actions in each["steps"]
    ]
    ops = [Op(at, step, answer, at + 1) for at, (step, answer) in enumerate(zip(steps, answers, strict=True))]
    return Case("member/errors", "apache", Role.MEMBER, steps), ops


@pytest.mark.parametrize("each", STORED, ids=lambda each: str(each["id"]))
def test_a_stored_false_alarm_cannot_happen_and_a_true_cause_can(each: dict[str, Any]) -> None:
    case, ops = stored(each)
    rules = [found.rule for found in impossible(case, ops) if not found.idle]
    assert rules[:1] == ([] if each["rule"] is None else [each["rule"]])
    if each["rule"] is not None:
        law = [one for one in all_invariants(Role.MEMBER) if one.id == each["invariant"]]
        history = History(case, "kafka-python", tuple(ops))
        assert not any(verdict.violations for verdict in judge(history, law))


def test_of_the_stored_failures_nine_cannot_happen() -> None:
    assert sum(each["rule"] is not None for each in STORED) == 9


def test_replaying_what_cannot_happen_says_so(tmp_path: Path) -> None:
    each = next(each for each in STORED if each["id"] == "0d7059a90655")
    case, _ = stored(each)
    file = tmp_path / "0d7059a90655.json"
    file.write_text(json.dumps({**FILED, "invariant": each["invariant"], "case": case.plain}))
    result = replay(file)
    assert result.exit_code == 0
    assert "step 5 cannot happen, ends-in-time" in result.message and "): gone" in result.message
    file.write_text(json.dumps({**FILED, "invariant": each["invariant"], "case": case.plain, "guilty_step": 5}))
    result = replay(file)
    assert result.exit_code == 6 and "): step 6, which failed, was not judged" in result.message


FILED: dict[str, Any] = {"format": 1, "id": "0d7059a90655", "target": "reference"}


def test_a_step_is_taken_once_while_a_conversation_is_drawn_and_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = rules_of(edition("apache"))
    assert rules is not None
    stage, taken = Stage(Client(rules)), list[object]()
    step = stage.client.step

    def counted(seat: ClientState, event: Event) -> Any:
        taken.append(event)
        return step(seat, event)

    monkeypatch.setattr(stage.client, "step", counted)
    events = [OPERATIONS.event_of(each) for each in OPERATIONS.parse_shorthand(OWNS)]
    assert [*mended(stage, events)] == events and taken == events
    assert [*mended(stage, events)] == events and taken == events
    other = [*events[:-1], Disconnected()]
    assert [*mended(stage, other)] == other and taken == [*events, Disconnected()]
