"""The released group coordinator beside ours: drawn conversations go alike, and what its adapter says of itself."""

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

import pytest

from kipcheck.conformance.core.values.case import Role, Step, steps_from
from kipcheck.conformance.core.values.history import Observation, Refused, Replied, Unsupported
from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.core.values.release import NEWEST
from kipcheck.conformance.machines.clock import Clock
from kipcheck.conformance.protocols.consumer_group.model import ConsumerGroup
from kipcheck.conformance.protocols.consumer_group.ops import OPERATIONS as CONSUMER_GROUPS
from kipcheck.conformance.protocols.consumer_group.rules import Rules as ConsumerRules
from kipcheck.conformance.protocols.group.model.coordinator import Coordinator
from kipcheck.conformance.protocols.group.model.messages import Error, Reply, Timer
from kipcheck.conformance.protocols.group.model.rules import Rules
from kipcheck.conformance.protocols.group.model.service import Event, Served, Service
from kipcheck.conformance.protocols.group.model.state import Member, State
from kipcheck.conformance.protocols.group.ops import OPERATIONS as GROUP_OPERATIONS
from kipcheck.conformance.protocols.group.strategies.conversations import group_conversations
from kipcheck.conformance.targets import registry
from kipcheck.conformance.targets.protocol import Session
from kipcheck.conformance.tests.support.loops import for_each
from kipcheck.conformance.tests.support.machines import session_answers
from kipcheck.conformance.tests.support.releases import COORDINATORS

UNHEARD = {Error.UNSUPPORTED_VERSION.name, Error.INCONSISTENT_GROUP_PROTOCOL.name}
"""What a broker says, or does, before it asks its coordinator."""


UNWRITTEN = {Error.NOT_COORDINATOR.name, Error.COORDINATOR_NOT_AVAILABLE.name, Error.UNKNOWN_SERVER_ERROR.name}


class Choosing(Coordinator):
    """Where Kafka takes any, each in turn: ``script`` says which is taken, ``offered`` how many there were."""

    script: tuple[int, ...] = ()

    def __init__(self, rules: Rules) -> None:
        super().__init__(rules)
        self.offered: list[int] = []

    def taken(self, count: int) -> int:
        at = len(self.offered)
        self.offered.append(count)
        return self.script[at] if at < len(self.script) else 0

    def choose_leader(self, state: State, candidates: tuple[Member, ...]) -> Member:
        return candidates[self.taken(len(candidates))]

    def choose_protocol(self, state: State, candidates: tuple[str, ...]) -> str:
        return sorted(candidates)[self.taken(len(candidates))]


class AnyOrder(Service[State]):
    """Timers of one deadline expire in any order: Kafka arms those of members in the order of a hash map."""

    def __init__(self, coordinator: Choosing) -> None:
        super().__init__(coordinator)
        self.choosing = coordinator

    def due(self, clock: Clock[Timer], until: int) -> tuple[Timer, Clock[Timer]] | None:
        first = clock.due(until)
        if first is None:
            return None
        at_ms = first[1].now_ms
        together = [timer for deadline, timer in clock.timers if deadline == at_ms]
        timer = together[self.choosing.taken(len(together))]
        return timer, Clock(at_ms, clock.disarmed(timer).timers)


Ours = Served[State]


class Allowed:
    """All states in which a coordinator of a release may be after what was seen of it."""

    def __init__(self, release: str) -> None:
        self._choosing = Choosing(Rules.of(release))
        self._service = AnyOrder(self._choosing)
        self._states: list[Ours] = [self._service.initial()]

    def after(self, event: Event, seen: Observation) -> list[list[dict[str, Any]]]:
        """What else it might have answered; nothing where it answered as it may."""
        others, states = [], dict[Ours, None]()
        for state in self._states:
            for after, replies in self._ways(state, event):
                owed = settled(GROUP_OPERATIONS.answer_of(replies)["answers"])
                if agrees(seen, owed):
                    states[after] = None
                others.append(owed)
        self._states = [*states]
        return [] if states else others

    def _ways(self, state: Ours, event: Event) -> Iterator[Transition[Ours, Reply]]:
        scripts: list[tuple[int, ...]] = [()]
        while scripts:
            script = self._choosing.script = scripts.pop()
            self._choosing.offered = []
            yield self._service.step(state, event)
            for at, count in enumerate(self._choosing.offered[len(script) :], len(script)):
                scripts += [(*script, *[0] * (at - len(script)), other) for other in range(1, count)]


def agrees(seen: Observation, owed: Sequence[Mapping[str, Any]]) -> bool:
    if isinstance(seen, Unsupported):
        return {each["error"] for each in owed} <= UNHEARD
    return isinstance(seen, Replied) and settled(seen["answers"]) == owed


