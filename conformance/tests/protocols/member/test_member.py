"""The consumer of a classic group: the machine by hand, its words, the laws, and what the checks find."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any, get_args

import pytest

from kipcheck.conformance.core.operations.declaration import declared
from kipcheck.conformance.core.values.case import Case, Role, step
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.history import (
    Died,
    History,
    Lost as LostAnswer,
    Observation,
    Op,
    Refused,
    Replied,
)
from kipcheck.conformance.core.values.verdict import Result
from kipcheck.conformance.engine.execution.converse import converse
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.machines.search import Search
from kipcheck.conformance.protocols.assignment.model.assignment import Topic
from kipcheck.conformance.protocols.assignment.model.membership import V0, V1, Assigned, Subscription
from kipcheck.conformance.protocols.group.model.messages import Error, Join, Joined, Sync, Synced
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.member.checks import CHECKS as MEMBER_CHECKS, DRAFT_MEMBER, MEMBER
from kipcheck.conformance.protocols.member.invariants.callbacks import describe
from kipcheck.conformance.protocols.member.model.client import Client
from kipcheck.conformance.protocols.member.model.consumer import Consumer
from kipcheck.conformance.protocols.member.model.rules import ASSIGNORS, Config, Rules, rules_of
from kipcheck.conformance.protocols.member.model.state import Phase, State
from kipcheck.conformance.protocols.member.mutants.callbacks import JoinsWithAll
from kipcheck.conformance.protocols.member.ops import (
    ACTIONS,
    MEMBER as MACHINE,
    OPERATIONS,
    Answer,
    Given,
    Poll,
    Revoked,
    Subscribe,
)
from kipcheck.conformance.protocols.member.play import single_consumer
from kipcheck.conformance.protocols.member.strategies.conversations import conversations
from kipcheck.conformance.protocols.member.target import ConsumerAdapter
from kipcheck.conformance.protocols.mutants import MUTANTS
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.targets.in_process import InProcess
from kipcheck.conformance.targets.protocol import Adapter, observed, operation
from kipcheck.strategies.parse import belongs

OURS = [each for each in all_invariants(Role.MEMBER) if each.id.startswith("member/")]
BY_ID = {each.id: each for each in OURS}
THEIRS = {name: mutant for name, mutant in MUTANTS.items() if mutant.subject == MACHINE}
OLD_AND_NEW = ("apache", "kip-429", "apache@3.3.1", "apache@2.7.0", "apache@2.4.1", "apache@2.3.1", "apache@1.1.1")
TIMELY = "open range; subscribe t; poll; joined 1; synced t:0; poll"
"""A member that owns something."""
BY = "by=cooperative-sticky"
COOPERATIVE = TIMELY.replace("range", "cooperative-sticky").replace("joined 1", f"joined 1 {BY}")


def executed(adapter: Adapter, case: Case) -> History:
    """Step by step, without a session: there are many."""
    adapter.configure(case.edition)
    stated = ({"case": id(case), **operation(each)} for each in case.steps)
    ops = (Op(k, case.steps[k], observed(adapter.answer(each))) for k, each in enumerate(stated))
    return History(case, adapter.name, tuple(ops))


def conversation(text: str, edition_name: str = "apache") -> Case:
    return Case("member/errors", edition_name, Role.MEMBER, OPERATIONS.parse_shorthand(text))


def last(text: str, edition_name: str = "apache") -> str:
    """What came of the last step, in words."""
    observation = executed(ConsumerAdapter(), conversation(text, edition_name)).ops[-1].observation
    if isinstance(observation, Refused):
        return f"refused {observation.error}"
    assert isinstance(observation, Replied)
    return "; ".join(describe(ACTIONS.from_json(each)) for each in observation["actions"])


# The machine by hand


@pytest.mark.parametrize(
    ("text", "done"),
    [
        ("open range", ""),
        ("open range,incremental", "refused ILLEGAL_ARGUMENT"),
        ("open range; poll", "raised ILLEGAL_STATE"),
        ("open range; subscribe t", ""),
        ("open range; subscribe t; poll", "Join as (no id); reads nothing"),
        ("open range; subscribe t; poll; poll", "reads nothing"),
        ("open range; subscribe t; poll; joined MEMBER_ID_REQUIRED me=m1; poll", "Join as m1; reads nothing"),
        ("open range; subscribe t; poll; joined 1", "Sync as m1 in generation 1"),
        ("open range; subscribe t; poll; joined 1; synced t:0 t:1", ""),
        (TIMELY, "given t-0; reads t-0"),
        (f"{TIMELY}; poll", "reads t-0"),
        (f"{TIMELY}; elapse 2999", ""),
        (f"{TIMELY}; elapse 3000", "Heartbeat as m1 in generation 1"),
        # eager: all is revoked, also where it is nothing
        (f"{TIMELY}; subscribe t,u; poll", "revoked t-0; Join as m1; reads nothing"),
        (f"{TIMELY}; elapse 3000; beat REBALANCE_IN_PROGRESS; poll", "revoked t-0; Join as m1; reads nothing"),
        # cooperative: what is kept is read while it joins
        (f"{COOPERATIVE}; subscribe t,u; poll", "Join as m1; reads t-0"),
        (f"{COOPERATIVE}; subscribe u; poll", "revoked t-0; Join as m1; reads nothing"),
        (f"{COOPERATIVE}; subscribe t,u; poll; joined 2; synced t:0 u:0; poll", "given u-0; reads t-0, u-0"),
        (
            f"{COOPERATIVE}; subscribe t,u; poll; joined 2; synced u:0; poll",
            "revoked t-0; given u-0; Join as m1; reads u-0",
        ),
        ("open range,cooperative-sticky; subscribe t; poll; joined 1; synced t:0; poll; subscribe t,u; poll",
         "revoked t-0; Join as m1; reads nothing"),
        # out of the group
        (f"{TIMELY}; elapse 3000; beat UNKNOWN_MEMBER_ID; poll", "lost t-0; Join as (no id); reads nothing"),
        (f"{TIMELY}; elapse 3000; beat ILLEGAL_GENERATION; poll", "lost t-0; Join as m1; reads nothing"),
        (f"{COOPERATIVE}; subscribe t,u; poll; joined UNKNOWN_MEMBER_ID; poll",
         "lost t-0; Join as (no id); reads nothing"),
        (f"{COOPERATIVE}; subscribe t,u; poll; joined 2; synced REBALANCE_IN_PROGRESS; poll", "Join as m1; reads t-0"),
        (f"{TIMELY}; elapse 60000", "Heartbeat as m1 in generation 1; Leave"),
        (f"{TIMELY}; elapse 60000; poll", "lost t-0; Join as (no id); reads nothing"),
        (f"{TIMELY}; subscribe u; elapse 10000; poll", "reads t-0"),  # nobody answers: it looks for the coordinator
        # what it was assigned before it was thrown out
        ("open range; subscribe t; poll; joined 1; elapse 3000; synced t:0; beat UNKNOWN_MEMBER_ID; poll",
         "Join as (no id); reads nothing"),
        # what does not fit, or is nothing
        ("open range; subscribe t; poll; joined 1; synced u:0; poll", "revoked nothing; Join as m1; reads nothing"),
        ("open range; subscribe t; poll; joined 1; synced nothing; poll", "raised ILLEGAL_STATE"),
        ("open range; subscribe t; poll; joined 1; synced nothing; poll; poll", "raised ILLEGAL_STATE"),
        # errors
        ("open range; subscribe t; poll; joined GROUP_MAX_SIZE_REACHED", ""),
        ("open range; subscribe t; poll; joined GROUP_MAX_SIZE_REACHED; poll", "raised GROUP_MAX_SIZE_REACHED"),
        ("open range; subscribe t; poll; joined GROUP_MAX_SIZE_REACHED; poll; poll", "Join as (no id); reads nothing"),
        ("open range as=i; subscribe t; poll; joined 1; synced FENCED_INSTANCE_ID; poll", "raised FENCED_INSTANCE_ID"),
        (f"{TIMELY}; elapse 3000; beat FENCED_INSTANCE_ID; poll", "raised FENCED_INSTANCE_ID"),
        ("open range; subscribe t; poll; joined NOT_COORDINATOR; poll", "reads nothing"),
        ("open range; subscribe t; poll; joined NOT_COORDINATOR; elapse 100; poll", "Join as (no id); reads nothing"),
        ("open range; subscribe t; poll; joined COORDINATOR_LOAD_IN_PROGRESS; elapse 99; poll", "reads nothing"),
        ("open range; subscribe t; poll; disconnected; elapse 100; poll", "Join as (no id); reads nothing"),
        (f"{TIMELY}; elapse 3000; subscribe t,u; poll; joined 2; beat UNKNOWN_MEMBER_ID; synced t:0; poll",
         "given t-0; reads t-0"),
        # the leader
        ("open range; subscribe t; poll; joined 1 leader=m1 members=m1 skip", "Sync as m1 in generation 1"),
        (f"{TIMELY}; metadata t:3; poll", "reads t-0"),
        ("open range; subscribe t; poll; joined 1 leader=m1 members=m1; synced t:0 t:1; poll; metadata t:3; poll",
         "revoked t-0, t-1; Join as m1; reads nothing"),
        ("open range; subscribe t; poll; joined 1 leader=m1 by=sticky members=m1", ""),
        ("open range; subscribe t; poll; joined 1 leader=m1 by=sticky members=m1; poll", "raised ILLEGAL_STATE"),
        # it leaves
        (f"{TIMELY}; close", "revoked t-0; Leave"),
        (f"{TIMELY}; close; poll", ""),
        (f"{TIMELY}; unsubscribe", "revoked t-0; Leave"),
        (f"{TIMELY.replace('range', 'range as=i')}; close", "revoked t-0"),
        (f"{TIMELY}; disconnected; close", "revoked t-0"),
        (f"{COOPERATIVE}; subscribe t,u; poll; close", "lost t-0; Leave"),
        ("open range; subscribe t; poll; unsubscribe; joined 1", ""),
        # commits
        (f"{TIMELY}; commit t:0=7", "Commit as m1 in generation 1"),
        (f"{TIMELY}; commit t:0=7; committed", "commit ended NONE"),
        (f"{TIMELY}; commit t:0=7; committed ILLEGAL_GENERATION", "commit ended COMMIT_FAILED"),
        (f"{TIMELY}; commit t:0=7; committed REBALANCE_IN_PROGRESS", "commit ended REBALANCE_IN_PROGRESS"),
        (f"{TIMELY}; commit t:0=7; committed OFFSET_METADATA_TOO_LARGE", "commit ended OFFSET_METADATA_TOO_LARGE"),
        (f"{TIMELY}; commit t:0=7; disconnected", ""),
        (f"{TIMELY}; commit t:0=7; disconnected; elapse 100", "Commit as m1 in generation 1"),
        ("open range; subscribe t; commit t:0=7", "commit ended COMMIT_FAILED"),
        ("open range; subscribe t; poll; commit t:0=7", "commit ended REBALANCE_IN_PROGRESS"),
        ("open range; commit t:0=7", "Commit as (no id) in generation -1"),
    ],
)  # fmt: skip
def test_the_newest_consumer_by_hand(text: str, done: str) -> None:
    assert last(text) == done


THROWN_OUT = f"{COOPERATIVE}; subscribe t,u; poll; joined UNKNOWN_MEMBER_ID; poll"
STALE = f"{TIMELY}; elapse 3000; subscribe t,u; poll; joined 2; beat UNKNOWN_MEMBER_ID; synced t:0; poll"


@pytest.mark.parametrize(
    ("text", "edition_name", "done"),
    [
        ("open range; subscribe t; poll", "apache@2.3.1", "revoked nothing; Join as (no id); reads nothing"),
        (f"{TIMELY}; elapse 3000; beat UNKNOWN_MEMBER_ID; poll", "apache@2.3.1",
         "revoked t-0; Join as (no id); reads nothing"),
        (f"{TIMELY}; close", "apache@2.3.1", "Leave"),
        (f"{TIMELY.replace('range', 'range as=i')}; close", "apache@2.2.2", "Leave"),
        (f"{TIMELY}; elapse 3000; beat ILLEGAL_GENERATION; poll", "apache@3.1.2",
         "lost t-0; Join as (no id); reads nothing"),
        (f"{COOPERATIVE}; subscribe t,u; poll; joined 2; synced REBALANCE_IN_PROGRESS; poll", "apache@3.3.0",
         "lost t-0; Join as m1; reads nothing"),
        (THROWN_OUT, "apache@2.8.0", "Join as (no id); reads t-0"),
        (THROWN_OUT, "apache@2.8.1", "lost t-0; Join as (no id); reads nothing"),
        (STALE, "apache@2.5.1", "Join as (no id); reads nothing"),
        (STALE, "apache@2.6.1", "given t-0; reads t-0"),
        ("open range; subscribe t; poll; joined 1; elapse 3000", "apache@2.6.0", ""),
        ("open range; subscribe t; poll; joined 1; elapse 3000", "apache@2.6.1", "Heartbeat as m1 in generation 1"),
        ("open range; subscribe t; poll; commit t:0=7", "apache@2.4.1", "commit ended COMMIT_FAILED"),
        # the draft
        ("open range protocol=eager; subscribe t; poll", "kip-429", "Join as (no id); reads nothing"),
        (f"{TIMELY}; subscribe t,u; poll", "kip-429", "revoked t-0; Join as m1; reads nothing"),
        (f"{TIMELY.replace('range', 'range protocol=cooperative')}; subscribe t,u; poll", "kip-429",
         "Join as m1; reads t-0"),
        ("open range; subscribe t; poll; joined 1; synced error; poll", "kip-429", "metric 1; reads nothing"),
        ("open range; subscribe t; poll; joined 1; synced error; poll; poll", "kip-429", "reads nothing"),
        ("open range; subscribe t; poll; joined 1; synced error; poll; elapse 100; poll", "kip-429",
         "revoked nothing; Join as m1; reads nothing"),
        ("open range; subscribe t; poll; joined 1; synced error; poll; elapse 100; poll; joined 2; synced error; poll",
         "kip-429", "metric 2; reads nothing"),
        ("open range; subscribe t; poll; joined 1; synced error; poll", "apache", "given nothing; reads nothing"),
    ],
)  # fmt: skip
def test_other_releases_and_the_draft_by_hand(text: str, edition_name: str, done: str) -> None:
    assert last(text, edition_name) == done


def joins(adapter: Adapter, text: str, edition_name: str) -> Iterator[Join]:
    for op in executed(adapter, conversation(text, edition_name)).ops:
        assert isinstance(op.observation, Replied)
        for each in map(ACTIONS.from_json, op.observation["actions"]):
            if isinstance(each, Join):
                yield each


@pytest.mark.parametrize(
    ("edition_name", "version", "subscription"),
    [
        ("apache@1.1.1", 2, 0),
        ("apache@2.2.2", 4, 0),
        ("apache@2.4.0", 6, 1),
        ("apache@3.3.2", 9, 1),
        ("apache@3.4.0", 9, 3),
        ("apache", 9, 3),
        ("kip-429", 5, 0),
    ],
)
def test_each_release_speaks_its_versions(edition_name: str, version: int, subscription: int) -> None:
    (join,) = joins(ConsumerAdapter(), "open range; subscribe t; poll", edition_name)
    ((name, reported),) = join.protocols
    assert isinstance(reported, Subscription)
    assert (name, join.version, reported.version, reported.topics) == ("range", version, subscription, ("t",))
    assert join.protocol_version == (0 if edition_name == "kip-429" else None)


def test_of_the_draft_a_cooperative_member_tells_what_it_owns_and_an_eager_one_sends_version_0() -> None:
    text = f"{TIMELY}; subscribe t,u; poll"
    *_, eager = joins(ConsumerAdapter(), text, "kip-429")
    *_, cooperative = joins(ConsumerAdapter(), text.replace("range", "range protocol=cooperative"), "kip-429")
    assert eager.protocols == (("range", Subscription(("t", "u"), V0)),)
    assert cooperative.protocols == (("range", Subscription(("t", "u"), V1, (("t", 0),))),)
    assert (eager.protocol_version, cooperative.protocol_version) == (V0, V1)


def test_the_sticky_assignors_remember_what_was_given_last() -> None:
    text = f"{TIMELY.replace('range', 'sticky,cooperative-sticky')}; elapse 60000; elapse 200; poll"
    *_, join = joins(ConsumerAdapter(), text, "apache")
    reported = {name: (blob.owned, blob.generation, blob.data, blob.data_generation)
            for name, blob in join.protocols if isinstance(blob, Subscription)}  # fmt: skip
    assert reported == {"sticky": ((), -1, (("t", 0),), 1), "cooperative-sticky": ((), -1, (), 1)}


def led(release: str, *assignors: str, by: str, **owned: tuple[tuple[str, int], ...]) -> object:
    """What a leader sends, or raises, for members that own what is said, all in generation 1."""
    rules = Rules.drafted() if release == "kip-429" else Rules.of(release)
    config = Config(rules, tuple(ASSIGNORS[each] for each in assignors), topics=(Topic("t", 3),))
    consumer = Consumer(config)
    state = consumer.step(consumer.step(State(topics_known=config.topics), Subscribe(("t",))).state, Poll()).state
    members = tuple((id, None, Subscription(("t",), 1, what, data_generation=1)) for id, what in owned.items())
    state, actions = consumer.step(state, Joined(0, Error.NONE, 2, None, by, "m1", "m1", members))
    if state.trouble:
        return state.trouble
    (sync,) = (each for each in actions if isinstance(each, Sync))
    return {id: blob.partitions for id, blob in sync.assignments if isinstance(blob, Assigned)}


def test_a_leader_assigns_as_its_assignor_does() -> None:
    t0, t1, t2 = (("t", number) for number in range(3))
    assert led("4.4.0", "range", by="range", m1=(), n1=()) == {"m1": (t0, t1), "n1": (t2,)}
    assert led("4.4.0", "cooperative-sticky", by="cooperative-sticky", m1=(), n1=(t0, t1, t2)) == {
        "m1": (), "n1": (t0, t1)}  # fmt: skip
    assert led("kip-429", "range", by="range", m1=(t0,), n1=(t1,)) == {"m1": (t0, t2), "n1": (t1,)}


def test_leaders_are_particular_about_assignors_of_the_users_own() -> None:
    text = "joined 1 leader=m1 by=incremental members=m1; poll"
    opened = "open incremental; subscribe t; poll"
    assert last(f"{opened}; {text}") == "reads nothing"
    owns: dict[str, Any] = {"topics": ["t"], "version": 3, "owned": [["t", 0], ["t", 1]], "generation": 1}
    joined = {"answer": "joined", "generation": 2, "protocol_type": "consumer", "protocol": "incremental",
              "leader": "m1", "member": "m1",
              "members": [["m1", None, {**owns, "owned": []}], ["n1", None, owns]]}  # fmt: skip
    steps = (
        *OPERATIONS.parse_shorthand(opened),
        step("coordinator", "member-told", **joined),
        *OPERATIONS.parse_shorthand("poll"),
    )
    history = executed(ConsumerAdapter(), Case("member/duties", "apache", Role.MEMBER, steps))
    assert history.ops[-1].observation == Replied((("actions", [{"action": "raised", "error": "ILLEGAL_STATE"}]),))
    assert not broken(history)


@pytest.mark.parametrize("release", ["0.10.0.1", "0.9.0.1"])
def test_there_is_no_model_of_the_first_consumers(release: str) -> None:
    with pytest.raises(ValueError, match=f"no model for consumers of {release}"):
        Rules.of(release)
    assert rules_of(edition(f"apache@{release}")) is None
    assert [*MEMBER.subjects(f"apache@{release}")] == []


def test_only_editions_that_speak_of_consumers_have_one() -> None:
    assert rules_of(edition("kip-584")) is None
    assert [each.edition for each in MEMBER.subjects("apache@2.4.1")] == ["apache@2.4.1"]
    assert [*MEMBER.subjects("kip-429")] == []
    assert [each.edition for each in DRAFT_MEMBER.subjects("kip-429")] == ["kip-429"]
    assert [*DRAFT_MEMBER.subjects("apache")] == []
    assert ConsumerAdapter().configure("kip-584") == "edition kip-584 specifies no consumer of classic groups"


def test_who_drives_it_knows_when_a_poll_would_do_something() -> None:
    consumer = Consumer(Config(Rules.of("4.4.0"), topics=(Topic("t", 1),)))
    state = consumer.initial()
    assert not consumer.wants_poll(state)
    state = consumer.step(state, Subscribe(("t",))).state
    assert consumer.wants_poll(state)
    state = consumer.step(state, Poll()).state
    assert state.phase is Phase.PREPARING
    assert not consumer.wants_poll(state)
    state = consumer.step(state, Joined(0, Error.NONE, 1, None, "range", "n1", "m1")).state
    state = consumer.step(state, Synced(0, Error.NONE, assignment=Assigned((("t", 0),)))).state
    assert consumer.wants_poll(state)
    state, actions = consumer.step(state, Poll())
    assert Given((("t", 0),)) in actions
    assert not any(isinstance(each, Revoked) for each in actions)
    assert not consumer.wants_poll(state)
    assert [type(each).__name__ for each in consumer.enabled(state)] == [
        "Poll", "Unsubscribe", "CommitOffsets", "Close", "Disconnected", "Fired", "Fired", "Fired"]  # fmt: skip


# Words


def test_what_is_said_in_shorthand_is_said_back() -> None:
    text = (
        "open range,sticky as=i rack=r knows=t:3,u:1; open cooperative-sticky; open range protocol=cooperative; "
        "subscribe t,u; unsubscribe; poll; commit t:0=5 u:1=6; close; disconnected; elapse 3000; metadata t:3 u:1; "
        "joined 3; joined 3 me=m2 leader=n1 by=sticky members=m1,m2/i skip; joined MEMBER_ID_REQUIRED me=m2; "
        "synced t:0 t:1; synced; synced nothing; synced error; synced NOT_COORDINATOR; synced t:0 by=range; "
        "synced by=sticky; synced nothing by=range; beat; "
        "beat ILLEGAL_GENERATION; left; committed"
    )
    assert OPERATIONS.shorthand(OPERATIONS.parse_shorthand(text)) == text
    assert {each.verb for each in OPERATIONS.parse_shorthand(text)} == {*OPERATIONS.verbs}


def test_a_report_shows_what_shorthand_cannot_say() -> None:
    body = {"answer": "joined", "generation": 2, "leader": "m1", "member": "m1", "protocol": "range",
            "protocol_type": "consumer"}  # fmt: skip
    members = [
        ["m1", None, {"topics": ["t"]}],
        ["n1", "i", {"topics": ["t", "u"], "owned": [["u", 0]], "generation": 1}],
    ]
    joined = step("coordinator", "member-told", **body, members=members)
    assert OPERATIONS.shorthand([joined]).startswith("member-told {")
    assert OPERATIONS.sentence(joined) == (
        "joined 2 leader=m1 members=m1,n1/i (m1: t; n1: t u, owns u-0, of generation 1)"
    )
    (poll,) = OPERATIONS.parse_shorthand("poll")
    assert OPERATIONS.sentence(poll) == "poll"


@pytest.mark.parametrize(
    "text",
    ["jump", "poll now", "joined", "open nothing", "open range color=red", "beat LATE", "member-poll {", "elapse x"],
)
def test_what_is_no_step_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="invalid step"):
        OPERATIONS.parse_shorthand(f"open range; {text}")


@pytest.mark.parametrize(
    ("verb", "body", "why"),
    [
        ("member-jump", {}, "unknown event 'member-jump'"),
        ("member-told", {"answer": "waved"}, "unknown answer 'waved'"),
        ("member-told", {"answer": "beat", "to": 3}, "unknown field to"),
        ("member-subscribe", {"topics": []}, "must not be empty: use unsubscribe"),
        ("member-open", {"assignors": ["range", "range"]}, "each once"),
        ("member-open", {"protocol": "lazy"}, "must be one of eager, cooperative"),
        ("member-elapse", {"ms": "3"}, "must be an integer"),
        ("member-told", {"answer": "synced", "assignment": 3}, "assignment: must be an object"),
    ],
)
def test_what_is_no_event_is_not_supported(verb: str, body: Mapping[str, Any], why: str) -> None:
    found = ConsumerAdapter().answer({"op": verb, "case": 0, **body})
    assert found["status"] == "unsupported"
    assert why in found["message"]


def test_an_action_that_is_none_is_told() -> None:
    with pytest.raises(LookupError, match="use one of join, sync, "):
        ACTIONS.from_json({"action": "jump"})


@cache
def drawn(edition_name: str, number: int) -> tuple[Case, ...]:
    found = conversations(edition_name)
    cases = []
    for seed in range(number):
        random = Random(seed)
        steps = found.draw(random, found.swarm(random))
        cases.append(Case("member/errors", edition_name, Role.MEMBER, steps))
    return tuple(cases)


def test_what_is_drawn_is_declared_is_its_events_and_reaches_deep() -> None:
    declaration, done = conversations("apache").declaration, dict[str, int]()
    reported = set()
    for case in drawn("apache", 40):
        assert belongs(declaration, case.data)
        assert OPERATIONS.parse_shorthand(OPERATIONS.shorthand(case.steps)) == tuple(
            OPERATIONS.step_of(OPERATIONS.event_of(each)) for each in case.steps
        )
        for op in executed(Reference(), case).ops:
            reported |= {op.step["answer"]} if op.step.verb == "member-told" else set()
            for each in dict(op.observation.payload)["actions"] if isinstance(op.observation, Replied) else ():
                done[each["action"]] = done.get(each["action"], 0) + 1
    assert reported == {each.name for each in map(declared, get_args(Answer))}
    few = {name for name in ("lost", "revoked", "leave", "commit", "raised", "heartbeat") if done[name] < 2}
    assert not few
    assert done["assigned"] > 30


class OwnsTwice(Consumer):
    """It owns what its coordinator speaks of, and does not wait for the user's poll."""

    def synced(self, state: State, answer: Synced) -> State:
        after = super().synced(state, answer)
        return replace(after, owned=after.result.partitions) if isinstance(after.result, Assigned) else after


