"""Released assignors of Streams behind a JVM: what is asked, what is remembered, and what becomes of one that dies."""

import sqlite3
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from kipcheck.conformance.clients.java import streams_members
from kipcheck.conformance.clients.java.answer_cache import AnswerCache
from kipcheck.conformance.clients.java.programs import parts
from kipcheck.conformance.clients.java.streams_members import BATCH, Jars, Unanswerable, open_jars
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.protocols.assignment.model.assignment import Topic
from kipcheck.conformance.protocols.streams.blobs import (
    EncodedBinary,
    read_assignment,
    read_subscription,
    write_subscription,
)
from kipcheck.conformance.protocols.streams.model.members import (
    AssignmentResult,
    Binary,
    Endless,
    Fatal,
    Joining,
    Memory,
    Misconfigured,
    Rejoin,
    Settings,
    Share,
    TaskId,
    by_topic,
)
from kipcheck.conformance.protocols.streams.model.release_members import binary
from kipcheck.conformance.protocols.streams.ops import STATELESS
from kipcheck.conformance.targets.transport.pipe import Ended, Pipe
from kipcheck.conformance.tests.wire.test_jars import LINES

PROCESS = "01020304-0506-0708-090a-0b0c0d0e0f10"
SETTINGS = Settings("2.0.1", STATELESS, PROCESS)
Answer = Callable[[Mapping[str, Any]], Mapping[str, Any]]


