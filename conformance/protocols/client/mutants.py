"""Small consumers with one planted defect each. Least cases are in shorthand."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from kipcheck.conformance.core.case import Step
from kipcheck.conformance.protocols.client.ops import CLIENT
from kipcheck.conformance.protocols.declare.mutant import mutant
from kipcheck.conformance.targets.protocol import Claims

PLAY: Final = "kipcheck.conformance.live.in_process"
"""What plays scripts with consumers in this process. It stands above protocols, and is imported where one is played."""


class LiveMutant:
    """An adapter that plays scripts with a consumer in this process; each step is played when it comes."""

    name = "miniature/sound-consumer"
    version = "0"
    issues = ""
    consumer = ""
    """The class of its consumer among the odd ones; empty: one that keeps all rules."""

    def __init__(self) -> None:
        self._played: Any = None
        self._case: object = None

    def claims(self) -> Claims:
        return Claims(machines=(CLIENT,))

    def configure(self, edition: str, /) -> str | None:
        return None

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        if self._played is None or op.get("case") != self._case:
            if self._played is not None:
                self._played.close()
            self._case, self._played = op.get("case"), import_module(PLAY).Played(self.consumer)
        body = {key: value for key, value in op.items() if key not in ("op", "case", "actor")}
        found: dict[str, Any] = self._played.step(Step("", op["op"], body))
        if op["op"] == "client-stop":
            self._played.close()
            self._played = None
        return found


def broken(invariant: str, least: str) -> Any:
    return mutant("client/groups", f"client/{invariant}", CLIENT, None, least)


@broken("encodes-strictly", "stop")
class BeatsWithOneByteMore(LiveMutant):
    """A heartbeat has a byte after its last field."""

    consumer = "WritesLoosely"


@broken("asks-what-is-offered", "stop")
class AsksTheUnoffered(LiveMutant):
    """LeaveGroup is sent in a version that the broker did not offer."""

    consumer = "AsksTheUnoffered"


@broken("names-itself", "stop")
class NamesAnotherGeneration(LiveMutant):
    """Heartbeats carry a generation that no answer had."""

    consumer = "NamesAnother"


@broken("stops-when-fenced", "answer Heartbeat UNKNOWN_MEMBER_ID; stop")
class BeatsWhenFenced(LiveMutant):
    """A member that the coordinator does not know sends heartbeats for a second and a half."""

    consumer = "BeatsOn"


@broken("beats", "pass 3200; stop")
class SendsNoHeartbeat(LiveMutant):
    """A stable member sends nothing."""

    consumer = "Silent"


@broken("comes-back", "rebalance; stop")
class IgnoresRebalances(LiveMutant):
    """A heartbeat that is answered REBALANCE_IN_PROGRESS changes nothing."""

    consumer = "Stays"


@broken("reads-its-own", "pass 200; others 1 lead; rebalance; pass 1200; stop")
class FetchesOn(LiveMutant):
    """What another member was given is fetched on."""

    consumer = "ReadsOn"


@broken("leaves", "stop")
class EndsWithoutLeaving(LiveMutant):
    """A dynamic member closes without LeaveGroup."""

    consumer = "Vanishes"


@broken("does-not-spin", "answer Heartbeat NOT_COORDINATOR; stop")
class LooksUpWithoutPause(LiveMutant):
    """A lost coordinator is looked up again and again, without a pause."""

    consumer = "Spins"


@broken("ends-when-stopped", "answer Heartbeat ILLEGAL_GENERATION; stop")
class EndsAtAnOldGeneration(LiveMutant):
    """The program ends when its generation is over."""

    consumer = "Gives"