# The laws


def broken(history: History) -> dict[str, str]:
    return {each.id: violation.why for each in OURS for violation in each.search(history)}


DEVIATIONS: Mapping[str, frozenset[str]] = {
    "apache@3.3.1": frozenset({"member/lost-when-out", "member/speaks-as-it-was-told", "member/joins-only-when-due"}),
    "apache@2.7.0": frozenset({"member/lost-when-out", "member/keeps-its-id"}),
    "apache@2.4.1": frozenset({"member/lost-when-out", "member/keeps-its-id"}),
    "apache@2.3.1": frozenset({"member/keeps-its-id"}),
    "apache@1.1.1": frozenset({"member/keeps-its-id"}),
}
"""What the consumers of a release do otherwise (KAFKA-12983, KAFKA-13419, KAFKA-13891). It is owed all the same."""


@pytest.mark.parametrize("edition_name", OLD_AND_NEW)
def test_whatever_is_said_to_the_reference_it_keeps_every_law(edition_name: str) -> None:
    for case in drawn(edition_name, 40 if edition_name == "apache" else 10):
        found = {*broken(executed(ConsumerAdapter(), case))}
        assert found <= DEVIATIONS.get(edition_name, frozenset()), OPERATIONS.shorthand(case.steps)


def test_every_law_has_a_vice_and_a_check() -> None:
    assert {mutant.invariant for mutant in THEIRS.values()} == {*BY_ID}
    assert {id for check in MEMBER_CHECKS for id in check.invariants} == {*BY_ID}