def settled(answers: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Without what has no order. What is listed twice after a failed append is told in docs/findings."""
    plain = []
    for each in answers:
        answer: dict[str, Any] = {**each}
        for name in ("members", "groups", "offsets") if each["answer"] != "left" else ():
            rows = answer.get(name, ())
            answer[name] = sorted({str([*row]) for row in rows} if name != "members" else [str([*row]) for row in rows])
        plain.append(answer)
    return sorted(plain, key=lambda each: int(each["to"]))


def conversations(release: str, count: int) -> list[tuple[Step, ...]]:
    talk = group_conversations(f"apache@{release}")
    drawn = []
    for number in range(count):
        random = Random(f"{release} {number}")
        steps = talk.draw(random, talk.swarm(random))
        drawn.append(steps_from([{"actor": each.actor, "verb": each.verb, "body": {**each.body}} for each in steps]))
    return drawn


def executed(session: Session, release: str, talks: Sequence[Sequence[Step]]) -> list[tuple[Observation, ...]]:
    return session_answers(session, f"apache@{release}", Role.COORDINATOR, talks)


def founded_in_vain(talk: Sequence[Step], seen: Observation) -> bool:
    """The first record of a group was not written. In Kafka the timers of what is no group run on, and some 30 s later
    may end, or hold up, a round of the group of that name that came after: from there on nothing is compared."""
    failing = talk[-1].verb == "join" and any(each.verb == "fail-write" for each in talk)
    answers = seen["answers"] if failing and isinstance(seen, Replied) else ()
    return any(each["error"] in UNWRITTEN for each in answers)


def parted(session: Session, release: str, count: int) -> list[str]:
    """Conversations that the two hold otherwise, up to the step where they part, and what was seen and owed there."""
    talks = conversations(release, count)
    found = []
    for talk, seen in zip(talks, executed(session, release, talks), strict=True):
        allowed = Allowed(release)
        for at, (step, observation) in enumerate(zip(talk, seen, strict=True)):
            if owed := allowed.after(GROUP_OPERATIONS.event_of(step), observation):
                found.append(f"{GROUP_OPERATIONS.shorthand(talk[: at + 1])}\n  seen {observation}\n  owed {owed}")
                break
            if founded_in_vain(talk[: at + 1], observation):
                break
    return found


@pytest.fixture(scope="module")
def newest() -> Iterator[Session]:
    with registry.target(f"java:kafka-group-coordinator:{NEWEST}").open("apache", Role.COORDINATOR) as session:
        yield session


@pytest.mark.jars
@pytest.mark.default
def test_conversations_go_as_with_the_newest_released_coordinator(newest: Session) -> None:
    assert not parted(newest, NEWEST, 100)


@pytest.mark.all_jars
@pytest.mark.parametrize("release", COORDINATORS)
def test_conversations_go_as_with_the_released_coordinator(release: str) -> None:
    with registry.target(f"java:kafka-group-coordinator:{release}").open(
        f"apache@{release}", Role.COORDINATOR
    ) as session:
        assert not parted(session, release, 1000)


# -- what stands between it and the protocol


def stated(session: Session, text: str) -> list[Any]:
    """Of each step the answers as (step that asked, error), or the limit that it ran into."""
    (answers,) = executed(session, NEWEST, [GROUP_OPERATIONS.parse_shorthand(text)])
    return [
        each.limit if isinstance(each, Unsupported)
        else [(answer["to"], answer["error"]) for answer in each["answers"]] if isinstance(each, Replied)
        else each
        for each in answers
    ]  # fmt: skip


@pytest.mark.jars
@pytest.mark.parametrize(
    ("text", "answers"),
    [
        # an answer stands with the step that led to it
        ("join a v3; elapse 2999; elapse 1; sync a a=x", [[], [], [(0, "NONE")], [(3, "NONE")]]),
        ("join a v3; unload; beat a", [[], [(0, "NOT_COORDINATOR")], [(2, "NOT_COORDINATOR")]]),
        # what is written is there after a move, and what was not is not
        ("commit a id= 5 behind=none; move; delete", [[(0, "NONE")], [], [], [], [(4, "NONE")]]),
        (
            "fail NOT_ENOUGH_REPLICAS; commit a id= 5 behind=none; move; delete",
            [[], [(1, "COORDINATOR_NOT_AVAILABLE")], [], [], [], [(5, "GROUP_ID_NOT_FOUND")]],
        ),
        (
            "unload; load; describe; loaded; describe",
            [[], [], [(2, "COORDINATOR_LOAD_IN_PROGRESS")], [], [(4, "NONE")]],
        ),
        # what it cannot be told
        ("sync a v5; beat a", ["broker", [(1, "UNKNOWN_MEMBER_ID")]]),
        ("delete v9; leave a a/i v2; beat a as i v2", ["versions", "fields", "fields"]),
    ],
)
def test_what_is_asked_and_when_it_is_answered(newest: Session, text: str, answers: list[Any]) -> None:
    assert stated(newest, text) == answers


@pytest.mark.jars
def test_a_conversation_goes_the_same_way_each_time(newest: Session) -> None:
    """Also where the order of a hash map decides: who leads after the leader has left."""
    text = "join a v3; join b v3; join c v3; join d v3; elapse 6000; leave a; rejoin b; rejoin c; rejoin d"
    (first, *others) = executed(newest, NEWEST, [GROUP_OPERATIONS.parse_shorthand(text)] * 5)
    leader = first[-1]["answers"][-1]["leader"] if isinstance(first[-1], Replied) else ""
    assert leader in ("b.1", "c.1", "d.1")
    assert others == [first] * 4


@pytest.mark.jars
@pytest.mark.default
def test_it_says_what_it_plays(newest: Session) -> None:
    assert newest.info.roles == {Role.CODEC, Role.COORDINATOR, Role.BROKER}
    assert newest.info.claims.machines == (
        "group", "consumer-group", "migration", "streams-group", "share-group", "stored-records"
    )  # fmt: skip
    assert {"broker", "versions", "fields"} <= {*newest.info.claims.limits}


@pytest.mark.jars
@pytest.mark.parametrize(
    ("release", "machines"),
    [("3.9.2", ("group",)), ("4.0.2", ("group", "consumer-group", "migration", "stored-records"))],
)
def test_an_older_one_says_what_it_plays(release: str, machines: tuple[str, ...]) -> None:
    """3.9.2 did not start with a limit of share groups that its preview refuses, and nothing else failed."""
    target = registry.target(f"java:kafka-group-coordinator:{release}")
    with target.open(f"apache@{release}", Role.COORDINATOR) as session:
        assert session.info.claims.machines == machines


# -- KIP-848

WITHOUT_CHOICE = (
    "join a on t none; join b on t,u none; beat a told; beat b; beat a-1 told; beat b-1; leave a; beat b",
    "join a on t none; pass 45000; beat a; join b on u none; beat b",
    "join a on t none; leave a; beat a; join a on t,u none; beat a on u told; beat a; beat z",
    "join a on t none; join b on u none; pass 999; beat b told; pass 1; beat b told; beat b told",
    "join a on t none; pass 1000; beat a on u told; beat a told; beat a on t told; pass 1000; beat a told; beat a told",
    "join a on t none as i; join b on t none as i; beat b as i; away b as i; away a as i; beat a as i",
    "join a on t none as i; away a as i; join b on t none as i; beat b told as i; leave b as i",
    "join a on t none as i; away a as i; join b on t none; pass 45000; beat b told; join c on u none as i",
    "join a on t none as i; away a; leave a as j; leave a as i; beat a as i; join a on t none as i; leave a",
    "join a on t none; beat a on u told; pass 1000; beat a told; join a on u none; away a as i; beat a told",
    "join b on t,u none; beat b on u told; beat b on t told; beat b told; beat b told",
    "join a none like t|u; beat a told; beat a told like u; beat a told; pass 1000; beat a told; join b none like [",
    "join a on t none by custom; join a on t none without timeout; join a; join a on t told; beat a without rack",
)
"""Conversations with consumer groups in which every assignor decides the same."""


def consumer_answers(session: Session, release: str, text: str) -> tuple[list[Any], list[Any]]:
    """The answers of a session and of the machine of a release."""
    steps = CONSUMER_GROUPS.parse_shorthand(text)
    (observed,) = session_answers(session, f"apache@{release}", Role.COORDINATOR, [steps])
    machine = ConsumerGroup(rules=ConsumerRules.of(release))
    state, wanted = machine.initial(), []
    for step in steps:
        state, actions = machine.step(state, CONSUMER_GROUPS.event_of(step))
        answer = CONSUMER_GROUPS.answer_of(actions)
        wanted.append(answer.get("class") or {key: each for key, each in answer.items() if key != "status"})
    return [
        each.error if isinstance(each, Refused) else dict(getattr(each, "payload", ())) for each in observed
    ], wanted


@pytest.mark.jars
@for_each(WITHOUT_CHOICE)
def test_a_consumer_group_goes_as_ours_where_nobody_has_a_choice(text: str, newest: Session) -> None:
    observed, wanted = consumer_answers(newest, NEWEST, text)
    assert observed == wanted, text


@pytest.mark.all_jars
@pytest.mark.parametrize("release", ["4.0.2", "4.1.2", "4.2.1", "4.3.1"])
def test_a_consumer_group_goes_as_with_each_release(release: str) -> None:
    target = registry.target(f"java:kafka-group-coordinator:{release}")
    with target.open(f"apache@{release}", Role.COORDINATOR) as session:
        for text in WITHOUT_CHOICE:
            observed, wanted = consumer_answers(session, release, text)
            assert observed == wanted, text
