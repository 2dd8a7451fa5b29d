"""The verbs that protocols register: whether an operation names its sender, and what an answer to it has to hold.

The generic side of the testee protocol looks verbs up here. A protocol registers its verbs in the module that declares
them, which every process imports that makes steps of them.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

CheckAnswer: TypeAlias = Callable[[Any], str]
"""One entry of an answer's list -> empty where it is well formed; else the path inside, a colon and the reason."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What an accepted operation brings: a list under ``key``, each of whose entries passes ``check``."""

    key: str
    check: CheckAnswer


_answers: dict[str, Answers] = {}
_sent_by_clients: set[str] = set()


def register(verbs: Iterable[str], key: str, check: CheckAnswer, sent_by_clients: Iterable[str] = ()) -> None:
    """``sent_by_clients``: verbs whose operations name which of several clients sends them."""
    _answers.update(dict.fromkeys(verbs, Answers(key, check)))
    _sent_by_clients.update(sent_by_clients)


def answers_to(verb: str) -> Answers | None:
    """None where no protocol says what has to come back."""
    return _answers.get(verb)


def names_its_sender(verb: str) -> bool:
    return verb in _sent_by_clients
