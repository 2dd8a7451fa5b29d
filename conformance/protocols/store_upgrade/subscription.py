"""The subscription of an instance, with the mark of a roll-over: KIP-268's version 3, and one byte behind it.

The text gives the mark no bytes. A byte behind the last field is read by a leader that knows of it in every metadata
version, and skipped by one that does not, so that it survives version probing. Version 4 is the simulated one: the
fields of version 3 under another number.
"""

from functools import lru_cache
from typing import Final, NamedTuple
from uuid import UUID

from kipcheck.conformance.core.values.edition import KIP_268
from kipcheck.conformance.wire import Layout, layout
from kipcheck.conformance.wire.errors import Refused

ROLL_OVER: Final = b"\x01"
LAYOUT: Final = 3
"""The newest version of KIP-268's draft."""


class Subscription(NamedTuple):
    instance: str
    used: int
    supported: int
    mark: bool
    """Whether it says that its instance was started for a roll-over."""


def _layout() -> Layout:
    return layout(KIP_268.name, "SubscriptionInfo", LAYOUT)


@lru_cache(maxsize=1024)
def written(subscription: Subscription) -> str:
    """The bytes of a subscription, in hex."""
    value = {
        "version": LAYOUT,
        "latestSupportedVersion": subscription.supported,
        "processId": UUID(bytes=subscription.instance.encode()[:16].ljust(16, b"\0")),
        "prevTasks": [],
        "standbyTasks": [],
        "userEndPoint": b"",
    }
    data = subscription.used.to_bytes(4, "big") + _layout().encode(value)[4:]
    return (data + (ROLL_OVER if subscription.mark else b"")).hex()


@lru_cache(maxsize=1024)
def read(text: str) -> Subscription:
    """Errors: Refused for bytes that are no subscription."""
    data = bytes.fromhex(text)
    used, fields = int.from_bytes(data[:4], "big"), LAYOUT.to_bytes(4, "big") + data[4:]
    try:
        value, mark = _layout().decode(fields), False
    except Refused:
        if not fields.endswith(ROLL_OVER):
            raise
        value, mark = _layout().decode(fields[:-1]), True
    instance = value["processId"].bytes.rstrip(b"\0").decode(errors="replace")
    return Subscription(instance, used, value["latestSupportedVersion"], mark)
