"""Deletes the groups of conversations with a running broker.

A coordinator keeps a group whose last member has left until its join phase is over: for the rest of the initial delay,
or until the ids that it gave to clients, which never joined with them, have left or expired. So known ids leave too,
and a group that is not empty is tried again.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kipcheck.conformance.core.operations.wire_form import Context
from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.live.connections.connections import Connections, Garbled
from kipcheck.conformance.live.connections.secure_connection import Closed
from kipcheck.conformance.live.coordinator.exchange import answer_of
from kipcheck.conformance.protocols.declare.sent_requests import SentRequest
from kipcheck.conformance.protocols.group.ops import ANSWERS, VALUES, Delete, Deleted, Describe, Described, Leave
from kipcheck.conformance.wire.bodies import key_of

NEWEST: Final = 4
ANSWERED: Final = "DeleteGroups is answered with error {}"
NOT_EMPTY: Final = ANSWERED.format(int(KafkaError.NON_EMPTY_GROUP))
FIRST_WAIT_S: Final = 0.05
LONGEST_WAIT_S: Final = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class UsedGroup:
    """The group of a conversation that has ended."""

    group: str
    connections: Connections
    versions: dict[int, tuple[int, int]]
    """By API key."""
    ids: tuple[str, ...] = ()
    """Of members, as the coordinator gave them."""

    async def delete(self) -> str:
        """Makes the members leave, then deletes the group. Returns why it is still there; empty: it is gone."""
        try:
            described: Described = await self._ask(Describe)
            members = {id: instance for id, instance, *_ in described.members}
            for id, instance in {**dict.fromkeys(self.ids), **members}.items():
                await self._ask(Leave, ((id, instance),))
            result: Deleted = await self._ask(Delete)
        except (Closed, Garbled, KeyError) as why:
            return str(why) or "the broker did not answer"
        gone = result.error in (KafkaError.NONE, KafkaError.GROUP_ID_NOT_FOUND)
        return "" if gone else ANSWERED.format(int(result.error))

    async def _ask(self, made: type[Describe | Leave | Delete], *fields: Any) -> Any:
        low, high = self.versions[key_of(made)]
        version = max(low, min(high, NEWEST))
        sent = SentRequest("kipcheck", made(version, *fields), ANSWERS[made])
        return await answer_of(self.connections, sent, version, Context(VALUES, {"group": self.group}), to=0)


async def delete_all(groups: Iterable[UsedGroup], most_s: float) -> Sequence[str]:
    """Deletes groups; for at most ``most_s`` again, while they are not empty. Returns what is left, with the reason."""
    loop = asyncio.get_running_loop()
    end, wait = loop.time() + most_s, FIRST_WAIT_S
    found = {each: await each.delete() for each in groups}
    while (again := [each for each, why in found.items() if why == NOT_EMPTY]) and (rest := end - loop.time()) > 0:
        await asyncio.sleep(min(wait, rest))
        wait = min(2 * wait, LONGEST_WAIT_S)
        found |= {each: await each.delete() for each in again}
    return [f"{each.group} ({why})" for each, why in found.items() if why]
