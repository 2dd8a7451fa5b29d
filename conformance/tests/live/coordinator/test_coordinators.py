"""Running brokers as coordinators: names, a broker of kipcheck's own with and without a defect, and released ones."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kipcheck.conformance.cli.main import run as kipcheck
from kipcheck.conformance.core.ledger import read
from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.history import Replied, Unsupported
from kipcheck.conformance.core.values.verdict import Result
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.engine.execution.run import Options, Outcome, run
from kipcheck.conformance.live.coordinator.address import Address
from kipcheck.conformance.live.coordinator.waits import longest_first
from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.server.broker import Broker
from kipcheck.conformance.live.server.connection import Connection
from kipcheck.conformance.live.server.listener import Front
from kipcheck.conformance.live.server.topics import Topics
from kipcheck.conformance.protocols.consumer_group.checks import CONFIGURED, CREATED
from kipcheck.conformance.protocols.consumer_group.invariants import EPOCHS
from kipcheck.conformance.protocols.consumer_group.ops import OPERATIONS as CONSUMER_GROUP
from kipcheck.conformance.protocols.group.ops import OPERATIONS
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.share_partition.checks import KNOWN as SHARED
from kipcheck.conformance.protocols.share_partition.ops import OPERATIONS as SHARE_PARTITION
from kipcheck.conformance.protocols.share_partition.target import MACHINE as SHARE_MACHINE
from kipcheck.conformance.protocols.streams_group.checks import KNOWN
from kipcheck.conformance.protocols.streams_group.ops import OPERATIONS as STREAMS_GROUP
from kipcheck.conformance.targets import registry
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.toolchains import kafka_broker
from kipcheck.conformance.tests.support.loops import for_each
from kipcheck.conformance.tests.support.reconciled_coordinators import (
    STREAMS_MACHINE,
    is_comparable,
    unlike_the_machine,
)
from kipcheck.conformance.tests.support.sessions import played

EDITION = "apache@3.9.2"


@for_each(
    [
        ("localhost", "invalid address 'localhost': use broker:HOST:PORT"),
        ("localhost:0", "invalid address 'localhost:0'"),
        ("localhost:70000", "invalid address 'localhost:70000'"),
        ("localhost:9092?topics=t", "invalid option 'topics=t' of broker:HOST:PORT"),
        ("localhost:9092?topic=a/b", "invalid option 'topic=a/b'"),
        ("192.0.2.1:9092", "192.0.2.1 is not this machine: .* add --allow-remote"),
    ]
)
def test_an_address_that_cannot_be_used_is_refused(text: str, why: str) -> None:
    with pytest.raises(LookupError, match=why):
        Address.parse(text)


def test_options_stand_behind_the_address() -> None:
    assert Address.parse("[::1]:9092?topic=t&allow-remote") == Address("::1", 9092, "t", True)
    assert Address.parse("192.0.2.1:9092?allow-remote").host == "192.0.2.1"


@for_each([("broker:localhost", "use broker:HOST:PORT"), ("kafka:9.9.9", "unknown release 9.9.9"),
           ("kafka:0.10.0.1", "brokers are started from release 0.10.1.0 on")])  # fmt: skip
def test_a_bad_name_is_wrong_usage(name: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["run", "--target", name, "--check", "group/generations", "--out", str(tmp_path / "out")]
    assert kipcheck(asked) == 2
    assert why in capsys.readouterr().err


def test_conversations_that_wait_longest_begin_first() -> None:
    texts = ("join a", "join a; elapse 3000", "join a; elapse 6000; elapse 6000", "join a; elapse 300000; elapse 4000")
    cases = [Case("group/errors", EDITION, Role.COORDINATOR, OPERATIONS.parse_shorthand(each)) for each in texts]
    assert longest_first(cases) == [2, 3, 1, 0]  # a wait of five minutes is left out


class Forgiving(Broker):
    """Every heartbeat is answered NONE, whoever sends it."""

    def received(self, request: Received, connection: Connection) -> None:
        if request.message == "HeartbeatRequest":
            return connection.answer(request, {"errorCode": 0})
        super().received(request, connection)


@contextmanager
def listening(made: type[Broker], delay_ms: int = 3000) -> Iterator[int]:
    """The port of a broker of kipcheck's own, in a thread."""
    found = edition(EDITION)
    ready: list[int] = []
    started, ended = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        config = [f"group.initial.rebalance.delay.ms={delay_ms}"]
        front = Front(made(found, Topics.of([("t", 3)]), config), found)
        ready.append((await front.listen("127.0.0.1", 0))[1])
        started.set()
        await ended.wait()
        await front.close()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert started.wait(10)
    try:
        yield ready[0]
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(10)
        loop.close()


@pytest.mark.integration
@for_each(
    [
        # The coordinator keeps a group for the rest of the initial delay, and then for as long as an id is pending.
        "join a v3",
        "join a v3; elapse 100; join b v4; join c v3",
    ]
)
def test_a_group_whose_join_phase_goes_on_is_deleted(steps: str, capsys: pytest.CaptureFixture[str]) -> None:
    case = Case("group/errors", EDITION, Role.COORDINATOR, OPERATIONS.parse_shorthand(steps))
    with listening(Broker, 100) as port:
        target = registry.target(f"broker:127.0.0.1:{port}?topic=t")
        with target.open(EDITION, case.role) as session:
            found = session.run([case])
    assert all(isinstance(each, Replied) for each in found[0]), found
    assert "could not delete" not in capsys.readouterr().err


