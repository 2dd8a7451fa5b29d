"""The verbs that protocols register: whether an operation names its sender, and how its answer is checked.

The generic side of the testee protocol looks verbs up here. A protocol registers its verbs in the module that declares
them, which every process imports that makes steps of them.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

CheckAnswer: TypeAlias = Callable[[Any], str]
"""An entry of an answer's list -> empty if it is well formed; else its path, a colon and the reason."""


@dataclass(frozen=True, slots=True)
class Answers:
    """The result of an accepted operation: a list under ``key``, each of whose entries passes ``check``."""

    key: str
    check: CheckAnswer


@dataclass(frozen=True, slots=True)
class AnswerFields:
    """The result of an accepted operation: fields, each with a function that raises TypeError for an invalid value."""

    checks: Mapping[str, Callable[[Any], Any]]
    needed: tuple[str, ...]


_answers: dict[str, Answers] = {}
_fields: dict[str, AnswerFields] = {}
_sent_by_clients: set[str] = set()


def register(verbs: Iterable[str], key: str, check: CheckAnswer, sent_by_clients: Iterable[str] = ()) -> None:
    """Registers ``verbs``. ``sent_by_clients``: those whose operations name the client that sends them."""
    _answers.update(dict.fromkeys(verbs, Answers(key, check)))
    _sent_by_clients.update(sent_by_clients)


def register_fields(verb: str, checks: Mapping[str, Callable[[Any], Any]], needed: tuple[str, ...]) -> None:
    """Registers a verb whose accepted result has these fields. ``needed``: those that it cannot omit."""
    _fields[verb] = AnswerFields(checks, needed)


def answers_to(verb: str) -> Answers | None:
    """The check of an answer; None for a verb that no protocol has registered."""
    return _answers.get(verb)


def fields_of_answer(verb: str) -> AnswerFields | None:
    """The fields of an answer; None for a verb that no protocol has registered with fields."""
    return _fields.get(verb)


def names_its_sender(verb: str) -> bool:
    return verb in _sent_by_clients