def relabelled(text: str, played: str, judged: str) -> History:
    """What one release did, held to the rules of another."""
    found = executed(ConsumerAdapter(), conversation(text, played))
    return History(conversation(text, judged), found.target, found.ops)


@pytest.mark.parametrize(
    ("text", "played", "law"),
    [
        (THROWN_OUT, "apache@2.8.0", "member/lost-when-out"),
        (f"{TIMELY}; elapse 3000; beat ILLEGAL_GENERATION; poll", "apache@3.1.2", "member/keeps-its-id"),
        (f"{COOPERATIVE}; subscribe t,u; poll; joined 2 {BY}; synced REBALANCE_IN_PROGRESS; poll", "apache@3.3.1",
         "member/lost-when-out"),
    ],
)  # fmt: skip
def test_nothing_is_owed_because_a_release_does_it(text: str, played: str, law: str) -> None:
    assert law in broken(relabelled(text, played, played))
    assert broken(relabelled(text, "apache", "apache")) == {}


@pytest.mark.parametrize(
    ("text", "played", "judged", "law"),
    [
        (f"{TIMELY.replace('range', 'range as=i')}; close", "apache@2.2.2", "apache@2.3.0", "member/leaves"),
        (f"{TIMELY}; close", "apache@2.3.1", "apache@2.4.0", "member/leaves-with-callbacks"),
        ("open range; subscribe t; poll; joined 1; synced error; poll", "apache@2.2.2", "kip-429",
         "member/counts-incompatible"),
    ],
)  # fmt: skip
def test_a_requirement_holds_from_its_first_release_on(text: str, played: str, judged: str, law: str) -> None:
    assert broken(relabelled(text, played, played)) == {}
    assert law in broken(relabelled(text, played, judged))


