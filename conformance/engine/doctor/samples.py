"""What a doctor asks: harmless operations on what a testee claims."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kipcheck.conformance.checks import FAMILIES
from kipcheck.conformance.checks.declare import Operation
from kipcheck.conformance.core.case import Role
from kipcheck.conformance.core.edition import EDITIONS
from kipcheck.conformance.targets.protocol import STREAM, Claims

EDITION: Final = "apache"


def asked_of(claims: Claims, role: Role) -> Iterator[Operation]:
    """Harmless ones, of what it claims; those for a codec where no family has some for the role."""
    any_found = False
    for family in FAMILIES:
        for op in family.sample_ops(role, claims):
            any_found = True
            yield op
    if not any_found and role is not Role.CODEC:
        yield from asked_of(claims, Role.CODEC)


def assignors() -> tuple[str, ...]:
    """All that a testee can be asked for, in any edition."""
    leaders = [each for each in FAMILIES if each.role is Role.LEADER]
    names = (subject.name for family in leaders for name in EDITIONS for subject in family.subjects(name))
    return (*dict.fromkeys(names), STREAM)


def named(op: Operation) -> str:
    """For a person."""
    what = op.get("message") or op.get("assignor") or ""
    version = f" v{op['version']}" if "version" in op else ""
    return f"{op['op']} {what}{version}".strip()


def plain(result: Mapping[str, Any]) -> dict[str, Any]:
    """What was answered, without what differs each time."""
    return {key: each for key, each in result.items() if key not in ("n", "evidence")}
