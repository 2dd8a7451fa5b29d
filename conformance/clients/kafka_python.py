"""Adapts kafka-python 3 as a codec. Only this module and those for its assignors and its consumer import it.

Bodies go through the codec that it compiles per version, headers and consumer protocol data through its stream codec.
Its snake_case names become the names of the definition with a lower-case first letter; nothing else is changed. The
adapter does not decide whether a result is right.
"""

import io
import uuid
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module, metadata
from typing import Any

from kipcheck.conformance.clients.assignor_adapter import LEADING, answer
from kipcheck.conformance.clients.kafka_python_assignors import KafkaPythonAssignors
from kipcheck.conformance.protocols.member.ops import MEMBER
from kipcheck.conformance.targets.error_mapping import rejected
from kipcheck.conformance.targets.protocol import Claims

MODULES = (
    "kafka.protocol.admin", "kafka.protocol.consumer.fetch", "kafka.protocol.consumer.group",
    "kafka.protocol.consumer.metadata", "kafka.protocol.consumer.offsets", "kafka.protocol.metadata",
    "kafka.protocol.producer.transaction",
)  # fmt: skip
HEADERS = ("RequestHeader", "ResponseHeader")
TAGS = "_unknownTaggedFields"
ZERO = str(uuid.UUID(int=0))
RENAMED = {
    ("MetadataResponse", "authorized_operations"): "clusterAuthorizedOperations",
    ("MetadataResponseTopic", "authorized_operations"): "topicAuthorizedOperations",
}
"""Fields whose names differ from the definition."""
SKIPS = "skip-assignment"
LIMITS = {SKIPS: "its consumer uses JoinGroup up to version 7, which cannot instruct a leader to skip the assignment"}


class KafkaPython:
    name = "kafka-python"
    issues = "https://github.com/dpkp/kafka-python/issues"

    def __init__(self) -> None:
        self.version = metadata.version("kafka-python")
        self._classes = _classes()
        self._assignors = KafkaPythonAssignors()
        self._member: Any = None

    def claims(self) -> Claims:
        spans = {name: each._valid_versions for name, each in self._classes.items()}
        return Claims(spans, assignors=tuple(self._assignors.names()), machines=(MEMBER,), limits=LIMITS)

    def configure(self, edition: str, /) -> str | None:
        return None if edition.partition("@")[0] == "apache" else f"{self.name} does not implement edition {edition}"

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        if op["op"] in LEADING:
            return answer(self._assignors, op)
        if op["op"].startswith("member-"):
            return self._as_member(op)
        message, version = op["message"], op["version"]
        cls = self._classes.get(message)
        if cls is None:
            return {"status": "unsupported", "message": f"it has no class {message}"}
        try:
            match op["op"]:
                case "encode":
                    return {"status": "accepted", "hex": _encode(cls, _build(cls, op["value"], version), version).hex()}
                case "decode":
                    return {"status": "accepted", "value": _shown(_decode(cls, op["hex"], version), version)}
                case "recode":
                    found = _decode(cls, op["hex"], version)
                    return {"status": "accepted", "hex": _encode(cls, found, version).hex()}
        except MemoryError:
            raise
        except Exception as refusal:  # noqa: BLE001 - the library may raise any exception
            return rejected(refusal)
        return {"status": "unsupported", "message": f"unknown operation {op['op']!r}"}

    def prepare(self, op: Mapping[str, Any], /) -> None:
        """Lets the library compile its codec of a version: it writes and reads a message of default values."""
        cls = self._classes.get(op.get("message", ""))
        if cls is not None and not _is_header(cls):
            with suppress(Exception):  # its operations report what is wrong
                data = _encode(cls, cls(version=op["version"]), op["version"])
                _decode(cls, data.hex(), op["version"])

    def _as_member(self, op: Mapping[str, Any]) -> dict[str, Any]:
        """Loads its consumer at the first call, since loading it replaces the clock of its modules."""
        if self._member is None:
            from kipcheck.conformance.clients.kafka_python_member import KafkaPythonMember

            self._member = KafkaPythonMember(SKIPS, LIMITS[SKIPS])
        found: dict[str, Any] = self._member.answer(op)
        return found


