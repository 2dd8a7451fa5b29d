"""Requests of clients and answers to them, declared once.

A request is a frozen dataclass, which another one carries to the machine: ``By(actor, request, behind)``. A step has
the fields of both, except those that are hidden. An answer is an entry of a list, since it may come at a later step.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, make_dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, TypeVar

from kipcheck.conformance.core.operations.declaration import DECLARED, Operation, Operations, declared, documented
from kipcheck.conformance.core.operations.field_annotations import Field, fields_of
from kipcheck.conformance.core.operations.field_kinds import TextForm, reader, values_reader, writer
from kipcheck.conformance.core.operations.request_words import Default, Fields, RequestWords, printer
from kipcheck.conformance.core.operations.templates import Template
from kipcheck.conformance.core.values.case import Role, Step

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
T = TypeVar("T", bound=type)
Prints = Mapping[str, Callable[[Any], str]]
"""Field -> its value as text for people."""


@dataclass(frozen=True)
class RequestOperation:
    """What a request declares; the same for readers of declarations as an ``Operation``."""

    verb: str
    made: type
    carrier: type
    actors: tuple[str, ...]
    own: tuple[Field, ...]
    frame: tuple[Field, ...]
    """Fields of the carrier."""
    required: tuple[str, ...]
    words: tuple[RequestWords, ...]
    sentence: Template
    examples: str
    meaning: str
    details: str
    lead: int
    prepared: Callable[[list[str]], list[str]] | None
    """Words in shorthand -> those that the form reads."""
    shorthand: tuple[Template, ...] = ()
    abbreviations: tuple[Template, ...] = ()
    accepted: None = None

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """As tables show them."""
        frame = tuple(each for each in self.frame if not each.optional)
        last = tuple(each for each in self.frame if each.optional)
        return (*self.own[: self.lead], *frame, *self.own[self.lead :], *last)

    schema = Operation.schema

    @cached_property
    def _unnamed(self) -> Fields:
        """The hidden fields of the request, with their values."""
        hidden = (each for each in fields_of(self.made) if not each.key)
        return {each.name: -1 if each.default is MISSING else each.default for each in hidden}

    @cached_property
    def read(self) -> Callable[[str, Mapping[str, Any]], Any]:
        """The actor and the fields of a step -> its event. Errors: TypeError, as those of an operation."""
        values = values_reader((*self.own, *self.frame), outer=True)
        frame = tuple(each.name for each in self.frame)
        unnamed, made, carrier = self._unnamed, self.made, self.carrier

        def event(actor: str, body: Mapping[str, Any]) -> Any:
            given = values(body)
            framed = {name: given.pop(name) for name in frame if name in given}
            return carrier(actor, made(**unnamed, **given), **framed)

        return event

    @cached_property
    def write(self) -> Callable[[Any], Step]:
        verb, own, frame = self.verb, writer(self.own), writer(self.frame)
        return lambda event: Step(event.actor, verb, {**own(event.request), **frame(event)})

    @cached_property
    def printed(self) -> Callable[[str, Mapping[str, Any], int | None], str]:
        """The client, the body of a step and the last version of the request -> shorthand."""
        return printer(self.words)

    @cached_property
    def usual(self) -> frozenset[str]:
        """The fields that each step has."""
        return frozenset(each.name for each in self.fields if not each.optional)

    @cached_property
    def known(self) -> frozenset[str]:
        """The fields that a step may have."""
        return frozenset(each.name for each in self.fields)


def request(
    verb: str,
    carrier: type,
    actors: tuple[str, ...],
    words: str | tuple[str, ...],
    *,
    examples: str,
    sentence: str,
    carried: tuple[str, ...],
    lead: int = 99,
    required: tuple[str, ...] | None = None,
    defaults: Mapping[str, Default] = NOTHING,
    forms: Mapping[str, TextForm] = NOTHING,
    prints: Prints = NOTHING,
    prepared: Callable[[list[str]], list[str]] | None = None,
) -> Callable[[T], T]:
    """Declares a frozen dataclass as a request. ``carried``: the fields of the carrier that its steps have;
    tables show those that are not optional behind ``lead`` other fields.

    ``words``: see ``request_words``. ``sentence``: a template over all fields of the class.
    """

    def declare(made: T) -> T:
        every = tuple(fields_of(made))
        own = tuple(each for each in every if each.key)
        frame = _carried(carrier, carried)
        kinds = {each.name: each.kind for each in (*own, *frame)}
        texts = (words,) if isinstance(words, str) else words
        usual = {each.name: each.absent for each in (*own, *frame)}
        omitted = [each.name for each in (*own, *frame) if each.optional]
        if len({each.partition(" ")[2] for each in texts}) > 1:
            raise ValueError(f"forms of {verb} differ in more than their words")
        found = RequestOperation(
            verb, made, carrier, actors, own, frame,
            tuple(each.name for each in (*own, *frame) if not each.optional) if required is None else required,
            tuple(RequestWords(each, kinds, {**usual, **defaults}, forms, omitted) for each in texts),
            _template(sentence, every, prints), examples, *documented(made), lead, prepared,
        )  # fmt: skip
        setattr(made, DECLARED, found)
        return made

    return declare


def _carried(carrier: Any, names: tuple[str, ...]) -> tuple[Field, ...]:
    """The fields of the carrier with these names; the type of its request is not known yet."""
    defaults = {each.name: each.default for each in fields(carrier)}
    return tuple(
        fields_of(make_dataclass("Frame", [(name, carrier.__annotations__[name], defaults[name]) for name in names]))
    )


def _template(text: str, found: tuple[Field, ...], prints: Prints) -> Template:
    kinds = {each.name: each.kind.printed_by(prints[each.name]) if each.name in prints else each.kind for each in found}
    return Template(text, kinds, {each.name: each.absent for each in found if each.may_be_absent})


@dataclass(frozen=True)
class RequestAnswer:
    name: str
    made: type
    fields: tuple[Field, ...]
    describe: Callable[[Any], str]
    refused: Template

    @cached_property
    def write(self) -> Callable[[Any], dict[str, Any]]:
        """An entry of an answer's list: what it answers, its name and its other fields."""
        to, name, write = self.fields[0].name, self.name, writer(self.fields[1:], whole=True)
        return lambda reply: {to: getattr(reply, to), "answer": name, **write(reply)}

    @cached_property
    def read(self) -> Callable[[Mapping[str, Any]], Any]:
        return reader(self.made, self.fields, outer=True, lenient=True)


