"""Describes requests to the coordinator of a classic group, and its answers, for reports."""

from collections.abc import Iterable, Iterator
from typing import Final, assert_never

from kipcheck.conformance.protocols.group.model.messages import (
    Beat,
    Commit,
    Committed,
    Delete,
    Deleted,
    Describe,
    Described,
    Error,
    Fetch,
    Fetched,
    Heartbeat,
    Join,
    Joined,
    Leave,
    Left,
    Listed,
    ListGroups,
    Load,
    Loaded,
    Reply,
    Request,
    Sync,
    Synced,
    Unload,
)
from kipcheck.conformance.protocols.group.model.service import By, Elapse, FailWrite
from kipcheck.conformance.protocols.group.trace import Trace, TracedRequest, TracedStep

_APIS: Final[dict[type[Request], str]] = {
    Join: "JoinGroup",
    Sync: "SyncGroup",
    Heartbeat: "Heartbeat",
    Leave: "LeaveGroup",
    Commit: "OffsetCommit",
    Fetch: "OffsetFetch",
    Describe: "DescribeGroups",
    ListGroups: "ListGroups",
    Delete: "DeleteGroups",
}


def describe_step(moment: TracedStep, trace: Trace) -> str:
    match moment.event:
        case By():
            return describe_request(trace.request(moment.index))
        case Elapse(ms):
            return f"{ms} ms pass"
        case FailWrite(error):
            return f"the next append fails: {error.name}"
        case Unload():
            return "the partition of the group moves to another broker"
        case Load():
            return "the partition comes back"
        case Loaded():
            return "its log is read"
        case _:
            assert_never(moment.event)


def describe_request(asked: TracedRequest) -> str:
    """``SyncGroup v3, member a.1, generation 1, gives a.1 x``."""
    request = asked.request
    parts = [f"{_APIS[type(request)]} v{request.version}", *_details(request)]
    return ", ".join([*parts, *["with an empty group id"] * asked.nameless])


def _details(request: Request) -> Iterator[str]:
    if isinstance(request, Join | Sync | Heartbeat | Commit):
        yield f"member {request.member}" if request.member else "no member id"
        if request.instance is not None:
            yield f"instance {request.instance}"
    if isinstance(request, Sync | Heartbeat | Commit):
        yield f"generation {request.generation}"
    match request:
        case Join():
            yield f"{request.protocol_type or 'no type'} {_pairs(request.protocols) or 'without protocols'}"
            yield f"session {request.session_ms} ms, rebalance {request.rebalance_ms} ms"
            if request.protocol_version is not None:
                yield f"protocol version {request.protocol_version}"
        case Sync():
            if request.assignments:
                yield f"gives {', '.join(f'{member} {blob!r}' for member, blob in request.assignments)}"
        case Leave():
            yield ", ".join(_member(id, instance) for id, instance in request.members) or "no members"
        case Commit():
            yield _offsets(request.offsets)


def describe_answer(reply: Reply) -> str:
    if reply.error is not Error.NONE:
        member = f", member {reply.member}" if isinstance(reply, Joined) and reply.member else ""
        return f"{reply.error.name}{member}"
    match reply:
        case Joined():
            leads = "leads" if reply.leader == reply.member else f"led by {reply.leader}"
            listed = f" over {', '.join(id for id, _, _ in reply.members)}" if reply.members else ""
            skips = ", skips the assignment" * reply.skip_assignment
            known = f"generation {reply.generation}, protocol {reply.protocol}, member {reply.member}"
            return f"{known}, {leads}{listed}{skips}"
        case Synced():
            return f"assigned {reply.assignment!r}"
        case Left():
            each = (f"{_member(id, instance)}: {error.name}" for id, instance, error in reply.members)
            return ", ".join(each) or "done"
        case Fetched():
            return _offsets(reply.offsets) or "no offsets"
        case Described():
            members = ", ".join(_member(id, instance) for id, instance, _, _ in reply.members)
            return f"{reply.state}, {members or 'no members'}"
        case Listed():
            return ", ".join(" ".join(filter(None, each)) for each in reply.groups) or "no groups"
        case Beat() | Committed() | Deleted():
            return "done"
        case _:
            assert_never(reply)


def _member(id: str, instance: str | None) -> str:
    return " as ".join(filter(None, (id, instance))) or "no member"


def _pairs(protocols: Iterable[tuple[str, object]]) -> str:
    return ", ".join(f"{name}:{blob}" for name, blob in protocols)


def _offsets(offsets: Iterable[tuple[str, int, int]]) -> str:
    return ", ".join(f"{topic}-{partition} at {offset}" for topic, partition, offset in offsets)
