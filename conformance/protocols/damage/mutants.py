"""Brokers that listen on loopback, with one planted defect each in how they treat damage. Least cases in shorthand."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.protocols.damage.invariants import OLD_CLIENTS, REQUESTS
from kipcheck.conformance.protocols.damage.ops import DAMAGE
from kipcheck.conformance.protocols.declare.mutant import mutants_of
from kipcheck.conformance.targets.protocol import Claims

ODD: Final = "kipcheck.conformance.live.damage.defective_brokers"
"""They stand above protocols, and are imported where one is played."""
OTHERS: Final = "damage-others"


class OddBroker:
    """An adapter that sends each step to a broker in this process."""

    name = "miniature/odd-broker"
    version = "0"
    issues = ""
    broker = ""
    """The class among the odd ones."""

    def __init__(self) -> None:
        self._played: Any = None
        self._case: object = None

    def claims(self) -> Claims:
        return Claims(machines=(DAMAGE,))

    def configure(self, edition: str, /) -> str | None:
        return None

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        if self._played is None or op.get("case") != self._case:
            self._end()
            self._case, self._played = op.get("case"), import_module(ODD).Played(self.broker)
        body = {key: value for key, value in op.items() if key not in ("op", "case", "actor")}
        found = dict(self._played.step(Step("", op["op"], body)))
        if op["op"] == OTHERS:
            self._end()
        return {"status": "accepted", **found}

    def _end(self) -> None:
        if self._played is not None:
            self._played.close()
            self._played = None


broken = mutants_of(REQUESTS, DAMAGE)


@broken("serves-others", "send ApiVersions 0 frame size-negative 0 0 waits; others")
class AnswersNobodyAfterDamage(OddBroker):
    """A size below 0 stops the answers to all clients."""

    broker = "Sticks"


@broken("serves-others", "send ApiVersions 0 frame size-negative 0 0 waits; others")
class ConfusesOffsetsAfterDamage(OddBroker):
    """After a damaged request offsets are read as 0."""

    broker = "Confuses"


@broken("costs-little", "send ApiVersions 0 frame size-negative 0 0 waits; others")
class LeaksDescriptors(OddBroker):
    """A connection that is closed for its request leaves descriptors open."""

    broker = "Leaks"


@broken("lets-go", "send ApiVersions 0 frame size-cut 0 0 half-closes")
class KeepsHalfClosedConnections(OddBroker):
    """A connection that ends amid a request stays open."""

    broker = "KeepsHalves"


@mutants_of(OLD_CLIENTS, DAMAGE)("serves-old-clients", "old JoinGroup 0")
class RefusesOldJoins(OddBroker):
    """JoinGroup 0 and 1 close the connection."""

    broker = "RefusesOldJoins"