def results(text: str, **instead: Observation) -> dict[str, Result]:
    """With other answers than the reference's: ``at2=...`` to the third step."""
    history = executed(ConsumerAdapter(), conversation(text))
    ops = [Op(op.index, op.step, instead.get(f"at{op.index}", op.observation)) for op in history.ops]
    return {each.invariant: each.result for each in judge(History(history.case, "somebody", tuple(ops)), OURS)}


def test_a_lost_answer_leaves_open_what_reads_it_and_condemns_nobody() -> None:
    lost = results(f"{TIMELY}; close", at3=LostAnswer("gone"))
    assert Result.FAIL not in lost.values()
    assert lost["member/speaks-as-it-was-told"] is Result.UNKNOWN
    assert lost["member/finds-a-protocol"] is Result.PASS
    died = results("open range; subscribe t; poll", at2=Died("crashed"))
    assert died["member/gives-up-first"] is Result.UNKNOWN


def test_each_case_begins_afresh_and_the_reference_plays_members_in_every_edition_that_has_them() -> None:
    for edition_name in ("apache", "apache@2.4.1", "kip-429"):
        cases = [conversation(TIMELY, edition_name), conversation("poll", edition_name)]
        with InProcess(Reference()).open(edition_name, Role.MEMBER) as session:
            first, second = converse(cases, session)
        assert first.ops[-1].observation == executed(ConsumerAdapter(), cases[0]).ops[-1].observation
        assert second.ops[0].observation == Replied((("actions", []),))


