"""Conversations with the classic group coordinator itself, written as members would tell them."""

from dataclasses import replace
from functools import cache
from typing import Any, Final

from kipcheck.conformance.protocols.group.model.answers import Config
from kipcheck.conformance.protocols.group.model.coordinator import Coordinator
from kipcheck.conformance.protocols.group.model.draft import DraftCoordinator
from kipcheck.conformance.protocols.group.model.messages import (
    Action,
    Append,
    Arm,
    Commit,
    Disarm,
    Error,
    Event,
    Fired,
    Heartbeat,
    Join,
    Joined,
    Leave,
    Nameless,
    Phase,
    Reply,
    Sync,
    Timer,
    Written,
)
from kipcheck.conformance.protocols.group.model.rules import INSTANCE_SINCE, Rules
from kipcheck.conformance.protocols.group.model.state import REBALANCE, SYNC, State, pending, session

RANGE: Final = (("range", "r"),)
ROBIN: Final = (("roundrobin", "o"),)
BOTH: Final = (("range", "r"), ("roundrobin", "o"))
TURNED: Final = (("roundrobin", "o"), ("range", "r"))


class Talk:
    """One coordinator. Member ids are what the tests make of them; appends are written at once unless deferred."""

    def __init__(self, release: str = "3.9.2", deferred: bool = False, max_size: int = 4) -> None:
        settings = Config(max_size=max_size)
        self.coordinator = (
            DraftCoordinator(settings) if release == "kip-429" else Coordinator(Rules.of(release), settings)
        )
        self.deferred = deferred
        self.state: State = self.coordinator.initial()
        self.asked = 0
        self.answers: dict[int, Reply] = {}
        self.last: tuple[Action, ...] = ()
        """What the last event led to."""
        self.appended = 0

    @property
    def phase(self) -> Phase:
        return self.state.phase

    def newest(self, request: type) -> int:
        return self.coordinator.rules.versions[request][-1]

    def say(self, event: Event) -> None:
        done: list[Action] = []
        self._say(event, done)
        self.last = tuple(done)

    def _say(self, event: Event, done: list[Action]) -> None:
        self.state, actions = self.coordinator.step(self.state, event)
        done.extend(actions)
        for action in actions:
            if isinstance(action, Append):
                self.appended += 1
                if not self.deferred:
                    self._say(Written(), done)
            elif not isinstance(action, (Arm, Disarm)):
                assert action.to not in self.answers, f"{action} answers again what {self.answers[action.to]} did"
                self.answers[action.to] = action

    def ask(self, request: Any) -> Reply | None:
        """Its answer, if it came at once."""
        self.asked += 1
        self.say(replace(request, request=self.asked))
        return self.answers.get(self.asked)

    def ask_nameless(self, request: Any) -> Any:
        """As ``ask``, with an empty group id."""
        self.asked += 1
        self.say(Nameless(replace(request, request=self.asked)))
        return self.answers.get(self.asked)

    def answer(self, request: int) -> Any:
        return self.answers.get(request)

    def error(self, request: Any) -> Error | None:
        """Of the answer; None: there is none yet."""
        answer = self.ask(request)
        return None if answer is None else answer.error

    def join(self, id: str = "", instance: str | None = None, **fields: Any) -> Join:
        fields = {"version": self.newest(Join), "protocol_type": "consumer", "protocols": RANGE, **fields}
        return Join(member=id, instance=instance, **fields)

    def sync(self, id: str, instance: str | None = None, **fields: Any) -> Sync:
        fields = {"version": self.newest(Sync), "generation": self.state.generation, **fields}
        if fields["version"] >= 5:
            fields = {"protocol_type": self.state.protocol_type, "protocol": self.state.protocol, **fields}
        return Sync(member=id, instance=instance, **fields)

    def beat(self, id: str, instance: str | None = None, **fields: Any) -> Heartbeat:
        return Heartbeat(member=id, instance=instance, **{"version": self.newest(Heartbeat), **self._now(fields)})

    def commit(self, id: str, instance: str | None = None, **fields: Any) -> Commit:
        fields = {"version": self.newest(Commit), "offsets": (("t", 0, 5, -1, ""),), **self._now(fields)}
        return Commit(member=id, instance=instance, **fields)

    def _now(self, fields: dict[str, Any]) -> dict[str, Any]:
        return {"generation": self.state.generation, **fields}

    def leave(self, *members: tuple[str, str | None] | str, version: int | None = None) -> Leave:
        named = tuple((each, None) if isinstance(each, str) else each for each in members)
        return Leave(self.newest(Leave) if version is None else version, named)

    # Steps that come again and again

    def enter(self, id: str, instance: str | None = None, **fields: Any) -> int:
        """Somebody new joins and is given ``id``. The number of the request that waits or was answered."""
        first = self.ask(self.join("", instance, fresh=id, **fields))
        if isinstance(first, Joined) and first.error is Error.MEMBER_ID_REQUIRED:
            self.ask(self.join(id, instance, **fields))
        return self.asked

    def over(self) -> None:
        """The time to join is over, however often it is prolonged."""
        self.fire(REBALANCE)
        while self.state.initial:
            self.fire(REBALANCE)

    def fire(self, timer: Timer) -> None:
        self.say(Fired(timer))

    def expire(self, id: str) -> None:
        self.fire(session(id))

    def forget(self, id: str) -> None:
        self.fire(pending(id))

    def deadline(self) -> None:
        self.fire(SYNC)

    def assign(self, **given: str) -> None:
        """All members ask for their assignment, the leader last."""
        leader = self.state.leader or ""
        others = [each for each in self.state.members if each.id != leader]
        for each in (*others, self.state.known(leader)):
            assignments = tuple(given.items()) if each.id == leader else ()
            self.ask(self.sync(each.id, each.instance, assignments=assignments))

    def armed(self) -> dict[Timer, int]:
        """By the last event."""
        return {each.timer: each.ms for each in self.last if isinstance(each, Arm)}


@cache
def prepared(release: str, phase: str) -> State:
    """A group of this phase: ``a`` leads, ``b`` follows, and the static member ``s`` with the instance ``i`` where the
    release has those. While it is prepared, ``b`` has joined already; ``p`` was given an id."""
    talk = Talk(release)
    if phase == "dead":
        return talk.state
    static = talk.newest(Join) >= INSTANCE_SINCE[Join]
    talk.enter("a")
    talk.enter("b")
    if static:
        talk.enter("s", "i")
    if talk.state.initial:
        talk.over()
    for each in talk.state.members:
        if talk.phase is Phase.PREPARING and each.join is None:
            talk.ask(talk.join(each.id))
    if phase == "completing":
        return talk.state
    talk.assign(a="x", b="y", s="z")
    if phase == "preparing":
        talk.ask(talk.join("b", protocols=BOTH))
        if talk.coordinator.rules.ids_required:
            talk.ask(talk.join(fresh="p"))
    elif phase == "empty":
        talk.ask(talk.leave("a", version=0))
        talk.ask(talk.leave("b", version=0))
        if static:
            talk.ask(talk.leave("s", version=0))
    return talk.state


def at(phase: str, release: str = "3.9.2", max_size: int = 4) -> Talk:
    talk = Talk(release, max_size=max_size)
    talk.state, talk.asked = prepared(release, phase), 1000
    return talk
