"""How messages of the testee protocol lie in a stream of bytes: one a line, or each behind its length."""

import json
import math
import re
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, final

MOST: Final = 16 << 20
"""Bytes of one message: longer ones are refused before they are gathered."""
LENGTH: Final = 4
"""Bytes of the length that leads a frame: u32, big-endian, as Kafka's own."""
SHOWN: Final = 60


class Framing(Enum):
    LINES = "lines"
    FRAMES = "frames"


@final
class Unreadable(Exception):
    """What came is no message: says what it is."""


def packed(message: Mapping[str, Any], framing: Framing) -> bytes:
    """Errors: ValueError for a message past ``MOST``."""
    text = json.dumps(message, separators=(",", ":")).encode()
    if len(text) > MOST:
        raise ValueError(f"a message of {len(text)} bytes, where {MOST} are the most")
    return text + b"\n" if framing is Framing.LINES else len(text).to_bytes(LENGTH, "big") + text


class Gathered:
    """Bytes as they come, and the messages in them."""

    def __init__(self) -> None:
        self.framing = Framing.LINES
        self._held = bytearray()
        self._seen = 0
        """So many of the bytes that are held hold no end of a line."""

    def feed(self, data: bytes) -> None:
        self._held += data

    def take(self) -> dict[str, Any] | None:
        """The next message, None until all of it has come. Errors: ``Unreadable``, as soon as that is certain."""
        text = self._line() if self.framing is Framing.LINES else self._frame()
        return None if text is None else understood(text)

    @property
    def waiting(self) -> bytes:
        """What has come and was not taken."""
        return bytes(self._held[:SHOWN])

    def _line(self) -> bytes | None:
        end = self._held.find(b"\n", self._seen)
        if end > MOST or (end < 0 and len(self._held) > MOST):
            raise Unreadable(f"a line of more than {MOST >> 20} MiB")
        if end < 0:
            self._seen = len(self._held)
            return None
        return self._cut(end, 1)

    def _frame(self) -> bytes | None:
        if len(self._held) < LENGTH:
            return None
        length = int.from_bytes(self._held[:LENGTH], "big")
        if length > MOST:
            meant = f" (or is it a line, {bytes(self._held[:SHOWN])!r}?)" if self._held[:1] == b"{" else ""
            raise Unreadable(f"a frame of {length} bytes, where {MOST} are the most{meant}")
        if len(self._held) < LENGTH + length:
            return None
        del self._held[:LENGTH]
        return self._cut(length, 0)

    def _cut(self, end: int, more: int) -> bytes:
        text = bytes(self._held[:end])
        del self._held[: end + more]
        self._seen = 0
        return text


def understood(text: bytes) -> dict[str, Any]:
    """One message. Errors: ``Unreadable``."""
    try:
        found = json.loads(text.decode("utf-8"), parse_constant=_no_number, parse_float=_finite)
    except UnicodeDecodeError as wrong:
        raise Unreadable(f"not UTF-8 at byte {wrong.start}: {text[:SHOWN]!r}") from None
    except (ValueError, RecursionError) as wrong:
        why = "nothing" if not text.strip() else str(wrong).partition(" (char")[0]
        raise Unreadable(f"not JSON: {text[:SHOWN]!r} ({why})") from None
    if not isinstance(found, dict):
        raise Unreadable(f"no object: {text[:SHOWN]!r}")
    return _whole(found) if HALF.search(text) else found


HALF: Final = re.compile(rb"\\u[dD][89a-fA-F]")
"""How half of a pair of surrogates is written, or the whole pair."""


def _whole(found: Any) -> Any:
    """With a sign in the place of half characters, which nobody could write down anywhere."""
    match found:
        case str():
            return found.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [_whole(each) for each in found]
        case dict():
            return {_whole(key): _whole(each) for key, each in found.items()}
    return found


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON's")


def _finite(text: str) -> float:
    if math.isinf(found := float(text)):
        raise ValueError(f"{text[:SHOWN]} is past all numbers")
    return found
