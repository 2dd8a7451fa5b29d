"""Resolves references to member ids and generations, so that a conversation can be written before it is run.

Member ids are random, so steps use references: ``a`` is the id most recently given to client a, ``a-old`` the id before
it, ``?`` an unknown id, and the empty string no id. Answers show canonical ids, in the order in which they were first
given to a client: ``a.1``, ``a.2`` are those of client a.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, final

from kipcheck.conformance.protocols.group.model.messages import Error, Joined

UNKNOWN_MEMBER: Final = "?"
OLD: Final = "-old"
UNASSIGNED: Final = "untold"
"""How answers show an id that no client has received yet, for example in a description of a group with new members."""
ID_CARRYING_ERRORS: Final = (Error.NONE, Error.MEMBER_ID_REQUIRED)
"""Errors of JoinGroup answers whose member id is for the sender of the request."""


@final
@dataclass(frozen=True, slots=True)
class ClientIds:
    """The member ids and the generation that a client has received."""

    client: str
    ids: tuple[str, ...] = ()
    """Distinct ids, the most recent last."""
    generation: int = 0
    """The last generation; initially 0, that of a group that never had members."""


@final
@dataclass(frozen=True, slots=True)
class Names:
    clients: tuple[ClientIds, ...] = ()
    ids: tuple[tuple[str, str], ...] = ()
    """Member id -> its canonical form, for every id that a client has received."""

    def of(self, client: str) -> ClientIds:
        return next((each for each in self.clients if each.client == client), ClientIds(client))

    def resolved(self, reference: str) -> str:
        """The member id of a reference. If the client has received none, the unknown id ``a.0``."""
        if reference in ("", UNKNOWN_MEMBER):
            return reference
        client = reference.removesuffix(OLD)
        back = 2 if reference.endswith(OLD) else 1
        ids = self.of(client).ids
        return ids[-back] if len(ids) >= back else f"{client}.0"

    def canonical(self, member: str) -> str:
        """The canonical form of a member id. Unknown ids from references stay unchanged."""
        if member in ("", UNKNOWN_MEMBER) or member.endswith(".0"):
            return member
        return dict(self.ids).get(member, UNASSIGNED)

    def generation(self, client: str, behind: int | None) -> int:
        """The client's last generation minus ``behind``; -1, that of a consumer without a group, for None."""
        return -1 if behind is None else self.of(client).generation - behind

    def after_answers(self, answers: Iterable[tuple[str, Joined]]) -> "Names":
        """Names after the answers of one step, given with their clients. They are applied in the order of requests."""
        names = self
        for client, answer in sorted(answers, key=lambda each: each[1].to):
            if answer.error in ID_CARRYING_ERRORS:
                names = names._after(client, answer)
        return names

    def _after(self, client: str, answer: Joined) -> "Names":
        known, id = self.of(client), answer.member
        if answer.error == Error.NONE:
            known = replace(known, generation=answer.generation)
        ids = self.ids
        if id:
            known = replace(known, ids=(*(each for each in known.ids if each != id), id))
            if id not in dict(ids):
                number = 1 + sum(shown.startswith(f"{client}.") for _, shown in ids)
                ids = (*ids, (id, f"{client}.{number}"))
        others = (each for each in self.clients if each.client != client)
        return Names((*others, known), ids)
