"""Checks of coordinators of classic groups, in releases and in KIP-429's draft."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from random import Random
from typing import Final, TypeAlias

from kipcheck.conformance.core.values.case import Role, Step
from kipcheck.conformance.core.values.edition import KIP_429, Standing, edition
from kipcheck.conformance.core.values.history import History, Op
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.declare.check import Check, Conversation, Exhibit, Family, Operation, StateProbe
from kipcheck.conformance.protocols.declare.conversations import (
    Message,
    Subject,
    Value,
    answer,
    diagram,
    listed,
    machine_family,
    swarms,
)
from kipcheck.conformance.protocols.declare.draw_compaction import drawn_compaction
from kipcheck.conformance.protocols.declare.invariant import invariants_of
from kipcheck.conformance.protocols.group import invariants
from kipcheck.conformance.protocols.group.invariants.requests import granted as is_granted
from kipcheck.conformance.protocols.group.ops import GROUP, NO_MORE, OPERATIONS, By
from kipcheck.conformance.protocols.group.possible_conversations import conversation, impossible
from kipcheck.conformance.protocols.group.strategies.conversations import group_conversations
from kipcheck.conformance.protocols.group.strategies.episodes import Episode
from kipcheck.conformance.protocols.group.trace import Trace, TracedStep, trace
from kipcheck.conformance.targets.protocol import Claims

About: TypeAlias = Callable[[Subject, Value, Random], Iterable[Conversation]]
COORDINATOR_NAME: Final = "coordinator"


def released(name: str) -> Iterable[str]:
    """Any release; the draft only if the run names it."""
    return (name,) if edition(name).standing is Standing.RELEASED else draft(name)


def draft(name: str) -> Iterable[str]:
    """Not in a run of ``apache``: targets that are released coordinators do not implement the draft."""
    return (name,) if edition(name) == KIP_429 else ()


def group_sequence(history: History, violation: Violation) -> list[Exhibit]:
    """The requests to the coordinator; an answer that came later, at the step that caused it."""
    known = trace(history)
    steps = {each.index: each for each in known.steps}
    clients = {each.index: each.actor for each in known.asked}

    def messages(op: Op) -> Iterator[Message]:
        step = steps.get(op.index)
        if step is None:
            yield Message(
                op.step.actor, COORDINATOR_NAME, OPERATIONS.shorthand((op.step,)), answer(op.observation, listed)
            )
            return
        at_once = [OPERATIONS.describe_answer(each) for each in step.replies if each.to == op.index]
        yield Message(op.step.actor, COORDINATOR_NAME, _describe_step(op.step, step, known), "; ".join(at_once) or None)
        for each in step.replies:
            if each.to != op.index:
                client = clients.get(each.to, op.step.actor)  # an answer to a step that is no request is a failure
                says = f"to step {each.to + 1}: {OPERATIONS.describe_answer(each)}"
                yield Message(COORDINATOR_NAME, client, says, reply=True)

    return diagram(history, violation, messages)


def _describe_step(step: Step, traced: TracedStep, known: Trace) -> str:
    """``SyncGroup v3, member a.1, generation 1, gives a.1 x``."""
    if not isinstance(traced.event, By):
        return OPERATIONS.sentence(step)
    asked = known.request(traced.index)
    return OPERATIONS.describe_request(asked.request) + ", with an empty group id" * asked.nameless


def _family(editions: Callable[[str], Iterable[str]]) -> Family[Subject]:
    family = machine_family(Role.COORDINATOR, GROUP, editions, group_conversations, group_sequence, impossible)
    return replace(family, granted=granted)


def granted(history: History) -> frozenset[str]:
    """The verbs of the requests that got an answer without an error, at once or later."""
    verbs = {op.index: op.step.verb for op in history.ops}
    return frozenset(verbs[each.index] for each in trace(history).asked if is_granted(each))


def describe(operation: Operation) -> str | None:
    """A request with its version."""
    if operation["op"] not in OPERATIONS.requests:
        return None
    return f"{operation['op']} v{operation['version']}"


def sample_ops(role: Role, claims: Claims) -> Iterator[Operation]:
    """A member joins, and the group is described."""
    if role is Role.COORDINATOR and GROUP in claims.machines:
        yield from OPERATIONS.samples()


def state_probe(claims: Claims) -> StateProbe | None:
    """A new group has no members."""
    if GROUP not in claims.machines:
        return None
    *before, description = OPERATIONS.samples()
    return StateProbe(
        tuple(before),
        description,
        lambda answer: not any(each.get("members") for each in answer.get("answers", ())),
    )


COORDINATOR = replace(_family(released), describe=describe, sample_ops=sample_ops, state_probe=state_probe)
DRAFT_COORDINATOR = _family(draft)

of = partial(invariants_of, part=invariants)
ANSWERS: Final = of(invariants.ANSWERS)
LEADERS: Final = ("group/one-leader", "group/leader-hears-all", "group/assignment-from-leader")
"""Where a leader restarts as a static member, it is the group's leader still, and its successor assigns."""
WAITING: Final = "group/parked-answered"
"""Others wait no longer for a static member that restarts than its new process asks."""


