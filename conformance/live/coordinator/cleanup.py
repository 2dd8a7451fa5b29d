"""Deletes the groups of conversations with a running broker.

A coordinator keeps a group whose last member has left until its join phase is over: for the rest of the initial delay,
or until the ids that it gave to clients, which never joined with them, have left or expired. So known ids leave too,
and a group that is not empty is tried again.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kipcheck.conformance.live.connections.connections import Connections, Garbled
from kipcheck.conformance.live.connections.secure_connection import Closed

APIS: Final = {"LeaveGroup": 13, "DescribeGroups": 15, "DeleteGroups": 42}
NEWEST: Final = 4
BATCHES_SINCE: Final = 3
NONE, NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND = 0, 68, 69
ANSWERED: Final = "DeleteGroups is answered with error {}"
NOT_EMPTY: Final = ANSWERED.format(NON_EMPTY_GROUP)
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
            found = (await self._ask("DescribeGroups", {"groups": [self.group]}))["groups"][0]
            described = {each["memberId"]: each.get("groupInstanceId") for each in found["members"]}
            for id, instance in {**dict.fromkeys(self.ids), **described}.items():
                await self._leave(id, instance)
            result = (await self._ask("DeleteGroups", {"groupsNames": [self.group]}))["results"][0]
        except (Closed, Garbled, KeyError, IndexError) as why:
            return str(why) or "the broker did not answer"
        error = result["errorCode"]
        return "" if error in (NONE, GROUP_ID_NOT_FOUND) else ANSWERED.format(error)

    async def _leave(self, id: str, instance: str | None) -> None:
        member = {"memberId": id, "groupInstanceId": instance}
        batch = self.versions[APIS["LeaveGroup"]][1] >= BATCHES_SINCE
        await self._ask("LeaveGroup", {"groupId": self.group, **({"members": [member]} if batch else member)})

    async def _ask(self, api: str, body: dict[str, Any]) -> dict[str, Any]:
        low, high = self.versions[APIS[api]]
        return await self.connections.ask(api, max(low, min(high, NEWEST)), "kipcheck", body)


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
