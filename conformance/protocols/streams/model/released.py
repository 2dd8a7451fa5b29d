"""A model of the assignor of one Kafka Streams release, with values as user data."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import final

from kipcheck.conformance.protocols.assignment.model.assignment import Topic
from kipcheck.conformance.protocols.streams.model import leader, member
from kipcheck.conformance.protocols.streams.model.members import (
    AssignmentResult,
    Blob,
    Joining,
    Memory,
    Settings,
    Share,
)
from kipcheck.conformance.protocols.streams.model.rules import Rules


@final
class Released:
    """``rules``: by default those of ``settings.release``. Errors: ValueError for an invalid release."""

    def __init__(self, settings: Settings, rules: Rules | None = None) -> None:
        self.settings = settings
        self.rules = rules or Rules.of(settings.release)

    @property
    def latest(self) -> int:
        return self.rules.latest

    @cached_property
    def supports(self) -> tuple[str, ...]:
        return self.rules.supports(self.settings.upgrade_from)

    def initial(self) -> Memory:
        return Memory(self.rules.used(self.settings.upgrade_from))

    def subscribe(self, memory: Memory, topics: tuple[str, ...], /) -> tuple[Memory, Blob]:
        return member.subscribe(self.rules, self.settings, memory)

    def lead(
        self, memory: Memory, topics: tuple[Topic, ...], members: tuple[Joining, ...], /
    ) -> tuple[Memory, Mapping[str, Share]]:
        led = leader.lead(self.rules, self.settings.topology, topics, members)
        return replace(memory, closes=led.closes), led.shares

    def assigned(self, memory: Memory, share: Share, /) -> AssignmentResult:
        return member.assigned(self.rules, self.settings, memory, share)
