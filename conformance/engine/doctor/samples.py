"""Sample operations: harmless ones, within the claims of a testee, which the doctor sends."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.edition import EDITIONS
from kipcheck.conformance.protocols.checks import FAMILIES
from kipcheck.conformance.protocols.declare.check import Comparison, Operation
from kipcheck.conformance.targets.protocol import STREAM, Claims

EDITION: Final = "apache"


def asked_of(claims: Claims, role: Role) -> Iterator[Operation]:
    """Harmless operations within the claims; those of codecs if no family has any for the role."""
    any_found = False
    for family in FAMILIES:
        for op in family.sample_ops(role, claims):
            any_found = True
            yield op
    if not any_found and role is not Role.CODEC:
        yield from asked_of(claims, Role.CODEC)


def comparisons(claims: Claims, role: Role) -> Iterator[Comparison]:
    """Those of its operations that are claimed."""
    for family in FAMILIES:
        for each in family.comparisons(claims) if family.role is role else ():
            if claims.performs(each.operation["op"], each.operation["message"]):
                yield each


def renamed(value: Any, name: str, other: str) -> Any:
    """JSON data with another text wherever ``name`` is one."""
    match value:
        case dict():
            return {key: renamed(each, name, other) for key, each in value.items()}
        case list() | tuple():
            return [renamed(each, name, other) for each in value]
    return other if value == name else value


def assignors() -> tuple[str, ...]:
    """The assignors of all editions."""
    leaders = [each for each in FAMILIES if each.role is Role.LEADER]
    names = (subject.name for family in leaders for name in EDITIONS for subject in family.subjects(name))
    return (*dict.fromkeys(names), STREAM)


def named(op: Operation) -> str:
    """An operation as text for people, in the words of its family; else its name."""
    return next(filter(None, (family.describe(op) for family in FAMILIES)), str(op["op"]))


def plain(result: Mapping[str, Any]) -> dict[str, Any]:
    """The answer without the fields that differ each time."""
    return {key: each for key, each in result.items() if key not in ("n", "evidence")}
