"""Counts the exchanges that passed, by API: those that were judged, and the others by reason."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

UNREAD: Final = "no invariant of a watch concerns it"
CONTEXT: Final = "only its encoding is judged: it names versions and topics, and no group"
DESCRIBED: Final = "only its encoding is judged, and what members wrote: no law of a coordinator reads it"
NEWER: Final = "a version that is newer than this kipcheck"
DAMAGED_ANSWER: Final = "the answer cannot be read"
UNSEEN: Final = "the answer was not observed, or a part of the connection is missing"
EARLIER: Final = "the member joined before, and its JoinGroup was not observed"
UNNAMED: Final = "it names topics by ids, and no Metadata with these ids was observed"
NO_MEMBER: Final = "the sender need not be a member: it sent no JoinGroup"
SHARED: Final = "several members share a connection or a member id"
OTHER_TYPE: Final = "the group is not one of consumers"
CROWDED: Final = "it has more entries than are decoded"
TOO_MANY: Final = "a limit of the memory of the watch was reached"
DEFECT: Final = "a defect of kipcheck"


@dataclass(slots=True)
class Exchanges:
    requests: Counter[str] = field(default_factory=Counter)
    """All that passed, by API."""
    judged: Counter[str] = field(default_factory=Counter)
    """Those that an invariant of members, leaders or coordinators read, or whose encoding is wrong."""
    _left: dict[str, Counter[str]] = field(default_factory=dict)

    def leave(self, reason: str, api: str, number: int = 1) -> None:
        self._left.setdefault(reason, Counter())[api] += number

    @property
    def left(self) -> Mapping[str, Mapping[str, int]]:
        """Reason -> API -> exchanges that were not judged. What has no other reason was not observed whole."""
        found = {reason: Counter(by) for reason, by in self._left.items()}
        counted = self.judged + sum(found.values(), Counter())
        if unseen := self.requests - counted:
            found[UNSEEN] = found.get(UNSEEN, Counter()) + unseen
        return found


@dataclass(slots=True)
class Pending:
    """The exchanges of a member that its next judgement reads."""

    exchanges: Exchanges
    by_api: Counter[str] = field(default_factory=Counter)

    def judged(self) -> None:
        self.exchanges.judged.update(self.by_api)
        self.by_api.clear()

    def leave(self, reason: str) -> None:
        for api, number in self.by_api.items():
            self.exchanges.leave(reason, api, number)
        self.by_api.clear()