def test_a_failure_shows_who_said_what() -> None:
    mutant = MUTANTS["revokes-what-is-lost"]
    assert isinstance(mutant.least, str)
    history = executed(mutant.made(), conversation(mutant.least))
    (violation,) = BY_ID["member/lost-when-out"].search(history)
    (exhibit,) = MEMBER.exhibits(history, violation)
    shown = [(f"{each['from']} {each['to']}", each["says"], each["guilty"]) for each in exhibit["steps"]]
    assert shown[-7:] == [
        ("time consumer", "elapse 30000", False),
        ("consumer coordinator", "Heartbeat, member m1, generation 1", False),
        ("consumer coordinator", "LeaveGroup, member m1", False),
        ("user consumer", "poll", True),
        ("consumer user", "revoked t-0", True),
        ("consumer coordinator", "JoinGroup, no member id, range: t", True),
        ("consumer user", "reads nothing", True),
    ]
    assert [each.get("first", True) for each in exhibit["steps"][-4:]] == [True, False, False, False]
    assert ("coordinator consumer", "synced t:0", False) in shown


@pytest.mark.parametrize(
    ("made", "assignor", "law"),
    [
        (Consumer, "cooperative-sticky", None),
        (JoinsWithAll, "range", "member/gives-up-first"),
        (OwnsTwice, "range", "member/owns-what-it-was-given"),
    ],
)
def test_searched_a_little_the_laws_of_states_hold_and_planted_defects_show(
    made: type[Consumer], assignor: str, law: str | None
) -> None:
    config = Config(Rules.of("4.4.0"), (ASSIGNORS[assignor],), topics=(Topic("t", 2), Topic("u", 1)))
    search = Search(single_consumer(made(config), 1))
    search.run(300)
    assert (search.breach.law if search.breach else None) == law
    assert search.breach or search.states > 300


def test_a_client_without_a_consumer_does_nothing() -> None:
    client = Client(Rules.of("4.4.0"))
    assert client.step(client.initial(), Poll()) == (client.initial(), ())
    assert OPERATIONS.answer_of(()) == {"status": "accepted", "actions": []}
