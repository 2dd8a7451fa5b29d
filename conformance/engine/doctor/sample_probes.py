"""Probes with a sample of each message: whether its fields have their names, and who answers for damaged bytes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.engine.doctor.report import Measurement, ProbeFailed, TesteeUnderTest, Unsuitable
from kipcheck.conformance.engine.doctor.samples import EDITION, comparisons, named
from kipcheck.conformance.protocols.declare.check import Comparison, Operation
from kipcheck.conformance.targets.claimed_layouts import claimed_layouts
from kipcheck.conformance.targets.protocol import BATCH
from kipcheck.conformance.wire import layout

SHOWN: Final = 3
"""Faults of samples that are shown."""
LATER: Final = 1000
"""A leading version that no release has."""


def samples(testee: TesteeUnderTest) -> str:
    """Each message in each version that it claims, encoded and decoded by it, and compared with the reference."""
    pairs = _samples(testee)
    faults: list[str] = []
    compared: Counter[str] = Counter()
    for (operation, fault), result in zip(pairs, _answers(testee, (each.operation for each in pairs)), strict=True):
        found = fault(result)
        compared[operation["op"]] += found is not None
        faults += [f"{named(operation)}: {found}"] if found else []
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
    made = [each for each in _decoded(testee) if len(_data(each)) > 1]
    results = _answers(testee, (_with(each, _data(each)[:-1]) for each in made))
    return Measurement(
        f"the library: pass on the bytes as they are. Of {len(made)} messages without their last byte, "
        f"{_counted(results)}; a run expects that they are rejected"
    )


def trailing(testee: TesteeUnderTest) -> str:
    made = _decoded(testee)
    results = _answers(testee, (_with(each, _data(each) + b"\0") for each in made))
    return Measurement(
        f"the library: a testee neither removes them nor rejects them itself. Of {len(made)} messages with a further "
        f"byte, {_counted(results)}; a run accepts both"
    )


def leading(testee: TesteeUnderTest) -> str:
    made = [each for each in _decoded(testee) if _prefix_type(each) is not None]
    if not made:
        raise Unsuitable("it decodes no message with a version in its first bytes")
    results = [*_answers(testee, map(_with_later_version, made))]
    names = ", ".join(each["message"] for each in made[:SHOWN])
    return Measurement(
        "they are part of the bytes, in both directions: if the library leaves them to its caller, the testee reads "
        f"and writes them, and answers unsupported for others. Of {len(made)} messages ({names}"
        f"{', ...' if len(made) > SHOWN else ''}) with version {LATER} there, {_counted(results)}"
    )


def _data(operation: Operation) -> bytes:
    return bytes.fromhex(operation["hex"])


def _with(operation: Operation, data: bytes) -> Operation:
    return {**operation, "hex": data.hex()}


def _prefix_type(operation: Operation) -> str | None:
    prefix = layout(EDITION, operation["message"], operation["version"]).prefix
    return None if prefix is None else prefix.type


def _with_later_version(operation: Operation) -> Operation:
    size = {"int16": 2, "int32": 4}[_prefix_type(operation) or ""]
    return _with(operation, LATER.to_bytes(size, "big") + _data(operation)[size:])


# ---- samples and answers


def _samples(testee: TesteeUnderTest) -> list[Comparison]:
    """Errors: ``Unsuitable``."""
    assert testee.hello is not None
    claims = testee.hello.claims
    if Role.CODEC not in testee.hello.roles:
        raise Unsuitable("it does not support the role codec")
    if testee.translated:
        raise Unsuitable("kipcheck translates its names of fields in a run")
    testee.ready(Role.CODEC)
    if next(claimed_layouts(claims), None) is None:
        raise Unsuitable("kipcheck knows none of the messages that it claims")
    return [*comparisons(claims, Role.CODEC)]


def _decoded(testee: TesteeUnderTest) -> list[Operation]:
    """One for each message that it decodes, in the highest version that is claimed. Errors: ``Unsuitable``."""
    operations = (each.operation for each in _samples(testee))
    newest = {each["message"]: each for each in operations if each["op"] == "decode"}
    if not newest:
        raise Unsuitable("it decodes no message that kipcheck knows")
    return [*newest.values()]


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
