"""The two formats of values of KIP-258's draft, and the conversion from one to the other.

The old format is the value alone; the new one has the timestamp in front, 8 bytes, most significant first, as released
stores have it. A record of a changelog says in its header which one it has.
"""

from typing import Final, TypeAlias

from kipcheck.conformance.protocols.store_upgrade.ops import NEW, OLD, Logged, Place

STAMP: Final = 16
"""Digits of a timestamp."""
Contents: TypeAlias = tuple[tuple[str, str], ...]
"""Keys with the bytes that a store has, in hex, sorted."""


def stamped(value: str, timestamp: int) -> str:
    return timestamp.to_bytes(8, "big", signed=True).hex() + value


def unstamped(stored: str) -> tuple[str, int]:
    """Value and timestamp of bytes in the new format."""
    return stored[STAMP:], int.from_bytes(bytes.fromhex(stored[:STAMP]), "big", signed=True)


def for_new_store(record: Logged) -> str | None:
    """The bytes that a store with timestamps has of a record.

    Errors: LookupError for a version that does not exist, ValueError for bytes that are too short for their version.
    """
    if record.version not in (OLD, NEW):
        raise LookupError(record.version)
    if record.value is None or record.version == NEW:
        if record.value is not None and len(record.value) < STAMP:
            raise ValueError(record.value)
        return record.value
    return stamped(record.value, record.timestamp)


def for_store(record: Logged, place: Place) -> str | None:
    """The bytes that a store has of a record. Errors: as ``for_new_store``."""
    converted = for_new_store(record)
    return converted if place == "new" or converted is None else unstamped(converted)[0]


def having(contents: Contents, key: str, value: str | None) -> Contents:
    rest = {each: had for each, had in contents if each != key}
    return tuple(sorted({**rest, **({} if value is None else {key: value})}.items()))
