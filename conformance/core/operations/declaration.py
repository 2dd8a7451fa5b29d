"""Operations, declared once: a frozen dataclass with annotated fields, from which everything else is derived.

Derived here: the step of a case and back, the answer of the testee protocol, shorthand, sentences, and the data for
JSON schemas, tables and samples. ``strategies/operations.py`` derives what is drawn by default.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, Generic, TypeAlias, TypeVar

from kipcheck.conformance.core.operations import verb_registry
from kipcheck.conformance.core.operations.field_annotations import Field, fields_of
from kipcheck.conformance.core.operations.field_kinds import Kind, reader, writer
from kipcheck.conformance.core.operations.observed_events import ObservedEvents
from kipcheck.conformance.core.operations.request_words import EventWords, WordsForm
from kipcheck.conformance.core.operations.templates import Place, Template, first_suiting
from kipcheck.conformance.core.values.case import Role, Step
from kipcheck.conformance.core.values.nearest import hint

Form: TypeAlias = Template | EventWords
"""Text of an event."""
Text: TypeAlias = str | WordsForm

# Operations


@dataclass(frozen=True)
class Operation:
    """What an operation declares."""

    verb: str
    made: type
    actor: str
    sender: Template
    """The participant of a sequence diagram that sends it."""
    sentence: tuple[Form, ...]
    """For people: one for each form."""
    shorthand: tuple[Form, ...]
    examples: str
    """In shorthand."""
    accepted: type | None
    """The answer of an accepted operation; None: it has no fields."""
    meaning: str
    """A clause: ``a broker goes down``."""
    details: str
    """Further sentences; may be empty."""
    fields: tuple[Field, ...]
    required: tuple[str, ...]
    """The fields that the schemas require."""
    abbreviations: tuple[Form, ...]
    """Shorthand that is parsed, and never printed."""
    text: Callable[[Any], str] | None
    """Prints an event for which there is no template."""
    given: Mapping[str, Any]
    """The parameters of the declaration."""

    @property
    def actors(self) -> tuple[str, ...]:
        return (self.actor,)

    @cached_property
    def by_name(self) -> Mapping[str, Field]:
        return {each.name: each for each in self.fields}

    @cached_property
    def plain_text(self) -> Callable[[Mapping[str, Any]], str | None] | None:
        """Prints a body with all fields, and gives None for another one, or one that is invalid.

        None: the operation has several forms, or one that leaves out fields.
        """
        form = self.shorthand[0] if len(self.shorthand) == 1 else None
        if self.text is not None or not isinstance(form, Template) or any(each.optional for each in form.sections):
            return None
        if any(each.kind.nullable for each in self.fields) or form.fields != self.by_name.keys():
            return None
        whole, by_name = form.text, self.by_name
        if not by_name:
            return lambda body: None if body else whole
        parts: list[tuple[str, str, Any, Any, Any]] = [
            (each, "", (), None, None)
            if isinstance(each, str)
            else ("", each.name, by_name[each.name].kind.exact, by_name[each.name].kind.read, each.form.print)
            for section in form.sections
            for each in section.parts
        ]

        def plain(body: Mapping[str, Any]) -> str | None:
            if len(body) != len(by_name):
                return None
            text = ""
            try:
                for literal, name, exact, read, write in parts:
                    if read is None:
                        text += literal
                    else:
                        value = body[name]
                        text += write(value if type(value) in exact else read(value))
            except (KeyError, TypeError):
                return None
            return text

        match parts:
            case [(str(before), "", _, None, _), (_, str(only), types, _, write_one)]:
                return lambda body: (
                    before + write_one(value)
                    if type(value := body.get(only)) in types and len(body) == 1
                    else plain(body)
                )
        return plain

    def short_reader(self, form: Form) -> Callable[[list[str]], Step | None]:
        """Reads the words of a form: a step, or None for words of another form. Errors of it: ValueError."""
        actor, verb = self.actor, self.verb
        parts = form.sections[0].parts if isinstance(form, Template) and len(form.sections) == 1 else ()
        if len(parts) == 1 and not self.fields:
            return lambda words: Step(actor, verb, {}) if len(words) == 1 else None
        match parts:
            case [str(word), Place(name, text)] if word.count(" ") == 1 and [*self.by_name] == [name]:
                suits, plain = re.compile(text.pattern).fullmatch, self.fields[0].kind.plain
                return lambda words: (
                    Step(actor, verb, {name: plain(text.parse(words[1]))})
                    if len(words) == 2 and suits(words[1])
                    else None
                )

        def read(words: list[str]) -> Step | None:
            given = form.parsed(" ".join(words))
            return None if given is None else self.write(self.made(**given))

        return read

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of its body."""
        properties = {each.name: {**each.kind.schema, "description": each.meaning} for each in self.fields}
        return {"properties": properties, "required": [*self.required]}

    @cached_property
    def read(self) -> Callable[[Mapping[str, Any]], Any]:
        """The fields of a step -> its event. Errors: TypeError with the path of an invalid one, or of one too many."""
        return reader(self.made, self.fields, outer=True)

    @cached_property
    def write(self) -> Callable[[Any], Step]:
        """An event -> its step."""
        actor, verb, body = self.actor, self.verb, writer(self.fields)
        return lambda event: Step(actor, verb, body(event))


