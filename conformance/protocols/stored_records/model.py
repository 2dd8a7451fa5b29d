"""The reference machine of stored records: what the coordinators of a release write and load.

It keeps no state: a record is written by the settings at that moment, and loaded by its bytes alone. The versions are
those of ``wire/stored_records.py``, which tests compare with the functions of released brokers.
"""

from collections.abc import Iterable
from typing import Final, assert_never

from kipcheck.conformance.core.files.releases_table import span
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.core.values.release import NEWEST, Release, releases
from kipcheck.conformance.protocols.stored_records import ops
from kipcheck.conformance.protocols.stored_records.settings import FEATURES_SINCE, decoded, in_force, version_of
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.schema import spec
from kipcheck.conformance.wire.stored_records import InterBroker, newest_readable, readable_before, written

State = tuple[()]
HIGHEST_LEVEL: Final = {ops.TRANSACTION: 2}
CLASSIC_KEYS: Final = range(3)
"""Versions of keys: of offsets, 0 and 1, and of classic groups."""
ENVIRONMENT_EVENTS: Final[tuple[ops.Event, ...]] = (
    *(ops.Write(message, each) for message in ops.CLASSIC for each in ops.INTER_BROKERS),
    *(ops.Write(message, None, level) for message in (*ops.CLASSIC, ops.TRANSACTION, ops.GROUP) for level in (None, 0,
    1, 2)),
    *(ops.Write("OffsetCommitValue", each, expires=True) for each in ops.INTER_BROKERS),
    *(ops.Read(message, data) for (message, _), data in ops.SAMPLES.items()),
)  # fmt: skip


class StoredRecords:
    release = Release.parse(NEWEST)
    as_released = False

    def __init__(self, release: str = NEWEST, as_released: bool = False) -> None:
        """``as_released``: whether it breaks 384-23, as releases from 4.1.0 on do."""
        self.release = Release.parse(release)
        self.as_released = as_released

    def initial(self) -> State:
        return ()

    def step(self, state: State, event: ops.Event, /) -> Transition[State, ops.Action]:
        match event:
            case ops.Write():
                return Transition(state, (self.write(event),))
            case ops.Read(message, data):
                return Transition(state, (self.read(message, decoded(data)),))
            case _:
                assert_never(event)

    def write(self, event: ops.Write) -> ops.Action:
        if not self.levelled(event.message, event.level):
            return ops.Rejected(ops.UNSUPPORTED)
        inter_broker = in_force(event.inter_broker, self.release)
        version = None if inter_broker is None else self.chosen_version(event, inter_broker)
        return ops.Rejected(ops.UNSUPPORTED) if version is None else ops.Record(self.encoded(event.message, version))

    def levelled(self, message: str, level: int | None) -> bool:
        """Whether the record is written at that level of its feature; classic records are at every one."""
        if self.release < FEATURES_SINCE:
            return level is None and message != ops.GROUP
        if level is None:
            return True
        return int(message == ops.GROUP) <= level <= HIGHEST_LEVEL.get(message, 1)

    def chosen_version(self, event: ops.Write, inter_broker: InterBroker) -> int | None:
        """None: there was no such record."""
        if event.message == ops.GROUP:
            return 0
        transactions = event.level if event.message == ops.TRANSACTION else None
        found = written(event.message, self.release, inter_broker, expiring=event.expires, transactions=transactions)
        before = self.bound(event.message, inter_broker) if event.message in ops.CLASSIC else None
        return found if found is None or before is None else min(found, before)

    def bound(self, message: str, inter_broker: InterBroker) -> int | None:
        """The newest version that keeps the way back; None: it is not kept."""
        return None if self.as_released else readable_before(message, inter_broker)

    def encoded(self, message: str, version: int) -> str:
        layout = spec(edition(f"apache@{self.release}"), message).at(version)
        return layout.encode(layout.defaults()).hex()

    def read(self, message: str, data: bytes) -> ops.Action:
        version = version_of(data)
        if version is None:
            return ops.Rejected(ops.UNREADABLE)
        if message == ops.KEY:
            return self.read_key(version)
        newest = self.newest(message)
        if newest is None or version > newest:
            return (
                ops.Loaded(False)
                if message == ops.TRANSACTION and self.skips_unknown_values()
                else ops.Rejected(ops.UNREADABLE)
            )
        try:
            spec(edition(f"apache@{self.release}"), message).at(version).decode(data, lenient=True)
        except (LookupError, Refused):
            return ops.Rejected(ops.UNREADABLE)
        return ops.Loaded(True)

    def newest(self, message: str) -> int | None:
        """The newest version of the value that is loaded; None: the release has no such record."""
        return newest_readable(message, self.release)

    def read_key(self, version: int) -> ops.Action:
        known = version in CLASSIC_KEYS or (version == 3 and self.release >= FEATURES_SINCE)
        if known:
            return ops.Loaded(True)
        return ops.Loaded(False) if self.skips_unknown_keys() else ops.Rejected(ops.UNREADABLE)

    def skips_unknown_keys(self) -> bool:
        """KIP-915."""
        return self.release in releases(span("skips-unknown-group-keys"))

    def skips_unknown_values(self) -> bool:
        return self.release in releases(span("skips-unknown-transaction-values"))

    def enabled(self, state: State, /) -> Iterable[ops.Event]:
        return (each for each in ENVIRONMENT_EVENTS if not isinstance(self.step(state, each).actions[0], ops.Rejected))
