"""Brokers with one planted defect each. Least cases are in shorthand."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from kipcheck.conformance.core.files.releases_table import named
from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.protocols.declare.mutant import MachineMutant, mutant
from kipcheck.conformance.protocols.stored_records import ops
from kipcheck.conformance.protocols.stored_records.invariants import LOADED, NO_LINE, WRITTEN
from kipcheck.conformance.protocols.stored_records.model import StoredRecords
from kipcheck.conformance.protocols.stored_records.settings import is_named, version_of
from kipcheck.conformance.wire.stored_records import InterBroker


class Storing(MachineMutant, StoredRecords):
    """The reference machine as an adapter, with overridable decisions."""

    operations = ops.OPERATIONS


Made = TypeVar("Made", bound=type[Storing])
BEFORE_KIP_915 = named("last-before-kip-915")
IN_SCALA = named("last-before-4")


def writes(invariant: str, least: str, edition: str = "") -> Callable[[Made], Made]:
    return mutant(WRITTEN, f"stored-records/{invariant}", ops.OPERATIONS.machine, None, least, edition=edition)


def loads(invariant: str, least: str, edition: str = "") -> Callable[[Made], Made]:
    return mutant(LOADED, f"stored-records/{invariant}", ops.OPERATIONS.machine, None, least, edition=edition)


@writes("version-by-release", "write OffsetCommitValue ibp 2.0", f"apache@{IN_SCALA}")
class WritesNewestAtOnce(Storing):
    """Offsets are written in the newest version of the release, whatever the inter-broker version."""

    release = Release.parse(IN_SCALA)

    def chosen_version(self, event: ops.Write, inter_broker: InterBroker) -> int | None:
        return super().chosen_version(event, InterBroker.of(self.release))


@writes("version-by-release", "write OffsetCommitValue")
class NeverWritesNewer(Storing):
    """Classic groups and offsets are written in version 1, whatever the inter-broker version."""

    def chosen_version(self, event: ops.Write, inter_broker: InterBroker) -> int | None:
        return 1 if event.message in ops.CLASSIC else super().chosen_version(event, inter_broker)


@writes("expiring-in-version-1", "write OffsetCommitValue expiring")
class DropsRetentionTimes(Storing):
    """An offset commit with a retention time of its own is written in the version of all others."""

    def chosen_version(self, event: ops.Write, inter_broker: InterBroker) -> int | None:
        return super().chosen_version(replace(event, expires=False), inter_broker)


@writes("transaction-version", "write TransactionLogValue level 0")
class IgnoresTransactionVersion(Storing):
    """The transaction log is written in its newest version at every level."""

    def chosen_version(self, event: ops.Write, inter_broker: InterBroker) -> int | None:
        return super().chosen_version(replace(event, level=None), inter_broker)


@writes("transaction-version", "write TransactionLogValue level 1")
class NeverRaisesTransactions(Storing):
    """The transaction log is written in its oldest version at every level."""

    def chosen_version(self, event: ops.Write, inter_broker: InterBroker) -> int | None:
        return super().chosen_version(
            replace(event, level=0) if event.message == ops.TRANSACTION else event, inter_broker
        )


@writes("group-version", "write ConsumerGroupMetadataValue level 0")
class IgnoresGroupVersion(Storing):
    """Records of consumer groups are written before group.version allows them."""

    def levelled(self, message: str, level: int | None) -> bool:
        return message == ops.GROUP or super().levelled(message, level)


@writes("classic-ungated", "write GroupMetadataValue level 0")
class GatesClassicGroups(Storing):
    """Records of classic groups are refused at group.version 0."""

    def levelled(self, message: str, level: int | None) -> bool:
        return super().levelled(ops.GROUP if message == ops.CLASSIC[0] else message, level)


@writes("way-back", "write OffsetCommitValue ibp 3.3-IV3")
class ForgetsTheWayBack(Storing):
    """Offsets are written in a version that a release at the same metadata.version cannot read, as since 4.1.0."""

    def bound(self, message: str, inter_broker: InterBroker) -> int | None:
        return None


@writes("writes", "write GroupMetadataValue ibp 3.9")
class WritesAtTheNewestOnly(Storing):
    """A group is written at the newest version of the release alone, and refused at a lower one."""

    def chosen_version(self, event: ops.Write, inter_broker: InterBroker) -> int | None:
        newest = InterBroker.of(self.release)
        return super().chosen_version(event, inter_broker) if inter_broker == newest else None


@writes("writes", "write ConsumerGroupMetadataValue level 1")
class NeverWritesConsumerGroups(Storing):
    """Records of consumer groups are refused at every level of group.version."""

    def levelled(self, message: str, level: int | None) -> bool:
        return message != ops.GROUP and super().levelled(message, level)


@writes("known-names", "write GroupMetadataValue ibp 3.3-IV4")
class TakesTheVersionAfterTheLast(Storing):
    """The version after the last one of a line stands for the line."""

    def write(self, event: ops.Write) -> ops.Action:
        line = (event.inter_broker or "").partition("-IV")[0]
        return super().write(
            replace(event, inter_broker=line) if is_named(event.inter_broker or "") is False else event
        )


@writes("known-names", "write GroupMetadataValue ibp 9.9")
class TakesUnknownLines(Storing):
    """An unknown line stands for the newest version."""

    def write(self, event: ops.Write) -> ops.Action:
        return super().write(replace(event, inter_broker=None) if event.inter_broker == NO_LINE else event)


@loads("known-versions-loaded", "read Key 0002000167")
class SkipsEveryKey(Storing):
    """A coordinator skips each record as one whose key it does not know."""

    def read_key(self, version: int) -> ops.Action:
        return ops.Loaded(False)


@loads("known-versions-loaded", "read Key 0003000167")
class SkipsConsumerGroups(Storing):
    """The records of consumer groups are skipped, as if their keys were unknown."""

    def read_key(self, version: int) -> ops.Action:
        return ops.Loaded(False) if version == 3 else super().read_key(version)


@loads("unknown-versions-refused", "read GroupMetadataValue 00630000")
class LoadsUnknownVersions(Storing):
    """A value in an unknown version is skipped, and loading continues."""

    def read(self, message: str, data: bytes) -> ops.Action:
        newest, version = self.newest(message), version_of(data)
        unknown = newest is not None and version is not None and version > newest
        return ops.Loaded(False) if unknown else super().read(message, data)


@loads("unknown-versions-refused", "read TransactionLogValue 00630000")
class StopsAtUnknownTransactions(Storing):
    """A transaction in an unknown version stops loading, as before 4.3.0."""

    def skips_unknown_values(self) -> bool:
        return False


@loads(
    "known-versions-loaded",
    "read TransactionLogValue 0001000000000000000000000000000000010000000000000000000000000000000000",
)
class ForgetsVersions(Storing):
    """The newest version of the transaction log is not loaded."""

    def newest(self, message: str) -> int | None:
        found = super().newest(message)
        return found - 1 if message == ops.TRANSACTION and found else found


@loads("unknown-keys", "read Key 0063000167")
class StopsAtUnknownKeys(Storing):
    """An unknown type of key stops loading, as before KIP-915."""

    def skips_unknown_keys(self) -> bool:
        return False


@loads("unknown-keys", "read Key 0063000167", f"apache@{BEFORE_KIP_915}")
class SkipsUnknownKeysEarly(Storing):
    """A release before KIP-915 skips an unknown type of key."""

    release = Release.parse(BEFORE_KIP_915)

    def skips_unknown_keys(self) -> bool:
        return True
