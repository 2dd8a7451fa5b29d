"""Probes with a sample of each message: whether its fields have their names, and who answers for damaged bytes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final
from uuid import UUID

from kipcheck.conformance.checks.codec import layouts
from kipcheck.conformance.checks.declare import Operation
from kipcheck.conformance.core.case import Role
from kipcheck.conformance.engine.doctor.report import Measurement, ProbeFailed, TesteeUnderTest, Unsuitable
from kipcheck.conformance.invariants.two_decoders import difference
from kipcheck.conformance.targets.protocol import BATCH
from kipcheck.conformance.wire import Layout
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.schema import INTEGERS, Slot

SHOWN: Final = 3
"""Faults of samples that are shown."""
LATER: Final = 1000
"""A leading version that no release has."""
TAGS: Final = "_unknownTaggedFields"


@dataclass(frozen=True, slots=True)
class Sample:
    """A version of a message with a value in every field."""

    layout: Layout
    value: Mapping[str, Any]
    """As JSON."""
    data: bytes

    @classmethod
    def of(cls, layout: Layout) -> "Sample":
        value = filled(layout)
        if layout.message == "ApiVersionsResponse":
            value["errorCode"] = 0  # with an error, clients expect version 0 (KIP-511)
        return cls(layout, layout.codec.to_json(value), layout.encode(value))

    def __str__(self) -> str:
        return f"{self.layout.message} v{self.layout.version}"

    @property
    def encode(self) -> Operation:
        return {"op": "encode", **self._about, "value": self.value}

    def decode(self, data: bytes) -> Operation:
        return {"op": "decode", **self._about, "hex": data.hex()}

    @property
    def _about(self) -> dict[str, Any]:
        return {"message": self.layout.message, "version": self.layout.version}


def filled(layout: Layout) -> dict[str, Any]:
    """A value in every field, other than its default, so that a field that is left out shows. Texts are the names of
    their fields, so that two of them that change places show.
    """
    led = {layout.prefix.name: layout.version} if layout.prefix and layout.prefix.name else {}
    return {**led, **{slot.name: [_one(slot)] if slot.array else _one(slot) for slot in layout.slots}}


def _one(slot: Slot) -> Any:
    if slot.item is not None:
        return filled(slot.item)
    match slot.type:
        case "bool":
            return slot.array or not slot.default
        case "float64":
            return 1.0
        case "uuid":
            return UUID(int=1 << 96)
        case "bytes" | "records" | "rest":
            return slot.name.encode()
    if slot.type in INTEGERS:
        return 2 if slot.default == 1 else 1
    return slot.name


def samples(testee: TesteeUnderTest) -> str:
    """Each message in each version that it claims, encoded and decoded by it, and compared with the reference."""
    made = _samples(testee)
    operations = [each for sample in made for each in (sample.encode, sample.decode(sample.data))]
    results = iter([*_answers(testee, operations)])
    faults: list[str] = []
    compared: Counter[str] = Counter()
    for sample in made:
        for name, found in (("encode", _written(sample, next(results))), ("decode", _read(sample, next(results)))):
            compared[name] += found is not None
            faults += [f"{name} {sample}: {found}"] if found else []
    if faults:
        more = f"; and {len(faults) - SHOWN} more" if len(faults) > SHOWN else ""
        raise ProbeFailed(f"{'; '.join(faults[:SHOWN])}{more}")
    return f"{compared['encode']} encoded and {compared['decode']} decoded as kipcheck does"


def prefixes(testee: TesteeUnderTest) -> str:
    made = [each for each in _newest(testee) if len(each.data) > 1]
    results = _answers(testee, (each.decode(each.data[:-1]) for each in made))
    return Measurement(
        f"the library: pass on the bytes as they are. Of {len(made)} messages without their last byte, "
        f"{_counted(results)}; a run expects that they are rejected"
    )


def trailing(testee: TesteeUnderTest) -> str:
    made = _newest(testee)
    results = _answers(testee, (each.decode(each.data + b"\0") for each in made))
    return Measurement(
        f"the library: a testee neither removes them nor rejects them itself. Of {len(made)} messages with a further "
        f"byte, {_counted(results)}; a run accepts both"
    )


def leading(testee: TesteeUnderTest) -> str:
    made = [each for each in _newest(testee) if each.layout.prefix is not None]
    if not made:
        raise Unsuitable("it claims no message with a version in its first bytes")
    results = [*_answers(testee, (each.decode(_with_later_version(each)) for each in made))]
    names = ", ".join(each.layout.message for each in made[:SHOWN])
    return Measurement(
        "they are part of the bytes, in both directions: if the library leaves them to its caller, the testee reads "
        f"and writes them, and answers unsupported for others. Of {len(made)} messages ({names}"
        f"{', ...' if len(made) > SHOWN else ''}) with version {LATER} there, {_counted(results)}"
    )


def _with_later_version(sample: Sample) -> bytes:
    prefix = sample.layout.prefix
    assert prefix is not None
    size = {"int16": 2, "int32": 4}[prefix.type]
    return LATER.to_bytes(size, "big") + sample.data[size:]


# ---- samples and answers


def _samples(testee: TesteeUnderTest) -> list[Sample]:
    """Errors: ``Unsuitable``."""
    assert testee.hello is not None
    if Role.CODEC not in testee.hello.roles:
        raise Unsuitable("it does not support the role codec")
    if testee.translated:
        raise Unsuitable("kipcheck translates its names of fields in a run")
    testee.ready(Role.CODEC)
    return [*map(Sample.of, layouts(testee.hello.claims))]


def _newest(testee: TesteeUnderTest) -> list[Sample]:
    """One sample of each message, in the highest version that is claimed."""
    return [*{each.layout.message: each for each in _samples(testee)}.values()]


def _answers(testee: TesteeUnderTest, operations: Iterable[Operation]) -> Iterator[Mapping[str, Any]]:
    every = list(operations)
    for start in range(0, len(every), BATCH):
        yield from testee.batch(*every[start : start + BATCH])


def _counted(results: Iterable[Mapping[str, Any]]) -> str:
    """How many were answered in which way: ``3 are rejected (RangeError), 1 is accepted``."""
    ways = Counter(
        f"{each['status']} ({each['class']})" if each["status"] == "rejected" else str(each["status"])
        for each in results
    )
    return ", ".join(f"{count} {'is' if count == 1 else 'are'} {way}" for way, count in ways.most_common())


# ---- comparisons: None if there is nothing to compare, else what is wrong, or an empty text


def _written(sample: Sample, result: Mapping[str, Any]) -> str | None:
    if result["status"] != "accepted":
        return _not_accepted(result)
    data = bytes.fromhex(result["hex"])
    if data == sample.data:
        return ""
    try:
        found = sample.layout.codec.to_json(sample.layout.decode(data))
    except Refused as why:
        return f"{data.hex()!s:.60} is not the message: {why}"
    if (unlike := difference(sample.value, found)) is not None:
        return (
            f"{unlike.path} is written as {unlike.got!r:.40}, not {unlike.wanted!r:.40}: does it read the key "
            f"{unlike.path.rpartition('.')[2]!r} of the value?"
        )
    return f"the same value, written as {data.hex()!s:.60} and not {sample.data.hex()!s:.60}"


def _read(sample: Sample, result: Mapping[str, Any]) -> str | None:
    if result["status"] != "accepted":
        return _not_accepted(result)
    for fault in _misnamed(sample.value, result["value"], ""):
        return fault
    unlike = difference(sample.value, result["value"])
    return "" if unlike is None else f"{unlike.path} is {unlike.got!r:.40}, not {unlike.wanted!r:.40}"


def _not_accepted(result: Mapping[str, Any]) -> str | None:
    if result["status"] == "unsupported":
        return None  # the probe of claims judges it
    what = f"{result.get('class', '')}: {result.get('message', '')}".strip(": ")
    return f"a legal message with a value in each field is answered with {result['status']}, {what}"


def _misnamed(wanted: object, got: object, path: str) -> Iterator[str]:
    """Keys that are missing, or that the message does not have, with the one that is probably meant."""
    if isinstance(wanted, Mapping) and isinstance(got, Mapping):
        missing = [key for key in wanted if key not in got]
        others = [key for key in got if key not in wanted and key != TAGS]
        for other in others:
            meant = _nearest(other, missing)
            yield f"{path}{other} is no field of it" + (f": did you mean {meant}?" if meant else "")
        if missing and not others:
            yield f"{path}{missing[0]} is missing in the value"
        for key in wanted.keys() & got.keys():
            yield from _misnamed(wanted[key], got[key], f"{path}{key}.")
    elif isinstance(wanted, list) and isinstance(got, list):
        for number, (one, other) in enumerate(zip(wanted, got, strict=False)):
            yield from _misnamed(one, other, f"{path.removesuffix('.')}[{number}].")


def _nearest(name: str, names: Sequence[str]) -> str | None:
    """The name that is probably meant, whatever its case and separators are; the only one that is missing."""
    alike = {_bare(each): each for each in names}
    found = get_close_matches(_bare(name), alike, 1, 0)
    return alike[found[0]] if found else None


def _bare(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
