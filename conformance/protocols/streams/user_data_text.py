"""User data, tasks and partitions of Streams members, as text. A reader that knows all versions decodes user data."""

from kipcheck.conformance.protocols.assignment.model.assignment import partition_names
from kipcheck.conformance.protocols.assignment.model.membership import Partitions
from kipcheck.conformance.protocols.streams.blobs import read_assignment, read_subscription
from kipcheck.conformance.protocols.streams.model.members import NO_REBALANCE, NO_VERSION, Blob, Fatal, Rejoin, Tasks


def tasks(some: Tasks) -> str:
    return " ".join(map(str, some)) or "nothing"


def partitions(some: Partitions) -> str:
    return partition_names(some) if some else "no partitions"


def rejoins(rejoin: Rejoin) -> str:
    match rejoin.when:
        case "again":
            return "; leaves the group and subscribes again"
        case "now":
            return "; rejoins at once"
        case "later":
            return f"; rejoins at {rejoin.at_ms} ms"
    return ""


def subscription(data: Blob) -> str:
    try:
        info = read_subscription(_bytes(data))
    except Fatal as unreadable:
        return f"sends undecodable data ({unreadable.why})"
    return f"uses version {info.used}" + ("" if info.latest == NO_VERSION else f" of {info.latest}")


def assignment(data: Blob) -> str:
    try:
        info = read_assignment(_bytes(data))
    except Fatal as unreadable:
        return f", and undecodable data ({unreadable.why})"
    text = f" in version {info.used}" + ("" if info.supported == NO_VERSION else f" ({info.supported} supported)")
    if info.error:
        return f"{text}: error {info.error}"
    text += f": {tasks(info.active)}"
    if info.standby:
        text += f", standby {tasks(tuple(task for task, _ in info.standby))}"
    return text if info.next_ms == NO_REBALANCE else f"{text}; rebalance at {info.next_ms} ms"


def _bytes(data: Blob) -> bytes:
    assert isinstance(data, bytes)
    return data
