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
from kipcheck.conformance.protocols.stored_records.ops import (
    CLASSIC,
    GROUP,
    INTER_BROKERS,
    KEY,
    SAMPLES,
    TRANSACTION,
    UNREADABLE,
    UNSUPPORTED,
    Action,
    Event,
    Loaded,
    Read,
    Record,
    Rejected,
    Write,
)
from kipcheck.conformance.protocols.stored_records.settings import FEATURES_SINCE, decoded, in_force, version_of
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.schema import spec
from kipcheck.conformance.wire.stored_records import InterBroker, newest_readable, readable_before, written

State = tuple[()]
HIGHEST_LEVEL: Final = {TRANSACTION: 2}
CLASSIC_KEYS: Final = range(3)
"""Versions of keys: of offsets, 0 and 1, and of classic groups."""
ENVIRONMENT_EVENTS: Final[tuple[Event, ...]] = (
    *(Write(message, each) for message in CLASSIC for each in INTER_BROKERS),
    *(Write(message, None, level) for message in (*CLASSIC, TRANSACTION, GROUP) for level in (None, 0, 1, 2)),
    *(Write("OffsetCommitValue", each, expires=True) for each in INTER_BROKERS),
    *(Read(message, data) for (message, _), data in SAMPLES.items()),
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

    def step(self, state: State, event: Event, /) -> Transition[State, Action]:
        match event:
            case Write():
                return Transition(state, (self.write(event),))
            case Read(message, data):
                return Transition(state, (self.read(message, decoded(data)),))
            case _:
                assert_never(event)

    def write(self, event: Write) -> Action:
        if not self.levelled(event.message, event.level):
            return Rejected(UNSUPPORTED)
        inter_broker = in_force(event.inter_broker, self.release)
        version = None if inter_broker is None else self.chosen_version(event, inter_broker)
        return Rejected(UNSUPPORTED) if version is None else Record(self.encoded(event.message, version))

    def levelled(self, message: str, level: int | None) -> bool:
        """Whether the record is written at that level of its feature; classic records are at every one."""
        if self.release < FEATURES_SINCE:
            return level is None and message != GROUP
        if level is None:
            return True
        return int(message == GROUP) <= level <= HIGHEST_LEVEL.get(message, 1)

    def chosen_version(self, event: Write, inter_broker: InterBroker) -> int | None:
        """None: there was no such record."""
        if event.message == GROUP:
            return 0
        transactions = event.level if event.message == TRANSACTION else None
        found = written(event.message, self.release, inter_broker, expiring=event.expires, transactions=transactions)
        before = self.bound(event.message, inter_broker) if event.message in CLASSIC else None
        return found if found is None or before is None else min(found, before)

    def bound(self, message: str, inter_broker: InterBroker) -> int | None:
        """The newest version that keeps the way back; None: it is not kept."""
        return None if self.as_released else readable_before(message, inter_broker)

    def encoded(self, message: str, version: int) -> str:
        layout = spec(edition(f"apache@{self.release}"), message).at(version)
        return layout.encode(layout.defaults()).hex()

    def read(self, message: str, data: bytes) -> Action:
        version = version_of(data)
        if version is None:
            return Rejected(UNREADABLE)
        if message == KEY:
            return self.read_key(version)
        newest = self.newest(message)
        if newest is None or version > newest:
            return Loaded(False) if message == TRANSACTION and self.skips_unknown_values() else Rejected(UNREADABLE)
        try:
            spec(edition(f"apache@{self.release}"), message).at(version).decode(data, lenient=True)
        except (LookupError, Refused):
            return Rejected(UNREADABLE)
        return Loaded(True)

    def newest(self, message: str) -> int | None:
        """The newest version of the value that is loaded; None: the release has no such record."""
        return newest_readable(message, self.release)

    def read_key(self, version: int) -> Action:
        known = version in CLASSIC_KEYS or (version == 3 and self.release >= FEATURES_SINCE)
        if known:
            return Loaded(True)
        return Loaded(False) if self.skips_unknown_keys() else Rejected(UNREADABLE)

    def skips_unknown_keys(self) -> bool:
        """KIP-915."""
        return self.release in releases(span("skips-unknown-group-keys"))

    def skips_unknown_values(self) -> bool:
        return self.release in releases(span("skips-unknown-transaction-values"))

    def enabled(self, state: State, /) -> Iterable[Event]:
        return (each for each in ENVIRONMENT_EVENTS if not isinstance(self.step(state, each).actions[0], Rejected))
