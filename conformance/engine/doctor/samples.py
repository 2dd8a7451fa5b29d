"""What a doctor asks: harmless operations on what a testee claims."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from kipcheck.conformance.apis.streams_blobs import write_assignment, write_subscription
from kipcheck.conformance.apis.streams_operations import plain_memory, plain_settings
from kipcheck.conformance.core.case import Role
from kipcheck.conformance.core.edition import edition
from kipcheck.conformance.models.streams.members import (
    STREAM,
    AssignmentInfo,
    Memory,
    Settings,
    SubscriptionInfo,
    TaskId,
)
from kipcheck.conformance.models.streams.operations import STATELESS
from kipcheck.conformance.targets.protocol import GROUP, Claims
from kipcheck.conformance.wire.schema import ZERO_UUID, Layout, messages, spec

EDITION: Final = "apache"
ASSIGNORS: Final = ("range", "roundrobin", "sticky", "cooperative-sticky")
Op: TypeAlias = dict[str, Any]

SETTINGS: Final = Settings("", STATELESS, str(ZERO_UUID))
SAID: Final = write_subscription(SubscriptionInfo(1)).hex()
"""Every release can read that."""
TOLD: Final = write_assignment(AssignmentInfo(1, active=(TaskId(0, 0),))).hex()
JOINED: Final = {"id": "c1", "subscription": ["t"], "userData": SAID, "owned": [], "generation": -1}


def asked_of(claims: Claims, role: Role) -> Iterator[Op]:
    """Harmless ones, of what it claims."""
    match role:
        case Role.LEADER:
            yield from (assign(each, "t") for each in ASSIGNORS if each in claims.assignors)
            if STREAM in claims.assignors:
                yield stream("assign", topics=[{"name": "t", "partitions": 2}], members=[JOINED], offsets={})
        case Role.MEMBER if STREAM in claims.assignors:
            yield stream("configure")
            yield stream("subscribe", topics=["t"])
            yield stream("assigned", partitions=[["t", 0]], userData=TOLD)
        case Role.CONTROLLER:
            yield {"op": "broker-up", "broker": 1, "low": 1, "high": 3}
            yield {"op": "update", "level": 1, "allow_downgrade": False}
        case Role.COORDINATOR if GROUP in claims.machines:
            yield {
                "op": "join", "actor": "a", "version": 3, "member": "", "instance": None, "protocol_type": "consumer",
                "protocols": [["p", "x"]], "session_ms": 10_000, "rebalance_ms": 30_000,
            }  # fmt: skip
            yield {"op": "describe-group", "actor": "a", "version": 3}
        case _:
            for layout in layouts(claims):
                value = layout.codec.to_json(layout.defaults())
                yield {"op": "encode", "message": layout.message, "version": layout.version, "value": value}


def stream(op: str, **more: Any) -> Op:
    """An operation of a Streams group."""
    memory = {} if op == "configure" else {"memory": plain_memory(Memory(1))}
    return {"op": f"stream-{op}", "settings": plain_settings(SETTINGS), **memory, **more}


def layouts(claims: Claims) -> Iterator[Layout]:
    """Of the messages and versions that are claimed and known."""
    known = set(messages(edition(EDITION)))
    for name in claims.messages:
        if name in known:
            yield from (layout for layout in spec(edition(EDITION), name) if claims.has(name, layout.version))


def assign(assignor: str, topic: str) -> Op:
    """Two members, one topic."""
    member = {
        "id": "c1", "subscription": [topic], "owned": [], "generation": -1, "instance": None, "rack": None,
        "userData": None,
    }  # fmt: skip
    topics = [{"name": topic, "partitions": 2, "racks": None}]
    return {"op": "assign", "assignor": assignor, "topics": topics, "members": [member, {**member, "id": "c2"}]}


def named(op: Mapping[str, Any]) -> str:
    """For a person."""
    what = op.get("message") or op.get("assignor") or ""
    version = f" v{op['version']}" if "version" in op else ""
    return f"{op['op']} {what}{version}".strip()


def plain(result: Mapping[str, Any]) -> dict[str, Any]:
    """What was answered, without what differs each time."""
    return {key: each for key, each in result.items() if key not in ("n", "evidence")}
