"""Codecs with one planted defect each: other versions, claims, shared objects, omitted fields and sizes."""

from collections.abc import Callable, Mapping
from typing import Any

from kipcheck.conformance.protocols.codec.mutants.codec import TAGS, Value
from kipcheck.conformance.protocols.codec.target import ReferenceCodec
from kipcheck.conformance.protocols.codec.two_decoders import without_foreign_fields
from kipcheck.conformance.protocols.declare.mutant import mutant
from kipcheck.conformance.wire import Layout
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.schema import INTEGERS, Slot

PLACE = 11


# Other versions


@mutant("wire/absent-fields", "wire/refuses-absent-essentials", "JoinGroupRequest", 4, ...)
class JoinsAsADynamicMember(ReferenceCodec):
    """A group instance id that the version lacks is silently omitted."""

    def write(self, layout: Layout, value: Value) -> bytes:
        absent = {each.name for each in layout.absent} & {"groupInstanceId"}
        return super().write(layout, {name: each for name, each in value.items() if name not in absent})


@mutant("wire/absent-fields", "wire/refuses-absent-essentials", "UpdateFeaturesRequest", 0, ...)
class TriesInEarnest(ReferenceCodec):
    """validateOnly is silently omitted in the version that lacks it."""

    def write(self, layout: Layout, value: Value) -> bytes:
        absent = {each.name for each in layout.absent} & {"validateOnly"}
        return super().write(layout, {name: each for name, each in value.items() if name not in absent})


@mutant("wire/absent-fields", "wire/refuses-absent-fields", "ListGroupsRequest", 3, ...)
class DropsWhatHasNoPlace(ReferenceCodec):
    """A field that the version lacks is silently omitted."""

    def write(self, layout: Layout, value: Value) -> bytes:
        return super().write(layout, without_foreign_fields(layout, value))


@mutant("wire/absent-fields", "wire/refuses-other-forms", "FindCoordinatorRequest", 3, ...)
class KeepsOneForm(ReferenceCodec):
    """The list of keys is silently omitted in versions that have one key."""

    def write(self, layout: Layout, value: Value) -> bytes:
        absent = {each.name for each in layout.absent} & {"coordinatorKeys"}
        return super().write(layout, {name: each for name, each in value.items() if name not in absent})


@mutant("wire/absent-fields", "wire/leaves-out-ignorable-fields", "JoinGroupRequest", 7, ...)
class RefusesTheIgnorable(ReferenceCodec):
    """A field that the version lacks is refused although it may be ignored."""

    def write(self, layout: Layout, value: Value) -> bytes:
        if value.keys() - {*layout.names, TAGS}:
            raise Refused("absent-field", "not in this version", message=layout.message, version=layout.version)
        return super().write(layout, value)


@mutant("wire/future-versions", "wire/reads-future-versions", "SubscriptionInfo", 11, ...)
class RefusesTheFuture(ReferenceCodec):
    """Streams metadata of a later version is refused."""

    def read(self, layout: Layout, data: bytes) -> Value:
        if "_rest" in layout.names:
            raise Refused("version", "a later version", message=layout.message, version=layout.version)
        return super().read(layout, data)


@mutant("wire/damage", "wire/refuses-unknown-versions", "SubscriptionInfo", 3, ...)
class IgnoresTheLeadingVersion(ReferenceCodec):
    """Metadata is read in the requested version, whatever version it starts with."""

    def read(self, layout: Layout, data: bytes) -> Value:
        if layout.message == "SubscriptionInfo":
            data = layout.version.to_bytes(4, "big") + data[4:]
        return super().read(layout, data)


@mutant("wire/answer-in-v0", "wire/reads-answer-in-v0", "ApiVersionsResponse", 3, ...)
class ForgetsTheError(ReferenceCodec):
    """An answer in v0 is read without its error."""

    def read(self, layout: Layout, data: bytes) -> Value:
        value = super().read(layout, data)
        return {**value, "errorCode": 0} if value.get("errorCode") == 35 else value


@mutant("wire/answer-in-v0", "wire/falls-back-to-v0", "ApiVersionsResponse", 4, ...)
class KnowsNoFallback(ReferenceCodec):
    """An answer in v0 is read in the requested version, or refused."""

    def read(self, layout: Layout, data: bytes) -> Value:
        return layout.decode(data)


# Claims


