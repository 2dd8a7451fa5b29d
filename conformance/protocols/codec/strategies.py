"""Values of a node's JSON, and of the files beside a log.

Objects with arbitrary keys are lists here, so that a reducer can remove entries; numbers that must not fall are steps.
"""

import base64
from functools import cache
from typing import Any, Final
from uuid import UUID

from kipcheck.conformance.wire.log_files import CLEANER, EPOCHS, METADATA, PRODUCER_FIELDS, SNAPSHOT, VERSIONS
from kipcheck.conformance.wire.znodes import ZNode
from kipcheck.strategies.nodes import Integer, Node, Pick, Record, Seq, Text, Uuid, nullable, record

HIGHEST = 32767
PORTS = Integer(-1, 65535, interesting=(-1, 0, 9092))

SECURITY: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
NAMES: Final = ("PLAINTEXT", "INTERNAL", "SASL_SSL", "EXTERNAL_2")
HOSTS: Final = ("h", "broker-1.example.org", "::1", "127.0.0.1", "")
LISTENERS: Final = "listener_security_protocol_map"


@cache
def from_node(layout: ZNode) -> Record:
    """Values that ``as_json`` converts to the node's. The version is not included: the layout determines it.

    The securities of listeners are those of the endpoints.
    """
    drawn = (key for key in layout.keys if key.name not in ("version", LISTENERS))
    return Record(tuple((key.name, _key(layout, key.name, key.type)) for key in drawn))


def _key(layout: ZNode, name: str, kind: str) -> Node:
    match kind:
        case "int32":
            return Pick((1, 0)) if name == "status" else PORTS
        case "string":
            return Text()
        case "nullable string":
            return Text(1) if name == "host" and layout.version == 1 else nullable(Text())
        case "strings":
            names = NAMES if layout.version >= 4 else SECURITY
            return Seq(record(name=Pick(names), host=Pick(HOSTS), port=PORTS, security=Pick(SECURITY)), 0, 3)
    levels = Integer(layout.lowest, HIGHEST, interesting=(layout.lowest, 2, HIGHEST))
    return Seq(record(name=Text(1, 20), low=levels, more=Integer(0, HIGHEST - 1, interesting=(0, 1))), 0, 3)


def as_json(layout: ZNode, value: dict[str, Any]) -> dict[str, Any]:
    """The node's value as it is encoded. Of entries with the same name the last one counts."""
    made: dict[str, Any] = {"version": layout.version}
    listeners = {each["name"]: each for each in value.get("endpoints", ())}
    for key in layout.keys:
        if key.name == LISTENERS:
            made[key.name] = {name: each["security"] for name, each in listeners.items()}
        elif key.name == "endpoints":
            made[key.name] = [_endpoint(each) for each in listeners.values()]
        elif key.type == "ranges":
            made[key.name] = {each["name"]: _levels(layout, each) for each in value[key.name]}
        elif key.name != "version":
            made[key.name] = value[key.name]
    return made


def _endpoint(listener: dict[str, Any]) -> str:
    host = listener["host"]
    return f"{listener['name']}://{f'[{host}]' if ':' in host else host}:{listener['port']}"


def _levels(layout: ZNode, entry: dict[str, Any]) -> dict[str, int]:
    high = min(entry["low"] + entry["more"], HIGHEST)
    return dict(zip(layout.labels, (entry["low"], high) if len(layout.labels) == 2 else (high,), strict=True))


INT32, INT64 = 2**31 - 1, 2**63 - 1
PRODUCER: Final = {
    "producerId": Integer(0, INT64, interesting=(0, 1, INT64)),
    "epoch": Integer(0, 2**15 - 1, interesting=(0, 2**15 - 1)),
    "lastSequence": Integer(0, INT32, interesting=(0, INT32)),
    "lastOffset": Integer(0, INT64, interesting=(0, INT64)),
    "offsetDelta": Integer(0, INT32, interesting=(0, 1)),
    "timestamp": Integer(0, INT64, interesting=(0, 1_700_000_000_000)),
    "coordinatorEpoch": Integer(-1, INT32, interesting=(-1, 0)),
    "currentTxnFirstOffset": Integer(-1, INT64, interesting=(-1, 0)),
}
FILES: Final[dict[str, Record]] = {
    SNAPSHOT: record(producerEntries=Seq(record(**PRODUCER), 0, 3)),
    EPOCHS: record(entries=Seq(record(epoch=Integer(1, 1000, (1,)), startOffset=Integer(0, 2**40, (0, 1))), 0, 4)),
    CLEANER: record(
        entries=Seq(
            record(
                topic=Pick(("t", "__consumer_offsets", "a.b-c_d", "x" * 249)),
                partition=Integer(0, INT32, (0, 1)),
                offset=Integer(0, INT64, (0, INT64)),
            ),
            0, 4,
        )
    ),
    METADATA: record(topicId=Uuid()),
}  # fmt: skip


def as_log_file(kind: str, value: dict[str, Any]) -> dict[str, Any]:
    """The file's value as it is encoded: the last one of a producer or partition counts, and no number falls."""
    version = VERSIONS[kind]
    if kind == SNAPSHOT:
        rows = ({name: each[name] for name in PRODUCER_FIELDS} for each in value["producerEntries"])
        by_id = {row["producerId"]: row for row in rows}
        return {"version": version, "producerEntries": [*by_id.values()]}
    if kind == METADATA:
        id = value["topicId"] if value["topicId"].int > 1 else UUID(int=2)  # none, and that of the metadata itself
        return {"version": version, "topicId": base64.urlsafe_b64encode(id.bytes).decode().rstrip("=")}
    if kind == CLEANER:
        by_partition = {(each["topic"], each["partition"]): each for each in value["entries"]}
        names = ("topic", "partition", "offset")
        return {"version": version, "entries": [{each: row[each] for each in names} for row in by_partition.values()]}
    epoch, offset, entries = -1, 0, []
    for each in value["entries"]:
        epoch, offset = epoch + each["epoch"], offset + each["startOffset"]
        entries.append({"epoch": epoch, "startOffset": offset})
    return {"version": version, "entries": entries}
