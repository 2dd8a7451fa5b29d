"""Describes the events of a consumer and its requests, for reports."""

from collections.abc import Iterable, Iterator
from typing import Final, assert_never

from kipcheck.conformance.core.case import Step
from kipcheck.conformance.protocols.assignment.model.assignment import NO_GENERATION, partition_names
from kipcheck.conformance.protocols.assignment.model.membership import Assigned, Subscription
from kipcheck.conformance.protocols.group.model.messages import Blob, Commit, Heartbeat, Join, Joined, Leave, Sync
from kipcheck.conformance.protocols.member.model.client import AnswerReceived
from kipcheck.conformance.protocols.member.model.messages import Request
from kipcheck.conformance.tests.protocols.member.old_ops import event_of
from kipcheck.conformance.tests.protocols.member.old_shorthand import CONSUMER, event_text, shorthand

NO_MEMBER: Final = "no member id"


def describe_event(step: Step) -> str:
    """The event in shorthand. What shorthand cannot express follows it in brackets: subscriptions of members."""
    exact = shorthand((step,))
    if not exact.startswith(step.verb):
        return exact
    event = event_of(step)
    if not isinstance(event, AnswerReceived) or not isinstance(event.answer, Joined):
        return exact
    found = event.answer
    kind = f" type={found.protocol_type}" if found.protocol_type != CONSUMER else ""
    members = "; ".join(f"{id}: {_metadata(blob)}" for id, _, blob in found.members)
    return f"{event_text(event)}{kind}{f' ({members})' if members else ''}"


def describe_request(request: Request) -> str:
    """``JoinGroup, member m1, range: t, owns t-0``."""
    match request:
        case Join():
            metadata = dict.fromkeys(_metadata(blob) for _, blob in request.protocols)
            names = ", ".join(name for name, _ in request.protocols) or "no protocol"
            parts = ["JoinGroup", *_identity(request), f"{names}: {' | '.join(metadata)}"]
        case Sync():
            given = "; ".join(f"{member}: {_metadata(blob)}" for member, blob in request.assignments)
            parts = ["SyncGroup", *_identity(request), f"generation {request.generation}"]
            parts += [f"assigns {given}"] if given else []
        case Heartbeat():
            parts = ["Heartbeat", *_identity(request), f"generation {request.generation}"]
        case Leave():
            parts = ["LeaveGroup", *(f"member {id}" if id else NO_MEMBER for id, _ in request.members)]
        case Commit():
            offsets = (f"{topic}-{number} at {offset}" for topic, number, offset in request.offsets)
            parts = ["OffsetCommit", *_identity(request), f"generation {request.generation}", *offsets]
        case _:
            assert_never(request)
    return ", ".join(parts)


def _identity(request: Join | Sync | Heartbeat | Commit) -> Iterator[str]:
    yield f"member {request.member}" if request.member else NO_MEMBER
    if request.instance is not None:
        yield f"instance {request.instance}"


def _metadata(blob: Blob) -> str:
    """What a subscription or an assignment contains."""
    match blob:
        case Subscription():
            return ", ".join(_subscription(blob))
        case Assigned(partitions, error=wrong):
            return f"error {wrong}" if wrong else partition_names(partitions)
    return str(blob) if blob else "no bytes"


def _subscription(found: Subscription) -> Iterator[str]:
    yield _listed(found.topics) or "no topics"
    if found.owned:
        yield f"owns {partition_names(found.owned)}"
    if found.generation != NO_GENERATION:
        yield f"of generation {found.generation}"
    if found.data:
        since = f" of generation {found.data_generation}" if found.data_generation != NO_GENERATION else ""
        yield f"had {partition_names(found.data)}{since}"
    if found.rack is not None:
        yield f"rack {found.rack}"


def _listed(names: Iterable[str]) -> str:
    return " ".join(names)
