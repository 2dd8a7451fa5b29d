"""The settings of a served broker: the defaults of its release, what differs for tests, and what users give."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, final

from kipcheck.conformance.core.files.broker_settings import Value, configured, defaults, releases_with, settings
from kipcheck.conformance.core.values.nearest import hint
from kipcheck.conformance.protocols.consumer_group import rules as consumer_groups
from kipcheck.conformance.protocols.group.model import answers as classic_groups

LARGEST: Final = 2**31 - 1
HEARTBEAT: Final = "group.consumer.heartbeat.interval.ms"
METADATA: Final = "offset.metadata.max.bytes"
PROTOCOLS: Final = "group.coordinator.rebalance.protocols"
RETENTION: Final = "offsets.retention.minutes"
CLASSIC, CONSUMER = "classic", "consumer"
OWN: Final[Mapping[str, Value]] = {
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.assignment.interval.ms": 0,
    consumer_groups.POLICY: "disabled",
    RETENTION: "unlimited",
}
"""What no release has by default: tests do not wait, a group with members keeps its type, and no offset expires."""
FIXED: Final = (consumer_groups.POLICY, RETENTION)
"""Those of ``OWN`` that users cannot change."""
SERVED: Final = tuple(
    each
    for each in (*classic_groups.SETTINGS, *consumer_groups.SETTINGS, HEARTBEAT, METADATA, PROTOCOLS)
    if each not in FIXED
)


@final
@dataclass(frozen=True, slots=True)
class Settings:
    """Times in milliseconds."""

    release: str
    values: Mapping[str, Value]
    """By name, of those that the release has."""

    @property
    def group(self) -> classic_groups.Config:
        return configured(classic_groups.Config(max_size=LARGEST), classic_groups.SETTINGS, self.values)

    @property
    def consumer(self) -> consumer_groups.Config:
        base = consumer_groups.Config(interval_ms=0, max_size=LARGEST)
        return configured(base, consumer_groups.SETTINGS, self.values)

    @property
    def has_consumer_groups(self) -> bool:
        """Whether there are groups of KIP-848; with releases before 4.0 its preview."""
        return CONSUMER in _elements(self.values.get(PROTOCOLS, ()))

    @property
    def consumer_heartbeat_ms(self) -> int:
        return self._number(HEARTBEAT)

    @property
    def most_metadata(self) -> int:
        """The most characters of the metadata of an offset."""
        return self._number(METADATA)

    @property
    def differences(self) -> list[str]:
        """Each value that is not the default of the release, or not between the bounds that other settings are."""
        usual = defaults(self.release)
        changed = [
            f"{name}={_plain(value)} (default {_plain(usual[name])})"
            for name, value in self.values.items()
            if value != usual[name]
        ]
        return [*changed, *self._out_of_bounds(usual)]

    def _out_of_bounds(self, usual: Mapping[str, Value]) -> Iterator[str]:
        """From 3.7 on brokers do not start with such values."""
        for name, value in self.values.items():
            for word, sign, beyond in (("min", 1, "below"), ("max", -1, "above")):
                bound = name.replace("group.consumer.", f"group.consumer.{word}.")
                limit = usual.get(bound) if bound != name else None
                if isinstance(limit, int) and isinstance(value, int) and sign * value < sign * limit:
                    yield f"{name}={value} is {beyond} {bound}={limit}"

    def _number(self, name: str) -> int:
        found = self.values[name]
        assert isinstance(found, int)
        return found


def parse(given: Iterable[str], release: str) -> Settings:
    """Settings from ``KEY=VALUE``. Errors: ValueError for a key that is not served, or not in the release, and for an
    invalid value."""
    known, usual = settings(release), defaults(release)
    values = {name: OWN.get(name, usual[name]) for name in (*SERVED, *FIXED) if name in known}
    if PROTOCOLS in values:
        values[PROTOCOLS] = tuple(each for each in _elements(usual[PROTOCOLS]) if each in (CLASSIC, CONSUMER))
    for text in given:
        name, _, value = text.partition("=")
        if name not in SERVED or name not in known:
            raise ValueError(_why_not(name, release))
        try:
            values[name] = _served(name, known[name].parse(value))
        except ValueError as wrong:
            raise ValueError(f"invalid value of {name}: {value!r}; {wrong}") from None
    return Settings(release, values)


def _served(name: str, value: Value) -> Value:
    """Errors: ValueError for a list of protocols that are not served."""
    if name == PROTOCOLS and value not in ((CLASSIC,), (CLASSIC, CONSUMER)):
        raise ValueError(f"use {CLASSIC} or {CLASSIC},{CONSUMER}")
    return value


def _why_not(name: str, release: str) -> str:
    if name in settings(release):
        return f"{name} is a setting of {release} that is not served; served: {_all(release)}"
    if there := releases_with(name):
        served = "" if name in SERVED else ", and it is not served"
        return f"{release} has no setting {name}: it is in {there}{served}"
    if there := releases_with(name, "group"):
        own = f"group.{name}"
        broker = f"; use that of the broker, {own}" if own in SERVED and own in settings(release) else ""
        return f"{name} is a setting of single groups (in {there}), which is not served{broker}"
    return f"unknown setting {name!r}{hint(name, SERVED) or '; served: ' + _all(release)}"


def _all(release: str) -> str:
    return ", ".join(each for each in SERVED if each in settings(release))


def _elements(value: Value) -> tuple[str, ...]:
    assert isinstance(value, tuple)
    return value


def _plain(value: Value) -> str:
    return ",".join(value) if isinstance(value, tuple) else str(value)
