"""The table of stored records is what the brokers of the released jars write and read."""

from collections.abc import Iterator

import pytest

from kipcheck.conformance.clients.java.stored_records import (
    FIRST,
    IN_JAVA,
    Brokers,
    brokers,
    coordinates,
    skipped,
    unreadable,
)
from kipcheck.conformance.core.files.releases_table import span
from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import History, Observation, Op, Refused, Replied
from kipcheck.conformance.core.values.release import Release, lines, releases
from kipcheck.conformance.core.values.verdict import Result
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.declare.invariant import INVARIANTS
from kipcheck.conformance.protocols.stored_records.model import ENVIRONMENT_EVENTS
from kipcheck.conformance.protocols.stored_records.ops import CLASSIC, KEY, OPERATIONS, Event, Read
from kipcheck.conformance.tests.support.loops import some_by_day
from kipcheck.conformance.wire import layout
from kipcheck.conformance.wire.stored_records import InterBroker, newest_readable, written

OFFSET, GROUP = "OffsetCommitValue", "GroupMetadataValue"
RELEASES = sorted({*(each for each in lines() if Release.parse(each) >= FIRST), "3.4.0", "4.1.0"}, key=Release.parse)
"""Every line, and the patches next to a change within one."""
WRITES_BY_ITSELF = releases("0.0.0-2.0.1")
"""The releases whose function is given the version: its callers choose by the inter-broker version."""
OFFSET_KEY, GROUP_KEY, CONSUMER_KEY, UNKNOWN_KEY = (
    "00010001670001740000" + "0000",
    "0002000167",
    "0003000167",
    "0063000167",
)


@pytest.fixture(scope="module")
def released() -> Iterator[Brokers]:
    with brokers(RELEASES) as found:
        yield found


@pytest.mark.jars
@pytest.mark.parametrize("release", some_by_day(RELEASES, 8, pytest.mark.all_jars))
def test_the_broker_writes_the_version_of_the_table(released: Brokers, release: str) -> None:
    at, names = Release.parse(release), released.inter_broker_versions(release)
    assert len(names) > 14
    newest = "0.10.1-IV0"
    for name in names:
        chosen = InterBroker.parse(name.removesuffix(".X"))
        for message, expiring in ((GROUP, False), (OFFSET, False), (OFFSET, True)):
            if message == GROUP and at in WRITES_BY_ITSELF and chosen < InterBroker.parse(newest):
                continue
            data = released.write(message, release, name, expiring)
            version = int.from_bytes(data[:2], "big")
            assert version == written(message, at, chosen, expiring=expiring), (message, name)
            model = layout("apache", message, version)
            assert model.codec.encode(model.decode(data)) == data, "our codec reads and writes the same bytes"


@pytest.mark.jars
def test_transaction_version_selects_the_value_as_in_the_table(released: Brokers) -> None:
    for release in (each for each in RELEASES if Release.parse(each) in IN_JAVA):
        at = Release.parse(release)
        found = released.transaction_versions(release)
        assert found == [
            written("TransactionLogValue", at, InterBroker.of(at), transactions=level) for level in range(3)
        ]


@pytest.mark.jars
@pytest.mark.parametrize("message", [OFFSET, GROUP])
def test_a_release_reads_the_versions_of_the_table_and_no_later_one(released: Brokers, message: str) -> None:
    stored = {each.version: each for each in samples(released, message)}
    assert [*stored] == [*range(1 if message == OFFSET else 0, 6)]
    for version, each in stored.items():
        for release, answer in zip(RELEASES, released.read(message, each.data, RELEASES), strict=True):
            newest = newest_readable(message, Release.parse(release))
            assert newest is not None
            expected = "accepted" if version <= newest else "rejected"
            assert answer.status == expected, (release, version, answer)
            assert unreadable(answer) is (version > newest), (release, version, answer)