COMMITTED: Final = (NO_MORE, (3, ""), (-1, "m"), (0, "\u00b5 n"))
"""Leader epoch and metadata of a commit, by its offset: so a case that is reduced keeps them."""


def compacted(subject: Subject, value: Value, random: Random) -> Iterator[Conversation]:
    """The log is compacted in any part before the coordinator reads it; most commits have more than offsets."""
    for each in conversation(subject, value, random):
        yield each._replace(steps=tuple(
            replace(one, body=drawn_compaction(random)) if one.verb == "loaded" else _with_more(one)
            for one in each.steps
        ))  # fmt: skip


def _with_more(step: Step) -> Step:
    if step.verb != "commit":
        return step
    rows = [[*row[:3], *COMMITTED[row[2] % len(COMMITTED)]] for row in step.body["offsets"]]
    return replace(step, body={**step.body, "offsets": rows})


def coordinator_check(
    id: str, sentence: str, ids: tuple[str, ...], *focus: Episode, about: About = conversation
) -> Check[Subject]:
    """``focus``: the situations that its invariants are about. ``about``: what makes conversations of what is drawn."""
    batch = swarms(partial(group_conversations, focus=focus))
    return Check(id, sentence, COORDINATOR, about, values=300, invariants=ids, batch=batch)


CHECKS: tuple[Check[Subject], ...] = (
    coordinator_check(
        "group/generations",
        "generations follow one another, each with one leader, one protocol and the leader's assignment",
        (
            *of("group/generations", first=("group/generation-grows", "group/one-leader", "group/leader-hears-all")),
            *of(invariants.REBALANCES),
            *ANSWERS,
        ),
        Episode.PREFERENCE,
        Episode.MOVE,
        Episode.GROWTH,
        Episode.DEPARTURE,
    ),
    coordinator_check(
        "group/parked",
        "parked requests are answered once and in time, and members are removed only for a reason",
        (*of("group/parked"), *of(invariants.REMOVALS), *ANSWERS),
        Episode.GROWTH,
        Episode.UNUSED,
        Episode.SESSION,
        Episode.SILENCE,
        Episode.EXTREMES,
    ),
    coordinator_check(
        "group/static",
        "an instance id belongs to one member at a time, and its previous member is fenced",
        (
            *of(
                "group/static",
                first=("group/one-id-per-instance", "group/fenced-never-wins", "group/fenced-let-go"),
            ),
            *LEADERS,
            WAITING,
            *ANSWERS,
        ),
        Episode.SUCCESSION,
        Episode.ABSENCE,
        Episode.RETURN,
    ),
    coordinator_check(
        "group/errors",
        "an invalid request is answered with the documented error, and changes nothing",
        (
            *ANSWERS,
            *of(
                "group/errors",
                first=(
                    "group/beats-before-assignment",
                    "group/stale-never-wins",
                    "group/refused-changes-nothing",
                    "group/refused-disturbs-nobody",
                ),
            ),
        ),
        Episode.REFUSAL,
        Episode.SUCCESSION,
    ),
    coordinator_check(
        "group/records",
        "acknowledged records are in the log, and failed ones are not",
        (*of("group/records", first=("group/commits-kept",)), *ANSWERS),
        Episode.MOVE,
        Episode.MOVE,
        Episode.END,
        about=compacted,
    ),
    Check(
        "group/newest-leads",
        "the member with the highest protocol version leads",
        DRAFT_COORDINATOR,
        conversation,
        values=200,
        invariants=of("group/newest-leads"),
    ),
)
