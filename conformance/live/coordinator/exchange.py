"""Sends a request of a conversation through a door to a coordinator, and reads its answer."""

from collections.abc import Mapping
from typing import Any, Protocol

from kipcheck.conformance.core.operations.wire_form import Context, Unfit, check
from kipcheck.conformance.core.values.history import Died
from kipcheck.conformance.live.connections.connections import Garbled
from kipcheck.conformance.live.connections.secure_connection import Closed
from kipcheck.conformance.protocols.declare.sent_requests import SentRequest
from kipcheck.conformance.wire.bodies import api_of, body_of, layout_of, read_body
from kipcheck.conformance.wire.errors import Refused


class Door(Protocol):
    """The way to a coordinator: connections to a broker, or a machine in this process."""

    async def ask(self, api: str, version: int, client: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The body of the response. Errors: ``Closed``, ``Garbled``."""
        ...


def check_form(sent: SentRequest, version: int, context: Context) -> None:
    """Errors: ``Inexpressible`` where the version cannot have the request or its answer."""
    check(sent.answer, layout_of(sent.answer, version), context)
    body_of(sent.request, version, context)


async def answer_of(door: Door, sent: SentRequest, version: int, context: Context, **others: Any) -> Any:
    """The answer. ``others``: its fields that no message has. Errors: ``Closed``, ``Garbled``; ``Inexpressible``."""
    found = await door.ask(api_of(type(sent.request)), version, sent.client, body_of(sent.request, version, context))
    try:
        return read_body(sent.answer, version, found, context, **others)
    except (Refused, Unfit) as why:
        raise Garbled(str(why)) from None


async def exchange(door: Door, sent: SentRequest, version: int, context: Context, **others: Any) -> Any:
    """As ``answer_of``, or ``Died`` with the reason why there is no answer. Errors: ``Inexpressible``."""
    try:
        return await answer_of(door, sent, version, context, **others)
    except (Closed, Garbled) as why:
        cause = "crashed" if isinstance(why, Closed) else "garbled"
        return Died(cause, f"{api_of(type(sent.request))} v{version}: {why}")