class FakePipe:
    """A program that answers as it is told."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[Mapping[str, Any]] = []
        self.lives = 0
        self.over = False

    def begin(self) -> Pipe:
        self.lives += 1
        self.over = False
        return cast(Pipe, self)

    def exchange(self, message: Mapping[str, Any], seconds: float | None) -> dict[str, Any]:
        if message["type"] == "hello":
            return {"type": "hello"}
        self.asked += message["cases"]
        return {"type": "results", "results": [{"n": each["n"], **self.answer(each)} for each in message["cases"]]}

    def close(self, last: Mapping[str, Any]) -> str:
        self.over = True
        return ""

    def kill(self) -> None:
        self.over = True


def jars(pipe: FakePipe, path: Path | None = None, digest: str = "d") -> Jars:
    return Jars(pipe.begin, {"2.0.1": digest}, AnswerCache(path))


def accepted(order: Mapping[str, Any]) -> Mapping[str, Any]:
    """As a member of 2.0.1 might do."""
    answers: dict[str, Mapping[str, Any]] = {
        "stream-configure": {"used": 3, "latest": 3, "protocols": ["eager"]},
        "stream-subscribe": {"hex": "0a0b", "memory": {"used": 3, "unique": 1}},
        "stream-assign": {
            "assignment": [{"id": "a", "partitions": [["t", 0]], "userData": "0c"}], "memory": {"used": 3},
        },
        "stream-assigned": {
            "memory": {"used": 2, "unique": 0, "active": ["0_10", "0_9"], "standby": [], "sums": {}, "error": 0},
            "rejoin": "again", "atMs": 0, "applied": False, "error": 0,
        },
    }  # fmt: skip
    return {"status": "accepted", **answers[order["op"]]}


def failing(**answer: object) -> Answer:
    return lambda order: {"message": "", **answer}


def test_a_binary_asks_one_question_for_each_thing_that_it_does() -> None:
    pipe = FakePipe(accepted)
    binary = jars(pipe).binary(SETTINGS)
    memory = binary.initial()
    assert memory == Memory(3) and binary.latest == 3 and binary.supports == ("eager",)
    assert binary.subscribe(memory, ("t",)) == (Memory(3, 1), b"\x0a\x0b")
    _, shares = binary.lead(memory, (Topic("t", 1),), (Joining("a", ("t",), b"\x0a", (("t", 0),), 4),))
    assert shares == {"a": Share((("t", 0),), b"\x0c")}
    received = binary.assigned(memory, shares["a"])
    assert received == AssignmentResult(Memory(2, 0, (TaskId(0, 9), TaskId(0, 10))), Rejoin("again"), applied=False)
    assert [each["op"] for each in pipe.asked] == [
        "stream-configure", "stream-subscribe", "stream-assign", "stream-assigned",
    ]  # fmt: skip
    assert all(each["release"] == "2.0.1" and each["settings"]["process"] == PROCESS for each in pipe.asked)
    assert pipe.asked[2]["members"] == [
        {"id": "a", "subscription": ["t"], "userData": "0a", "owned": [["t", 0]], "generation": 4}
    ]
    before = {"used": 3, "unique": 0, "active": ["1_0"], "standby": [], "sums": {"1_0": -2}, "error": 0}
    binary.subscribe(Memory(3, active=(TaskId(1, 0),), sums=((TaskId(1, 0), -2),)), ("t",))
    assert pipe.asked[-1]["memory"] == before


def test_what_was_asked_before_is_not_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "answers" / "x.sqlite3"
    pipe, binaries = FakePipe(accepted), []
    for digest in ("d", "d", "other"):
        result = jars(pipe, path, digest)
        binary = result.binary(SETTINGS)
        for _ in range(2):
            binary.subscribe(binary.initial(), ("t",))
        binaries.append((result.hits, result.misses))
        result.close()
    assert binaries == [(0, 2), (2, 0), (0, 2)] and len(pipe.asked) == 4 and pipe.lives == 2


def test_two_processes_may_keep_answers_in_one_file(tmp_path: Path) -> None:
    pipe = FakePipe(accepted)
    one, other = (jars(pipe, tmp_path / "x.sqlite3") for _ in range(2))
    one.binary(SETTINGS).initial()
    assert other.binary(SETTINGS).latest == 3 and (other.hits, other.misses) == (1, 0)


@pytest.mark.parametrize("content", [b"no database " * 100, b"SQLite format 3\0" + bytes(4000)])
def test_a_damaged_file_is_made_anew(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.sqlite3"
    path.write_bytes(content)
    result = jars(FakePipe(accepted), path)
    assert result.binary(SETTINGS).latest == 3
    result.close()
    with sqlite3.connect(path) as again:
        assert again.execute("SELECT count(*) FROM answers").fetchone() == (1,)
    again.close()


def test_a_file_damaged_in_the_midst_costs_time_only(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite3"
    result = jars(FakePipe(accepted), path)
    result.binary(SETTINGS).initial()
    path.write_bytes(b"no database " * 100)
    result.binary(SETTINGS).subscribe(Memory(3), ("t",))
    result.close()
    again = jars(FakePipe(accepted), path)
    assert again.binary(SETTINGS).subscribe(Memory(3), ("t",))[1] == b"\x0a\x0b"


def test_an_answer_that_is_no_json_counts_as_none(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite3"
    result = jars(FakePipe(accepted), path)
    result.binary(SETTINGS).initial()
    result.close()
    with sqlite3.connect(path) as file:
        file.execute("UPDATE answers SET answer = '['")
    file.close()
    again = jars(FakePipe(accepted), path)
    assert again.binary(SETTINGS).latest == 3 and again.misses == 1


def test_without_a_place_to_write_nothing_is_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = jars(FakePipe(accepted), tmp_path / "file" / "x.sqlite3")
    assert result.binary(SETTINGS).latest == 3


@pytest.mark.parametrize(
    ("answer", "kind", "made"),
    [
        (failing(status="rejected", **{"class": "x.TaskAssignmentException"}), "x.TaskAssignmentException", Fatal),
        (
            failing(status="internal", **{"class": "java.lang.StackOverflowError"}),
            "java.lang.StackOverflowError",
            Fatal,
        ),
        (failing(status="died", cause="timeout"), "timeout", Endless),
        (failing(status="died", cause="crashed"), "crashed", Fatal),
    ],
)
def test_what_a_jar_throws_or_does_not_return_from_is_fatal(answer: Answer, kind: str, made: type[Fatal]) -> None:
    pipe = FakePipe(answer)
    result = jars(pipe)
    binary = result.binary(SETTINGS)
    for _ in range(2):
        with pytest.raises(made) as thrown:
            binary.subscribe(Memory(3), ("t",))
        assert thrown.value.kind == kind and type(thrown.value) is made
    assert len(pipe.asked) == 1
    with pytest.raises(Misconfigured) as refused:
        binary.initial()
    assert refused.value.kind == kind


def test_what_the_program_cannot_ask_is_nobodys_failure() -> None:
    binary = jars(FakePipe(failing(status="unsupported", message="ids"))).binary(SETTINGS)
    with pytest.raises(Unanswerable, match=r"kafka-streams 2\.0\.1: ids"):
        binary.initial()


def test_after_a_thread_that_spins_another_jvm_is_asked_and_the_answer_is_kept(tmp_path: Path) -> None:
    spins = {"status": "died", "cause": "timeout", "message": "more than 10000 ms of processor time"}
    waits = {"status": "died", "cause": "timeout", "message": "no answer within 9 ms"}
    pipe = FakePipe(lambda order: {"z": spins, "y": waits}.get(order["topics"][0], accepted(order)))
    result = jars(pipe, tmp_path / "x.sqlite3")
    binary = result.binary(SETTINGS)
    for topic in ("z", "y"):
        with pytest.raises(Endless):
            binary.subscribe(Memory(3), (topic,))
    assert binary.subscribe(Memory(3), ("t",)) and pipe.lives == 3
    result.close()
    again = jars(pipe, tmp_path / "x.sqlite3")
    found = again.answers([binary.subscribing(Memory(3), (topic,)) for topic in "tyz"])
    assert [each["status"] for each in found] == ["accepted", "died", "died"] and again.misses == 1


class Deadly(FakePipe):
    """Ends at one topic."""

    def exchange(self, message: Mapping[str, Any], seconds: float | None) -> dict[str, Any]:
        if any(each["topics"] == ["x"] for each in message.get("cases", ())):
            self.over = True
            raise Ended("crashed", "left with exit code 3", "")
        return super().exchange(message, seconds)


def test_one_that_brings_the_jvm_down_is_told_from_its_company() -> None:
    pipe = Deadly(accepted)
    result = jars(pipe)
    binary = result.binary(SETTINGS)
    topics = [*(f"t{n}" for n in range(BATCH + 2)), "x"]
    found = result.answers([binary.subscribing(Memory(3), (each,)) for each in topics])
    assert [each["status"] for each in found] == [*["accepted"] * (BATCH + 2), "died"]
    with pytest.raises(Fatal, match="crashed: left with exit code 3"):
        binary.subscribe(Memory(3), ("x",))


def test_a_release_that_was_not_opened() -> None:
    with pytest.raises(LookupError, match=r"kafka-streams 2\.1\.1 was not opened; opened: 2\.0\.1"):
        jars(FakePipe(accepted)).binary(Settings("2.1.1", STATELESS, PROCESS))


# Real jars

EVERY = [each for each in LINES if "streams" in parts(each)]
TOPICS = (Topic("t", 2),)
"""One task each: who has had one keeps it."""


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was asked before."""
    monkeypatch.setattr(streams_members, "AnswerCache", lambda path: AnswerCache(tmp_path / path.name))


