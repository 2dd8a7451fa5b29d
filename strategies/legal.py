"""Whether bytes that look damaged may be read all the same, by the rules of the readers that Kafka has."""

from conformance.wire import layout as layout_of
from conformance.wire.errors import Refused
from conformance.wire.schema import Layout

READ_AGAIN: dict[str, tuple[int, ...]] = {
    "StickyAssignorUserData": (1, 0),
    "ApiVersionsResponse": (0,),
}
"""Versions that readers try when the one they expect fails: the bytes do not say which they are.

``StickyAssignor`` reads a blob as v1, then as v0; a client reads an ApiVersions answer as v0 where it cannot be read as
what it asked for, since a broker that does not know the version answers so.
"""

FORGIVING = frozenset({"StickyAssignorUserData", "CooperativeStickyAssignorUserData"})
"""What the assignors take for no information at all, where they cannot read it: nothing is refused."""


def prefix_is_legal(layout: Layout, prefix: bytes) -> bool:
    """Do these first bytes of a value stand for a value themselves?

    They do where they decode in full at this version, which then has an open end (``rest``): of all the others every
    byte is called for. Or where readers fall back to another version (``READ_AGAIN``), with bytes left over or not.
    """
    return (_open_ended(layout) and _decodes(layout, prefix)) or reads_again(layout, prefix)


def reads_again(layout: Layout, data: bytes) -> bool:
    """Does a version that readers fall back to accept the bytes?"""
    return any(
        _decodes(other, data, lenient=True)
        for version in READ_AGAIN.get(layout.message, ())
        if version != layout.version and (other := _other(layout, version)) is not None
    )


def _open_ended(layout: Layout) -> bool:
    return any(slot.type == "rest" for slot in layout.slots)


def _other(layout: Layout, version: int) -> Layout | None:
    try:
        return layout_of(layout.edition, layout.message, version)
    except LookupError:  # an edition of one release, or a jar, that has it no more
        return None


def _decodes(layout: Layout, data: bytes, *, lenient: bool = False) -> bool:
    try:
        layout.decode(data, lenient=lenient)
    except Refused:
        return False
    return True
