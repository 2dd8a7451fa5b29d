"""What the clients of a conversation send to a coordinator, whatever carries it there: a socket or a jar."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request of a client."""

    client: str
    request: Any
    """Of a class that names a message: see ``wire_form``."""
    answer: type
    """The class of the answer."""
    nameless: bool = False
    """It has an empty group id."""
