"""What readers of old Kafka Streams releases accept and no generated reader does.

========================  ===============================  ========================================================
message                   releases                         rule
========================  ===============================  ========================================================
SubscriptionInfo          0.10.0.0-2.4.1                   a negative count means no elements
AssignmentInfo, by host   0.10.1.0-4.3.0                   the same (4.3.1 calls such bytes corrupt)
both, version 1           0.10.1.0-1.1.1                   end point and hosts, written after it, are not read
========================  ===============================  ========================================================

Observed on the jars: ``conformance/tests/wire/test_quirks.py``. One rule concerns values and is not applied here: from
2.5.0
on a subscription of version 3 or later that supports less than its own version is refused.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from kipcheck.conformance.core.files.releases_table import span
from kipcheck.conformance.core.values.edition import Standing, edition
from kipcheck.conformance.core.values.release import Release, releases
from kipcheck.conformance.wire.schema import Layout, Slot

BY_HOST = ("partitionsByHost", "standbyPartitionsByHost")
UNCOUNTED = {
    "SubscriptionInfo": (("prevTasks", "standbyTasks"), releases(span("hand-written-subscription-info"))),
    "AssignmentInfo": (BY_HOST, releases(span("partitions-by-host-uncounted"))),
}
UNREAD = {"SubscriptionInfo": "userEndPoint", "AssignmentInfo": "partitionsByHost"}
LONG_V1 = releases(span("layout-1-is-long"))


def as_read(layout: Layout) -> Layout:
    """The layout that the release's own reader uses: a null array is empty to it, and fields may be missing."""
    if layout.message not in UNCOUNTED or layout.prefix is None or not layout.prefix.name:
        return layout
    slots = tuple(_slots(layout))
    return layout if slots == layout.slots else replace(layout, slots=slots)


def without_unread(layout: Layout, value: Any, got: Any) -> Any:
    """``value`` without the fields that ``got`` lacks because the release's own reader does not read them (268-40)."""
    unread = frozenset(layout.names) - frozenset(as_read(layout).names)
    if not unread or not isinstance(got, dict):
        return value
    return {name: each for name, each in value.items() if name in got or name not in unread}


def with_all_fields(layout: Layout, value: dict[str, Any]) -> dict[str, Any]:
    """``value``, decoded with ``as_read``, completed with every field of ``layout``."""
    slots = {slot.name: slot for slot in layout.slots}
    out = {}
    for name in layout.names:
        each, slot = value.get(name), slots.get(name)
        out[name] = slot.fresh() if each is None and slot and not slot.nullable else each
    return out


def _slots(layout: Layout) -> Iterator[Slot]:
    of = edition(layout.edition)
    names, forgiving = UNCOUNTED[layout.message]
    if of.standing is not Standing.RELEASED or not of.exact:
        yield from layout.slots
        return
    release = Release.parse(of.release)
    for slot in layout.slots:
        if layout.version == 1 and release in LONG_V1 and slot.name == UNREAD[layout.message]:
            continue
        yield replace(slot, nullable=True) if slot.name in names and release in forgiving else slot
