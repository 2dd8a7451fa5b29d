"""Machines that send requests, declared once: a step may be the answer to a request, and an answer lists the requests.

One operation carries the answers of another machine (``requests.py``): its step has the name of the answer and its
fields. Every operation of such a machine has words as shorthand (``request_words.py``); what words cannot express is
the verb, with the body as JSON.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, replace
from functools import cached_property, partial
from typing import Any, Final, TypeVar

from kipcheck.conformance.core.operations.declaration import DECLARED, Operation, Operations, declared, meaning_of
from kipcheck.conformance.core.operations.field_annotations import Field, fields_of
from kipcheck.conformance.core.operations.field_kinds import Kind, one_of, values_reader, writer
from kipcheck.conformance.core.operations.observed_events import NOTHING, ObservedEvents
from kipcheck.conformance.core.operations.request_words import EventWords, WordsForm
from kipcheck.conformance.core.operations.templates import Template, first_suiting
from kipcheck.conformance.core.values.case import Role, Step

ANSWER: Final = "answer"
"""The key of the name of an answer."""
E = TypeVar("E")
A = TypeVar("A")
T = TypeVar("T", bound=type)


@dataclass(frozen=True)
class ReceivedAnswer:
    """An answer, as the machine receives it that sent the request."""

    name: str
    made: type
    unnamed: Mapping[str, Any]
    """The fields that its step has not."""
    fields: tuple[Field, ...]
    forms: tuple[EventWords, ...]

    @cached_property
    def read(self) -> Callable[[Mapping[str, Any]], Any]:
        """Omitted fields have their defaults. Errors: TypeError with the path of an invalid field."""
        usual = {**self.unnamed, **{each.name: each.default for each in self.fields if each.omissible}}
        values, made = values_reader(self.fields, outer=True), self.made
        return lambda body: made(**{**usual, **values({name: body[name] for name in body if name != ANSWER})})

    @cached_property
    def write(self) -> Callable[[Any], dict[str, Any]]:
        """The body of a step; of an answer with an error only the fields that do not have their defaults."""
        name_of_answer, write = self.name, writer(self.fields, whole=True)
        usual = {each.name: each.default for each in self.fields if each.name != "error"}

        def body(answer: Any) -> dict[str, Any]:
            plain = write(answer)
            for name in usual if answer.error else ():
                if getattr(answer, name) == usual[name]:
                    del plain[name]
            return {ANSWER: name_of_answer, **plain}

        return body


def received(
    made: type,
    *forms: WordsForm,
    defaults: Mapping[str, Any] = NOTHING,
    unnamed: Mapping[str, Any] = NOTHING,
    kinds: Mapping[str, Kind] = NOTHING,
    meanings: Mapping[str, str] = NOTHING,
) -> ReceivedAnswer:
    """An answer that a machine declares for its clients, as a client receives it.

    ``defaults``: of fields without one. ``unnamed``: fields that a step has not, with their values.
    ``kinds``, ``meanings``: of fields for which the client's are others, or the machine declares none.
    """
    found = tuple(
        replace(
            each,
            kind=kinds.get(each.name, each.kind),
            meaning=meanings.get(each.name, each.meaning),
            default=defaults.get(each.name, each.default),
            optional=each.name not in defaults,
            omissible=each.name in defaults,
        )
        for each in fields_of(made)
        if each.name not in unnamed
    )
    of_fields = {each.name: each.kind for each in found}
    absent = {each.name: each.default for each in found if each.default is not MISSING}
    words = tuple(EventWords(each, of_fields, absent) for each in forms)
    return ReceivedAnswer(declared(made).name, made, unnamed, found, words)


@dataclass(frozen=True)
class AnswerOperation(Operation):
    """The operation that carries the answers."""

    answers: Mapping[str, ReceivedAnswer]

    @cached_property
    def read(self) -> Callable[[Mapping[str, Any]], Any]:
        made, readers = self.made, {each.name: each.read for each in self.answers.values()}

        def event(body: Mapping[str, Any]) -> Any:
            name = str(body.get(ANSWER))
            if name not in readers:
                raise TypeError(f"unknown answer {name!r}: use one of {', '.join(readers)}")
            return made(readers[name](body))

        return event

    @cached_property
    def write(self) -> Callable[[Any], Step]:
        actor, verb = self.actor, self.verb
        writers = {each.made: each.write for each in self.answers.values()}
        return lambda event: Step(actor, verb, writers[type(event.answer)](event.answer))


def receives(
    verb: str, actor: str, *answers: ReceivedAnswer, examples: str, text: Callable[[Any], str] | None = None
) -> Callable[[T], T]:
    """Declares a frozen dataclass with the field ``answer`` as the operation that carries these answers.

    ``text``: prints an event for people where words cannot express it; an empty text: they can neither.
    """

    def declare(made: T) -> T:
        found = tuple(_union(answers))
        forms = tuple(form for each in answers for form in each.forms)
        required = tuple(each.name for each in found if not each.optional)
        operation = AnswerOperation(
            verb, made, actor, Template(actor, {}, {}), forms, forms, examples, None, *meaning_of(made), found,
            required, (), text, {}, {each.name: each for each in answers},
        )  # fmt: skip
        setattr(made, DECLARED, operation)
        return made

    return declare


def _union(answers: tuple[ReceivedAnswer, ...]) -> Iterator[Field]:
    names = [each.name for each in answers]
    first = answers[0].fields[0]
    listed = _listed(names, "or")
    yield replace(first, name=ANSWER, kind=replace(one_of(*names), words="text"), meaning=listed, omissible=False)
    fields = {field.name: field for each in reversed(answers) for field in each.fields}
    for name in dict.fromkeys(field.name for each in answers for field in each.fields):
        having = [each.name for each in answers if name in {field.name for field in each.fields}]
        yield replace(fields[name], meaning=fields[name].meaning or f"only for {_listed(having, 'and')}")


def _listed(names: list[str], word: str) -> str:
    return f" {word} ".join(filter(None, (", ".join(names[:-1]), names[-1])))


class Requester(Operations[E, A]):
    """The operations of a machine that sends requests, and its actions: requests, and events that its user sees."""

    def __init__(
        self,
        machine: str,
        role: Role,
        operations: tuple[type | Operation, ...],
        actions: ObservedEvents[A],
        rejections: tuple[type, ...] = (),
        sample: str = "",
    ) -> None:
        """``rejections``: actions that stand alone, and are answers (``declaration.answer``)."""
        super().__init__(machine, role, operations, sample, actions)
        self._actions = actions
        self._rejections = rejections
        self._forms: dict[type, tuple[Any, ...]] = {}
        """By the class of an event or an answer."""
        self._by_word: dict[str, list[tuple[EventWords, Callable[..., Any]]]] = {}
        for operation in self.declared:
            if isinstance(operation, AnswerOperation):
                for each in operation.answers.values():
                    self._add(each.made, each.forms, partial(_carried, operation.made, each))
            else:
                self._add(operation.made, operation.shorthand, operation.made)

    def _add(self, made: type, forms: tuple[Any, ...], event: Callable[..., Any]) -> None:
        self._forms[made] = forms
        for form in forms:
            self._by_word.setdefault(form.word, []).append((form, event))

    def answer_of(self, actions: Iterable[A]) -> dict[str, Any]:
        """All actions that a step caused, in order; or the rejection of the step."""
        done = []
        for each in actions:
            if type(each) in self._rejections:
                written: dict[str, Any] = declared(type(each)).written(each)
                return written
            done.append(self._actions.to_json(each))
        return {"status": "accepted", "actions": done}

    # Texts

    def _step_text(self, step: Step) -> str:
        return self._words(self.event_of(step)) or _in_json(step)

    def _words(self, event: Any) -> str:
        """Empty: words cannot express it."""
        value = getattr(event, ANSWER, event)
        form = first_suiting(self._forms[type(value)], value)
        if form.suits(value):
            try:
                text: str = form.printed(value)
                return text if self._parsed_event(text) == event else ""
            except ValueError:
                pass
        return ""

    def inexact(self, value: Any, form: int) -> str:
        """An event or an answer in one of its forms, without what the form cannot express."""
        text: str = self._forms[type(value)][form].printed(value)
        return text

    def sentence(self, step: Step) -> str:
        """For people: the shorthand, or what the operation declares for events that words cannot express."""
        event, text = self.event_of(step), self.by_verb[step.verb].text
        return self._words(event) or (text(event) if text is not None else "") or _in_json(step)

    def parse_shorthand(self, text: str) -> tuple[Step, ...]:
        """Errors: ValueError, naming the step."""
        return tuple(self._step(each.strip()) for each in text.split(";") if each.strip())

    def _step(self, text: str) -> Step:
        verb, _, body = text.partition(" ")
        try:
            if verb in self.by_verb or body.lstrip().startswith("{"):
                return self.step_of(self.event_of(Step("", verb, json.loads(body or "{}"))))
            found = self.step_of(self._parsed_event(text))
            self.event_of(found)
            return found
        except (LookupError, TypeError, ValueError) as wrong:
            raise ValueError(f"invalid step {text!r}: {wrong}") from None

    def _parsed_event(self, text: str) -> Any:
        word, *_ = text.split()
        reasons = []
        for form, event in self._by_word.get(word, ()):
            try:
                return event(**form.parsed(text) or {})
            except ValueError as wrong:
                reasons.append(f"{wrong}: ")
        forms = [form for each in ([word] if reasons else self._by_word) for form, _ in self._by_word[each]]
        raise ValueError(f"{(reasons or [''])[0]}use {_listed([each.usage for each in forms], 'or')}")


def _carried(carrier: Callable[[Any], Any], answer: ReceivedAnswer, /, **given: Any) -> Any:
    return carrier(answer.made(**answer.unnamed, **given))


def _in_json(step: Step) -> str:
    return f"{step.verb} {json.dumps(dict(step.body), sort_keys=True)}"