def through_a_round(binary: Binary, other: str) -> list[object]:
    """What a member says, leads and makes of it, with another instance in its group; as values."""
    release = binary.settings.release
    memory = replace(binary.initial(), active=(TaskId(0, 0),))
    after, stated = binary.subscribe(memory, ("t",))
    assert isinstance(stated, bytes)
    read = read_subscription(stated, release)
    strange = write_subscription(replace(read, process=other, active=(), end_point="b:2"), release)
    owned = (("t", 0),) if "cooperative" in binary.supports else ()
    _, shares = binary.lead(memory, TOPICS, (Joining("a", ("t",), stated, owned), Joining("b", ("t",), strange)))
    reported = {}
    for id, share in shares.items():
        assert isinstance(share.data, bytes)
        reported[id] = (by_topic(share.partitions), read_assignment(share.data, release))
    received = {id: binary.assigned(memory, share) for id, share in shares.items()}
    return [binary.latest, [*binary.supports], memory.used, after, read, reported, received]


@pytest.mark.jars
@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(
    "asked", [("2.0.1", "4.3.1"), pytest.param(EVERY, marks=pytest.mark.all_jars)], ids=["two", "every-line"]
)
def test_a_release_does_what_its_model_does_and_is_asked_once(asked: Sequence[str]) -> None:
    settings = [Settings(each, STATELESS, PROCESS, end_point="a:1") for each in asked]
    for again in (False, True):
        with open_jars(asked) as result:
            for each in settings:
                found = through_a_round(result.binary(each), str(uuid.UUID(int=1)))
                ours = EncodedBinary(binary(each, edition(f"apache@{each.release}")))
                assert found == through_a_round(ours, str(uuid.UUID(int=1))), each.release
            assert (result.hits, result.misses)[:: -1 if again else 1] == (0, 5 * len(asked))
