"""A client with defects of its own making, for tests of lists of known deviations."""

from collections.abc import Callable, Mapping
from typing import Any

from kipcheck.conformance.core.ledger import Ledger
from kipcheck.conformance.engine.execution.run import Outcome
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.wire import Layout
from kipcheck.conformance.wire.errors import Refused

LINK = "https://github.com/odd/client/issues/7"
REASON = "It counts generations from one on, as its first release did."
Defect = Callable[[dict[str, Any]], dict[str, Any]]


def off_by_one(value: dict[str, Any]) -> dict[str, Any]:
    return {**value, "generationId": (value["generationId"] + 1) % 2**31}


def refused(value: dict[str, Any]) -> dict[str, Any]:
    raise Refused("text", "it takes no generation", message="HeartbeatRequest", version=0)


class Odd(Reference):
    """A client that reads the heartbeats of some versions wrongly."""

    name, version = "odd", "1.2.3"

    def __init__(self, defects: Mapping[int, Defect], message: str = "HeartbeatRequest") -> None:
        super().__init__()
        self.version = "1.2.3"
        self.defects = defects
        self.message = message

    def read(self, layout: Layout, data: bytes) -> dict[str, Any]:
        value = super().read(layout, data)
        if layout.message == self.message and layout.version in self.defects:
            return self.defects[layout.version](value)
        return value


SOME = {version: off_by_one for version in (1, 2, 3)}
ENTRY = f"""
[[deviation]]
checks = ["wire/two-readings"]
invariant = "wire/decodes"
versions = "1.0.0-1.9.9"
shape = ["misread", "int32", "int", "int"]
reason = "{REASON}"
link = "{LINK}"
[deviation.where]
HeartbeatRequest = "1-3"
"""
Held = Callable[..., tuple[Outcome, Ledger]]
"""The fixture that runs the checks with the client."""


def stale(ledger: Ledger) -> list[tuple[str, str]]:
    """Kind and line of each stale entry."""
    return [(each.kind, each.entry.rpartition(":")[2]) for each in ledger.stale]
