"""The laws of coordinators about answers that pass by: each is broken here, and a sound answer breaks none."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from kipcheck.conformance.cli.main import run
from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.live.watch import coordinator
from kipcheck.conformance.live.watch.coordinator import LAWS
from kipcheck.conformance.live.watch.watcher import Watcher
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.tests.live.watch.test_bounds import ASSIGNMENT, Member, laws
from kipcheck.conformance.tests.live.watch.test_captures import JOIN, JOINED, SUBSCRIPTION
from kipcheck.conformance.tests.support.captures import exchange, packets
from kipcheck.conformance.wire.pcap import file_header, record

OTHER: Final = ASSIGNMENT[:-5] + b"\x01" + ASSIGNMENT[-4:]
LISTED: Final = {"memberId": "m", "metadata": SUBSCRIPTION}
LEADS: Final = {**JOINED, "leader": "m", "members": [LISTED]}
BEAT: Final = {"groupId": "g", "memberId": "m", "memberEpoch": 5}
BEATEN: Final = {"errorCode": 0, "memberId": "m", "memberEpoch": 5, "heartbeatIntervalMs": 5000}


def joined(reported: dict[str, Any], asked: dict[str, Any] | None = None) -> list[str]:
    """The laws that the answer to one JoinGroup breaks."""
    watcher = Watcher(APACHE, lambda line: None)
    member = Member(watcher)
    member.ask("JoinGroup", 5, {**JOIN, "memberId": "m", **(asked or {})}, reported)
    return laws(watcher)


def test_all_are_laws_of_their_checks() -> None:
    for check, ids in LAWS.items():
        assert {*ids} <= {*CHECKS[check].invariants}


def test_answers_to_a_join() -> None:
    assert joined(JOINED) == joined(LEADS) == []
    assert joined({**LEADS, "members": []}) == ["group/list-only-to-leader"]
    assert joined({**JOINED, "members": [LISTED]}) == ["group/list-only-to-leader"]
    assert joined({**LEADS, "members": [LISTED, LISTED]}) == ["group/leader-hears-all"]
    assert joined({**LEADS, "members": [{**LISTED, "memberId": "x"}]}) == ["group/leader-hears-all"]
    assert joined({**JOINED, "protocolName": "sticky"}) == ["group/common-protocol"]
    assert joined({**JOINED, "protocolName": "sticky", "errorCode": 27}) == []
    assert joined({**LEADS, "protocolName": "sticky", "members": []}, {"groupInstanceId": "i"}) == []


def test_a_generation_falls() -> None:
    for confirmed, moved, expected in ((True, False, ["group/generation-grows"]), (False, False, []), (True, True, [])):
        watcher = Watcher(APACHE, lambda line: None)
        member = Member(watcher)
        if confirmed:
            member.join(7)
        else:  # a coordinator that ends before the assignment is written may forget the generation
            member.ask("JoinGroup", 5, {**JOIN, "memberId": "m"}, {**JOINED, "generationId": 7})
        if moved:
            member.beat(7, error=16)
        member.join(6, fresh=False)
        assert laws(watcher) == expected, (confirmed, moved)
        assert watcher.coordinators.judged["group/generations"] == 1 + moved


@pytest.mark.parametrize(
    ("sent", "got", "leader", "expected"),
    [
        ([ASSIGNMENT], ASSIGNMENT, "l", []),
        ([ASSIGNMENT], OTHER, "l", ["group/assignment-from-leader"]),
        ([ASSIGNMENT], b"", "l", ["group/assignment-from-leader"]),
        ([ASSIGNMENT, OTHER], ASSIGNMENT, "l", []),
        ([ASSIGNMENT], OTHER, "another", []),
        ([], OTHER, "l", []),
    ],
)
def test_an_assignment_is_that_of_the_leader(sent: list[bytes], got: bytes, leader: str, expected: list[str]) -> None:
    watcher = Watcher(APACHE, lambda line: None)
    leads, member = Member(watcher, id="l"), Member(watcher)
    both = [{**LISTED, "memberId": each} for each in ("l", "m")]
    leads.ask("JoinGroup", 5, {**JOIN, "memberId": "l"}, {**JOINED, "memberId": "l", "leader": "l", "members": both})
    member.ask("JoinGroup", 5, {**JOIN, "memberId": "m"}, {**JOINED, "leader": leader})
    for each in sent:
        assigned = [{"memberId": "m", "assignment": each}, {"memberId": "l", "assignment": ASSIGNMENT}]
        leads.ask("SyncGroup", 3, {**leads.named(1), "assignments": assigned}, {"assignment": ASSIGNMENT})
    member.ask("SyncGroup", 3, {**member.named(1), "assignments": []}, {"assignment": got})
    assert laws(watcher) == expected


def test_nothing_is_said_of_assignments_after_something_was_not_seen() -> None:
    for missed, expected in ((False, ["group/assignment-from-leader"]), (True, [])):
        watcher = Watcher(APACHE, lambda line: None)
        leads, member = Member(watcher, id="l"), Member(watcher)
        member.ask("JoinGroup", 5, {**JOIN, "memberId": "m"}, {**JOINED, "leader": "l"})
        assigned = [{"memberId": "m", "assignment": ASSIGNMENT}]
        leads.ask("SyncGroup", 3, {**leads.named(1), "assignments": assigned}, {"assignment": ASSIGNMENT})
        if missed:  # maybe another SyncGroup of the leader
            watcher.missed(watcher.opened(1.0, "127.0.0.1", 5))
        member.ask("SyncGroup", 3, {**member.named(1), "assignments": []}, {"assignment": OTHER})
        assert laws(watcher) == expected


def test_an_epoch_falls() -> None:
    for epoch, expected in ((5, []), (6, []), (4, ["consumer-group/epochs-rise"]), (0, ["consumer-group/epochs-rise"])):
        watcher = Watcher(APACHE, lambda line: None)
        member = Member(watcher)
        member.ask("ConsumerGroupHeartbeat", 0, BEAT, {**BEATEN, "memberEpoch": epoch})
        member.ask("ConsumerGroupHeartbeat", 0, {**BEAT, "memberEpoch": -1}, {**BEATEN, "memberEpoch": -1})
        assert laws(watcher) == expected, epoch


@pytest.mark.parametrize("epoch", [4, 5, 6])
@pytest.mark.parametrize(
    ("api", "version", "check", "law"),
    [
        ("ShareGroupHeartbeat", 1, "share-group/membership", "share-group/epochs-rise"),
        ("StreamsGroupHeartbeat", 0, "streams-group/epochs", "streams-group/epochs-rise"),
    ],
)
def test_an_epoch_of_another_kind_of_group_falls(api: str, version: int, check: str, law: str, epoch: int) -> None:
    watcher = Watcher(APACHE, lambda line: None)
    member = Member(watcher)
    member.ask(api, version, BEAT, {**BEATEN, "memberEpoch": epoch})
    assert laws(watcher) == ([law] if epoch < 5 else [])
    assert watcher.coordinators.judged[check] == 1


def test_what_is_kept_of_groups_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, limit in (("MOST_MEMBERS", 20), ("MOST_GROUPS", 10), ("MOST_ASSIGNED", 30)):
        monkeypatch.setattr(coordinator, name, limit)
    watcher = Watcher(APACHE, lambda line: None)
    kept = watcher.coordinators
    for number in range(40):
        member = Member(watcher, float(number), f"m{number}", f"g{number}")
        member.join()
        assigned = [{"memberId": f"{number}-{each}", "assignment": ASSIGNMENT} for each in range(5)]
        member.ask("SyncGroup", 3, {**member.named(1), "assignments": assigned}, {"assignment": ASSIGNMENT})
        member.ask("ConsumerGroupHeartbeat", 0, {**BEAT, "memberId": member.id}, {**BEATEN, "memberId": member.id})
    assert (len(kept._members), len(kept._epochs), kept._sums) == (20, 20, 30)
    assert sum(len(each.sums) for each in kept._assigned.values()) == 30
    assert {check: times for check, times in kept.judged.items() if times} == {
        "group/generations": 40, "consumer-group/epochs": 40,
    }  # fmt: skip


def test_a_breach_is_in_the_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frames = exchange("JoinGroup", 5, 1, {**JOIN, "memberId": "m"}, {**LEADS, "members": []})
    made = b"".join(record(each, at * 50_000) for at, each in enumerate(packets(frames)))
    (tmp_path / "a.pcap").write_bytes(file_header() + made)
    assert run(["watch", "--pcap", str(tmp_path / "a.pcap"), "--out", str(tmp_path / "out")]) == 1
    out = capsys.readouterr().out
    assert "FAIL group/list-only-to-leader (MUST): group g, member m, the coordinator at " in out
    assert "grp-31: " in out
    assert "    answer: 00000001" in out
    (failure,) = (tmp_path / "out" / "failures").iterdir()
    filed = json.loads(failure.read_text())
    assert (filed["target"], filed["check"]) == ("watched the coordinator", "group/generations")
    assert "JoinGroup" in str(filed["exhibits"])
