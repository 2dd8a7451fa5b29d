"""Decodes and encodes layouts with construct, independently of the codec, so that the two check each other.

Only the declaration is shared with the codec: code shared by two decoders is not checked by either. This one is slower,
reports exactly where bytes go wrong (the codec calls it for that), and maps the bytes (for ``explain`` and damage).

Strict decoding accepts what Kafka writes. Lenient decoding accepts what the readers of Kafka's generated classes
accept: any non-zero byte is true, any negative length is null, invalid UTF-8 becomes U+FFFD, varints may be longer than
needed and lose the bits above 32, tagged fields may come in any order and more than once, the size of a known one is
ignored, and so are bytes after the end.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from kipcheck.conformance.wire.byte_map import ByteMap, Role
from kipcheck.conformance.wire.constructs.scalars import Piece, put_number, take_number
from kipcheck.conformance.wire.constructs.structs import Fields
from kipcheck.conformance.wire.constructs.tape import Tape, counted, shown
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.quirks import as_read, with_all_fields
from kipcheck.conformance.wire.schema import Layout, Limits

__all__ = ["build", "byte_map", "construct_for", "read", "read_first", "trace"]

CONSUMER_PROTOCOL = ("ConsumerProtocolSubscription", "ConsumerProtocolAssignment")


def read(layout: Layout, data: bytes, lenient: bool = False) -> dict[str, Any]:
    """The value of ``data``, as the codec returns it. Errors: ``Refused``, with path and offset."""
    readable = as_read(layout) if lenient else layout
    value: dict[str, Any] = construct_for(readable, lenient).parse(data)
    return value if readable is layout else with_all_fields(layout, value)


def read_first(layout: Layout, data: bytes, lenient: bool = False) -> tuple[dict[str, Any], int]:
    """The value at the start of ``data``, and the number of its bytes. Errors: ``Refused``, with path and offset."""
    whole = _whole(layout, layout.limits, layout.newest, lenient)
    tape = Tape(layout, data, lenient)
    return whole.take(tape), tape.tell()


def trace(layout: Layout, data: bytes, lenient: bool = False) -> ByteMap:
    """Like ``read``, but with the map of everything that was read, up to the damage if there is any."""
    found = ByteMap(layout, data)
    try:
        found.value = construct_for(layout, lenient).parse(data, found=found)
    except Refused as refused:
        found.damage = refused
    return found


def byte_map(layout: Layout, value: Mapping[str, Any]) -> ByteMap:
    """The bytes of ``value`` as the codec writes them, mapped. Errors: ``Refused``."""
    found = trace(layout, layout.encode(value))
    if found.damage is not None:
        raise found.damage
    return found


def build(layout: Layout, value: Mapping[str, Any]) -> bytes:
    """The bytes of ``value``. Errors: ``Refused``, with path."""
    data: bytes = construct_for(layout).build(value)
    return data


def construct_for(layout: Layout, lenient: bool = False) -> Piece:
    """The construct declaration of ``layout``, with ``parse`` and ``build`` as the library has them."""
    return _whole(layout, layout.limits, layout.newest, lenient)


@lru_cache(maxsize=1024)
def _whole(layout: Layout, limits: Limits | None, newest: bool, lenient: bool) -> "Whole":
    # Limits and ``newest`` are not compared by a layout's equality, but change what is accepted.
    return Whole(layout, lenient)


class Whole(Piece):
    """A whole message."""

    def __init__(self, layout: Layout, lenient: bool):
        super().__init__()
        self.layout = layout
        self.lenient = lenient
        self.fields = Fields(layout)

    def _parse(self, stream: Any, context: Any, path: str) -> dict[str, Any]:
        tape = Tape(self.layout, stream.read(), self.lenient, context.get("found"))
        value = self.take(tape)
        if tape.left and not tape.lenient:
            raise tape.refused("trailing", f"{counted(tape.left, 'byte')} after the end of the message")
        return value

    def take(self, tape: Tape) -> dict[str, Any]:
        """The value at the current position; ignores bytes after it. Errors: ``Refused``."""
        return {**self._take_version(tape), **self.fields.take(tape)}

    def _take_version(self, tape: Tape) -> dict[str, Any]:
        prefix = self.layout.prefix
        if prefix is None:
            return {}
        tape.steps += [prefix.name] if prefix.name else []
        found = take_number(prefix.type, "version", tape)
        if found != self.layout.version and not (tape.lenient and self._newer(found)):
            raise tape.refused("version", f"version {found} leads, {self.layout.version} was asked for", 0)
        tape.record(0, Role.VERSION, prefix.type, found)
        tape.steps.clear()
        return {prefix.name: found} if prefix.name else {}

    def _newer(self, found: int) -> bool:
        """A consumer decodes data of other members with the newest layout it knows, whatever their version."""
        return self.layout.newest and self.layout.message in CONSUMER_PROTOCOL and found > self.layout.version

    def _build(self, value: Any, stream: Any, context: Any, path: str) -> Any:
        tape = Tape(self.layout, writing=True)
        prefix = self.layout.prefix
        if prefix is not None:
            put_number(prefix.type, self.layout.version, tape)
        if prefix is not None and prefix.name and isinstance(value, Mapping) and prefix.name in value:
            given = value[prefix.name]
            if given != self.layout.version or isinstance(given, bool):
                tape.steps.append(prefix.name)
                raise tape.refused("version", f"version {shown(given)} given, {self.layout.version} was asked for")
            value = {key: each for key, each in value.items() if key != prefix.name}
        self.fields.put(value, tape)
        stream.write(tape.getvalue())
        return value
