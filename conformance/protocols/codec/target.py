"""kipcheck's own codec as an adapter."""

from collections.abc import Mapping
from importlib import metadata
from typing import Any

from kipcheck.conformance.core.values.edition import Edition, edition
from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.targets.protocol import Claims, Messages
from kipcheck.conformance.wire import Layout, layout as layout_of
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.log_file_layouts import log_file_messages
from kipcheck.conformance.wire.log_files import VERSIONS
from kipcheck.conformance.wire.schema import messages, spec
from kipcheck.conformance.wire.znodes import znode_messages, znode_versions

UNSUPPORTED_VERSION = KafkaError.UNSUPPORTED_VERSION.to_bytes(2, "big")


class ReferenceCodec:
    """Claims every version of every message of its edition."""

    name = "reference"
    issues = ""

    def __init__(self) -> None:
        self.version = metadata.version("kipcheck")
        self._edition: Edition = edition("apache")

    def configure(self, edition_name: str, /) -> str | None:
        try:
            self._edition = edition(edition_name)
        except LookupError as unknown:
            return str(unknown)
        return None

    def claims(self) -> Claims:
        return Claims(self.claimed_messages())

    def claimed_messages(self) -> Messages:
        spans = {name: spec(self._edition, name).versions for name in messages(self._edition)}
        found = {name: (span.low, span.high) for name, span in spans.items() if span.high is not None}
        for node in znode_messages(self._edition):
            versions = znode_versions(self._edition, node)
            found[node] = (versions[0], versions[-1])
        for file in log_file_messages(self._edition):
            found[file] = (VERSIONS[file],) * 2
        return found

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        try:
            layout = layout_of(self._edition, op["message"], op["version"])
        except LookupError as unknown:
            return {"status": "unsupported", "message": str(unknown)}
        try:
            return self._answer(layout, op)
        except Refused as refusal:
            rejected = {"status": "rejected", "class": refusal.kind, "message": str(refusal)}
            return rejected if refusal.offset is None else {**rejected, "offset": refusal.offset}

    def _answer(self, layout: Layout, op: Mapping[str, Any]) -> dict[str, Any]:
        match op["op"]:
            case "encode":
                return {"status": "accepted", "hex": self.write(layout, layout.codec.from_json(op["value"])).hex()}
            case "decode":
                value = self.read(layout, bytes.fromhex(op["hex"]))
                return {"status": "accepted", "value": layout.codec.to_json(value)}
            case "recode":
                value = self.read(layout, bytes.fromhex(op["hex"]))
                return {"status": "accepted", "hex": self.write(layout, value).hex()}
        return {"status": "unsupported", "message": f"no operation {op['op']!r}"}

    def write(self, layout: Layout, value: dict[str, Any]) -> bytes:
        return layout.encode(value)

    def read(self, layout: Layout, data: bytes) -> dict[str, Any]:
        """Decodes strictly, with two exceptions. A leading version above the layout's, which a peer may send, is
        decoded as far as the layout goes. An ApiVersions response in v0 is accepted: a broker refuses a version with
        it.
        """
        try:
            return layout.decode(data)
        except Refused as refusal:
            if refusal.kind == "version":
                return layout.decode(data, lenient=True)
            if layout.message == "ApiVersionsResponse" and data.startswith(UNSUPPORTED_VERSION):
                return self._in_v0(layout, data)
            raise

    def _in_v0(self, layout: Layout, data: bytes) -> dict[str, Any]:
        found = spec(self._edition, layout.message).at(0).decode(data)
        return {**layout.defaults(), **found}
