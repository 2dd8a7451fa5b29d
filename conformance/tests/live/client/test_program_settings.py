"""What programs do with their settings: pauses, late commits, patterns, max.poll.interval.ms; and stopped processes."""

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from kipcheck.conformance.live.client.built_in import Settings
from kipcheck.conformance.live.client.launch import Commands
from kipcheck.conformance.live.client.program_settings import FIRST, PATTERN, changed, launched, wanted
from kipcheck.conformance.protocols.client import ops
from kipcheck.conformance.protocols.client.events import Frozen, Launched, RequestSeen, Thawed
from kipcheck.conformance.protocols.client.model import is_possible
from kipcheck.conformance.protocols.client.ops import OPERATIONS
from kipcheck.conformance.protocols.client.trace import events_of
from kipcheck.conformance.tests.protocols.client.test_mutants import broken, played


def after(text: str) -> Settings:
    settings = FIRST
    for step in OPERATIONS.parse_shorthand(text):
        event = OPERATIONS.event_of(step)
        assert isinstance(event, ops.SETTINGS)
        settings = changed(settings, event)
    return settings


def test_steps_change_the_settings_of_the_next_start() -> None:
    assert after("older 2.8.2") == FIRST
    found = after("commit late; pause 500; max-poll 4000; static; topics 2")
    assert (found.commit, found.pause_ms, found.max_poll_ms, found.rebalance_ms) == ("late", 500, 4000, 4000)
    assert found.environment["KIPCHECK_MAX_POLL_MS"] == "4000" and found.environment["KIPCHECK_COMMIT"] == "late"
    assert after("pattern; topics 1").topics == ("t", "u") and after("pattern").pattern == PATTERN
    assert after("poll 0; resume").environment.items() >= {"KIPCHECK_POLL_MS": "0", "KIPCHECK_RESUME": "always"}.items()
    assert wanted(FIRST, "", {}) == "" and wanted(after("commit sync; pattern"), "", {}).count(",") == 2


def test_what_reaches_a_program_is_recorded() -> None:
    reached = Commands.of("it {commit} {max_poll_ms} {pause_ms} {pattern}").given(after("pattern; pause 500"))
    found = launched(0, reached, ("t", "u"), 0)
    assert found == Launched(0, topics=("t", "u"), commit="auto", max_poll_ms=6000, pause_ms=500, pattern=PATTERN)
    assert launched(0, {}, ("t",), 0) == Launched(0, topics=("t",))


@pytest.mark.parametrize("text", ["max-poll 2999", "max-poll 10001", "pause 10001", "freeze 10001"])
def test_a_time_out_of_bounds_is_not_possible(text: str) -> None:
    (step,) = OPERATIONS.parse_shorthand(text)
    assert not is_possible(OPERATIONS.event_of(step))


def requests(text: str, *apis: str) -> list[RequestSeen]:
    """Those of the consumer that keeps all rules."""
    history = asyncio.run(played("", text))
    assert not broken(history) - {"client/beats", "client/beats-in-time"}
    seen = (event for _, event in events_of(history) if isinstance(event, RequestSeen))
    return [request for request in seen if request.api in apis]


def test_records_that_are_held_over_a_rebalance_are_committed_after_it() -> None:
    text = "others 1 follow; assign 0,1; commit late; pass 500; assign 1,2; rebalance; pass 500; stop"
    first, *rest = requests(text, "OffsetCommit")
    assert first.partitions == ("t-1",) and first.generation == 2 and not rest


def test_a_program_commits_where_partitions_are_revoked() -> None:
    found = requests("commit revoked; pass 500; rebalance; pass 300; stop", "JoinGroup", "OffsetCommit", "LeaveGroup")
    assert [each.api for each in found[2:]] == ["OffsetCommit", "JoinGroup", "OffsetCommit", "LeaveGroup"]
    text = "others 1 follow; assign 0,1; assignors cooperative-sticky; commit revoked; pass 500; assign 1; rebalance"
    (commit,) = requests(f"{text}; reset Heartbeat", "OffsetCommit")
    assert commit.partitions == ("t-0",) and commit.generation == 2


def test_a_member_that_works_for_too_long_leaves_and_joins_again() -> None:
    found = [each.api for each in requests("max-poll 3000; pause 3300; pass 4500; stop", "JoinGroup", "LeaveGroup")]
    assert found == ["JoinGroup", "JoinGroup", "LeaveGroup", "JoinGroup", "JoinGroup", "LeaveGroup"]


@pytest.mark.parametrize("text", ["pattern; stop", "protocol consumer; pattern; assign 0 and 1; stop"])
def test_a_pattern_stands_for_all_topics_that_match(text: str) -> None:
    found = requests(text, "OffsetCommit")
    assert found and {each[0] for each in found[-1].partitions or ()} == {"t", "u"}


@pytest.mark.parametrize("text", ["freeze 3300; stop", "static; freeze 3300; stop"])
def test_a_process_that_is_stopped_for_longer_than_its_session_is_no_member(text: str) -> None:
    history = asyncio.run(played("", text))
    kinds = [event for _, event in events_of(history)]
    frozen = next(at for at, event in enumerate(kinds) if isinstance(event, Frozen))
    thawed = next(at for at, event in enumerate(kinds) if isinstance(event, Thawed))
    assert not any(isinstance(event, RequestSeen) for event in kinds[frozen + 2 : thawed])
    assert any(isinstance(event, RequestSeen) and event.api == "JoinGroup" for event in kinds[thawed:])


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_process_stops_with_its_group_and_goes_on() -> None:
    async def run() -> None:
        text = f"{sys.executable} -c 'import time; time.sleep(60)' {{bootstrap}} {{group}} {{topics}}"
        program = await Commands.of(text).start(FIRST)
        status = Path(f"/proc/{program.process.pid}/stat")  # type: ignore[attr-defined]
        program.freeze()
        for _ in range(100):
            if (state := status.read_text("utf-8").split()[2]) == "T":
                break
            await asyncio.sleep(0.01)
        assert state == "T"
        program.thaw()
        program.stop()
        assert await program.ended == -signal.SIGTERM
        await program.kill()

    asyncio.run(run())