@dataclass(frozen=True)
class Answer:
    """What an answer declares."""

    made: type
    status: str
    constant: Mapping[str, str]
    message: Template | None
    fields: tuple[Field, ...]

    @cached_property
    def _writers(self) -> tuple[tuple[str, Field], ...]:
        return tuple((each.key, each) for each in self.fields if each.key)

    def written(self, action: Any) -> dict[str, Any]:
        """As a result of the testee protocol."""
        result: dict[str, Any] = {"status": self.status, **self.constant}
        for key, field in self._writers:
            value = getattr(action, field.name)
            if value is None and self.status == "rejected" and key in REFUSED_WHERE:
                continue  # a refusal without a place: the protocol knows no null there
            if not field.optional or value != field.default:
                result[key] = field.kind.plain(value)
        if self.message is not None:
            result["message"] = self.message.printed(action)
        return result

    @property
    def schema(self) -> dict[str, Any]:
        return {each.key: each.kind.schema for each in self.fields if each.key}

    @property
    def needed(self) -> tuple[str, ...]:
        """The keys that a result has; it may omit those that may be null."""
        return tuple(each.key for each in self.fields if each.key and not each.kind.nullable)


REFUSED_WHERE: Final = ("offset", "at")
"""The keys of a refusal that say where the reason is."""
DECLARED: Final = "__declared__"
"""The attribute of a class of operations or answers for what it declares."""
T = TypeVar("T", bound=type)


def _texts(text: Text | tuple[Text, ...]) -> tuple[Text, ...]:
    return text if isinstance(text, tuple) else (text,)


def operation(
    verb: str,
    actor: str,
    shorthand: Text | tuple[Text, ...],
    *,
    examples: str = "",
    sender: str = "",
    sentence: str | tuple[str, ...] = "",
    accepted: type | None = None,
    required: tuple[str, ...] | None = None,
    abbreviations: Text | tuple[Text, ...] = (),
    text: Callable[[Any], str] | None = None,
) -> Callable[[T], T]:
    """Declares a frozen dataclass as an operation. Its docstring is its meaning: a sentence in one line, and details.

    ``shorthand``: templates or ``words``, one for each form that the operation has: a field that a form does not name
    is null, or has its default. ``sentence``: templates for people; none: the shorthand. ``sender``: none: the actor.
    ``examples``: in shorthand; an operation without fields is its own. ``abbreviations``: only parsed.
    ``required``: the fields that the schemas require; none: all that are not optional. ``text``: prints an event for
    which there is no template, and which is not parsed.
    """

    given = {
        "verb": verb, "actor": actor, "shorthand": shorthand, "examples": examples, "sender": sender,
        "sentence": sentence, "accepted": accepted, "required": required, "abbreviations": abbreviations, "text": text,
    }  # fmt: skip

    def declare(made: T) -> T:
        setattr(made, DECLARED, _operation(made, given, {}))
        return made

    return declare


def variant(made: type, verb: str, *, kinds: Mapping[str, Kind], **changed: Any) -> Operation:
    """The operation of another machine with the same class. ``kinds``: those of some of its fields there.

    ``changed``: other parameters of ``operation``, and ``meaning``.
    """
    return _operation(made, {**declared(made).given, "verb": verb, **changed}, kinds)


