"""The released jars that make vectors, and those whose outcomes are recorded."""

from collections.abc import Iterator
from functools import cache
from typing import Final

from kipcheck.conformance.clients.java.programs import PARTS, parts
from kipcheck.conformance.core.files.releases_table import judges, listed, named, span
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.release import Release, releases
from kipcheck.conformance.wire.schema import Layout, spec

_GENERATED: Final = releases(span("generated-classes"))
CLIENTS: Final = tuple(each for each in judges("clients") if Release.parse(each) in _GENERATED)
"""Releases in which readers changed; generated classes read and write themselves from 2.4.0 on."""
OLD_CLIENTS: Final = tuple(each for each in judges("clients") if each not in CLIENTS)
"""Also tested with the messages that consumers exchange, which have other classes."""
STREAMS: Final = judges("streams")
"""Every release line, and patches in which a record of Streams changed within a line."""
LAST_WITHOUT_GENERATION: Final = named("last-before-sticky-generation")
"""From 2.3.0 on sticky user data has a version 1."""
MAKERS: Final = listed("makers")
"""The newest comes first: each makes the versions that those before it no longer support."""

RECORDS: Final = ("SubscriptionInfo", "AssignmentInfo")
CONSUMER: Final = ("ConsumerProtocolSubscription", "ConsumerProtocolAssignment")
STICKY: Final = ("StickyAssignorUserData", "CooperativeStickyAssignorUserData")


def part(message: str) -> str:
    """The part of Kafka whose jar has the message."""
    if message in (*RECORDS, "ValueAndTimestamp"):
        return "streams"
    if message.startswith("TransactionLog"):
        return "transaction-coordinator"
    if message in ("FeatureLevelRecord", "NoOpRecord"):
        return "metadata"
    return "group-coordinator" if message.endswith(("Key", "Value")) else "clients"


def coordinate(release: str, message: str) -> str:
    return f"org.apache.kafka:kafka-{part(message)}:{release}"


@cache
def layout_in(release: str, message: str, version: int) -> Layout | None:
    """The layout; None where the release does not support the version."""
    try:
        found = spec(edition(f"apache@{release}"), message)
    except LookupError:
        return None
    # Later versions have a layout too, of the few fields that are read of them.
    return next((each for each in found if each.version == version), None)


def tested_releases(message: str, version: int) -> Iterator[str]:
    """The releases that can be tested with a message, oldest first."""
    if message in RECORDS:
        yield from STREAMS  # they read some fields of a newer version
        return
    old = OLD_CLIENTS if message in (*CONSUMER, *STICKY) else ()
    for release in (*old, *(STREAMS if part(message) == "streams" else CLIENTS)):
        if part(message) in parts(release) and layout_in(release, message, version) is not None:
            yield release


def maker(layout: Layout) -> str:
    """The newest release that supports the version in its newest form. Errors: LookupError."""
    if (layout.message, layout.version) == ("StickyAssignorUserData", 0):
        return LAST_WITHOUT_GENERATION  # later ones only read it
    for release in MAKERS:
        if part(layout.message) in parts(release):
            found = layout_in(release, layout.message, layout.version)
            if found is not None and _same_bytes(found, layout):
                return release
    raise LookupError(f"no jar makes {layout}")


def _same_bytes(one: Layout, other: Layout) -> bool:
    return one.version == other.version and [(each.name, each.type, each.tag) for each in one.slots] == [
        (each.name, each.type, each.tag) for each in other.slots
    ]


def jars() -> dict[str, tuple[str, ...]]:
    """Every release that is needed, with its parts."""
    wanted = sorted({*CLIENTS, *OLD_CLIENTS, *STREAMS, *MAKERS, LAST_WITHOUT_GENERATION}, key=Release.parse)
    kept = [each for each in PARTS if each != "core"]
    return {release: tuple(each for each in parts(release) if each in kept) for release in wanted}
