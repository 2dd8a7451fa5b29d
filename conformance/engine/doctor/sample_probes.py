"""Probes with a sample of each message: whether its fields have their names, and who answers for damaged bytes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kipcheck.conformance.core.case import Role
from kipcheck.conformance.engine.doctor.report import Measurement, ProbeFailed, TesteeUnderTest, Unsuitable
from kipcheck.conformance.protocols.codec.checks.family import layouts
from kipcheck.conformance.protocols.codec.checks.samples import Sample, unlike_read, unlike_written
from kipcheck.conformance.protocols.declare.check import Operation
from kipcheck.conformance.targets.protocol import BATCH

SHOWN: Final = 3
"""Faults of samples that are shown."""
LATER: Final = 1000
"""A leading version that no release has."""


def samples(testee: TesteeUnderTest) -> str:
    """Each message in each version that it claims, encoded and decoded by it, and compared with the reference."""
    pairs = [
        (sample, operation)
        for sample in _samples(testee)
        for operation in (sample.encode, sample.decode(sample.data))
        if _performs(testee, operation["op"], sample)
    ]
    faults: list[str] = []
    compared: Counter[str] = Counter()
    for (sample, operation), result in zip(pairs, _answers(testee, (each for _, each in pairs)), strict=True):
        name = operation["op"]
        found = unlike_written(sample, result) if name == "encode" else unlike_read(sample, result)
        compared[name] += found is not None
        faults += [f"{name} {sample}: {found}"] if found else []
    if faults:
        more = f"; and {len(faults) - SHOWN} more" if len(faults) > SHOWN else ""
        raise ProbeFailed(f"{'; '.join(faults[:SHOWN])}{more}")
    if not compared.total():
        raise ProbeFailed(
            f"each of the {len(pairs)} samples is unsupported: a run would be inconclusive",
            "claim only messages that the library can encode or decode",
        )
    return f"{compared['encode']} encoded and {compared['decode']} decoded as kipcheck does"


def prefixes(testee: TesteeUnderTest) -> str:
    made = [each for each in _decoded(testee) if len(each.data) > 1]
    results = _answers(testee, (each.decode(each.data[:-1]) for each in made))
    return Measurement(
        f"the library: pass on the bytes as they are. Of {len(made)} messages without their last byte, "
        f"{_counted(results)}; a run expects that they are rejected"
    )


def trailing(testee: TesteeUnderTest) -> str:
    made = _decoded(testee)
    results = _answers(testee, (each.decode(each.data + b"\0") for each in made))
    return Measurement(
        f"the library: a testee neither removes them nor rejects them itself. Of {len(made)} messages with a further "
        f"byte, {_counted(results)}; a run accepts both"
    )


def leading(testee: TesteeUnderTest) -> str:
    made = [each for each in _decoded(testee) if each.layout.prefix is not None]
    if not made:
        raise Unsuitable("it decodes no message with a version in its first bytes")
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
    if not (made := [*map(Sample.of, layouts(testee.hello.claims))]):
        raise Unsuitable("kipcheck knows none of the messages that it claims")
    return made


def _decoded(testee: TesteeUnderTest) -> list[Sample]:
    """One sample of each message that it decodes, in the highest version that is claimed. Errors: ``Unsuitable``."""
    newest = {each.layout.message: each for each in _samples(testee)}.values()
    if not (made := [each for each in newest if _performs(testee, "decode", each)]):
        raise Unsuitable("it decodes no message that kipcheck knows")
    return made


def _performs(testee: TesteeUnderTest, operation: str, sample: Sample) -> bool:
    assert testee.hello is not None
    return testee.hello.claims.performs(operation, sample.layout.message)


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