def request_answer(
    name: str,
    sentence: str | Callable[[Any], str] = "done",
    prints: Prints = NOTHING,
    *,
    refused: str = "{error}",
) -> Callable[[T], T]:
    """Declares a frozen dataclass as an answer. ``refused``: the sentence of one with an error.

    ``sentence``: a template, or a function for an answer that no template describes.
    """

    def declare(made: T) -> T:
        found = tuple(fields_of(made))
        describe = _template(sentence, found, prints).printed if isinstance(sentence, str) else sentence
        setattr(made, DECLARED, RequestAnswer(name, made, found, describe, _template(refused, found, prints)))
        return made

    return declare


class Requests(Operations[Any, Any]):
    """The operations of a machine that answers clients, which are requests and others, and its answers."""

    def __init__(
        self,
        machine: str,
        role: Role,
        requests: tuple[type, ...],
        others: tuple[type, ...],
        answers: tuple[type, ...],
        sample: str = "",
        short: Mapping[str, str] = NOTHING,
    ) -> None:
        """``short``: words in shorthand for several steps."""
        super().__init__(machine, role, others, sample)
        self.requests: Mapping[str, RequestOperation] = {each.verb: each for each in map(declared, requests)}
        self._of_class = {each.made: each for each in self.requests.values()}
        self._others = self.declared
        every: tuple[Any, ...] = (*self.requests.values(), *self._others)
        self.declared = every
        self.by_verb = {each.verb: each for each in self.declared}
        self.answers: Mapping[str, RequestAnswer] = {each.name: each for each in map(declared, answers)}
        self._by_word = {form.word: (each, form) for each in self.requests.values() for form in each.words}
        self._others_by_word: dict[str, list[Callable[[list[str]], Step | None]]] = {}
        for each in self._others:
            for form in each.shorthand:
                self._others_by_word.setdefault(_word(form.text), []).append(each.short_reader(form))
        self._printers = {each.verb: (each.usual, each.known, each.printed) for each in self.requests.values()}
        self._short = short
        self._carrier = next(iter(self.requests.values())).carrier

    def step_of(self, event: Any) -> Step:
        if type(event) is not self._carrier:
            return super().step_of(event)
        carried: Any = event
        return self._of_class[type(carried.request)].write(carried)

    def event_of(self, step: Step) -> Any:
        found = self.requests.get(step.verb)
        return super().event_of(step) if found is None else found.read(step.actor, step.body)

    def lenient_event_of(self, step: Step) -> Any:
        """Like ``event_of``, but ignores unknown fields, as a testee must: a later protocol version may add fields."""
        known = {each.name for each in self.by_verb[step.verb].fields} if step.verb in self.by_verb else {*step.body}
        return self.event_of(
            Step(step.actor, step.verb, {key: each for key, each in step.body.items() if key in known})
        )

    # Answers

    def answer_keys(self, operation: Any) -> tuple[str, ...]:
        return ("answers",)

    def answer_of(self, actions: Iterable[Any]) -> dict[str, Any]:
        """All answers that a step caused, in order."""
        return {"status": "accepted", "answers": [*map(self.answer_to_json, actions)]}

    def answer_to_json(self, reply: Any) -> dict[str, Any]:
        entry: dict[str, Any] = declared(type(reply)).write(reply)
        return entry

    def answer_from_json(self, found: Any) -> Any:
        """Omitted fields are empty, unknown ones ignored. Errors: TypeError for an invalid answer."""
        if not isinstance(found, Mapping) or found.get("answer") not in self.answers:
            raise TypeError(f"unknown answer {found!r}: use one of {', '.join(self.answers)}")
        return self.answers[found["answer"]].read(found)

    # Texts

    def shorthand(self, steps: Iterable[Step], newest: Mapping[str, int] = NOTHING) -> str:
        """``newest``: versions by verb; a default version is never above them."""
        text = "; ".join([self._text(each, newest) for each in steps])
        for word, others in self._short.items():
            text = text.replace(others, word)
        return text

    def _text(self, step: Step, newest: Mapping[str, int]) -> str:
        verb, body = step.verb, step.body
        if verb not in self._printers:
            plain = self._plain_texts.get(verb)
            text = None if plain is None else plain(body)
            return super()._step_text(step) if text is None else text
        usual, known, printed = self._printers[verb]
        if body.keys() != usual and not usual <= body.keys() <= known:
            body = self.step_of(self.event_of(step)).body
        return printed(step.actor, body, newest.get(verb) if newest else None)

    def parse_shorthand(self, text: str, newest: Mapping[str, int] = NOTHING) -> tuple[Step, ...]:
        """Errors: ValueError."""
        if self._short:
            text = ";".join([self._short.get(each.strip(), each) for each in text.split(";")])
        return tuple([self._words_parsed(words, newest) for each in text.split(";") if (words := each.split())])

    def _words_parsed(self, words: list[str], newest: Mapping[str, int]) -> Step:
        if words[0] in self._by_word:
            found, form = self._by_word[words[0]]
            try:
                rest = words[1:] if found.prepared is None else found.prepared(words[1:])
                actor, fields = form.parsed(rest, newest.get(found.verb))
            except ValueError as wrong:
                raise ValueError(f"{' '.join(words)!r}: {wrong}") from None
            return Step(actor, found.verb, fields)
        for read in self._others_by_word.get(words[0], ()):
            if (step := read(words)) is not None:
                return step
        others = (_word(each.shorthand[0].text) for each in self._others)
        known = dict.fromkeys(
            (*(form.word for each in self.requests.values() for form in each.words), *others, *self._short)
        )
        raise ValueError(f"invalid event {' '.join(words)!r}: it must begin with one of {', '.join(known)}")

    def samples(self) -> Iterator[dict[str, Any]]:
        return ({"op": each.verb, "actor": each.actor, **each.body} for each in self.parse_shorthand(self._sample))

    # Sentences

    def describe_request(self, request: Any) -> str:
        found: RequestOperation = declared(type(request))
        return found.sentence.printed(request)

    def describe_answer(self, reply: Any) -> str:
        found: RequestAnswer = declared(type(reply))
        return found.refused.printed(reply) if reply.error else found.describe(reply)


def _word(template: str) -> str:
    """The one with which it begins: sections that may be left out begin behind it."""
    return template.partition("[")[0].split()[0]
