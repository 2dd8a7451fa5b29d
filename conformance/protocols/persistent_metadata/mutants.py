"""Clusters with one planted defect each. Least cases are in shorthand."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from kipcheck.conformance.protocols.declare.mutant import MachineMutant, mutant
from kipcheck.conformance.protocols.persistent_metadata.invariants import CONFIGURATION, FORMATS, ROLLS
from kipcheck.conformance.protocols.persistent_metadata.model import PersistentCluster
from kipcheck.conformance.protocols.persistent_metadata.ops import OPERATIONS, Start, Store, Write
from kipcheck.conformance.protocols.persistent_metadata.settings import (
    NEW_FORMAT,
    Rank,
    Settings,
    admits,
    newest,
    resolved,
)


class Playing(MachineMutant, PersistentCluster):
    """The reference machine as an adapter, with overridable decisions."""

    operations = OPERATIONS


Made = TypeVar("Made", bound=type[Playing])


def configuration(invariant: str, least: str) -> Callable[[Made], Made]:
    return mutant(CONFIGURATION, f"persistent-metadata/{invariant}", OPERATIONS.machine, None, least)


def formats(invariant: str, least: str) -> Callable[[Made], Made]:
    return mutant(FORMATS, f"persistent-metadata/{invariant}", OPERATIONS.machine, None, least)


def rolls(invariant: str, least: str) -> Callable[[Made], Made]:
    return mutant(ROLLS, f"persistent-metadata/{invariant}", OPERATIONS.machine, None, least)


# The configuration


@configuration("known-names", "start 0 2.1 pmv 2.2")
class TakesUnknownNames(Playing):
    """A name that the binary does not know stands for its newest version."""

    def settings(self, event: Start) -> Settings | None:
        return super().settings(event) or resolved(event.binary, event.inter_broker, None, event.format)


@configuration("defaults", "start 0 2.1 format 2.0")
class DefaultsToTheBinary(Playing):
    """Without a value persistent.metadata.version is the newest that the binary knows."""

    def settings(self, event: Start) -> Settings | None:
        found = super().settings(event)
        if found is None or found.persistent is None or event.persistent is not None:
            return found
        return replace(found, persistent=newest(event.binary))


@configuration("format-bound", "start 0 2.1 pmv 2.0")
class IgnoresTheBound(Playing):
    """The message format of a broker may be above its persistent metadata version."""

    def bounded(self, settings: Settings, topic_format: Rank | None) -> bool:
        return topic_format is None or admits(settings, topic_format)


@configuration("format-bound", "start 0 2.1 format 2.0; topic-format 2.1")
class BoundsBrokersOnly(Playing):
    """The message format of a topic may be above the persistent metadata version."""

    def bounded(self, settings: Settings, topic_format: Rank | None) -> bool:
        return admits(settings, settings.format)


@configuration("nothing-else-refused", "start 0 2.1 ibp 2.0")
class BoundsByTheInterBrokerVersion(Playing):
    """The persistent metadata version may not be above the inter-broker version."""

    def bounded(self, settings: Settings, topic_format: Rank | None) -> bool:
        above = settings.persistent is not None and settings.persistent > settings.inter_broker
        return super().bounded(settings, topic_format) and not above


# The formats


@formats("gated", "start 0 2.2 format 2.1; write 0 offsets")
class GatesByTheInterBrokerVersion(Playing):
    """The new setting is read, and the inter-broker version decides, as in every release."""

    def gate(self, settings: Settings, event: Write, topic_format: Rank | None) -> Rank | None:
        return settings.inter_broker


@formats("gated", "start 0 2.2 format 2.1; write 0 snapshot")
class GatesTopicsOnly(Playing):
    """The files of a broker follow the inter-broker version."""

    def gate(self, settings: Settings, event: Write, topic_format: Rank | None) -> Rank | None:
        if event.store in ("index", "snapshot", "epochs", "replication", "cleaner"):
            return settings.inter_broker
        return super().gate(settings, event, topic_format)


@formats("compatible-at-once", "start 0 2.2 format 2.1; write 0 offsets~")
class HoldsBackCompatibleChanges(Playing):
    """Compatible changes wait for the persistent metadata version, too."""

    def gate(self, settings: Settings, event: Write, topic_format: Rank | None) -> Rank | None:
        return super().gate(settings, replace(event, compatible=False), topic_format)


@formats("leaders-format", "start 0 2.2; start 1 2.2 format 2.1; write 0 offsets; read 1 offsets")
class FollowersConvert(Playing):
    """A follower rewrites the records of the leader in the format of its own setting."""

    def takes(self, settings: Settings, store: Store) -> bool:
        return settings.persistent is not None and settings.persistent[0] >= NEW_FORMAT


# The way back


@rolls("way-back", "start 0 2.2 format 2.1; start 0 2.0")
class ConvertsAtTheStart(Playing):
    """The new binary writes its snapshots anew when it starts, in the format that it prefers."""

    def opened(self, settings: Settings, new: frozenset[Store]) -> frozenset[Store]:
        return new | {"snapshot"} if settings.reads_new_format else new


@rolls("no-blind-downgrade", "start 0 2.2; write 0 offsets; start 0 2.0")
class StartsOnAnything(Playing):
    """A binary starts on a directory that it cannot read."""

    def starts_on(self, settings: Settings, new: frozenset[Store]) -> bool:
        return True


@rolls("no-blind-downgrade", "start 0 2.2; start 1 2.0; write 0 offsets; read 1 offsets")
class ReadsAnything(Playing):
    """A binary reads the new format as if it were the old one."""

    def loads(self, settings: Settings) -> bool:
        return True
