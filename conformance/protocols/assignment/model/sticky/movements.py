"""Records the moves of partitions in a rebalance, so that no two partitions of a topic move in opposite directions."""

from typing import NamedTuple, final

from kipcheck.conformance.protocols.assignment.model.assignment import Partition
from kipcheck.conformance.protocols.assignment.model.sticky.hashing import Partitions


class Move(NamedTuple):
    giver: str
    receiver: str


@final
class Movements:
    """Moved partitions, each with its first giver and its last receiver."""

    def __init__(self) -> None:
        self._by_topic: dict[str, dict[Move, Partitions]] = {}
        self._moves: dict[Partition, Move] = {}

    @property
    def state(self) -> frozenset[tuple[Move, tuple[Partition, ...]]]:
        """All that later moves depend on."""
        return frozenset(
            (move, partitions.order) for moves in self._by_topic.values() for move, partitions in moves.items()
        )

    def instead(self, partition: Partition, giver: str, receiver: str) -> Partition:
        """The partition to move: if another one of its topic moved in the opposite direction, that one."""
        first = self._moves[partition].giver if partition in self._moves else giver
        opposite = self._by_topic.get(partition[0], {}).get(Move(receiver, first))
        return opposite.first() if opposite else partition

    def note(self, partition: Partition, giver: str, receiver: str) -> None:
        of_topic = self._by_topic.setdefault(partition[0], {})
        before = self._moves.pop(partition, None)
        if before is not None:
            of_topic[before].remove(partition)
            if not of_topic[before]:
                del of_topic[before]
            if before.giver == receiver:
                return
            giver = before.giver
        move = Move(giver, receiver)
        self._moves[partition] = move
        of_topic.setdefault(move, Partitions()).add(partition)
