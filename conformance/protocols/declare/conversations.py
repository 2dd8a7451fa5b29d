"""The family of checks of machines: conversations drawn along the reference model, and their display."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final, TypeAlias

from kipcheck.conformance.core.operations.declaration import Operations
from kipcheck.conformance.core.values import history as values_history
from kipcheck.conformance.core.values.case import Role, Step, steps_from
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.declare import check
from kipcheck.conformance.targets.protocol import Claims
from kipcheck.strategies.events import Conversations

Value: TypeAlias = list[dict[str, Any]]
"""Steps as plain data."""
NOTHING_WRONG: Final = Violation("", ())
"""In place of a violation: no step shows it."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A machine, in an edition."""

    edition: str
    name: str
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """An arrow of a sequence diagram; from a participant to itself: what it does or observes."""

    sender: str
    receiver: str
    says: str
    answer: str | None = None
    """What the receiver returns at once."""
    reply: bool = False
    """Whether it answers an earlier message."""


@dataclass(frozen=True, slots=True)
class Wording:
    """How a step and its answer are described in reports."""

    to: str
    """The receiver of the steps."""
    actor: Callable[[Step], str]
    describe_step: Callable[[Step], str]
    describe_answer: Callable[[values_history.Replied], str]
    events: Callable[[values_history.Replied], Iterable[str]] | None = None
    """What the receiver reports in an answer, event by event; None: the answer has a text."""

    def sequence(self, history: values_history.History, violation: Violation) -> list[check.Exhibit]:
        """The steps and their answers, for a sequence diagram."""
        return diagram(history, violation, self._messages)

    def _messages(self, op: values_history.Op) -> list[Message]:
        sent = Message(self.actor(op.step), self.to, self.describe_step(op.step))
        if self.events is None or not isinstance(op.observation, values_history.Replied):
            return [replace(sent, answer=answer(op.observation, self.describe_answer))]
        return [sent, *(Message(self.to, self.to, each) for each in self.events(op.observation))]


def machine_family(
    role: Role,
    name: str,
    editions: Callable[[str], Iterable[str]],
    conversations: Callable[[str], Conversations[Any, Any]],
    exhibits: Callable[[values_history.History, Violation], list[check.Exhibit]],
    impossible: check.Impossibilities = check.all_is_possible,
) -> check.Family[Subject]:
    """The family of the machine ``name``.

    ``editions``: the editions that a run of an edition checks it in; ``conversations``: the generator for one of them;
    ``exhibits``: a failure, shown.
    """

    def subjects(edition: str) -> Iterable[Subject]:
        return (Subject(each, name) for each in editions(edition))

    def subject(edition: str, requested: str, version: int | None) -> Subject:
        if requested != name or edition not in editions(edition):
            raise LookupError(
                f"unknown machine {requested!r} in edition {edition}: the machine is {name}; 'kipcheck editions' "
                "lists the editions"
            )
        return Subject(edition, name)

    batch = swarms(conversations)

    def drawn(subject: Subject, random: Random) -> Value:
        value: Value = batch(subject, random)(random, None)
        return value

    return check.Family(
        role,
        subjects,
        subject,
        claimed=lambda subject, claims: subject.name in claims.machines,
        node=lambda subject: conversations(subject.edition).declaration,
        draw=drawn,
        exhibits=exhibits,
        exchanges=lambda history: [row for each in exhibits(history, NOTHING_WRONG) for row in each.get("steps", ())],
        batch=batch,
        impossible=impossible,
        steps_are_apart=role is not Role.OPERATOR_TOOL,
    )


def swarms(conversations: Callable[[str], Conversations[Any, Any]]) -> Callable[[Subject, Random], check.Drawing]:
    """Draws values under one fault swarm. ``conversations``: the generator for an edition."""

    def batch(subject: Subject, random: Random) -> check.Drawing:
        found = conversations(subject.edition)
        swarm = found.swarm(random)

        def one(random: Random, begun: Value | None) -> Value:
            steps = found.draw(random, swarm, steps_from(begun or ()))
            return [{"actor": each.actor, "verb": each.verb, "body": dict(each.body)} for each in steps]

        return one

    return batch


def operations_family(
    operations: Operations[Any, Any],
    editions: Callable[[str], Iterable[str]],
    conversations: Callable[[str], Conversations[Any, Any]],
    receiver: str,
) -> check.Family[Subject]:
    """The family of a machine with declared operations. ``receiver``: its name in sequence diagrams."""

    def sample_ops(role: Role, claims: Claims) -> Iterable[check.Operation]:
        wanted = role is operations.role and operations.machine in claims.machines
        return operations.samples() if wanted else ()

    wording = Wording(receiver, operations.sender, operations.sentence, listed)
    family = machine_family(operations.role, operations.machine, editions, conversations, wording.sequence)
    return replace(family, sample_ops=sample_ops, granted=granted)


def granted(history: values_history.History) -> frozenset[str]:
    """The verbs of the operations that were accepted."""
    return frozenset(op.step.verb for op in history.ops if isinstance(op.observation, values_history.Replied))


def conversation(subject: Subject, value: Value, random: Random) -> Iterable[check.Conversation]:
    yield check.Conversation(steps_from(value))


def possible_conversation(
    conversations: Callable[[str], Conversations[Any, Any]],
) -> Callable[[Subject, Value, Random], Iterable[check.Conversation]]:
    """The conversation about a value, drawn, mutated or reduced: steps that cannot happen are replaced."""

    def about(subject: Subject, value: Value, random: Random) -> Iterable[check.Conversation]:
        yield check.Conversation(conversations(subject.edition).mended(steps_from(value)))

    return about


def diagram(
    history: values_history.History, violation: Violation, messages: Callable[[values_history.Op], Iterable[Message]]
) -> list[check.Exhibit]:
    """A sequence diagram of the messages of each step."""
    rows = []
    for op in history.ops:
        for place, each in enumerate(messages(op)):
            row = {"from": each.sender, "to": each.receiver, "says": each.says, "answer": each.answer}
            more = {"first": False} if place else {}
            more |= {"reply": True} if each.reply else {}
            rows.append({**row, "guilty": op.index in violation.at, **more})
    return [{"kind": "sequence", "steps": rows}]


def answer(observation: values_history.Observation, replied: Callable[[values_history.Replied], str]) -> str:
    match observation:
        case values_history.Replied():
            return replied(observation)
        case values_history.Refused(error):
            return f"refused: {error}"
        case values_history.Died(cause):
            return cause
        case values_history.Lost() | values_history.Silent():
            return "no answer"
        case values_history.Unsupported():
            return "not supported"


def listed(reply: values_history.Replied) -> str:
    """The fields of an answer, with their names."""
    return ", ".join(f"{name} {value}" for name, value in reply.payload) or "accepted"
