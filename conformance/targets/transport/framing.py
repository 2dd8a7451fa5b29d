"""Splits a byte stream into messages of the testee protocol, and joins them: lines, or frames with a length."""

import json
import math
import re
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, final

MOST: Final = 16 << 20
"""Bytes of one message: a longer one is refused before it is read."""
LENGTH: Final = 4
"""Bytes of the length before a frame: u32, big-endian, as in Kafka."""
SHOWN: Final = 60


class Framing(Enum):
    LINES = "lines"
    FRAMES = "frames"


@final
class Unreadable(Exception):
    """The bytes are not a message; the text shows them."""


def pack_message(message: Mapping[str, Any], framing: Framing) -> bytes:
    """Errors: ValueError for a message past ``MOST``."""
    text = json.dumps(message, separators=(",", ":")).encode()
    if len(text) > MOST:
        raise ValueError(f"a message of {len(text)} bytes: at most {MOST} are allowed")
    return text + b"\n" if framing is Framing.LINES else len(text).to_bytes(LENGTH, "big") + text


class MessageBuffer:
    """Collects received bytes and returns the messages in them."""

    def __init__(self) -> None:
        self.framing = Framing.LINES
        self._bytes = bytearray()
        self._scanned = 0
        """This many of the collected bytes contain no end of a line."""

    def feed(self, data: bytes) -> None:
        self._bytes += data

    def take(self) -> dict[str, Any] | None:
        """The next message, or None while it is incomplete. Errors: ``Unreadable``, as soon as that is certain."""
        text = self._line() if self.framing is Framing.LINES else self._frame()
        return None if text is None else parse_message(text)

    @property
    def waiting(self) -> bytes:
        """The first bytes that were received and not taken."""
        return bytes(self._bytes[:SHOWN])

    def _line(self) -> bytes | None:
        end = self._bytes.find(b"\n", self._scanned)
        if end > MOST or (end < 0 and len(self._bytes) > MOST):
            raise Unreadable(f"a line of more than {MOST >> 20} MiB")
        if end < 0:
            self._scanned = len(self._bytes)
            return None
        return self._cut(end, 1)

    def _frame(self) -> bytes | None:
        if len(self._bytes) < LENGTH:
            return None
        length = int.from_bytes(self._bytes[:LENGTH], "big")
        if length > MOST:
            hint = f" (it may be a line: {bytes(self._bytes[:SHOWN])!r})" if self._bytes[:1] == b"{" else ""
            raise Unreadable(f"a frame of {length} bytes: at most {MOST} are allowed{hint}")
        if len(self._bytes) < LENGTH + length:
            return None
        del self._bytes[:LENGTH]
        return self._cut(length, 0)

    def _cut(self, end: int, more: int) -> bytes:
        text = bytes(self._bytes[:end])
        del self._bytes[: end + more]
        self._scanned = 0
        return text


def parse_message(text: bytes) -> dict[str, Any]:
    """Parses one message. Errors: ``Unreadable``."""
    try:
        found = json.loads(text.decode("utf-8"), parse_constant=_refuse_constant, parse_float=_finite)
    except UnicodeDecodeError as wrong:
        raise Unreadable(f"not UTF-8 at byte {wrong.start}: {text[:SHOWN]!r}") from None
    except (ValueError, RecursionError) as wrong:
        why = "empty" if not text.strip() else str(wrong).partition(" (char")[0]
        raise Unreadable(f"not JSON: {text[:SHOWN]!r} ({why})") from None
    if not isinstance(found, dict):
        raise Unreadable(f"not a JSON object: {text[:SHOWN]!r}")
    return _without_lone_surrogates(found) if HALF.search(text) else found


HALF: Final = re.compile(rb"\\u[dD][89a-fA-F]")
"""Matches an escaped surrogate, alone or in a pair."""


def _without_lone_surrogates(found: Any) -> Any:
    """Replaces lone surrogates, which cannot be encoded, by U+FFFD."""
    match found:
        case str():
            return found.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [_without_lone_surrogates(each) for each in found]
        case dict():
            return {_without_lone_surrogates(key): _without_lone_surrogates(each) for key, each in found.items()}
    return found


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    if math.isinf(found := float(text)):
        raise ValueError(f"{text[:SHOWN]} is too large for a number")
    return found
