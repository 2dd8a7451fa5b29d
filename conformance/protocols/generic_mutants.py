"""Mutants that fit every machine, codec and assignor: lazy implementations, as wrappers of the reference.

Each is the target ``miniature/ID`` of every role that the reference plays; ``miniature/ID/VERB`` alters the answers to
one operation alone. What a refusal and an acceptance look like is learned from the declared operations and from what
the reference answers to the first default cases of seed 0. What the reference does not support stays unsupported.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias

from kipcheck.conformance.core.operations import verb_registry
from kipcheck.conformance.core.operations.declaration import declared
from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.protocols import registry
from kipcheck.conformance.protocols.assignment.target import LEADING
from kipcheck.conformance.protocols.checks import CHECKS, Check
from kipcheck.conformance.protocols.declare.mutant import mutant_name
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.targets.machine_target import MachineAdapter
from kipcheck.conformance.targets.protocol import OPERATIONS, Adapter, operation

Answer: TypeAlias = dict[str, Any]
LEARNED_CASES: Final = 60
"""Cases of each check from which forms of answers are learned."""
LEARNED_CASES_OF_A_MESSAGE: Final = 6
FIRST_STEPS: Final = 3
"""After these the mutant that stops does nothing."""
NONE: Final = "NONE"
WAITS: Final = "pending"
"""In place of an answer that is still to come."""
OWN: Final = -1
"""In a form, in place of the number of the request that it answers."""
AnyMachine: TypeAlias = MachineAdapter[Any, Any, Any]
REFUSAL: Final[Answer] = {"status": "rejected", "class": "INVALID_REQUEST", "message": "refused"}
"""Of an operation for which nothing declares a refusal."""
TOO_EARLY: Final = (LookupError, TypeError, ValueError, AssertionError, AttributeError)
"""What a model may raise for an event that its earlier state cannot take."""


# What answers look like


@dataclass(slots=True)
class Forms:
    """Answers of the reference to one operation; None: none of the kind was observed."""

    accepted: Answer | None = None
    """The first one with content."""
    refused: Answer | None = None


def errors(answer: Any, keys: frozenset[str]) -> Iterator[tuple[dict[str, Any], str]]:
    """The places of errors in an answer: an object, and the key there."""
    if isinstance(answer, dict):
        for key, value in answer.items():
            if key in keys:
                yield answer, key
            yield from errors(value, keys)
    elif isinstance(answer, list):
        for each in answer:
            yield from errors(each, keys)


def is_error(value: Any) -> bool:
    """Names of errors are in capitals; ``parked`` stands in place of one."""
    return isinstance(value, str) and value.isupper() and value != NONE


def is_refusal(answer: Answer, keys: frozenset[str]) -> bool:
    return answer["status"] == "rejected" or any(is_error(place[key]) for place, key in errors(answer, keys))


def with_errors(answer: Answer, keys: frozenset[str], error: str) -> Answer:
    """The answer with another error in each place."""
    copied: Answer = _copied(answer)
    for place, key in [*errors(copied, keys)]:
        place[key] = error
    return copied


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    return [_copied(each) for each in value] if isinstance(value, list | tuple) else value


def numbered(answer: Answer, numbers: Mapping[int, int]) -> Answer:
    """The answer with other numbers of requests, if it consists of answers to requests: those without one are left
    out.
    """
    answers = answer.get("answers")
    if answers is None:
        return answer
    return {**answer, "answers": [{**each, "to": numbers[each["to"]]} for each in answers if each["to"] in numbers]}


def with_number(form: Answer, number: int) -> Answer:
    """A form as the answer to the request with this number."""
    answers = form.get("answers")
    if answers is None:
        return form
    return {**form, "answers": [{**each, "to": number if each["to"] == OWN else each["to"]} for each in answers]}


class Learned(NamedTuple):
    """The forms of the answers of one machine, or of the leaders."""

    by_verb: Mapping[str, Forms]
    keys: frozenset[str]
    """Of errors in answers; empty for a machine that reports events, whose errors are no refusals."""

    def refusal(self, verb: str, right: Answer) -> Answer:
        """A refusal in the form of this operation; the right answer to one that is never refused.

        Of a machine that refuses nothing: the refusal of the testee protocol.
        """
        known = {name: each.refused for name, each in self.by_verb.items() if each.refused is not None}
        if not known:
            return REFUSAL
        if verb in known:
            return known[verb]
        within = [place[key] for each in known.values() for place, key in errors(each, self.keys)]
        error = next(filter(is_error, within), REFUSAL["class"])
        return with_errors(right, self.keys, error) if any(errors(right, self.keys)) else right

    def acceptance(self, verb: str, right: Answer) -> Answer:
        """What an accepted operation is answered, in place of a refusal; that itself if none was accepted whose fields
        could be learned.
        """
        if right["status"] != "rejected":
            return with_errors(right, self.keys, NONE)
        accepted, fields = self.by_verb.get(verb, Forms()).accepted, verb_registry.fields_of_answer(verb)
        return accepted or (right if fields is not None and fields.needed else {"status": "accepted"})


@cache
def learned(subject: str, version: int | None, edition: str) -> Learned:
    """From the first cases of the checks of a machine, an assignor or a message."""
    reference, keys = Reference(), _error_keys(subject)
    reference.configure(edition)
    by_verb: dict[str, Forms] = {}
    for case, (number, step) in _played(subject, version, edition):
        answer = reference.answer({"case": case, **operation(step)})
        if answer["status"] not in ("accepted", "rejected"):
            continue
        answer = numbered(answer, {number: OWN})
        forms = by_verb.setdefault(step.verb, Forms())
        if is_refusal(answer, keys):
            forms.refused = forms.refused or answer
        elif forms.accepted is None or not _is_full(forms.accepted):
            forms.accepted = answer
    return Learned(by_verb, keys)


def _is_full(answer: Answer) -> bool:
    """Whether an accepted answer has content, other than that the right answer is still to come."""
    content = [value for key, value in answer.items() if key != "status"]
    return any(content) and WAITS not in content


def _played(name: str, version: int | None, edition: str) -> Iterator[tuple[object, tuple[int, Step]]]:
    cases = LEARNED_CASES if version is None else LEARNED_CASES_OF_A_MESSAGE
    for check, subject in _subjects(edition).get((name, version), ()):
        for number, sample in enumerate(islice(check.samples(subject, 0), cases)):
            yield from (((check.id, number), each) for each in enumerate(sample.case.steps))


@cache
def _subjects(edition: str) -> Mapping[tuple[str, int | None], Sequence[tuple[Check[Any], Any]]]:
    """What checks are about in an edition, by name and version."""
    found: dict[tuple[str, int | None], list[tuple[Check[Any], Any]]] = {}
    for check in CHECKS.values():
        for each in filter(check.about, check.family.subjects(edition)):
            if each.edition == edition:
                found.setdefault((each.name, each.version), []).append((check, each))
    return found


def _error_keys(machine: str) -> frozenset[str]:
    found = next((each for each in registry.operations().values() if machine in each.machines), None)
    if found is None or found.observed is not None:
        return frozenset()
    accepted = [declared(each.accepted) for each in found.declared if each.accepted is not None]
    return frozenset({"error"} | {one.key for each in accepted for one in each.fields if one.name == "error"})


# The mutants


class Snapshot(NamedTuple):
    """The state of a machine after some of the steps of a case."""

    state: Any
    steps: tuple[int, ...] = ()
    """The numbers of these steps, since answers may name them."""


def after(machine: AnyMachine, before: Snapshot, event: Any, number: int) -> tuple[Snapshot, Answer]:
    """What follows from a step, and its answer."""
    state, answer = machine.apply(before.state, event)
    steps = (*before.steps, number)
    return Snapshot(state, steps), numbered(answer, dict(enumerate(steps)))


@dataclass(slots=True)
class Memory:
    """What a mutant knows of the case that is played."""

    now: Snapshot
    steps: int = 0
    past: Snapshot | None = None
    """A state that a mutant answers from."""
    last: dict[str, Answer] = field(default_factory=dict)
    """The last answer, by operation."""


class GenericMutant(Reference):
    """The reference with one lazy habit."""

    def __init__(self, verb: str = "") -> None:
        """``verb``: the operation that it alters; empty: each."""
        super().__init__()
        self._verb = verb
        self._case: object = None
        self._memory = Memory(Snapshot(None))

    def answer(self, op: Mapping[str, Any], /) -> Answer:
        found, altered = self.machine(op["op"]), self._verb in ("", op["op"])
        if op.get("case") != self._case:
            self._case = op.get("case")
            self._memory = Memory(Snapshot(None if found is None else found[1].initial))
        if found is None:
            right = super().answer(op)
            return self.changed(op, right, 0) if altered and right["status"] != "unsupported" else right
        machine, memory = found[1], self._memory
        try:
            event = machine.event(op)
        except (LookupError, TypeError, ValueError) as unknown:
            return {"status": "unsupported", "message": str(unknown)}
        number, memory.steps = memory.steps, memory.steps + 1
        return (self.step if altered else self.right)(machine, op, event, number)

    def right(self, machine: AnyMachine, op: Mapping[str, Any], event: Any, number: int) -> Answer:
        """The answer of the reference to a step of a machine."""
        self._memory.now, right = after(machine, self._memory.now, event, number)
        return right

    def step(self, machine: AnyMachine, op: Mapping[str, Any], event: Any, number: int) -> Answer:
        """The answer to a step of a machine."""
        return self.changed(op, self.right(machine, op, event, number), number)

    def changed(self, op: Mapping[str, Any], right: Answer, number: int) -> Answer:
        """What is answered instead of the right answer."""
        return right


class LearningMutant(GenericMutant):
    """Answers in the forms of right answers."""

    def prepare(self, op: Mapping[str, Any], /) -> None:
        """Learns the forms of the answers of the machine of an operation, which takes longer than one operation may."""
        if self.machine(op["op"]) is not None:
            self.forms(op)

    def forms(self, op: Mapping[str, Any]) -> Learned:
        """The forms of the answers to an operation."""
        found, edition = self.machine(op["op"]), str(self._edition)
        if found is not None:
            return learned(found[0], None, edition)
        if op["op"] in LEADING:
            return learned(op["assignor"], None, edition)
        return learned(op["message"], op["version"], edition)


class RefusesEverything(LearningMutant):
    """Every operation that may be refused is refused, and changes nothing."""

    def step(self, machine: AnyMachine, op: Mapping[str, Any], event: Any, number: int) -> Answer:
        before, right = self._memory.now, self.right(machine, op, event, number)
        refused = self.changed(op, right, number)
        if refused is not right:
            self._memory.now = before
        return refused

    def changed(self, op: Mapping[str, Any], right: Answer, number: int) -> Answer:
        if op["op"] in OPERATIONS or op["op"] in LEADING:
            return right if right["status"] == "rejected" else REFUSAL
        forms = self.forms(op)
        if is_refusal(right, forms.keys):
            return right
        refusal = forms.refusal(op["op"], right)
        return right if refusal == right else with_number(refusal, number)


class AcceptsEverything(LearningMutant):
    """An operation that has to be refused is answered as an accepted one, and changes nothing."""

    def changed(self, op: Mapping[str, Any], right: Answer, number: int) -> Answer:
        forms = self.forms(op)
        return with_number(forms.acceptance(op["op"], right), number) if is_refusal(right, forms.keys) else right


class AnswersTheSameAlways(LearningMutant):
    """Each operation is answered the same, whatever its fields and the state are."""

    def changed(self, op: Mapping[str, Any], right: Answer, number: int) -> Answer:
        constant = self.forms(op).by_verb.get(op["op"], Forms()).accepted
        return right if constant is None else with_number(constant, number)


class RepeatsItsLastAnswer(GenericMutant):
    """Every second answer to an operation is the one before, in the same case."""

    def changed(self, op: Mapping[str, Any], right: Answer, number: int) -> Answer:
        last = self._memory.last.pop(op["op"], None)
        if last is None:
            self._memory.last[op["op"]] = numbered(right, {number: OWN})
            return right
        return with_number(last, number)


class FromThePast(GenericMutant):
    """A machine that answers from an earlier state."""

    def step(self, machine: AnyMachine, op: Mapping[str, Any], event: Any, number: int) -> Answer:
        memory = self._memory
        before, past = memory.now, memory.past or Snapshot(machine.initial)
        right = self.right(machine, op, event, number)
        memory.past = self.remembered(past, before, memory.now)
        try:
            return after(machine, past, event, number)[1]
        except TOO_EARLY:
            return right

    def remembered(self, past: Snapshot, before: Snapshot, now: Snapshot) -> Snapshot:
        """What the next answer is computed from: of three states, the last is the present."""
        raise NotImplementedError


class ForgetsItsLastWrite(FromThePast):
    """The last step that changed something is forgotten until the next one that does."""

    def remembered(self, past: Snapshot, before: Snapshot, now: Snapshot) -> Snapshot:
        return past if now.state == before.state else before


class IsOneStepBehind(FromThePast):
    """Each step is answered as if the one before had not happened yet."""

    def remembered(self, past: Snapshot, before: Snapshot, now: Snapshot) -> Snapshot:
        return before


class StopsAfterSomeSteps(FromThePast):
    """After three steps nothing has an effect any more."""

    def remembered(self, past: Snapshot, before: Snapshot, now: Snapshot) -> Snapshot:
        return now if len(now.steps) <= FIRST_STEPS else past


class Generic(NamedTuple):
    """A mutant that fits every machine."""

    make: Callable[[str], Adapter]
    sentence: str

    @property
    def made(self) -> Callable[[], Adapter]:
        return partial(self.make, "")


GENERIC: Final[Mapping[str, Generic]] = {
    mutant_name(each): Generic(each, (each.__doc__ or "").strip())
    for each in (
        RefusesEverything, AcceptsEverything, AnswersTheSameAlways, ForgetsItsLastWrite, StopsAfterSomeSteps,
        IsOneStepBehind, RepeatsItsLastAnswer,
    )
}  # fmt: skip
"""By id."""


def generic(name: str) -> Adapter | None:
    """The mutant ``ID`` or ``ID/VERB``; None if there is none. Errors: LookupError for an unknown operation."""
    id, _, verb = name.partition("/")
    if id not in GENERIC:
        return None
    known = {*OPERATIONS, *LEADING, *(each for one in registry.operations().values() for each in one.verbs)}
    if verb and verb not in known:
        raise LookupError(f"unknown operation {verb!r}")
    made = GENERIC[id].make(verb)
    made.name = f"miniature/{name}"
    return made


STATELESS: Final = "it has no state: each operation has all that its answer depends on"
NEVER_TWICE: Final = "no default case has an operation twice"
REFUSES_NOTHING: Final = "the reference refuses no operation of the default cases"
EQUIVALENT: Final[Mapping[tuple[str, str], str]] = {
    **{
        (name, family): STATELESS
        for name in ("forgets-its-last-write", "stops-after-some-steps", "is-one-step-behind")
        for family in ("wire", "nodes", "log-files", "assign", "stored-records")
    },
    ("repeats-its-last-answer", "nodes"): NEVER_TWICE,
    ("repeats-its-last-answer", "log-files"): NEVER_TWICE,
    **{
        ("accepts-everything", family): REFUSES_NOTHING
        for family in (
            "assign",
            "feature-app:kip-584",
            "member:kip-429",
            "streams",
            "streams:kip-268",
            "streams-mixed",
            "streams-mixed:kip-268",
            "bounce",
            "bounce:kip-429",
        )
    },
}
"""Mutant and family -> why the mutant answers as the reference in every default case. A test compares the answers."""