def _classes() -> dict[str, Any]:
    header = import_module("kafka.protocol.api_header")
    bases = import_module("kafka.protocol.api_message").ApiMessage, import_module("kafka.protocol.api_data").ApiData
    found: dict[str, Any] = {name: getattr(header, name) for name in HEADERS}
    for module in map(import_module, MODULES):
        for each in vars(module).values():
            if isinstance(each, type) and issubclass(each, bases) and each not in bases:
                found[each.__name__] = each
    return found


def _is_header(cls: Any) -> bool:
    return cls.__name__ in HEADERS


def _encode(cls: Any, made: Any, version: int) -> bytes:
    if _is_header(cls):
        return bytes(made.encode(flexible=_flexible(cls, version)))
    return bytes(made.encode())


def _decode(cls: Any, text: str, version: int) -> Any:
    data = bytes.fromhex(text)
    if _is_header(cls):
        return cls.decode(io.BytesIO(data), flexible=_flexible(cls, version))
    return cls.decode(data, version=version)


def _flexible(cls: Any, version: int) -> bool:
    low, high = cls._flexible_versions
    return bool(low <= version <= high)


def _build(cls: Any, value: Mapping[str, Any], version: int) -> Any:
    return cls(version=version, **_fields(cls._struct, value, version))


def _fields(struct: Any, value: Mapping[str, Any], version: int) -> dict[str, Any]:
    fields = {_name(struct, field): field for field in struct.fields.values()}
    built: dict[str, Any] = {}
    for key, each in value.items():
        if key == TAGS:
            built.update((f"_{tag['tag']}", bytes.fromhex(tag["data"])) for tag in each)
        elif key in fields:
            built[fields[key].name] = _in(fields[key], each, version)
        else:
            built[key] = each  # the class refuses a name that it does not know
    return built


def _in(field: Any, value: Any, version: int) -> Any:
    if value is None:
        return None
    if field.is_struct_array():
        return [field.data_class(version=version, **_fields(field, each, version)) for each in value]
    if field.is_struct():
        return field.data_class(version=version, **_fields(field, value, version))
    if field.is_array():
        return [_in(field.array_of, each, version) for each in value]
    match field.type_str:
        case "bytes" | "records":
            return bytes.fromhex(value)
        case "uuid":
            return None if value == ZERO else uuid.UUID(value)  # it represents the zero uuid as None
        case "bitfield":
            return field._type.from_32_bit_field(value & 0xFFFFFFFF)
    return value


def _shown(item: Any, version: int) -> dict[str, Any]:
    struct = item._struct
    shown = {
        _name(struct, field): _out(field, getattr(item, field.name), version)
        for field in struct.fields.values()
        if field.for_version_q(version)
    }
    if item.unknown_tags:
        tags = sorted((int(name[1:]), data) for name, data in item.unknown_tags.items())
        shown[TAGS] = [{"tag": tag, "data": bytes(data).hex()} for tag, data in tags]
    return shown


def _out(field: Any, value: Any, version: int) -> Any:
    if field.is_struct_array():
        return None if value is None else [_shown(each, version) for each in value]
    if field.is_struct():
        return None if value is None else _shown(value, version)
    if field.is_array():
        return None if value is None else [_out(field.array_of, each, version) for each in value]
    match field.type_str:
        case "uuid":
            return ZERO if value is None else str(value)
        case "bitfield":
            number = field._type.to_32_bit_field({31} if value is None else value)
            return number - (1 << 32) if number >= 1 << 31 else number
        case "bytes" | "records":
            return None if value is None else bytes(value).hex()
    return value


def _name(struct: Any, field: Any) -> str:
    owner = struct.type_str if struct.is_struct_array() else struct._name
    name: str = RENAMED.get((owner, field.name)) or field._name
    return name[:1].lower() + name[1:]