@pytest.mark.jars
def test_unknown_keys_end_a_load_up_to_3_4_0_and_are_skipped_from_3_4_1_on(released: Brokers) -> None:
    skips = releases(span("skips-unknown-group-keys"))
    for key in (OFFSET_KEY, GROUP_KEY, CONSUMER_KEY, UNKNOWN_KEY):
        for release, answer in zip(RELEASES, released.read("Key", bytes.fromhex(key), RELEASES), strict=True):
            loads, at = answer.status == "accepted", Release.parse(release)
            known = key in (OFFSET_KEY, GROUP_KEY) or (key == CONSUMER_KEY and at in IN_JAVA)
            assert loads is (known or at in skips), (release, key, answer)
            assert loads or unreadable(answer)
            assert skipped(answer) is (not known and at in skips), (release, key, answer)


def played(released: Brokers, release: str, event: Event) -> Observation:
    """What the release does, as a testee answers."""
    if isinstance(event, Read):
        (answer,) = released.read(event.message, bytes.fromhex(event.hex), [release])
        accepted = answer.status == "accepted"
        return Replied((("loaded", answer.loaded),)) if accepted else Refused(str(answer.thrown))
    try:
        data = released.write(event.message, release, event.inter_broker or "", event.expires, event.level)
    except ValueError as cannot:
        return Refused("ValueError", str(cannot))
    return Replied((("hex", data.hex()),))


@pytest.mark.jars
@pytest.mark.parametrize("release", some_by_day(RELEASES, 4, pytest.mark.all_jars))
def test_what_brokers_write_and_load_keeps_to_the_invariants_of_stored_records(released: Brokers, release: str) -> None:
    oldest = InterBroker.parse("0.10.1")
    events = [each for each in ENVIRONMENT_EVENTS if each.message in (*CLASSIC, KEY)]
    if Release.parse(release) in WRITES_BY_ITSELF:
        events = [
            each for each in events
            if isinstance(each, Read) or each.inter_broker is None or InterBroker.parse(each.inter_broker) >= oldest
        ]  # fmt: skip
    steps = tuple(map(OPERATIONS.step_of, events))
    ops = tuple(Op(at, step, played(released, release, events[at]), at + 1) for at, step in enumerate(steps))
    history = History(Case("stored-records/written", f"apache@{release}", Role.BROKER, steps), "broker", ops)
    ids = {id for check in CHECKS.values() if check.id.startswith("stored-records/") for id in check.invariants}
    verdicts = [*judge(history, [INVARIANTS[each] for each in sorted(ids)])]
    broken = [each.invariant for each in verdicts if each.result is not Result.PASS]
    known = ["stored-records/way-back"] if Release.parse(release) >= Release.parse("4.1.0") else []
    assert broken == known, "docs/findings/kafka-coordinator-writes-offsets-that-3-3-cannot-read.md"
    assert len(verdicts) == 9, "all but those of transactions and of consumer groups"
    assert sum(isinstance(each.observation, Replied) for each in ops) > 10, "an old release knows few of the names"


class Stored:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.version = int.from_bytes(data[:2], "big")


def samples(released: Brokers, message: str) -> list[Stored]:
    """Every version, by the release that introduced it, and one that no release writes."""
    made = [released.write(message, "2.3.1", each) for each in ("0.8.0", "0.10.1-IV0", "2.1-IV0", "2.1-IV1", "2.3-IV0")]
    if message == OFFSET:
        made.append(released.write(message, "4.1.0"))
    else:
        # No release writes version 4: the bytes are those of the class in the jar.
        made.append(bytes.fromhex("0004" + "09636f6e73756d6572" + "00000000" + "00" + "00" + "ff" * 8 + "01" + "00"))
    made.append(b"\x00\x05" + made[-1][2:])
    by_version = {each.version: each for each in map(Stored, made)}
    return [by_version[version] for version in sorted(by_version)]


@pytest.mark.parametrize("release", ["1.1.0", "0.11.0.3", "4.4", "new"])
def test_releases_whose_broker_is_not_run_are_refused(release: str) -> None:
    with pytest.raises(LookupError, match=r"begin with 1\.1\.1|invalid release"):
        coordinates(release)
