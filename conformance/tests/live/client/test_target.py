"""The target ``client:``: programs against a scripted broker."""

import asyncio
import gc
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from kipcheck.conformance.cli.main import run as main
from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.history import History, Observation, Op, Replied, Unsupported
from kipcheck.conformance.core.values.untrusted_text import is_data
from kipcheck.conformance.core.values.verdict import Result
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.live.client import play, target as live_target
from kipcheck.conformance.live.client.built_in import Settings
from kipcheck.conformance.live.client.launch import Commands, Program
from kipcheck.conformance.live.client.target import LiveClient, LiveSession, _Shown, served
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.client.ops import OPERATIONS
from kipcheck.conformance.protocols.client.wording import exhibits
from kipcheck.conformance.protocols.declare.claims import keeps_its_claims
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.targets.command import with_patience
from kipcheck.conformance.targets.protocol import Broken, NotPlayed, observed
from kipcheck.conformance.targets.registry import is_steady, target

OURS = f"client:{sys.executable} -m kipcheck.conformance.live.client.consumer {{bootstrap}} {{group}} {{topics}}"


def case(text: str) -> Case:
    return Case("client/groups", "apache", Role.CLIENT, OPERATIONS.parse_shorthand(text))


def test_a_command_is_run_once_for_each_case() -> None:
    with target(OURS).open("apache", Role.CLIENT) as session:
        found = session.run([case("rebalance; stop"), case("stop")])
    for each in found:
        last = each[-1]
        assert isinstance(last, Replied)
        assert [event["code"] for event in last["actions"] if event["what"] == "ended"] == [0]
        assert any(event.get("api") == "LeaveGroup" for event in last["actions"])


def test_a_program_that_is_no_consumer_is_shown_with_what_it_wrote() -> None:
    text = "import sys; print('no such option', file=sys.stderr); sys.exit(7)"
    name = f'client:{sys.executable} -c "{text}" {{bootstrap}} {{group}} {{topics}}'
    with target(name).open("apache", Role.CLIENT) as session, pytest.raises(Broken) as why:
        session.run([case("stop")])
    assert "code 7" in str(why.value) and "no such option" in str(why.value) and "no connection" in str(why.value)
    assert "what to change: connect to {bootstrap}" in str(why.value)


def test_a_command_needs_its_places() -> None:
    with pytest.raises(LookupError, match=r"\{group\}, \{topics\}"):
        target("client:./consume {bootstrap}")
    with pytest.raises(LookupError, match=r"nearest: kafka-python, kafka-go; a command contains \{bootstrap\}"):
        target("client:kafka-pyhton")
    with pytest.raises(LookupError, match="invalid release"):
        target("client:kafka-python@../here")


def test_a_command_has_known_placeholders_and_a_name_without_them() -> None:
    with pytest.raises(LookupError, match=r"has \{gruop\}, which kipcheck does not know; .*\{session_ms\}"):
        target("client:./consume {bootstrap} {gruop} {group} {topics}")
    found = target("client:./consume -v --brokers {bootstrap} --group {group} --topics {topics} {session_ms}")
    assert isinstance(found, LiveClient)
    assert found.info.name == "client:./consume" and found.info.opened.startswith("client:./consume -v --brokers")
    assert found.taken == {"session_ms"} and "{instance}" in found.info.claims.limits


def test_a_setting_that_is_not_given_is_empty_in_the_command() -> None:
    """With the placeholder itself as its instance id, every member is a static one."""
    command = Commands.of("./consume {bootstrap} {topics} --instance {instance} --set={group},x={session_ms} {}")
    words = ("./consume", "h:1", "t,u", "--instance", "{}")
    given = command.argv(Settings("h:1", "{topics}", ("t", "u"), instance="i-1", session_ms=9))
    assert given == [*words[:4], "i-1", "--set={topics},x=9", words[4]]
    assert command.argv(Settings("h:1", "g", ("t", "u"))) == [*words[:4], "", "--set=g,x=", words[4]]


