"""Which settings the brokers of a release can have: facts that the machine and its invariants share."""

from dataclasses import replace
from typing import Final

from kipcheck.conformance.core.files.releases_table import patches, since
from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.wire.stored_records import LAST, InterBroker, thresholds, version_counts

FEATURES_SINCE: Final = Release.parse(since("kip-848"))
"""From here on levels of features gate records (384-22), and a broker has metadata.version."""
OLDEST_METADATA: Final = InterBroker.parse("3.3-IV3")
"""MetadataVersion.MINIMUM_VERSION of 4.0.0 and later."""
OLDEST: Final = InterBroker.parse(patches()[0])
"""Of earlier releases; older versions are not considered."""
LATEST: Final = InterBroker.parse("999.0")


def edges_of_versions(messages: tuple[str, ...]) -> tuple[str, ...]:
    """The inter-broker versions from which on these records are written otherwise, or a broker runs at all; each after
    the version before it.
    """
    changes = {each for message in messages for each in thresholds(message, OLDEST, LATEST)}
    steps = [each for bound in sorted({*changes, OLDEST_METADATA}) for each in (before(bound), bound)]
    return tuple(str(each) for each in (OLDEST, *steps))


def before(version: InterBroker) -> InterBroker:
    """The version before it; before the first one of a line, the last one of the line before."""
    if version.step:
        return replace(version, step=version.step - 1)
    lines = [InterBroker.parse(each).line for each in patches()]
    return InterBroker(
        max(each[: len(version.line)] for each in lines if each[: len(version.line)] < version.line), LAST
    )


STEPS: Final = {line: steps for line, steps in version_counts().items() if steps}
"""Line -> the number of its versions; earlier lines have none with a step."""


def is_named(text: str) -> bool | None:
    """Whether a line has this version; None for a line that is not in the table."""
    line, _, step = text.partition("-IV")
    steps = STEPS.get(line)
    return None if steps is None or not step.isdigit() else int(step) < steps


def in_force(text: str | None, at: Release) -> InterBroker | None:
    """The inter-broker version that a release runs with, or in KRaft metadata.version; None if it refuses it.

    ``text``: None for the newest of the release.
    """
    newest = InterBroker.of(at)
    try:
        found = newest if text is None else InterBroker.parse(text)
    except ValueError:
        return None
    if text is not None and is_named(text) is False:
        return None
    oldest = OLDEST_METADATA if at >= FEATURES_SINCE else OLDEST
    return found if oldest <= found <= newest else None


def decoded(text: str) -> bytes:
    """Bytes in hex; none for a text that is no hex."""
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""


def version_of(data: bytes) -> int | None:
    """The version of a stored key or value: its first two bytes; None if there are none."""
    return int.from_bytes(data[:2], "big") if len(data) > 1 else None
