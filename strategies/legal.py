"""Decides whether damaged bytes may still be decoded, by the rules of Kafka's readers."""

from collections.abc import Iterator
from contextlib import suppress

from kipcheck.conformance.wire import layout as layout_of
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.schema import Layout

READ_AGAIN: dict[str, tuple[int, ...]] = {
    "StickyAssignorUserData": (1, 0),
    "ApiVersionsResponse": (0,),
}
"""Versions that readers try when the expected one fails: the bytes do not contain their version.

``StickyAssignor`` decodes user data as v1, then as v0; a client decodes an ApiVersions response as v0 where it is not
in the requested version, since a broker without that version responds so.
"""

NOT_ALL_READ = frozenset({"SubscriptionInfo", "AssignmentInfo"})
"""0.10.1.0 to 1.1.1 write more fields in version 1 than they read: they read it as 0.10.0 writes it."""

FORGIVING = frozenset({"StickyAssignorUserData", "CooperativeStickyAssignorUserData"})
"""User data that assignors ignore where they cannot decode it: nothing is refused."""


def prefix_is_legal(layout: Layout, prefix: bytes) -> bool:
    """Whether these first bytes of a value encode a value themselves.

    They do where they decode completely at this version, whose end must be open (``rest``), since other versions need
    every byte; or where readers accept another layout, with or without remaining bytes.
    """
    return (_open_ended(layout) and _decodes(layout, prefix)) or reads_again(layout, prefix)


def reads_again(layout: Layout, data: bytes) -> bool:
    """Whether readers that fall back to another layout, or read less, accept the bytes."""
    return any(_decodes(other, data, lenient=True) for other in _others(layout) if other != layout)


def _others(layout: Layout) -> Iterator[Layout]:
    for version in READ_AGAIN.get(layout.message, ()):
        # An edition of one release, or a jar, may lack it.
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