def test_a_word_whose_setting_is_not_given_may_be_left_out() -> None:
    words = "./consume {bootstrap?} {group} {topics} --instance={instance?},{client_id} {assignors?} {protocol}"
    command = Commands.of(words)
    given = Settings("h:1", "g", ("t",), instance="i", assignors="range")
    first = ["./consume", "h:1", "g", "t"]
    assert command.argv(given) == [*first, "--instance=i,", "range", ""]
    assert command.argv(replace(given, instance="", assignors="")) == [*first, ""]
    assert {**command.given(given)} == {"bootstrap": "h:1", "group": "g", "topics": "t", "instance": "i",
                                        "assignors": "range"}  # fmt: skip
    found = target(f"client:{words}")
    assert isinstance(found, LiveClient) and found.taken == {"instance", "client_id", "assignors", "protocol"}
    with pytest.raises(LookupError, match=r"has \{gruop\}"):
        target("client:./consume {bootstrap} {group} {topics} {gruop?}")


def test_a_back_off_that_a_user_states_is_part_of_what_opens_the_target_and_of_what_is_recorded() -> None:
    stated = with_patience(with_patience(OURS, 3.0), 5.0)
    assert stated == f"{OURS}?patience=5" and with_patience("reference", 5.0) == "reference"
    live = target(stated)
    assert isinstance(live, LiveClient) and live.patience_s == 5.0
    assert live.info.opened == stated and live.info.name == target(OURS).info.name  # type: ignore[attr-defined]
    with live.open("apache", Role.CLIENT) as session:
        ((first, *_),) = session.run([case("stop")])
    assert isinstance(first, Replied)
    (launched,) = (each for each in first["actions"] if each["what"] == "launched")
    assert launched["patience_ms"] == 5000
    assert is_data("client:kafka-python?patience=5") and not is_data(stated)


def test_a_script_that_needs_what_a_command_lacks_is_unsupported_and_starts_nothing() -> None:
    steps = case("static; rebalance; stop")
    with target("client:./nothing {bootstrap} {group} {topics}").open("apache", Role.CLIENT) as session:
        (found,) = session.run([steps])
    lacks = Unsupported("the command lacks {instance}", "{instance}")
    assert found == (lacks, replace(lacks, reason=""), replace(lacks, reason=""))
    assert not list(keeps_its_claims(History(steps, "it", tuple(map(op, range(3), steps.steps, found)))))


def op(number: int, step: Step, observation: Observation) -> Op:
    return Op(number, step, observation, number + 1)


