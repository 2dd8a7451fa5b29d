"""Defects of callbacks: see ``client.invariants.callbacks``."""

from collections.abc import Iterable

from kipcheck.conformance.live.client.consumer import Consumer, Partition


class CallsTwice(Consumer):
    def call_back(self, what: str, partitions: Iterable[Partition]) -> None:
        found, user_has = {*partitions}, self.known_to_user
        super().call_back(what, found)
        if what == "assigned":
            self.known_to_user = user_has
        super().call_back(what, found)


class CallsOnce(Consumer):
    def call_back(self, what: str, partitions: Iterable[Partition]) -> None:
        if what != "assigned" or self.generation < 2:
            super().call_back(what, partitions)


class CallsThemRevoked(Consumer):
    def call_back(self, what: str, partitions: Iterable[Partition]) -> None:
        super().call_back("revoked" if what == "lost" else what, partitions)


class ClosesWithoutACall(Consumer):
    async def leave(self) -> None:
        self.call = lambda what, partitions: None
        await super().leave()
