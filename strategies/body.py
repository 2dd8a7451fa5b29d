"""Bytes with the value that they encode: the body of a message, a whole frame, a damaged body."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kipcheck.conformance.wire import layout as layout_of
from kipcheck.conformance.wire.framing import frame, header_version
from kipcheck.conformance.wire.schema import Layout, spec
from kipcheck.strategies.damage import Damage
from kipcheck.strategies.messages import edition_named, from_layout
from kipcheck.strategies.nodes import Node, Pick, Record, record


@dataclass(frozen=True, slots=True)
class Body:
    edition: str
    message: str
    version: int
    value: Mapping[str, Any]
    data: bytes
    """Of the message alone, without header and size."""

    @property
    def layout(self) -> Layout:
        return layout_of(self.edition, self.message, self.version)


@dataclass(frozen=True, slots=True)
class Frame:
    body: Body
    header: Mapping[str, Any]
    data: bytes
    """Size, header and body, as sent over a connection."""


@dataclass(frozen=True, slots=True)
class Damaged:
    body: Body
    """Before the damage."""
    damage: Damage

    @property
    def data(self) -> bytes:
        return self.damage.data


def body_node(layout: Layout, value: Node | None = None) -> Record:
    """A body as plain data, which ``body_of`` converts to a ``Body``; ``value``: a node for its value, default any."""
    node = from_layout(layout) if value is None else value
    return record(
        edition=Pick((layout.edition,)), message=Pick((layout.message,)), version=Pick((layout.version,)), value=node
    )


def body_of(drawn: Mapping[str, Any]) -> Body:
    data = layout_of(drawn["edition"], drawn["message"], drawn["version"]).encode(drawn["value"])
    return Body(**drawn, data=data)


def frame_node(layout: Layout) -> Record:
    """A header and a body as plain data. Errors: LookupError unless the message is a request or response."""
    return record(header=from_layout(header_layout(layout), _own(layout)), body=body_node(layout))


def frame_of(drawn: Mapping[str, Any]) -> Frame:
    body = body_of(drawn["body"])
    return Frame(body, drawn["header"], frame(header_layout(body.layout).encode(drawn["header"]) + body.data))


def header_layout(layout: Layout) -> Layout:
    """The layout of the header before it. Errors: LookupError unless the message is a request or response."""
    kind = spec(edition_named(layout.edition), layout.message).kind
    if kind not in ("request", "response"):
        raise LookupError(f"{layout.message} has no frame: it is neither a request nor a response")
    return layout_of(layout.edition, f"{kind.capitalize()}Header", header_version(layout))


def _own(layout: Layout) -> dict[str, Node]:
    """The header's fields that describe the request."""
    key = spec(edition_named(layout.edition), layout.message).api_key
    return {"requestApiKey": Pick((key,)), "requestApiVersion": Pick((layout.version,))}
