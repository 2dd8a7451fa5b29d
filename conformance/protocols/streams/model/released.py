"""A model of the assignor of one Kafka Streams release, with values as user data."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import final

from kipcheck.conformance.protocols.assignment.model.assignment import Topic
from kipcheck.conformance.protocols.streams.model import leader, member, members as model_members
from kipcheck.conformance.protocols.streams.model.rules import Rules


@final
class Released:
    """``rules``: by default those of ``settings.release``. Errors: ValueError for an invalid release."""

    def __init__(self, settings: model_members.Settings, rules: Rules | None = None) -> None:
        self.settings = settings
        self.rules = rules or Rules.of(settings.release)

    @property
    def latest(self) -> int:
        return self.rules.latest

    @cached_property
    def supports(self) -> tuple[str, ...]:
        return self.rules.supports(self.settings.upgrade_from)

    def initial(self) -> model_members.Memory:
        return model_members.Memory(self.rules.used(self.settings.upgrade_from))

    def subscribe(
        self, memory: model_members.Memory, topics: tuple[str, ...], /
    ) -> tuple[model_members.Memory, model_members.Blob]:
        return member.subscribe(self.rules, self.settings, memory)

    def lead(
        self, memory: model_members.Memory, topics: tuple[Topic, ...], members: tuple[model_members.Joining, ...], /
    ) -> tuple[model_members.Memory, Mapping[str, model_members.Share]]:
        led = leader.lead(self.rules, self.settings.topology, topics, members)
        return replace(memory, closes=led.closes), led.shares

    def assigned(self, memory: model_members.Memory, share: model_members.Share, /) -> model_members.AssignmentResult:
        return member.assigned(self.rules, self.settings, memory, share)