@pytest.mark.integration
def test_offsets_of_the_group_with_the_empty_name_stay_untouched() -> None:
    steps = "commit a id= 3 behind=none nameless; delete a nameless; beat a nameless"
    case = Case("group/errors", EDITION, Role.COORDINATOR, OPERATIONS.parse_shorthand(steps))
    with listening(Broker, 100) as port:
        target = registry.target(f"broker:127.0.0.1:{port}?topic=t")
        with target.open(EDITION, case.role) as session:
            (found,) = session.run([case])
    assert [type(each) for each in found] == [Unsupported, Unsupported, Replied]


def judged(port: int, place: Path) -> Outcome:
    options = Options(
        targets=(f"broker:127.0.0.1:{port}?topic=t",), edition=EDITION, checks=("group/generations",), cases=4,
        workers=1, out=place,
    )  # fmt: skip
    return run(options)


@pytest.mark.integration
def test_a_sound_broker_passes_and_a_forgiving_one_fails(tmp_path: Path) -> None:
    with listening(Broker) as port:
        sound = judged(port, tmp_path / "sound")
    assert (sound.exit_code, sound.failures) == (0, 0), sound.text
    with listening(Forgiving) as port:
        forgiving = judged(port, tmp_path / "forgiving")
    assert forgiving.ledger is not None and forgiving.failures > 0, forgiving.text
    assert {"grp-47"} & {each.id for failure in read(forgiving.ledger).failures for each in failure.requirements}


def breaks_no_law(release: str, checks: tuple[str, ...], least: int, place: Path) -> None:
    """Runs a released broker. ``least``: so many cases have to pass."""
    try:
        kafka_broker.class_path(release)
    except Unavailable as why:
        pytest.skip(str(why))
    options = Options(
        targets=(f"kafka:{release}",), edition=f"apache@{release}", checks=checks, known=("default",), cases=20,
        workers=1, out=place,
    )  # fmt: skip
    outcome = run(options)
    assert outcome.ledger is not None and (outcome.exit_code, outcome.failures) == (0, 0), outcome.text
    counts = read(outcome.ledger).footer
    assert counts is not None
    assert sum(each["PASS"] for each in counts.counts[f"kafka:{release}"].values()) > least, outcome.text


@pytest.mark.parametrize(
    "release", [pytest.param("3.9.2", marks=pytest.mark.all_jars), pytest.param("4.4.0", marks=pytest.mark.jars)]
)
def test_a_released_broker_breaks_no_law(release: str, tmp_path: Path) -> None:
    breaks_no_law(release, ("group/generations", "group/errors"), 20, tmp_path)


@pytest.mark.all_jars
@pytest.mark.parametrize("release", ["4.0.2", "4.1.2", "4.2.1", "4.3.1", "4.4.0"])
def test_consumer_groups_of_a_released_broker_break_no_law(release: str, tmp_path: Path) -> None:
    breaks_no_law(release, ("consumer-group/*", "migration/*"), 40, tmp_path)


@pytest.mark.jars
def test_a_streams_group_of_a_released_broker_is_as_ours() -> None:
    without_waiting = [text for text in KNOWN.values() if "pass" not in text and is_comparable(text)]
    assert len(without_waiting) > 1
    try:
        found = unlike_the_machine(
            STREAMS_MACHINE, "kafka:4.4.0", "4.4.0", [*map(STREAMS_GROUP.parse_shorthand, without_waiting)]
        )
    except Unavailable as why:
        pytest.skip(str(why))
    assert found == [], "\n".join(found)


@pytest.mark.all_jars
@pytest.mark.parametrize("release", ["4.0.2", "4.4.0"])
def test_a_released_broker_follows_the_settings_of_a_group_and_resolves_expressions_again(release: str) -> None:
    texts = [*CONFIGURED.values(), *CREATED.values()]
    cases = [
        Case(EPOCHS, f"apache@{release}", Role.COORDINATOR, CONSUMER_GROUP.parse_shorthand(each)) for each in texts
    ]
    try:
        with registry.target(f"kafka:{release}").open(f"apache@{release}", Role.COORDINATOR) as session:
            found = session.run(cases)
    except Unavailable as why:
        pytest.skip(str(why))
    laws = [each for each in all_invariants(Role.COORDINATOR) if each.id.startswith("consumer-group/")]
    for case, observed in zip(cases, found, strict=True):
        assert not any(isinstance(each, Unsupported) for each in observed), observed
        history = played(case, observed)
        assert not [each for each in judge(history, laws) if each.result is Result.FAIL], observed


@pytest.mark.all_jars
@pytest.mark.parametrize("release", ["4.2.1", "4.3.1", "4.4.0"])
def test_share_groups_of_a_released_broker_break_no_law(release: str, tmp_path: Path) -> None:
    breaks_no_law(release, ("share-group/*",), 40, tmp_path)


@pytest.mark.all_jars
@pytest.mark.parametrize("release", ["4.2.1", "4.3.1", "4.4.0"])
def test_share_partitions_of_a_released_broker_are_as_ours(release: str, tmp_path: Path) -> None:
    breaks_no_law(release, ("share-partition/*",), 20, tmp_path)
    found = unlike_the_machine(
        SHARE_MACHINE, f"kafka:{release}", release, [*map(SHARE_PARTITION.parse_shorthand, SHARED.values())]
    )
    assert found == [], "\n".join(found)


@pytest.mark.all_jars
@pytest.mark.parametrize("release", ["4.2.1", "4.3.1", "4.4.0"])
def test_streams_groups_of_a_released_broker_break_no_law(release: str, tmp_path: Path) -> None:
    breaks_no_law(release, ("streams-group/*",), 60, tmp_path)
