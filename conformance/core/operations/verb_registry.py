"""The verbs and machines that protocols register: senders and answers of operations, and the roles of machines.

The generic side of the testee protocol looks them up here. A protocol registers them in the module that declares
them, which every process imports that makes steps of them.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from kipcheck.conformance.core.values.case import Role

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
_roles: dict[str, Role] = {}


def register(verbs: Iterable[str], key: str, check: CheckAnswer, sent_by_clients: Iterable[str] = ()) -> None:
    """Registers ``verbs``. ``sent_by_clients``: those whose operations name the client that sends them."""
    _answers.update(dict.fromkeys(verbs, Answers(key, check)))
    _sent_by_clients.update(sent_by_clients)


def register_fields(verb: str, checks: Mapping[str, Callable[[Any], Any]], needed: tuple[str, ...]) -> None:
    """Registers a verb whose accepted result has these fields. ``needed``: those that it cannot omit."""
    _fields[verb] = AnswerFields(checks, needed)


def register_machine(machine: str, role: Role) -> None:
    """Registers a machine, which may be repeated. Errors: ValueError if it has another role."""
    if _roles.setdefault(machine, role) is not role:
        raise ValueError(f"machine {machine!r} has the roles {_roles[machine].value} and {role.value}")


def role_of(machine: str) -> Role | None:
    """None for a machine that no protocol has registered."""
    return _roles.get(machine)


def roles_with_machines() -> frozenset[Role]:
    return frozenset(_roles.values())


def answers_to(verb: str) -> Answers | None:
    """The check of an answer; None for a verb that no protocol has registered."""
    return _answers.get(verb)


def fields_of_answer(verb: str) -> AnswerFields | None:
    """The fields of an answer; None for a verb that no protocol has registered with fields."""
    return _fields.get(verb)


def names_its_sender(verb: str) -> bool:
    return verb in _sent_by_clients