def test_a_program_that_connects_and_does_not_join_is_described(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(play, "CONNECT_S", 1.0)
    text = (
        "import socket, sys; p = sys.argv[1][10:]; s = socket.create_connection((sys.argv[1][:9], int(p))); s.recv(1)"
    )
    name = f'client:{sys.executable} -c "{text}" {{bootstrap}} {{group}} {{topics}}'
    with target(name).open("apache", Role.CLIENT) as session, pytest.raises(Broken) as why:
        session.run([case("stop")])
    assert "ran for 1 s" in str(why.value) and "1 connection; no request" in str(why.value)
    assert "security.protocol=PLAINTEXT" in str(why.value)


def test_a_program_that_ignores_sigterm_is_killed_and_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(play, "STOP_S", 0.5)
    text = "import runpy, signal, asyncio; asyncio.SelectorEventLoop.add_signal_handler = lambda *a: None; " \
        "signal.signal(15, 1); " \
        "runpy.run_module('kipcheck.conformance.live.client.consumer', run_name='__main__')"  # fmt: skip
    name = f'client:{sys.executable} -c "{text}" {{bootstrap}} {{group}} {{topics}}'
    ended = case("stop")
    with target(name).open("apache", Role.CLIENT) as session:
        (found,) = session.run([ended])
    history = History(ended, "it", tuple(map(op, range(1), ended.steps, found)))
    law = next(each for each in all_invariants(Role.CLIENT) if each.id == "client/ends-when-stopped")
    assert [each.shape for each in law.search(history)] == [("hangs",)]


def test_a_run_names_what_a_command_lacks_and_a_program_that_does_not_join_is_exit_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tuple(partial(lambda steps, subject: steps, steps) for steps in map(plain_steps, ("static", "rebalance")))
    monkeypatch.setitem(CHECKS, "client/groups", replace(CHECKS["client/groups"], first=first, planned=None, values=2))
    asked = ["run", "--check", "client/groups", "--workers", "1", "--out", str(tmp_path), "--target"]
    assert main([*asked, OURS]) == 0
    assert "client/groups: 1 case skipped: the command lacks {instance}" in capsys.readouterr().out
    assert main([*asked, "client:./nothing {bootstrap} {group} {topics}"]) == 3
    shown = capsys.readouterr()
    assert "cannot be started" in shown.err and "client:./nothing" in shown.out
    assert main([*asked, "client:./nothing {bootstrap} {topics}"]) == 2
    assert "lacks {group}" in capsys.readouterr().err


def plain_steps(text: str) -> list[dict[str, Any]]:
    return [{"actor": each.actor, "verb": each.verb, "body": dict(each.body)} for each in case(text).steps]


def test_a_file_may_name_a_client_that_comes_with_kipcheck_and_no_command() -> None:
    assert is_data("client:kafka-python") and not is_data(OURS)


def test_live_clients_play_no_other_role() -> None:
    with pytest.raises(NotPlayed), target(OURS).open("apache", Role.CODEC):
        pass
    assert not is_steady(OURS)


@pytest.mark.integration
@pytest.mark.parametrize("name", ["kafka-python", "aiokafka"])
def test_a_released_client_is_played(name: str) -> None:
    scripts = "others 2 follow; assign 1,2; rebalance; stop", "answer Heartbeat UNKNOWN_MEMBER_ID; pass 200; stop"
    with target(f"client:{name}").open("apache", Role.CLIENT) as session:
        found = session.run([case(each) for each in scripts])
    whats = [event["what"] for each in found for answer in each for event in dict(answer.payload)["actions"]]  # type: ignore[union-attr]
    assert whats.count("joined") == 2 and whats.count("settled") == 2 and whats.count("ended") == 2


def test_a_program_that_does_not_have_a_value_of_a_setting_cannot_play_its_script() -> None:
    text = "import os, sys; sys.exit('no such assignor: ' + os.environ['KIPCHECK_ASSIGNORS'])"
    name = f'client:{sys.executable} -c "{text}" {{bootstrap}} {{group}} {{topics}} {{assignors}}'
    with target(name).open("apache", Role.CLIENT) as session:
        ((_, last),) = session.run([case("assignors sticky; stop")])
        assert isinstance(last, Unsupported) and last.limit == "{assignors}" and "assignor: sticky" in last.reason
        with pytest.raises(Broken):
            session.run([case("stop")])


def test_a_program_that_does_not_have_the_versions_of_an_older_broker_cannot_play_its_script() -> None:
    """platformatic-kafka 1.35.0 begins with JoinGroup 6, and was said not to keep its claims."""
    steps = case("older 2.1.1; rebalance; stop")
    name = f'client:{sys.executable} -c "raise SystemExit(1)" {{bootstrap}} {{group}} {{topics}}'
    live = target(name)
    with live.open("apache", Role.CLIENT) as session:
        (found,) = session.run([steps])
    history = _Shown("it", steps, found).history
    assert [each.limit in live.info.claims.limits for each in found if isinstance(each, Unsupported)] == [True]  # type: ignore[attr-defined]
    assert not list(keeps_its_claims(history))


def test_a_step_that_a_client_cannot_take_is_shown_as_a_failure_of_its_claims() -> None:
    steps = case("rebalance; stop")
    history = _Shown("it", steps, (Unsupported("no such thing"), *keeps())).history
    (violation,) = keeps_its_claims(history)
    (shown,) = exhibits(history, violation)
    assert [each["guilty"] for each in shown["steps"]] == [True, False]


def breaks(late_ms: int, *, idle_ms: int = 60_000, lost: bool = False) -> tuple[Observation, ...]:
    """The play of a client that sends no SyncGroup for a minute, on a machine that was late at the end of it or at
    another time. ``lost``: it is no stable member either."""
    at = {"ms": 60_000, "connection": 1}
    joined = {
        "what": "answer",
        "ms": 0,
        "connection": 1,
        "api": "JoinGroup",
        "error": 0,
        "generation": 1,
        "member": "m",
    }
    fetch = {"what": "request", **at, "api": "Fetch", "version": 4, "digest": "d", "partitions": []}
    unsettled = {"what": "unsettled", **at, "waited_ms": 10_000, "unsent": []}
    idle = {"what": "idle", "ms": idle_ms, "late_ms": late_ms}
    return (observed({"status": "accepted", "actions": [joined, fetch, *([unsettled] if lost else []), idle]}),)


def keeps() -> tuple[Observation, ...]:
    """The play of a client that does nothing wrong."""
    return (observed({"status": "accepted", "actions": [{"what": "idle", "ms": 0, "late_ms": 0}]}),)


class Canned(LiveSession):
    """Takes its plays from a list."""

    def __init__(self, plays: list[tuple[Observation, ...]]) -> None:
        live = target(OURS)
        assert isinstance(live, LiveClient)
        super().__init__(live.info, live.launcher, live.taken, served("apache"))
        self.plays = plays

    async def _played(self, case: Case) -> tuple[Observation, ...]:
        return self.plays.pop(0)


def results(session: LiveSession, *scripts: str) -> list[tuple[str, Result]]:
    """What scripts that are played by one run break, or might break."""
    cases = [case(each) for each in scripts or ("stop",)]
    laws = [each for each in all_invariants(Role.CLIENT) if each.id in ("client/syncs", "client/comes-back-soon")]
    histories = (_Shown("it", *each).history for each in zip(cases, session.run(cases), strict=True))
    verdicts = (verdict for each in histories for verdict in judge(each, laws))
    return sorted((each.invariant, each.result) for each in verdicts if each.result in (Result.FAIL, Result.UNKNOWN))


FAILS: Final = ("client/syncs", Result.FAIL)


def test_a_breach_of_a_confirmed_way_is_believed_though_this_machine_was_late() -> None:
    session = Canned([breaks(0), breaks(200)])
    assert results(session) == [FAILS]
    assert results(session) == [FAILS] and not session.plays


def test_a_breach_while_this_machine_is_late_is_played_again() -> None:
    session = Canned([breaks(200), breaks(200), breaks(0), breaks(200)])
    assert results(session) == [FAILS] and len(session.plays) == 1


def test_a_breach_that_stays_late_is_undecided() -> None:
    assert results(Canned([breaks(200)] * 7)) == [("client/syncs", Result.UNKNOWN)]


def test_a_breach_that_does_not_come_again_alone_counts_for_nothing() -> None:
    session = Canned([breaks(0), breaks(0), keeps(), keeps()])
    assert results(session, "stop", "stop") == [] and not session.plays


def test_a_script_is_played_again_up_to_its_breach() -> None:
    """And whole, if that does not show the breach, or if this machine stays late."""

    class Parts(Canned):
        async def _played(self, case: Case) -> tuple[Observation, ...]:
            lengths.append(len(case.steps))
            return ((await super()._played(case)) + keeps() * len(case.steps))[: len(case.steps)]

    lengths: list[int] = []
    scripts = "pass 200; pass 400; stop", "stop"
    assert results(Parts([breaks(200), keeps(), breaks(0)]), *scripts) == [FAILS]
    assert lengths == [3, 1, 1]
    lengths.clear()
    assert results(Parts([breaks(0), keeps(), keeps(), breaks(0)]), *scripts) == [FAILS]
    assert lengths == [3, 1, 1, 3]
    lengths.clear()
    assert results(Parts([breaks(0), keeps(), *[breaks(200)] * 6]), *scripts) == [("client/syncs", Result.UNKNOWN)]
    assert lengths == [3, 1, 1, 1, 1, 1, 1, 3]


def test_a_new_way_in_a_script_with_a_confirmed_one_is_played_again() -> None:
    """A new defect must not vanish behind a known one."""
    session = Canned([breaks(0), breaks(200, lost=True), breaks(200, lost=True), breaks(0, lost=True)])
    assert results(session) == [FAILS]
    assert results(session) == [("client/comes-back-soon", Result.FAIL), FAILS] and not session.plays


def test_a_law_that_is_broken_in_many_ways_is_not_played_again_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that never comes back hung the run; one of its ways is enough, and the others need no time."""
    monkeypatch.setattr("kipcheck.conformance.live.client.target.MOST_ALONE_S", 0.0)
    session = Canned([breaks(0), breaks(0)])
    session._confirmed_ways = {("client/syncs", ("in another way",))}
    assert results(session, "stop", "stop") == [FAILS, FAILS] and not session.plays
    session = Canned([breaks(0), keeps(), keeps()])
    session._confirmed_ways = {("client/beats", ("no heartbeat",))}
    assert results(session, "stop", "stop") == [] and not session.plays


def test_a_way_in_doubt_beside_a_certain_one_is_named() -> None:
    """Of one law: the certain one makes its verdict."""

    def event(what: str, ms: int, api: str, error: int = 0) -> dict[str, Any]:
        more = {"digest": api, "version": 1, "member": "m", "generation": 1, "partitions": []}
        return {"what": what, "ms": ms, "connection": 1, "api": api, "error": error, **more}

    twice = [(0, "Heartbeat"), (1000, "OffsetCommit")]
    events = [(event("answer", ms, api, 16), event("request", ms + 200, api)) for ms, api in twice]
    idle = {"what": "idle", "ms": 1200, "late_ms": 60}
    found = (observed({"status": "accepted", "actions": [*sum(events, ()), idle]}),)
    session = Canned([found] * 7)
    session.run([case("stop")])
    (trouble,) = session.troubles
    assert trouble.startswith("client/finds-its-coordinator: whether OffsetCommit, OffsetCommit breaks it in ")


def test_lateness_in_another_part_of_a_script_casts_no_doubt() -> None:
    session = Canned([breaks(200, idle_ms=61_000)])
    assert results(session) == [FAILS] and not session.plays


def test_the_shortest_script_confirms_a_way() -> None:
    class Slow(Canned):
        async def _played(self, case: Case) -> tuple[Observation, ...]:
            lengths.append(len(case.steps))
            await asyncio.sleep(0.05 if len(case.steps) > 1 else 0)
            return (await super()._played(case)) * len(case.steps)

    lengths: list[int] = []
    session = Slow([breaks(200), breaks(200), breaks(0)])
    assert results(session, "pass 200; stop", "stop") == [FAILS, FAILS]
    assert lengths == [2, 1, 1] and not session.plays


def test_as_many_programs_start_at_once_as_processors_can_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others wait, since a machine that starts many is late."""
    starting: list[int] = [0]
    most: list[int] = []
    start = Commands.start

    async def counted(self: Commands, settings: Settings) -> Program:
        starting[0] += 1
        most.append(starting[0])
        program = await start(self, settings)
        asyncio.get_running_loop().call_later(0.05, lambda: starting.__setitem__(0, starting[0] - 1))
        return program

    monkeypatch.setattr(Commands, "start", counted)
    monkeypatch.setattr(live_target, "STARTS", 1)
    joins_no_older_one = "client:sh -c 'sleep 0.2; exit 1' {bootstrap} {group} {topics}"
    with target(joins_no_older_one).open("apache", Role.CLIENT) as session:
        for _ in range(2):  # each run has an event loop of its own
            session.run([case("older 2.1.1; rebalance; stop")] * 3)
    assert len(most) == 1 + 6 and max(most) == 1  # the first one showed which release is played


def test_scripts_are_played_without_garbage_collection() -> None:
    seen = []

    class Watching(Canned):
        async def _played(self, case: Case) -> tuple[Observation, ...]:
            seen.append(gc.isenabled())
            return await super()._played(case)

    Watching([breaks(0)]).run([case("stop")])
    assert seen == [False] and gc.isenabled()


def test_a_machine_that_stays_late_plays_less_and_less_again() -> None:
    session = Canned([breaks(200)] * 100)
    played = []
    for _ in range(5):
        before = len(session.plays)
        assert session.run([case("stop")]) == [breaks(200)]
        played.append(before - len(session.plays))
    assert played == [7, 4, 2, 2, 2]
    session.plays[:] = [breaks(200), breaks(0), *[breaks(200, lost=True)] * 7]
    assert session.run([case("stop")]) == [breaks(0)]
    assert [len(each) for each in session.run([case("stop")])] == [1] and not session.plays


STARTER: Final = """
import asyncio
from kipcheck.conformance.live.client.built_in import Settings
from kipcheck.conformance.live.client.launch import Commands

async def main():
    program = await Commands.of("sh -c 'sleep 60 & echo $! >&2; wait'").start(Settings("", "", ()))
    while not program.output:
        await asyncio.sleep(0.01)
    print(program.process.pid, program.output, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


def is_alive(pid: int) -> bool:
    """Whether it runs: one that ended and that nobody waits for does not."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_program_ends_with_the_process_that_started_it() -> None:
    """And so does what the program itself started."""
    with subprocess.Popen([sys.executable, "-c", STARTER], stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        pids = [*map(int, starter.stdout.readline().split())]
        assert len(pids) == 2 and all(map(is_alive, pids))
        starter.kill()
    end = time.monotonic() + 10
    while time.monotonic() < end and any(map(is_alive, pids)):
        time.sleep(0.05)
    assert not any(map(is_alive, pids))