def _operation(made: type, given: Mapping[str, Any], other: Mapping[str, Kind]) -> Operation:
    found = tuple(replace(each, kind=other.get(each.name, each.kind)) for each in fields_of(made))
    for each, following in pairwise((*found, None)):
        if each is not None and each.optional and each.default is MISSING:
            raise TypeError(f"{made.__name__}.{each.name} is optional and has no default")
        if each is not None and each.optional and following is not None and not following.optional:
            raise TypeError(f"{made.__name__}.{each.name} is optional and not among the last fields")
    kinds = {each.name: each.kind for each in found}
    absent = {each.name: each.absent for each in found if each.may_be_absent}

    def forms(texts: Text | tuple[Text, ...]) -> tuple[Form, ...]:
        return tuple(
            Template(each, kinds, absent) if isinstance(each, str) else EventWords(each, kinds, absent)
            for each in _texts(texts)
        )

    meaning, details = meaning_of(made)
    return Operation(
        given["verb"],
        made,
        given["actor"],
        Template(given["sender"] or given["actor"], kinds, absent),
        forms(given["sentence"] or given["shorthand"]),
        forms(given["shorthand"]),
        given["examples"] or ("" if found else "; ".join(each.text for each in forms(given["shorthand"]))),
        given["accepted"],
        given.get("meaning", meaning),
        given.get("details", details),
        found,
        tuple(each.name for each in found if not each.optional) if given["required"] is None else given["required"],
        forms(given["abbreviations"]),
        given["text"],
        given,
    )


def documented(made: type) -> tuple[str, str]:
    """The first line of the docstring without its period, and the rest of it."""
    line, _, rest = (made.__doc__ or "").strip().partition("\n")
    return line.strip().removesuffix("."), " ".join(rest.split())


def meaning_of(made: type) -> tuple[str, str]:
    """The same, with the first line as a clause."""
    name, details = documented(made)
    return name[:1].lower() + name[1:], details


def answer(status: str = "accepted", *, message: str = "", **constant: str) -> Callable[[T], T]:
    """Declares a frozen dataclass as an answer. ``constant``: keys that are the same in every such answer.

    ``message``: a template; where it is given, no field of the answer has a key of its own.
    """

    def declare(made: T) -> T:
        found = tuple(fields_of(made))
        kinds = {each.name: each.kind for each in found}
        keys = {key.rstrip("_"): value for key, value in constant.items()}
        template = Template(message, kinds, {}) if message else None
        setattr(made, DECLARED, Answer(made, status, keys, template, () if message else found))
        return made

    return declare


def declared(made: type) -> Any:
    """What a class of operations or answers declares."""
    return getattr(made, DECLARED)


# The operations of a machine

E = TypeVar("E")
A = TypeVar("A")


