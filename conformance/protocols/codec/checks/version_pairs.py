"""Every pair of the version that a Streams record uses and the one that it says is supported (KIP-268)."""

from collections.abc import Iterator, Mapping
from typing import Final

from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.protocols.codec.checks.example_values import inhabited
from kipcheck.conformance.protocols.codec.checks.family import Subject
from kipcheck.conformance.protocols.declare.check import Conversation
from kipcheck.conformance.wire.schema import spec

SUPPORTED: Final[Mapping[str, str]] = {
    "SubscriptionInfo": "latestSupportedVersion", "AssignmentInfo": "commonlySupportedVersion",
}  # fmt: skip
"""Message -> its field with the supported version."""


def supported_versions(subject: Subject) -> tuple[int, ...]:
    """Beside its version: unknown, all of the message, and one that is still to come; none if it has no such field."""
    layout = subject.layout
    if SUPPORTED.get(layout.message) not in {each.name for each in layout.slots}:
        return ()
    last = max(each.version for each in spec(edition(subject.edition), layout.message))
    return (-1, *range(1, last + 2))


def version_pairs(subject: Subject) -> Iterator[Conversation]:
    """First those that support their own version, then the others, which some releases refuse."""
    layout, versions = subject.layout, supported_versions(subject)
    for name, some in (
        ("supported", [each for each in versions if each >= layout.version]),
        ("lower", [each for each in versions if each < layout.version]),
    ):
        values = ({**inhabited(layout), SUPPORTED[layout.message]: each} for each in some)
        if steps := tuple(subject.recode(layout.encode(each)) for each in values):
            yield Conversation(steps, name)
