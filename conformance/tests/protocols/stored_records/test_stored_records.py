"""Stored records: what the reference writes and loads by release, in words of its own."""

import pytest

from kipcheck.conformance.core.values.edition import APACHE, edition
from kipcheck.conformance.core.values.release import NEWEST, Release
from kipcheck.conformance.protocols.stored_records.ops import OPERATIONS, SAMPLES
from kipcheck.conformance.protocols.stored_records.target import adapter
from kipcheck.conformance.wire.schema import spec
from kipcheck.conformance.wire.stored_records import newest_readable


def answers(release: str, text: str) -> list[str]:
    """The version of a written record, whether one is loaded, or the class of the error."""
    played = adapter(edition(f"apache@{release}"))
    assert played is not None
    found = []
    for each in OPERATIONS.parse_shorthand(text):
        answer = played.answer({"op": each.verb, "actor": each.actor, "case": 1, **each.body})
        shown = answer.get("class") or answer.get("loaded", answer.get("hex", "")[:4])
        found.append(str(shown))
    return found


@pytest.mark.parametrize(
    ("release", "text", "expected"),
    [
        ("1.1.1", "write OffsetCommitValue; write GroupMetadataValue; write GroupMetadataValue ibp 0.10.0",
         "0001 0001 0000"),
        ("3.9.2", "write OffsetCommitValue ibp 2.1-IV0; write OffsetCommitValue; write GroupMetadataValue ibp 2.2",
         "0002 0003 0002"),
        ("4.0.2", "write OffsetCommitValue; write OffsetCommitValue ibp 3.2", "0003 UNSUPPORTED_VERSION"),
        ("4.4.0", "write OffsetCommitValue ibp 3.3-IV3; write OffsetCommitValue level 0", "0004 0004"),
        ("4.4.0", "write OffsetCommitValue expiring; write GroupMetadataValue", "0001 0003"),
        ("4.4.0", "write TransactionLogValue level 0; write TransactionLogValue", "0000 0001"),
        ("4.4.0", "write ConsumerGroupMetadataValue level 0", "UNSUPPORTED_VERSION"),
        ("3.4.0", "read Key 0063000167; read Key 0002000167", "UNREADABLE True"),
        ("3.4.1", "read Key 0063000167; read Key 0003000167", "False False"),
        ("4.0.2", "read Key 0003000167; read OffsetCommitValue 0063", "True UNREADABLE"),
    ],
)  # fmt: skip
def test_a_release_writes_and_loads_its_versions(release: str, text: str, expected: str) -> None:
    assert answers(release, text) == expected.split()


def test_the_samples_have_the_layout_of_their_versions() -> None:
    for (message, version), data in SAMPLES.items():
        assert int.from_bytes(bytes.fromhex(data)[:2], "big") == version
        newest = newest_readable(message, Release.parse(NEWEST))
        if newest is not None and version <= newest:
            layout = spec(APACHE, message).at(version)
            assert layout.encode(layout.decode(bytes.fromhex(data))).hex() == data
