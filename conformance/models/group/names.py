"""Who was told which member id and which generation, so that a conversation can be written before it is held.

A step names a member by a reference, since ids are luck: ``a`` is the id that client a was told last, ``a-old`` the one
before, ``?`` an id that nobody has, and nothing is no id. An answer shows ids in the order in which they were told to
anybody first: ``a.1``, ``a.2`` are those of client a.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, final

from kipcheck.conformance.models.group.messages import Error, Joined

NOBODY: Final = "?"
OLD: Final = "-old"
UNTOLD: Final = "untold"
"""How an id shows that was told to nobody yet: in a description of a group, say, whose members are joining."""
TELLING: Final = (Error.NONE, Error.MEMBER_ID_REQUIRED)
"""What the answer to a JoinGroup says where the id in it is meant for whoever asked."""


@final
@dataclass(frozen=True, slots=True)
class Told:
    """What one client knows."""

    client: str
    ids: tuple[str, ...] = ()
    """Each once, the one last told at the end."""
    generation: int = 0
    """The last; before any, that of a group in which there was nobody yet."""


@final
@dataclass(frozen=True, slots=True)
class Names:
    clients: tuple[Told, ...] = ()
    ids: tuple[tuple[str, str], ...] = ()
    """Each that was told, and how it shows."""

    def of(self, client: str) -> Told:
        return next((each for each in self.clients if each.client == client), Told(client))

    def resolved(self, reference: str) -> str:
        """The member id. Where the client was told none, one that nobody has: ``a.0``."""
        if reference in ("", NOBODY):
            return reference
        client = reference.removesuffix(OLD)
        back = 2 if reference.endswith(OLD) else 1
        ids = self.of(client).ids
        return ids[-back] if len(ids) >= back else f"{client}.0"

    def shown(self, member: str) -> str:
        """What never was given out shows as it was sent."""
        if member in ("", NOBODY) or member.endswith(".0"):
            return member
        return dict(self.ids).get(member, UNTOLD)

    def generation(self, client: str, behind: int | None) -> int:
        """None: of a consumer that is in no group."""
        return -1 if behind is None else self.of(client).generation - behind

    def told(self, answers: Iterable[tuple[str, Joined]]) -> "Names":
        """What came of one step: who had asked, and the answer. The answer to an earlier request is told first."""
        names = self
        for client, answer in sorted(answers, key=lambda each: each[1].to):
            if answer.error in TELLING:
                names = names._after(client, answer)
        return names

    def _after(self, client: str, answer: Joined) -> "Names":
        told, id = self.of(client), answer.member
        if answer.error == Error.NONE:
            told = replace(told, generation=answer.generation)
        ids = self.ids
        if id:
            told = replace(told, ids=(*(each for each in told.ids if each != id), id))
            if id not in dict(ids):
                number = 1 + sum(shown.startswith(f"{client}.") for _, shown in ids)
                ids = (*ids, (id, f"{client}.{number}"))
        others = (each for each in self.clients if each.client != client)
        return Names((*others, told), ids)