class Operations(Generic[E, A]):
    """All operations of one machine, and the conversions of their events and answers."""

    def __init__(
        self,
        machine: str,
        role: Role,
        operations: tuple[type | Operation, ...],
        sample: str = "",
        observed: ObservedEvents[A] | None = None,
        alike: tuple[str, ...] = (),
    ) -> None:
        """``sample``: a harmless conversation, in shorthand, for the doctor.

        ``observed``: the actions, if an answer is the list of them. ``alike``: other machines with these operations.
        """
        self.machine = machine
        self.machines = (machine, *alike)
        self.role = role
        for name in self.machines:
            verb_registry.register_machine(name, role)
        self.declared: tuple[Operation, ...] = tuple(
            each if isinstance(each, Operation) else declared(each) for each in operations
        )
        self.observed = observed
        self.verb_of: Mapping[type, str] = {each.made: each.verb for each in self.declared}
        self.by_verb: Mapping[str, Operation] = {each.verb: each for each in self.declared}
        self._readers = {each.verb: each.read for each in self.declared}
        self._writers = {each.made: each.write for each in self.declared}
        self._plain_texts = {each.verb: each.plain_text for each in self.declared if each.plain_text is not None}
        self._sample = sample
        for each in self.declared:
            if each.accepted is not None:
                answer: Answer = declared(each.accepted)
                checks = {one.key: one.kind.read for one in answer.fields if one.key}
                verb_registry.register_fields(each.verb, checks, answer.needed)

    @property
    def verbs(self) -> tuple[str, ...]:
        return tuple(self.by_verb)

    def of(self, *made: type) -> tuple[Operation, ...]:
        """The operations with these classes."""
        return tuple(self.by_verb[self.verb_of[each]] for each in made)

    def step_of(self, event: E) -> Step:
        return self._writers[type(event)](event)

    def event_of(self, step: Step) -> E:
        """Errors: LookupError for an unknown verb; TypeError for unknown, missing or invalid fields."""
        read = self._readers.get(step.verb)
        if read is None:
            raise LookupError(f"unknown event {step.verb!r}: use one of {', '.join(self.by_verb)}")
        event: E = read(step.body)
        return event

    def answer_of(self, actions: Iterable[A]) -> dict[str, Any]:
        """The answer of the testee protocol: that of the first action; without fields if there is none.

        Of a machine with observed events: all of them, in order.
        """
        if self.observed is not None:
            return self.observed.answer_of(actions)
        for each in actions:
            found: Answer = declared(type(each))
            return found.written(each)
        return {"status": "accepted"}

    def answer_keys(self, operation: Operation) -> tuple[str, ...]:
        """Of the answer of an accepted operation."""
        if self.observed is not None:
            return ("actions",)
        return tuple(declared(operation.accepted).schema) if operation.accepted else ()

    # Texts

    def shorthand(self, steps: Iterable[Step]) -> str:
        """The steps in shorthand, separated by semicolons."""
        return "; ".join(map(self._step_text, steps))

    def _step_text(self, step: Step) -> str:
        plain = self._plain_texts.get(step.verb)
        if plain is not None:
            text = plain(step.body)
            if text is not None:
                return text
        event, found = self.event_of(step), self.by_verb[step.verb]
        if found.text is not None:
            return found.text(event)
        return first_suiting(found.shorthand, event).printed(event)

    def parse_shorthand(self, text: str) -> tuple[Step, ...]:
        """Errors: ValueError, naming the forms, and the step if there are several."""
        texts = [" ".join(each.split()) for each in text.split(";") if each.strip()]
        return tuple(self._parsed(each, f"invalid step {each!r}: " if len(texts) > 1 else "") for each in texts)

    def _parsed(self, text: str, where: str) -> Step:
        for each in self.declared:
            for template in (*each.shorthand, *each.abbreviations):
                found = template.parsed(text)
                if found is not None:
                    return each.write(each.made(**found))
        *usages, last = self.forms
        raise ValueError(f"{where}use {', '.join(usages)} or {last}")

    @property
    def forms(self) -> list[str]:
        """The forms of all steps in shorthand, for people: ``up BROKER LOW-HIGH``."""
        return [form.usage for each in self.declared for form in (*each.shorthand, *each.abbreviations)]

    def usage_of(self, text: str) -> str:
        """What to write in place of a step that cannot be read: the forms that begin like it, else the words with which
        a step begins."""
        word, forms = text.split()[0], self.forms
        alike = [each for each in forms if each.split()[0].partition("[")[0] == word]
        words = dict.fromkeys(each.split()[0].partition("[")[0] for each in forms)
        return (
            f"use {' or '.join(alike)}" if alike else f"a step begins with one of {', '.join(words)}{hint(word, words)}"
        )

    def sentence(self, step: Step) -> str:
        """The step as text for people, without its sender."""
        event, found = self.event_of(step), self.by_verb[step.verb]
        if found.text is not None and not found.sentence:
            return found.text(event)
        return first_suiting(found.sentence, event).printed(event)

    def sender(self, step: Step) -> str:
        """The participant that takes the step."""
        return self.by_verb[step.verb].sender.printed(self.event_of(step))

    def samples(self) -> Iterator[dict[str, Any]]:
        """Harmless operations of the testee protocol."""
        return self.as_json(self._sample)

    def as_json(self, shorthand: str) -> Iterator[dict[str, Any]]:
        """Events as operations of the testee protocol. Errors: ValueError."""
        return ({"op": each.verb, **each.body} for each in self.parse_shorthand(shorthand))
