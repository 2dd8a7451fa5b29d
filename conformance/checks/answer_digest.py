"""What a target made of a case, in a few letters: enough to see where two targets differ."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

from kipcheck.conformance.core.history import Died, History, Observation, Refused, Replied, Unsupported

REFUSED = "refused"


def payload(answer: Replied) -> Any:
    """All of it."""
    return dict(answer.payload)


def gist(history: History, meant: Callable[[Replied], Any] = payload) -> str:
    """Of all answers of a case: equal where they are, and for what is refused whatever the words were.

    ``meant`` gives, as plain data, what of an answer is compared.
    """
    answers = [_gist(op.observation, meant) for op in history.ops]
    return REFUSED if set(answers) == {REFUSED} else ",".join(answers)


def _gist(observation: Observation, meant: Callable[[Replied], Any]) -> str:
    match observation:
        case Replied():
            text = json.dumps(meant(observation), sort_keys=True)
            return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
        case Refused():
            return REFUSED
        case Died() | Unsupported():
            return type(observation).__name__.lower()
    return ""
