"""The committed offsets of the one group of a script: those of the client, and those of the other members."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.server.groups import Groups
from kipcheck.conformance.live.server.offsets_api import OffsetsApi, Position
from kipcheck.conformance.live.server.topics import LEADER_EPOCH, Topics

UNREAD: Final = 3
"""Records before the end that another member has not committed. A client that goes on where it left off then begins
neither at its own last position nor at either end of the log."""
Read = frozenset[tuple[str, int]]
"""Topics with partitions."""


class ScriptedOffsets(OffsetsApi):
    def __init__(
        self,
        group: str,
        groups: Groups,
        topics: Topics,
        commit_error: Callable[[Received], int],
        fetch_error: Callable[[Mapping[str, Any]], int],
    ) -> None:
        """``group``: its id. ``commit_error``: of an OffsetCommit; ``fetch_error``: for member id and epoch of an
        OffsetFetch.
        """
        super().__init__(groups, topics)
        self.group = group
        self.commit_error = commit_error
        self.fetch_error = fetch_error
        self.committed: dict[tuple[str, int], Position] = {}
        self.read_by_others: Read = frozenset()
        """The partitions that other members have."""

    def hand_over(self, to_client: Iterable[tuple[str, int]], to_others: Iterable[tuple[str, int]]) -> None:
        """A rebalance is complete. What the client gets of other members was read and committed by them."""
        for topic, partition in self.read_by_others.intersection(to_client):
            end = self.topics.by_name[topic].end
            offset = max(end - UNREAD, 0)
            self.committed[topic, partition] = (offset, LEADER_EPOCH, "")
            self.in_zookeeper[self.group, topic, partition] = offset  # other members commit as the client does
        self.read_by_others = frozenset(to_others)

    def _commit(
        self, request: Received, wanted: Mapping[tuple[str, int], Position], done: Callable[[int], None]
    ) -> None:
        error = self.commit_error(request)
        if not error:
            self.committed.update(wanted)
        done(error)

    def _positions(
        self, version: int, id: str, member: str, epoch: int
    ) -> tuple[int, Mapping[tuple[str, int], Position]]:
        error = self.fetch_error({"memberId": member, "generationIdOrMemberEpoch": epoch}) if member else 0
        return error, self.committed
