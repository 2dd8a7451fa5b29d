"""Whether bytes that look damaged may be read all the same, by the rules of the readers that Kafka has."""

from collections.abc import Iterator
from contextlib import suppress

from kipcheck.conformance.wire import layout as layout_of
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.schema import Layout

READ_AGAIN: dict[str, tuple[int, ...]] = {
    "StickyAssignorUserData": (1, 0),
    "ApiVersionsResponse": (0,),
}
"""Versions that readers try when the one they expect fails: the bytes do not say which they are.

``StickyAssignor`` reads a blob as v1, then as v0; a client reads an ApiVersions answer as v0 where it cannot be read as
what it asked for, since a broker that does not know the version answers so.
"""

NOT_ALL_READ = frozenset({"SubscriptionInfo", "AssignmentInfo"})
"""0.10.1.0 to 1.1.1 write more into version 1 than they read of it: they read it as 0.10.0 writes it."""

FORGIVING = frozenset({"StickyAssignorUserData", "CooperativeStickyAssignorUserData"})
"""What the assignors take for no information at all, where they cannot read it: nothing is refused."""


def prefix_is_legal(layout: Layout, prefix: bytes) -> bool:
    """Do these first bytes of a value stand for a value themselves?

    They do where they decode in full at this version, which then has an open end (``rest``): of all the others every
    byte is called for. Or where readers take another layout, with bytes left over or not.
    """
    return (_open_ended(layout) and _decodes(layout, prefix)) or reads_again(layout, prefix)


def reads_again(layout: Layout, data: bytes) -> bool:
    """Do readers that fall back to another layout, or read no more than that, accept the bytes?"""
    return any(_decodes(other, data, lenient=True) for other in _others(layout) if other != layout)


def _others(layout: Layout) -> Iterator[Layout]:
    for version in READ_AGAIN.get(layout.message, ()):
        # An edition of one release, or a jar, may have it no more.
        with suppress(LookupError):
            yield layout_of(layout.edition, layout.message, version)
    if layout.message in NOT_ALL_READ and layout.version == 1:
        yield layout_of("apache", layout.message, 1)


def _open_ended(layout: Layout) -> bool:
    return any(slot.type == "rest" for slot in layout.slots)


def _decodes(layout: Layout, data: bytes, *, lenient: bool = False) -> bool:
    try:
        layout.decode(data, lenient=lenient)
    except Refused:
        return False
    return True
