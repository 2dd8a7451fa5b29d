"""The codec of a layout, compiled: everything that depends only on the version is computed once, before any value.

``encode``, ``decode``, ``to_json`` and ``from_json`` are Python functions, generated and compiled for one layout at
first use; ``source`` shows them. They take a fast path that fails without details. A second pass finds place and
reason: for values ``complete``, for bytes ``constructs``, which decodes independently of this codec.
"""

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, Final

from kipcheck.conformance.wire.complete import complete
from kipcheck.conformance.wire.decoder import decoder
from kipcheck.conformance.wire.encoder import encoder
from kipcheck.conformance.wire.errors import CLASSES, Entries, Refused
from kipcheck.conformance.wire.jsonvalue import from_json, to_json
from kipcheck.conformance.wire.lenient import DecodeLenient, lenient
from kipcheck.conformance.wire.primitives import Rough
from kipcheck.conformance.wire.schema import Decode, Layout

LOCATED_BYTES: Final = 4096


class Codec:
    """The functions of one layout. On any bytes or value they raise only ``Refused``."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    @cached_property
    def encode(self) -> Callable[[Mapping[str, Any]], bytes]:
        """The bytes of a mapping; missing keys take their default."""
        return self._encoder[1]  # type: ignore[no-any-return]

    @cached_property
    def decode(self) -> Decode:
        """The value of bytes-like data, all of which must belong to it. Strict, unless ``lenient`` is set."""
        return self._decoder[1]  # type: ignore[no-any-return]

    @cached_property
    def decode_lenient(self) -> DecodeLenient:
        """The value that Kafka's own reader decodes from bytes-like data: see ``lenient``."""
        return lenient(self.layout, self._located_lenient)

    def decode_bounded(self, data: bytes, entries: Entries, *, lenient: bool = False) -> dict[str, Any]:
        """As ``decode``, for bytes of strangers. A refusal has no offset where finding it would take long.

        Errors: ``TooManyEntries``.
        """
        if lenient:
            return self._lenient_bounded(data, entries)
        return self._decode_bounded(data, entries.take)  # type: ignore[no-any-return]

    @cached_property
    def _decode_bounded(self) -> Any:
        return decoder(self.layout, self._located_if_short, None)[1]

    @cached_property
    def _lenient_bounded(self) -> DecodeLenient:
        return lenient(self.layout, partial(self._located_if_short, lenient=True))

    @cached_property
    def to_json(self) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
        """Converts a value of ``decode`` to JSON: bytes to hex, uuids to text."""
        return self._to_json[1]  # type: ignore[no-any-return]

    @cached_property
    def from_json(self) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
        """The reverse of ``to_json``. Checks only bytes, uuids and what contains them; ``encode`` checks the rest."""
        return self._from_json[1]  # type: ignore[no-any-return]

    @property
    def source(self) -> str:
        """The generated source code."""
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
        """Encodes a value that the compiled code refused. Errors: Refused."""
        return self._encode_plain(complete(self.layout, value))

    @cached_property
    def _encode_plain(self) -> Callable[[Mapping[str, Any]], bytes]:
        """For complete values: a failure here is a defect of this package and is raised."""
        return encoder(self.layout, self._mistake)[1]  # type: ignore[no-any-return]

    def _mistake(self, value: Any, failure: Exception) -> bytes:
        raise self._rough(failure, "type")

    def _located(self, data: bytes, failure: Exception) -> Refused:
        return self._second(data, failure, lenient=False)

    def _located_if_short(self, data: bytes, failure: Exception, lenient: bool = False) -> Refused:
        """The second decoder takes some 10 us for an element, which may be a byte."""
        if len(data) > LOCATED_BYTES:
            return self._rough(failure)
        return self._second(data, failure, lenient=lenient)

    def _located_lenient(self, data: bytes, failure: Exception) -> Refused:
        return self._second(data, failure, lenient=True)

    def _second(self, data: bytes, failure: Exception, *, lenient: bool) -> Refused:
        """The refusal of ``constructs``, or a rough one where that accepts the bytes: then one of the two is wrong."""
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
    """Generates no code before its first use."""
    return Codec(layout)
