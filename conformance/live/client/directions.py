"""What the steps of a script do to a scripted broker: of kipcheck, or of a test of another project."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from kipcheck.conformance.core.values.edition import edition as edition_of
from kipcheck.conformance.live.client import disturbances
from kipcheck.conformance.live.client.scripted import ScriptedBroker
from kipcheck.conformance.live.recording.contents import ms_of
from kipcheck.conformance.live.server.listener import Front
from kipcheck.conformance.protocols.client import events, log_ops, ops
from kipcheck.conformance.protocols.client.terms import BY_SCRIPT

NODES: Final = 2


class Directions:
    def __init__(self, broker: ScriptedBroker, front: Front, note: Callable[[events.Event], object]) -> None:
        """``note`` gets what laws have to know of the topics."""
        self.broker = broker
        self.front = front
        self.note = note
        self.own = front.edition
        """The edition of the broker where no step names a release."""
        self.release = ""
        """Of the broker, as the last step names it; empty: that of its edition."""
        self.offered: dict[ops.Kind, range] = {}
        """The versions that the broker offers, of requests of which it does not offer all that it has."""

    def take(self, event: ops.Event) -> None:
        """What happens at once to the group or to topics."""
        broker = self.broker
        match event:
            case ops.Others(number, place):
                broker.place_others(number, place == "lead")
            case ops.Member():
                broker.add_other(event)
            case ops.Assign(partitions, more):
                broker.assign(partitions, more)
            case ops.Grow(partitions):
                broker.grow(partitions)
            case ops.Committed(offset):
                broker.reset_offsets(offset)
            case ops.Rebalance():
                broker.rebalance()
            case ops.Move():
                broker.move()
            case ops.Disband():
                broker.disband()
            case ops.Fence():
                broker.fence()
            case _:
                self._change_log(event)

    def _change_log(self, event: ops.Event) -> None:
        broker, now_ms = self.broker, ms_of(self.front.now())
        match event:
            case log_ops.Create(topic):
                if broker.logs.create(broker.name_of(topic)):
                    broker.topics_changed()
            case log_ops.Delete(topic):
                if broker.logs.delete(broker.name_of(topic)):
                    self.note(events.TopicDeleted(now_ms, topic))
                    broker.topics_changed()
            case log_ops.Records(kept):
                broker.logs.write(kept)
            case log_ops.Trim(records):
                self.note(events.Trimmed(now_ms, broker.logs.trim(records)))
            case log_ops.Elect(partitions, lasts_ms):
                broker.logs.elect(partitions, NODES, lasts_ms)
            case log_ops.Lags(what, ms):
                broker.lag(what, ms)

    def change_answers(self, event: ops.Timed | ops.Rebalance) -> None:
        """Lets the broker change the answers that a step names, or its group rebalance."""
        match event:
            case ops.Answer(kind, error, times):
                self.broker.fail_next(kind, error, times)
            case ops.Refuse(kind, refusal):
                self.broker.refuse(kind, refusal)
            case ops.Rebalance():
                self.broker.rebalance()
            case _:
                self.broker.disturb(event.kind, disturbances.of(event), getattr(event, "times", 1))

    def become(self, heartbeat_ms: int) -> None:
        """The broker has the release and the versions that steps named. ``heartbeat_ms``: the interval of KIP-848.

        Errors: LookupError for versions of which it has none."""
        edition = edition_of(f"apache@{self.release}") if self.release else self.own
        self.front.edition = edition
        self.broker.become(edition, self.offered, heartbeat_ms)

    def lacks(self, event: ops.Down) -> str:
        """What the client uses that the release of the nodes, after they were down, does not have."""
        if event.release == "same" or not self.broker.is_modern:
            return ""
        has_groups = ScriptedBroker(edition_of(f"apache@{event.release}")).has_consumer_groups
        return "" if has_groups else f"a broker of {event.release} has no groups of KIP-848"

    async def go_down(self, event: ops.Down, heartbeat_ms: int, wait: Callable[[float], Awaitable[Any]]) -> None:
        """Returns when the nodes are back. ``wait`` lets so many seconds pass. Errors: as of ``become``."""
        broker = self.broker
        down = [broker.nodes[broker.home]] if event.nodes == "coordinator" else [*broker.nodes]
        if event.how == "silent":
            broker.fall_silent(down, event.ms / 1000)
            await wait(event.ms / 1000)
            return
        for address in down:
            self.front.suspend(address, BY_SCRIPT)
        broker.lose(down)
        await wait(event.ms / 1000)
        if event.release != "same":
            self.release = event.release
            self.become(heartbeat_ms)
        broker.lose(())
        for address in down:
            await self.front.resume(address)
