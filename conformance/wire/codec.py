"""A layout, compiled: what is worth knowing about a version is settled before the first value is seen.

``encode``, ``decode``, ``to_json`` and ``from_json`` are Python functions that are written and compiled for one layout
when they are first asked for; ``source`` shows them. They take the quick way and fail without a word; where and why is
found out by reading a second time: values with ``complete``, bytes with the layout's other reading, ``constructs``.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from kipcheck.conformance.wire.complete import complete
from kipcheck.conformance.wire.decoder import decoder
from kipcheck.conformance.wire.encoder import encoder
from kipcheck.conformance.wire.errors import CLASSES, Refused
from kipcheck.conformance.wire.jsonvalue import from_json, to_json
from kipcheck.conformance.wire.lenient import lenient
from kipcheck.conformance.wire.primitives import Rough
from kipcheck.conformance.wire.schema import Decode, Layout


class Codec:
    """The functions of one layout. Each of them raises ``Refused`` and nothing else on any bytes or value."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    @cached_property
    def encode(self) -> Callable[[Mapping[str, Any]], bytes]:
        """Bytes of a mapping; keys left out take their default."""
        return self._encoder[1]  # type: ignore[no-any-return]

    @cached_property
    def decode(self) -> Decode:
        """The value behind bytes-like data, all of which belongs to it: strict, unless asked to be lenient."""
        return self._decoder[1]  # type: ignore[no-any-return]

    @cached_property
    def decode_lenient(self) -> Callable[[bytes], dict[str, Any]]:
        """The value that Kafka's own reader makes of bytes-like data: see ``lenient``."""
        return lenient(self.layout, self._located_lenient)

    @cached_property
    def to_json(self) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
        """Bytes as hex and uuids as text, in a value that ``decode`` gave."""
        return self._to_json[1]  # type: ignore[no-any-return]

    @cached_property
    def from_json(self) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
        """The way back. It looks at bytes, uuids and what holds them; the rest is for ``encode`` to judge."""
        return self._from_json[1]  # type: ignore[no-any-return]

    @property
    def source(self) -> str:
        """What was written and compiled, for people to read."""
        return "\n\n".join(text for text, _ in (self._encoder, self._decoder, self._to_json, self._from_json))

    @cached_property
    def _encoder(self) -> tuple[str, Any]:
        return encoder(self.layout, self._again)

    @cached_property
    def _decoder(self) -> tuple[str, Any]:
        return decoder(self.layout, self._located, lambda data: self.decode_lenient(data))

    @cached_property
    def _to_json(self) -> tuple[str, Any]:
        return to_json(self.layout)

    @cached_property
    def _from_json(self) -> tuple[str, Any]:
        return from_json(self.layout)

    def _again(self, value: Any, failure: Exception) -> bytes:
        """Encode what the compiled code did not take as it was. Errors: Refused."""
        return self._encode_plain(complete(self.layout, value))

    @cached_property
    def _encode_plain(self) -> Callable[[Mapping[str, Any]], bytes]:
        """For values that are complete: to fail here is a mistake of ours, and is not hidden."""
        return encoder(self.layout, self._mistake)[1]  # type: ignore[no-any-return]

    def _mistake(self, value: Any, failure: Exception) -> bytes:
        raise self._rough(failure, "type")

    def _located(self, data: bytes, failure: Exception) -> Refused:
        return self._second(data, failure, lenient=False)

    def _located_lenient(self, data: bytes, failure: Exception) -> Refused:
        return self._second(data, failure, lenient=True)

    def _second(self, data: bytes, failure: Exception, *, lenient: bool) -> Refused:
        """What the other reading says of the bytes. If it has nothing against them, one of the two is wrong: say so."""
        try:
            from kipcheck.conformance.wire.constructs import read
        except ImportError:
            return self._rough(failure)
        try:
            read(self.layout, data, lenient=lenient)
        except Refused as located:
            return located
        return self._rough(failure)

    def _rough(self, failure: Exception, kind: str = "truncated") -> Refused:
        kind, path = ("text" if isinstance(failure, UnicodeError) else kind), ""
        if isinstance(failure, Rough):
            kind, path = failure.kind, failure.path
        return Refused(kind, CLASSES[kind], message=self.layout.message, version=self.layout.version, path=path)


def compile_codec(layout: Layout) -> Codec:
    """Nothing is written before it is asked for."""
    return Codec(layout)
