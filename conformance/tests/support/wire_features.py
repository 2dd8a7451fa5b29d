"""Controllers of feature versions over the wire: kipcheck's own on loopback, and conversations beside the machine."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random

from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.history import Observation, Refused, Replied
from kipcheck.conformance.core.values.release import Release, releases
from kipcheck.conformance.live.server.feature_broker import FeatureBroker
from kipcheck.conformance.live.server.listener import Front
from kipcheck.conformance.protocols.features.model.kraft import NONE, KraftController, State
from kipcheck.conformance.protocols.features.model.kraft_rules import Rules
from kipcheck.conformance.protocols.features.model.ranges import Range
from kipcheck.conformance.protocols.features.ops.kraft import OPERATIONS, Declared, DeclareNode, Format
from kipcheck.conformance.protocols.features.strategies.kraft import kraft_updates
from kipcheck.conformance.targets import registry
from kipcheck.conformance.targets.protocol import observed
from kipcheck.conformance.tests.support.machines import session_answers

OWN = 0
"""The number of the node that is broker and controller."""


@contextmanager
def feature_broker(name: str) -> Iterator[str]:
    """The address of ``kipcheck serve --model features --edition NAME``, in a thread."""
    found = edition(name)
    ready: list[int] = []
    started, ended = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        front = Front(FeatureBroker(found), found)
        ready.append((await front.listen("127.0.0.1", 0))[1])
        started.set()
        await ended.wait()
        await front.close()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert started.wait(10)
    try:
        yield f"127.0.0.1:{ready[0]}"
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(10)
        loop.close()


def sendable(release: str, talk: Sequence[Step]) -> tuple[Step, ...]:
    """Without what no client can do, controllers that go, or that do not register at all; and without quorums and
    fail-overs, which take long.
    """

    def can(step: Step) -> bool:
        if step.verb == "kraft-fail-over":
            return False
        if step.verb == "kraft-format":
            return not step.body["controllers"]
        controller = step.verb == "kraft-node" and step.body["kind"] == "controller"
        registers = Release.parse(release) in releases("3.7.0+") and step.body.get("supported") is not None
        return registers if controller else True

    return tuple(each for each in talk if can(each))


def drawn(release: str, seed: int, updates: int, formats: bool) -> list[tuple[Step, ...]]:
    """Conversations with at least this many updates. ``formats``: whether clusters are formatted at other levels."""
    talk, random, found = kraft_updates(f"apache@{release}"), Random(f"wire {release} {seed}"), list[tuple[Step, ...]]()
    while updates > 0:
        one = sendable(release, talk.draw(random, talk.swarm(random)))
        if not one or (not formats and any(each.verb == "kraft-format" for each in one)):
            continue
        found.append(one)
        updates -= sum(len(each.body["updates"]) for each in one if each.verb == "kraft-update")
    return found


def parted(release: str, talks: Sequence[Sequence[Step]], model: str = "") -> tuple[list[str], int]:
    """Where a started broker and the machine part, and how many updates were compared. ``model``: of that release."""
    name, rules = f"apache@{release}", Rules.of(model or release)
    with registry.target(f"kafka:{release}").open(name, Role.CONTROLLER) as session:
        answers = session_answers(session, name, Role.CONTROLLER, talks)
    found, compared = [], 0
    for talk, seen in zip(talks, answers, strict=True):
        at, ours, count = _first_difference(rules, talk, seen)
        compared += count
        if at is not None:
            found.append(f"{OPERATIONS.shorthand(talk[: at + 1])}\n  ours {ours}\n  seen {seen[at]}")
    return found, compared


def _first_difference(
    rules: Rules, talk: Sequence[Step], seen: Sequence[Observation]
) -> tuple[int | None, Observation | None, int]:
    machine, compared = KraftController(rules), 0
    state = _with_own(machine, machine.initial())
    for at, (step, answer) in enumerate(zip(talk, seen, strict=True)):
        event = OPERATIONS.event_of(step)
        if isinstance(event, Format) and isinstance(answer, Refused):
            break  # the rules of StorageTool are not modelled
        state, ours = _answered(machine, state, event)
        if not _alike(ours, answer):
            return at, ours, compared
        compared += len(step.body.get("updates", ()))
        if step.verb == "kraft-node" and isinstance(answer, Refused):
            break
    return None, None, compared


def _answered(machine: KraftController, state: State, event: object) -> tuple[State, Observation]:
    if isinstance(event, Format):
        return _with_own(machine, machine.formatted(event)), Replied(())
    if isinstance(event, DeclareNode) and event.kind == "broker" and event.supported is not None:
        error = machine.registration_error(
            state, {each.feature: Range(each.low, each.high) for each in event.supported}
        )
        if error != NONE:
            return state, Refused(error)
    after, actions = machine.step(state, event)  # type: ignore[arg-type]
    return after, observed(OPERATIONS.answer_of(actions))


def _with_own(machine: KraftController, state: State) -> State:
    """The node that leads is a broker, too."""
    declared = tuple(Declared(name, each.low, each.high) for name, each in machine.rules.declares())
    return machine.declared(state, DeclareNode("broker", OWN, declared))


def _alike(one: Observation, other: Observation) -> bool:
    """The epoch of a cluster counts other records, too; messages change with each release."""
    if isinstance(one, Refused) and isinstance(other, Refused):
        return one.error == other.error
    if isinstance(one, Replied) and isinstance(other, Replied):
        return _without_epoch(one) == _without_epoch(other)
    return False


def _without_epoch(answer: Replied) -> dict[str, object]:
    return {name: value for name, value in answer.payload if name != "epoch"}


def cases(release: str, *talks: str) -> list[Case]:
    edition_ = f"apache@{release}"
    return [Case("test", edition_, Role.CONTROLLER, tuple(OPERATIONS.parse_shorthand(each))) for each in talks]