@mutant("wire/claims", "survives", "JoinGroupRequest", 6, ..., deadly=True)
class BelievesClaims(ReferenceCodec):
    """Memory is allocated for as many elements as a short list claims to have."""

    def read(self, layout: Layout, data: bytes) -> Value:
        try:
            return super().read(layout, data)
        except Refused:
            if b"\xff\xff\xff\xff\x07" in data:
                bytearray(1 << 36)
            raise


@mutant("wire/two-readings", "keeps-its-claims", "SyncGroupRequest", 5, ...)
class ClaimsTooMuch(ReferenceCodec):
    """It claims the newest version of a message, and does not support it."""

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        if op.get("message") == "SyncGroupRequest" and op["version"] == 5:
            return {"status": "unsupported", "message": "no such version"}
        return super().answer(op)


# Shared objects


@mutant("wire/repeat", "wire/own-defaults", "ApiVersionsResponse", 3, ...)
class SharesDefaults(ReferenceCodec):
    """The first value that is set becomes the default of a tagged field."""

    def __init__(self) -> None:
        super().__init__()
        self._defaults: Value = {}

    def write(self, layout: Layout, value: Value) -> bytes:
        whole = {**self._defaults, **value}
        for slot in layout.tagged:
            if value.get(slot.name, slot.fresh()) != slot.fresh():
                self._defaults.setdefault(slot.name, value[slot.name])
        return super().write(layout, {name: whole[name] for name in whole if name in layout.names or name in value})


@mutant("wire/repeat", "wire/same-answer", "HeartbeatRequest", 0, ..., remembers=True)
class SpoilsWhatItWrites(ReferenceCodec):
    """Writing an object changes it, and equal bytes are read as the same object."""

    def __init__(self) -> None:
        super().__init__()
        self._read: dict[bytes, Value] = {}

    def read(self, layout: Layout, data: bytes) -> Value:
        return self._read.setdefault(data, super().read(layout, data))

    def write(self, layout: Layout, value: Value) -> bytes:
        written = super().write(layout, value)
        if "generationId" in value:
            value["generationId"] = 0
        return written


# Omitted fields and large messages


@mutant("wire/omitted-fields", "wire/fills-in-defaults", "JoinGroupRequest", 4, ...)
class FillsWithZero(ReferenceCodec):
    """A number that is omitted is written as 0, whatever its declared default."""

    def write(self, layout: Layout, value: Value) -> bytes:
        return super().write(layout, _filled(layout, value, lambda slot: slot.array or slot.type in INTEGERS))


@mutant("wire/omitted-fields", "wire/fills-in-defaults", "OffsetCommitRequest", 6, ...)
class FillsInnerFieldsWithZero(ReferenceCodec):
    """A number that is omitted in an element of a list is written as 0."""

    def write(self, layout: Layout, value: Value) -> bytes:
        inner = _filled(layout, value, lambda slot: slot.array or slot.type in INTEGERS)
        return super().write(layout, {**inner, **{name: each for name, each in value.items() if name not in inner}})


def _filled(layout: Layout, value: Value, chosen: Callable[[Slot], bool]) -> Value:
    filled = dict(value)
    for slot in layout.untagged:
        if slot.name not in value:
            if chosen(slot) and not slot.array:
                filled[slot.name] = 0
        elif slot.item is not None and slot.array and value[slot.name]:
            filled[slot.name] = [_filled(slot.item, each, chosen) for each in value[slot.name]]
    return filled


@mutant("wire/sizes", "wire/any-size", "HeartbeatRequest", 0, ...)
class LosesWhatStraddlesItsBuffer(ReferenceCodec):
    """A buffer of 4096 bytes does not grow: what is written beyond it is lost."""

    def write(self, layout: Layout, value: Value) -> bytes:
        return super().write(layout, value)[: 1 << 12]


@mutant("wire/sizes", "wire/any-size", "JoinGroupRequest", 9, ...)
class CountsIn16Bits(ReferenceCodec):
    """The size of a message above 65535 bytes wraps around, so its last bytes are read from the start of the buffer."""

    def read(self, layout: Layout, data: bytes) -> Value:
        whole = super().read(layout, data)
        if len(data) <= 1 << 16:
            return whole
        return {name: each[:1] if isinstance(each, bytes | list | str) else each for name, each in whole.items()}


@mutant("wire/sizes", "wire/any-size", "SyncGroupResponse", 5, ...)
class FillsOneMebibyte(ReferenceCodec):
    """A message that needs more than 1048576 bytes is refused."""

    def write(self, layout: Layout, value: Value) -> bytes:
        data = super().write(layout, value)
        if len(data) > 1 << 20:
            raise Refused("length", "no room", message=layout.message, version=layout.version)
        return data
