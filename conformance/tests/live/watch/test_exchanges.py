"""A watch counts what it judged by API, names what it did not judge with the reason, and passes nothing unjudged."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from kipcheck import reports
from kipcheck.conformance.cli.main import run
from kipcheck.conformance.core.ledger import read
from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.live.watch import exchanges, verdicts, watcher as watchers
from kipcheck.conformance.live.watch.laws import reading, speaking
from kipcheck.conformance.live.watch.watcher import Watcher
from kipcheck.conformance.protocols.client.invariants.law import OF_ALL
from kipcheck.conformance.tests.live.watch.test_bounds import ASSIGNMENT, Member
from kipcheck.conformance.tests.live.watch.test_captures import JOIN, JOINED, conversation
from kipcheck.conformance.tests.support.captures import exchange, packets, watched
from kipcheck.conformance.wire.framing import encode_request, frame
from kipcheck.conformance.wire.pcap import Sent, file_header, record

SYNC: Final = {"groupId": "g", "memberId": "m", "generationId": 1, "assignments": []}
METADATA: Final = {"brokers": [], "controllerId": 0, "topics": []}
VERSIONS: Final = {"errorCode": 0, "apiKeys": []}


def capture(path: Path, frames: Iterator[Sent]) -> str:
    found = packets(frames)
    path.write_bytes(file_header() + b"".join(record(each, at * 50_000) for at, each in enumerate(found)))
    return str(path)


def code(tmp_path: Path, frames: Iterator[Sent]) -> int:
    return run(["watch", "--pcap", capture(tmp_path / "a.pcap", frames), "--out", str(tmp_path / "out")])


def syncs() -> Iterator[Sent]:
    yield from exchange("SyncGroup", 3, 3, SYNC, {"assignment": ASSIGNMENT})


def versions() -> Iterator[Sent]:
    yield from exchange("ApiVersions", 0, 1, {}, VERSIONS)
    yield from exchange("Metadata", 1, 2, {"topics": []}, METADATA)
    yield Sent(frame(encode_request("apache", "MetadataRequest", 1, 3, "me", {"topics": []})), True)


@pytest.mark.parametrize(
    ("frames", "left"),
    [
        (lambda: iter(()), {}),
        (syncs, {exchanges.EARLIER: {"SyncGroup": 1}}),
        (versions, {exchanges.CONTEXT: {"ApiVersions": 1, "Metadata": 1}, exchanges.UNSEEN: {"Metadata": 1}}),
    ],
    ids=["nothing", "SyncGroup alone", "no group"],
)  # fmt: skip
def test_a_watch_that_judged_no_exchange_has_no_verdict(
    frames: Any, left: dict[str, dict[str, int]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code(tmp_path, frames()) == 7
    shown = capsys.readouterr().out
    assert "nothing was tested" in shown and "judged: 0 exchanges" in shown and "conformant" not in shown
    ledger = read(tmp_path / "out" / "ledger.jsonl")
    assert ledger.footer is not None and ledger.footer.exits == (7,)
    (line,) = ledger.exchanges
    assert (line.judged, line.left) == ({}, left)
    for reason, by_api in left.items():
        names = ", ".join(f"{number} {api}" for api, number in by_api.items())
        for form in ("brief", "text", "markdown", "html"):
            text = " ".join(reports.render(ledger.path, form).split())
            assert f"{names}: {reason}" in text.replace("&#x27;", "'"), form


def test_all_forms_count_the_exchanges(tmp_path: Path) -> None:
    def frames() -> Iterator[Sent]:
        yield from exchange("ApiVersions", 0, 9, {}, VERSIONS)
        yield from conversation()

    assert code(tmp_path, frames()) == 0
    path = tmp_path / "out" / "ledger.jsonl"
    wanted = {"judged": 6, "not judged": 1}
    assert json.loads(reports.render(path, "json"))["footer"]["totals"]["exchanges"] == wanted
    assert json.loads(reports.render(path, "sarif"))["runs"][0]["properties"]["totals"]["exchanges"] == wanted
    for name, number in wanted.items():
        assert f'name="exchanges.{name}" value="{number}"' in reports.render(path, "junit")


def counted(member: Member) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
    member.watcher.end(member.at_s)
    found = member.watcher.exchanges
    every = sum(found.judged.values()) + sum(sum(by.values()) for by in found.left.values())
    assert every == sum(found.requests.values()) == member.watcher.counts["requests"]
    return dict(found.judged), {reason: dict(by) for reason, by in found.left.items()}


def test_every_exchange_is_counted_once() -> None:
    member = Member(Watcher(APACHE, lambda line: None))
    member.join()
    for _ in range(50):
        member.beat(1)
    member.ask("ApiVersions", 0, {}, VERSIONS)
    assert counted(member) == (
        {"JoinGroup": 2, "SyncGroup": 1, "Heartbeat": 50}, {exchanges.CONTEXT: {"ApiVersions": 1}},
    )  # fmt: skip


def test_each_reason_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def member() -> Member:
        return Member(Watcher(APACHE, lambda line: None))

    commits = member()
    commits.ask("LeaveGroup", 0, {"groupId": "g", "memberId": "x"}, {"errorCode": 0})
    assert counted(commits)[1] == {exchanges.NO_MEMBER: {"LeaveGroup": 1}}
    connect = member()
    connect.ask("JoinGroup", 5, {**JOIN, "protocolType": "connect"}, {**JOINED, "errorCode": 79})
    assert counted(connect)[1] == {exchanges.OTHER_TYPE: {"JoinGroup": 1}}
    one = member()
    one.join()
    other = Member(one.watcher, one.at_s, "n")
    other.join()
    other.connection, other.sent = one.connection, one.sent
    other.beat(1)
    assert counted(other)[1] == {exchanges.SHARED: {"JoinGroup": 1, "SyncGroup": 1, "Heartbeat": 1}}
    late = member()
    late.join()
    late.ask("Heartbeat", 3, late.named(1), {"errorCode": 27})
    late.watcher.missed(late.connection)
    late.beat(1)
    assert counted(late)[1] == {exchanges.UNSEEN: {"JoinGroup": 1, "SyncGroup": 1, "Heartbeat": 2}}
    newer = member()
    payload = bytes.fromhex("000c0063") + b"\0\0\0\1\xff\xff"
    newer.watcher.asked(newer.connection, 0.0, payload, whole=False)
    strange = bytes.fromhex("03e70000") + b"\0\0\0\2\xff\xff"
    newer.watcher.asked(newer.connection, 0.0, strange, whole=False)
    assert counted(newer)[1] == {exchanges.NEWER: {"Heartbeat": 1}, exchanges.UNREAD: {"an unknown API": 1}}
    monkeypatch.setattr(watchers, "MOST_TRACKS", 1)
    many = member()
    many.join()
    many.ask("Heartbeat", 3, many.named(1), {"errorCode": 27}, 0.1)
    Member(many.watcher, many.at_s, "n").join()
    many.beat(1)
    assert exchanges.TOO_MANY in counted(many)[1]


def test_a_defect_of_ours_is_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise KeyError("ours")

    monkeypatch.setattr(verdicts.Judging, "judge", fails)
    assert code(tmp_path, conversation()) == 70
    (line,) = read(tmp_path / "out" / "ledger.jsonl").exchanges
    assert line.left == {exchanges.DEFECT: {"JoinGroup": 1, "SyncGroup": 1, "Heartbeat": 3}}, "an answer was judged"


def test_the_rest_of_a_damaged_capture_has_no_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    every = [record(each, at * 50_000) for at, each in enumerate(packets(conversation()))]
    damaged = every[20][:8] + b"\x7f\xff\xff\xff" + every[20][12:]
    (tmp_path / "a.pcap").write_bytes(file_header() + b"".join([*every[:20], damaged, *every[21:]]))
    assert run(["watch", "--pcap", str(tmp_path / "a.pcap"), "--out", str(tmp_path / "out")]) == 6
    assert "is damaged after packet 20: the rest was not read" in capsys.readouterr().out
    (tmp_path / "b.pcap").write_bytes(file_header() + b"".join(every)[:-7])
    assert run(["watch", "--pcap", str(tmp_path / "b.pcap"), "--out", str(tmp_path / "out")]) == 0
    assert "1 captures that end amid a packet" in capsys.readouterr().out


# ---- laws that read nothing


def test_every_law_that_speaks_has_a_premise() -> None:
    assert all(each.premise is not None for check in OF_ALL for each in speaking(check))


def test_a_law_without_its_premise_passes_nothing(tmp_path: Path) -> None:
    """A history without a heartbeat of KIP-848, a leader or a commit says nothing of their laws."""
    assert code(tmp_path, conversation()) == 0
    ledger = read(tmp_path / "out" / "ledger.jsonl")
    passed = {id for (_, id), counts in ledger.held.items() if counts["PASS"]}
    assert "client/names-itself" in passed and "group/list-only-to-leader" in passed
    silent = {
        "client/names-its-epoch", "client/hands-over", "client/commits-its-own", "client/keeps-its-id",
        "group/generation-grows", "group/assignment-from-leader", "group/leader-hears-all",
    }  # fmt: skip
    assert not passed & silent


def test_a_law_that_finds_something_has_its_premise(tmp_path: Path) -> None:
    """A premise that is too narrow would hide a law that speaks."""
    found, _ = watched(packets(conversation(7)), tmp_path / "a")
    for each in found.reported:
        assert each.law.id in reading(each.history)


# ---- effects are predictions


def trailing(answered: bool) -> Iterator[Sent]:
    """ApiVersions with four bytes too many, as old releases of librdkafka sent them."""
    bytes_ = encode_request("apache", "ApiVersionsRequest", 0, 1, "me", {}) + bytes(4)
    yield Sent(frame(bytes_), True)
    if answered:
        _, answer = exchange("ApiVersions", 0, 1, {}, VERSIONS)
        yield answer


@pytest.mark.parametrize("answered", [True, False])
def test_a_request_that_was_answered_is_not_said_to_be_refused(
    answered: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code(tmp_path, trailing(answered)) == 1
    (cause,) = read(tmp_path / "out" / "ledger.jsonl").causes
    (failure,) = read(tmp_path / "out" / "ledger.jsonl").failures
    assert failure.invariant == "client/encodes-strictly"
    shown = capsys.readouterr().out
    if answered:
        assert cause.title.endswith("its broker answered it without an error") and cause.severity == "trivia"
        assert failure.tags == ("layout",) and "refuses a request" not in shown
    else:
        assert cause.title.startswith("A broker refuses a request") and cause.severity == "refused peer"
        assert failure.tags == ("layout", "refused-peer")


def test_an_answer_that_comes_after_a_report_is_in_it() -> None:
    """SyncGroup may be answered minutes after it was judged."""
    watcher = Watcher(APACHE, lambda line: None)
    member = Member(watcher)
    asked = {**JOIN, "groupId": "g"}
    member.ask("JoinGroup", 5, asked, {**JOINED, "errorCode": 79, "memberId": "m"})
    member.ask("JoinGroup", 5, {**asked, "memberId": "m"}, {**JOINED, "memberId": "m", "generationId": 4})
    member.sent += 1
    sync, answer = exchange("SyncGroup", 3, member.sent, {**member.named(9), "assignments": []}, {"assignment": b""})
    found = watcher.asked(member.connection, member.at_s + 1, sync.data[4:])
    watcher.tick(member.at_s + 9)
    (before,) = watcher.reported
    assert (before.law.id, before.violation.answered) == ("client/names-itself", None)
    assert watcher.answered(member.connection, member.sent) is found
    watcher.answer(member.connection, member.at_s + 20, found, answer.data[4:])
    watcher.tick(member.at_s + 30)
    (after,) = watcher.reported
    assert (after.law, after.violation.shape, after.violation.answered) == (before.law, before.violation.shape, 0)
