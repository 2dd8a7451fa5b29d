"""The settings of a broker that its machines have, by their names in Kafka."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final, final

from kipcheck.conformance.core.nearest import hint
from kipcheck.conformance.protocols.group.model.answers import Config

LARGEST: Final = 2**31 - 1


@final
@dataclass(frozen=True, slots=True)
class Settings:
    """A broker's defaults, except that the first rebalance of a group does not wait. Times in milliseconds."""

    group: Config = field(default_factory=lambda: Config(max_size=LARGEST, initial_delay_ms=0))
    consumer_session_ms: int = 45_000
    consumer_heartbeat_ms: int = 5_000
    consumer_groups: bool | None = None
    """Whether there are groups of KIP-848; None: as by default in the release, from 4.0 on."""
    records: int = 10
    """Records of each partition."""


_GROUP: Final = {
    "group.initial.rebalance.delay.ms": ("initial_delay_ms", 0),
    "group.min.session.timeout.ms": ("min_session_ms", 1),
    "group.max.session.timeout.ms": ("max_session_ms", 1),
    "group.max.size": ("max_size", 1),
}
_OWN: Final = {
    "group.consumer.session.timeout.ms": ("consumer_session_ms", 1),
    "group.consumer.heartbeat.interval.ms": ("consumer_heartbeat_ms", 1),
}
PROTOCOLS: Final = "group.coordinator.rebalance.protocols"
_PROTOCOLS: Final = {"classic": False, "classic,consumer": True}
"""With consumer, releases from 3.7 on have the preview of KIP-848."""
NAMES: Final = (*_GROUP, *_OWN, PROTOCOLS)


def parse(given: Iterable[str]) -> Settings:
    """Settings from ``KEY=VALUE``. Errors: ValueError for an unknown key, with the nearest, or an invalid value."""
    settings = Settings()
    for text in given:
        key, equals, value = text.partition("=")
        if key not in NAMES:
            raise ValueError(f"unknown setting {key!r}{hint(key, NAMES) or '; known: ' + ', '.join(NAMES)}")
        if key == PROTOCOLS:
            if value not in _PROTOCOLS:
                raise ValueError(f"invalid value of {key}: {value!r}; use {' or '.join(_PROTOCOLS)}")
            settings = replace(settings, consumer_groups=_PROTOCOLS[value])
            continue
        name, least = {**_GROUP, **_OWN}[key]
        if not equals or not value.isascii() or not value.isdigit() or not least <= int(value) <= LARGEST:
            raise ValueError(f"invalid value of {key}: {value!r}; use an integer from {least} to {LARGEST}")
        change = {name: int(value)}
        if key in _GROUP:
            settings = replace(settings, group=replace(settings.group, **change))
        else:
            settings = replace(settings, **change)  # type: ignore[arg-type]
    return settings
