"""What a target made of a case, in a few letters: enough to see where two targets differ."""

import hashlib
import json
from contextlib import suppress
from typing import Any

from kipcheck.conformance.apis.assignment import shares
from kipcheck.conformance.core.history import Died, History, Observation, Refused, Replied, Unsupported

REFUSED = "refused"


def gist(history: History) -> str:
    """Of all answers of a case: equal where they are, and for what is refused whatever the words were."""
    answers = [_gist(op.observation) for op in history.ops]
    return REFUSED if set(answers) == {REFUSED} else ",".join(answers)


def _gist(observation: Observation) -> str:
    match observation:
        case Replied(payload):
            told = dict(payload)
            with suppress(ValueError):  # what is no assignment is compared as it is
                told = _given(observation) if "assignment" in told else told
            text = json.dumps(told, sort_keys=True)
            return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
        case Refused():
            return REFUSED
        case Died() | Unsupported():
            return type(observation).__name__.lower()
    return ""


def _given(observation: Replied) -> dict[str, Any]:
    """Who gets what, in whatever order it was told; the user data of an assignment is nobody's concern but its own."""
    return {"assignment": sorted((member, sorted(partitions)) for member, partitions in shares(observation))}
