"""Campaigns on clusters, and what goes down there: each drill takes a minute or more (``nox -s nightly -- faults``)."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kipcheck.conformance.campaign.executors import preflight
from kipcheck.conformance.campaign.executors.local import inline
from kipcheck.conformance.campaign.executors.preflight import Unready
from kipcheck.conformance.campaign.executors.shipping import FOLDER, PYTHON
from kipcheck.conformance.campaign.process.child_outcome import failed_row
from kipcheck.conformance.campaign.report import row_files
from kipcheck.conformance.campaign.rows import Count, Found, Row
from kipcheck.conformance.campaign.summary import RoundSummary
from kipcheck.conformance.cli.main import run
from kipcheck.conformance.targets.toolchains.maven import REPOSITORY
from kipcheck.conformance.tests.campaign.executors.test_spark import (
    BRIEF,
    ROOT,
    SOURCES,
    digests,
    executed,
    ready,
    shard,
)
from kipcheck.conformance.tests.support.spark_cluster import connect, standalone
from kipcheck.conformance.tests.support.spark_drills import Answer, Brief, Kill

pytestmark = [pytest.mark.spark, pytest.mark.faults, pytest.mark.usefixtures("ready")]
__all__ = ["ready"]


def test_whatever_a_target_does_is_the_same_row_on_spark() -> None:
    from kipcheck.conformance.campaign.executors.spark import spark

    brief = Brief(wall_s=20, case_cpu_s=0.5)
    kinds = ("hang", "segfault", "exit", "raise", "allocate", "garbage", "parent")
    shards = [shard(at, f"drill:{kind}@3", cases=10) for at, kind in enumerate(kinds)]
    with inline(brief) as local:
        expected = executed(local, shards)
    with spark("local[2]", None, 0, Answer(brief)) as executor:
        rows = executed(executor, shards)
    assert digests(rows) == digests(expected)
    assert {row.status for row in rows.values()} == {"timeout", "crashed", "memory", "garbled"}
    assert all(row.attempt == 0 for row in rows.values() if row.status == "crashed")


def test_an_executor_that_is_killed_each_time_costs_no_other_shard() -> None:
    from kipcheck.conformance.campaign.executors.spark import spark

    poison, *others = [shard(number) for number in range(5)]
    with spark("local-cluster[2,1,1024]", None, 0, Answer(BRIEF, (Kill(0, "executor"),))) as executor:
        rows = executed(executor, [poison, *others])
    with inline(BRIEF) as local:
        expected = {**executed(local, others), poison.key: failed_row(poison, "infra", "")}
    assert digests(rows) == digests(expected)


def test_a_shard_that_was_run_twice_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark begins what is slow a second time, and only on another host."""
    from kipcheck.conformance.campaign.executors.spark import spark

    conf = tmp_path / "conf"
    conf.mkdir()
    settings = {"": "true", ".interval": "200ms", ".multiplier": "1.2", ".quantile": "0.3", ".minTaskRuntime": "500ms"}
    (conf / "spark-defaults.conf").write_text("".join(f"spark.speculation{k} {v}\n" for k, v in settings.items()))
    monkeypatch.setenv("SPARK_CONF_DIR", str(conf))
    shards = [shard(number) for number in range(6)]
    with (
        standalone(tmp_path, ("127.0.0.1", "127.0.0.2")) as url,
        spark(url, None, 0, Answer(BRIEF, slow=2)) as executor,
    ):
        rows = executed(executor, shards)
    with inline(BRIEF) as local:
        assert digests(rows) == digests(executed(local, shards))
    assert rows[shards[2].key].attempt == 1


def test_spark_connect_in_front_of_a_cluster(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from kipcheck.conformance.campaign.executors.spark import spark

    worker, poison = shard(3, f"drill:worker@5,once={tmp_path / 'worker'}"), shard(4)
    shards = [shard(0), shard(1), shard(2), worker, poison]
    answer = Answer(BRIEF, (Kill(4, "worker"),))
    with standalone(tmp_path) as master, connect(tmp_path, master) as url, spark(None, url, 0, answer) as executor:
        assert executor.slots == 2
        rows = executed(executor, shards)
        seen: list[int] = []
        again = list(executor.run(shards[:3], b"", lambda progress: seen.append(progress.done)))
    with inline(BRIEF) as local:
        expected = {**executed(local, shards[:4]), poison.key: failed_row(poison, "infra", "")}
    assert digests(rows) == digests(expected)
    assert [row.digest for row in again] == [rows[each.key].digest for each in shards[:3]]
    assert capfd.readouterr() == ("", "")


def test_an_executor_that_is_lost_behind_a_server_costs_no_row(tmp_path: Path) -> None:
    from kipcheck.conformance.campaign.executors.spark import spark

    shards = [shard(number) for number in range(4)]
    lost = tmp_path / "lost"
    answer = Answer(BRIEF, (Kill(1, "executor", lost),))
    with standalone(tmp_path) as master, connect(tmp_path, master) as url, spark(None, url, 0, answer) as executor:
        rows = executed(executor, shards)
    assert lost.exists()
    with inline(BRIEF) as local:
        assert digests(rows) == digests(executed(local, shards))
    assert rows[shards[1].key].attempt == 1


def test_executors_come_and_go_with_the_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dynamic allocation, with no executor left between two rounds."""
    from kipcheck.conformance.campaign.executors.spark import spark

    conf = tmp_path / "conf"
    conf.mkdir()
    settings = {"enabled": "true", "shuffleTracking.enabled": "true", "executorIdleTimeout": "1s"}
    lines = [f"spark.dynamicAllocation.{name} {value}\n" for name, value in settings.items()]
    (conf / "spark-defaults.conf").write_text("".join(["spark.executor.cores 1\n", *lines]))
    monkeypatch.setenv("SPARK_CONF_DIR", str(conf))
    shards = [shard(number) for number in range(6)]
    with standalone(tmp_path) as url, spark(url, None, 2, Answer(BRIEF)) as executor:
        rows = executed(executor, shards[:4])
        until = time.monotonic() + 120
        while executors(tmp_path) and time.monotonic() < until:
            time.sleep(0.5)
        assert executors(tmp_path) == 0
        rows = {**rows, **executed(executor, shards[4:])}
    with inline(BRIEF) as local:
        assert digests(rows) == digests(executed(local, shards))


def executors(folder: Path) -> int:
    """That run, by the logs of the workers."""
    logs = "".join(each.read_text("utf-8", "replace") for each in folder.glob("Worker-*.log"))
    return len(re.findall("Launch command", logs)) - len(re.findall("Executor app-[^ ]+ finished", logs))


def test_a_ledger_is_folded_where_the_shards_run(tmp_path: Path) -> None:
    """With a damaged file, which only the driver may move."""
    from kipcheck.conformance.campaign.executors.spark import spark

    rows = [
        row(0, number, found=(found("a", number, 2),), counts=(count("pass", 3),)).sealed() for number in range(600)
    ]
    for at in range(0, len(rows), 64):
        row_files.write(tmp_path, 0, at // 64, rows[at : at + 64])
    (tmp_path / "ledger" / "round=0" / "wave-3.parquet").write_bytes(b"PAR1")
    expected = RoundSummary("c", 0)
    expected.add_final(row_files.Scan(tmp_path, [0]))
    (tmp_path / "ledger" / "round=0" / "wave-3.parquet.damaged").unlink()
    gone = row_files.Part(tmp_path / "ledger" / "round=0" / "wave-99.parquet", frozenset())
    with spark("local[2]", None, 0) as executor:
        united, others = RoundSummary("c", 0), list[row_files.Part]()
        for each in executor.fold("c", 0, [*row_files.Scan(tmp_path, [0]).parts(0), gone]):
            if isinstance(each, RoundSummary):
                united.unite(each)
            else:
                others.append(each)
    assert others == [gone]
    assert united == expected


def test_workers_with_another_kipcheck_hold_nothing(tmp_path: Path) -> None:
    from kipcheck.conformance.campaign.executors.spark import spark

    package = tmp_path / "other" / "kipcheck"
    shutil.copytree(SOURCES / "kipcheck", package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "reports" / "words.py").open("a").write("# another\n")
    there = {"PYTHONPATH": str(tmp_path / "other")}
    reported = r"differ from this machine: the code of kipcheck \w+ instead of \w+$"
    with (
        standalone(tmp_path, ("127.0.0.1",), there) as url,
        pytest.raises(Unready, match=reported),
        spark(url, None, 0),
    ):
        pass


def test_workers_with_another_python_hold_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user reads both versions, where the other one is, and what to do."""
    from kipcheck.conformance.campaign.executors.spark import spark

    monkeypatch.setattr(preflight, "on_this_machine", lambda url: False)  # there the driver's own Python is used
    monkeypatch.setenv("PYSPARK_PYTHON", another_python())
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    reported = (
        rf"^Python is {here} here, but 3\.\d+ on the workers of spark://127\.0\.0\.1:\d+: install {here} there, "
        r"and set PYSPARK_PYTHON to it$"
    )
    with standalone(tmp_path, ("127.0.0.1",)) as url, pytest.raises(Unready, match=reported), spark(url, None, 0):
        pass


def another_python() -> str:
    """The path of a Python of another minor version."""
    names = [f"python3.{minor}" for minor in range(12, 20)]
    beside = Path(sys.base_prefix).parent  # where a version manager has it
    for each in [*filter(None, map(shutil.which, names)), *map(str, sorted(beside.glob("3.1[2-9]*/bin/python3")))]:
        if subprocess.run([each, "-c", ""], check=False, stderr=subprocess.DEVNULL).returncode == 0:
            return each
    pytest.skip("this machine has no other Python")


def test_workers_without_kipcheck_are_sent_all_that_they_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A bare Python, no jars, no repository to fetch them from: and the rows of this machine."""
    from kipcheck.conformance.campaign.executors.spark import spark

    bare = str(Path(sys.base_prefix) / "bin" / PYTHON)
    (tmp_path / "home").mkdir()
    there = {"PYTHONPATH": "", "PYSPARK_PYTHON": bare, "HOME": str(tmp_path / "home"), REPOSITORY: "file:///absent"}
    lacks = subprocess.run([bare, "-P", "-c", "import kipcheck"], check=False, env=there, stderr=subprocess.DEVNULL)
    assert lacks.returncode == 1
    shards = [shard(0), shard(1, "kafka-python"), shard(2, "java:kafka-clients:4.4.0")]
    with inline(BRIEF) as local:
        expected = executed(local, shards)
    assert {row.status for row in expected.values()} == {"done"}
    monkeypatch.setenv("PYSPARK_PYTHON", bare)
    with (
        standalone(tmp_path, ("127.0.0.1", "127.0.0.1"), there) as url,
        spark(url, None, 0, ship=True) as executor,
    ):
        rows = executed(executor, shards)
    assert {key: (row.status, row.detail) for key, row in rows.items()} == dict.fromkeys(rows, ("done", ""))
    assert digests(rows) == digests(expected)
    assert len(list((tmp_path / "work").glob(f"*/*/{FOLDER}/cache/maven"))) == 2, "each worker has a cache of its own"
    assert capfd.readouterr() == ("", "")


def test_a_cluster_without_workers_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kipcheck.conformance.campaign.executors import spark

    monkeypatch.setattr(spark, "FIRST_EXECUTOR_S", 5.0)
    with (
        standalone(tmp_path, ()) as url,
        pytest.raises(Unready, match="has started no task for 5 s"),
        spark.spark(url, None, 0),
    ):
        pass


def test_a_driver_that_is_killed_is_followed_by_one_that_comes_to_the_same(tmp_path: Path) -> None:
    asked = ["--target", "reference", "--check", "wire/round-trip", "--cases", "3000", "--rounds", "3", "--seed", "5"]
    with standalone(tmp_path) as url:
        driver = campaign(*asked, "--master", url, "--out", str(tmp_path / "killed"))
        until = time.monotonic() + 600
        while not list((tmp_path / "killed").glob("ledger/round=0/wave-0.parquet")):
            assert driver.poll() is None, driver.communicate()
            assert time.monotonic() < until
            time.sleep(0.2)
        driver.kill()
        driver.communicate()
        resumed = campaign("--resume", str(tmp_path / "killed"), "--master", url)
        assert (resumed.communicate()[0], resumed.returncode)[1] == 0
    plain = campaign(*asked, "--executor", "inline", "--out", str(tmp_path / "plain"))
    assert (plain.communicate()[0], plain.returncode)[1] == 0
    assert manifest(tmp_path / "killed")["hash"] == manifest(tmp_path / "plain")["hash"]


def campaign(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "kipcheck", "campaign", *arguments]
    return subprocess.Popen(
        command, cwd=ROOT, env=os.environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def manifest(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return found


def test_spark_sql_counts_each_shard_once_and_tells_what_came_of_a_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a ledger made by hand, in both forms that there are."""
    first, second = found("cut", at=40, cases=10), found("late", at=10, cases=1)
    begun = row(0, 0, cases=100, coverage=(1, 2), found=(first,), counts=(count("PASS", 90), count("FAIL", 10)))
    again = replace(begun, cases=99, started="2026-01-02").sealed()
    rows = [
        [begun, row(0, 1, cases=100, coverage=(2, 3), found=(found("cut", at=5, cases=3),))],
        [again, row(0, 2, status="lost", detail="no outcome of its own")],
        [
            row(1, 0, cases=50, coverage=(3, 4), found=(second,), attempt=1),
            row(1, 1, status="crashed", detail="killed\nby SIGSEGV"),
            row(1, 2, stage="reduce", found=(first, replace(first, line="{}"))),
        ],
    ]
    row_files.write(tmp_path, 0, 0, rows[0])
    row_files.write(tmp_path, 1, 0, rows[2])
    monkeypatch.setattr(row_files, "_arrow", lambda: (None, "it is put away"))
    assert row_files.write(tmp_path, 0, 1, rows[1]).suffix == ".jsonl"

    assert run(["report", str(tmp_path), "--spark", "--form", "json", "--master", "local[1]"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    reported = json.loads(printed.out)
    assert {name: [[*each.values()] for each in answer] for name, answer in reported.items()} == {
        "coverage_growth": [["c", "t", 1, 3, 200, 3.0, 3, 3, 15.0], ["c", "t", 2, 2, 50, 2.0, 1, 4, 20.0]],
        "verdicts": [["c", "t", "1", "wire/prefixes", 100, 90, 10, 0, 0, 0, 0]],
        "time_to_find": [
            ["c", "t", "wire/prefixes", "wire/refuses", "M", "cut", 1, 0, 40, 0.4, 13, 2],
            ["c", "t", "wire/prefixes", "wire/refuses", "M", "late", 2, 0, 210, 3.2, 1, 1],
        ],
        "flakiness": [
            ["c", "t", "a failure did not recur alone", "wire/prefixes wire/refuses M cut", 1],
            ["c", "t", "a shard ended as crashed", "killed", 1],
            ["c", "t", "a shard ended as lost", "no outcome of its own", 1],
            ["c", "t", "a shard was run again", "", 1],
        ],
        "clashes": [["c", 1, 0, "t", sorted([begun.digest, again.digest]), ["h"]]],
    }
    assert run(["report", str(tmp_path), "--spark"]) == 0
    text = capsys.readouterr().out
    assert "coverage_growth: How much there still was to see" in text
    assert re.search(r"^ +2 +2 +50 +2\.0 +1 +4 +20\.0$", text, re.MULTILINE)
    assert " ".join(sorted([begun.digest, again.digest])) in text

    (tmp_path / "ledger" / "round=1" / "wave-0.parquet").write_bytes(b"PAR1 and no more")
    assert run(["report", str(tmp_path), "--spark"]) == 2
    stated = capsys.readouterr()
    assert stated.out == ""
    assert re.fullmatch(rf"kipcheck: the ledger in {tmp_path} cannot be queried: .*wave-0\.parquet.*\n", stated.err)


def count(result: str, cases: int) -> Count:
    return Count("wire/prefixes", "M", 1, "", result, cases)


def found(shape: str, at: int, cases: int) -> Found:
    return Found(
        "wire/prefixes", "wire/refuses", "apache", "M", (shape,), "why", "id", "{}", ("M", 1), "{}", 0, 0, "kind",
        cases, at,
    )  # fmt: skip


def row(round_: int, number: int, **rest: Any) -> Row:
    reported = {"stage": "hold", "status": "done", "host": "h", "cpu_ms": 1000, "started": "2026-01-01", **rest}
    stage, status = reported.pop("stage"), reported.pop("status")
    return Row("c", round_, number, stage, "t", "1", "mixed", 0, 100, "", status, **reported).sealed()
