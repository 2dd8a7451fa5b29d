"""Our Java program: how it is compiled, and what it says when the code behind it misbehaves."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kipcheck.conformance.clients.java import programs
from kipcheck.conformance.clients.java.programs import JavaCodec, Order, coordinates, judge_of, parts, program, sources
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.toolchains import maven
from kipcheck.conformance.targets.transport.pipe import Ended

pytestmark = pytest.mark.integration

MISBEHAVING = """
package org.apache.kafka.clients.consumer;

public class StickyAssignor {
    private static Object deserializeTopicPartitionAssignment(java.nio.ByteBuffer bytes) throws Exception {
        switch (bytes.get()) {
            case 1: throw new OutOfMemoryError("not really");
            case 2: return deserializeTopicPartitionAssignment(bytes.rewind());
            case 3: System.out.println("{ a jar that prints"); return new java.util.ArrayList<Object>();
            case 4: throw new java.io.IOException("refused");
            case 5: System.exit(3);
            default: while (true) { }
        }
    }
}
"""


def test_the_sources_are_data_of_the_package() -> None:
    assert {"Testee.java", "Json.java", "Shape.java", "Streams.java"} <= sources().keys()
    assert all(text.startswith("package kipcheck;") for text in sources().values())


def test_parts_and_coordinates_are_those_of_the_release() -> None:
    assert parts("0.10.0.1") == ("clients", "streams")
    assert parts("3.4.1") == ("clients", "streams", "metadata", "core")
    assert "streams" in parts("4.4.0") and "core" not in parts("4.4.0")
    assert coordinates("4.4.0") == ("org.apache.kafka:kafka-clients:4.4.0", "org.slf4j:slf4j-api:1.7.36")
    assert any("jackson" in each for each in coordinates("2.6.0"))
    assert not any("jackson" in each for each in coordinates("2.6.1"))
    assert any("zstd" in each for each in coordinates("3.8.0", ("streams",)))
    assert not any("zstd" in each for each in (*coordinates("3.8.0"), *coordinates("3.8.1", ("streams",))))
    assert any("zkclient" in each for each in coordinates("0.10.1.1", ("streams",)))
    assert not any("zkclient" in each for each in (*coordinates("0.10.1.1"), *coordinates("0.10.2.0", ("streams",))))
    with pytest.raises(LookupError, match=r"kafka-metadata has no release 2\.7\.2"):
        coordinates("2.7.2", ("metadata",))


def test_without_a_jdk_one_line_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(Unavailable, match=r"^javac was not found in JAVA_HOME or on the PATH: install a JDK"):
        program()


def test_an_old_jdk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    javac = tmp_path / "bin" / "javac"
    javac.parent.mkdir()
    javac.write_text(f"#!{sys.executable}\nimport sys\nprint('javac 1.8.0_402', file=sys.stderr)\n")
    javac.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(Unavailable, match=r"is not of a JDK 17 or later \(javac 1\.8\.0_402\)"):
        program()


@pytest.mark.jars
def test_the_program_is_compiled_once_for_its_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KIPCHECK_CACHE", str(tmp_path))
    home = program()
    assert (home / "kipcheck" / "Testee.class").is_file()
    before = (home / "kipcheck" / "Testee.class").stat().st_mtime_ns
    assert program() == home
    assert (home / "kipcheck" / "Testee.class").stat().st_mtime_ns == before
    changed = {**sources(), "Values.java": sources()["Values.java"] + "\n"}
    monkeypatch.setattr(programs, "sources", lambda: changed)
    assert program() != home
    assert not list((tmp_path / "java").glob(".compile-*"))


@pytest.mark.all_jars
@pytest.mark.jars
def test_processes_that_compile_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    programs.tool("javac")  # without it there is nothing to see
    environment = {**os.environ, "KIPCHECK_CACHE": str(tmp_path)}
    command = [sys.executable, "-c", "from kipcheck.conformance.clients.java.programs import program; print(program())"]
    running = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    printed = {each.communicate(timeout=120)[0].strip() for each in running}
    assert len(printed) == 1 and Path(printed.pop(), "kipcheck", "Testee.class").is_file()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release that holds one class, which misbehaves."""
    root = tmp_path_factory.mktemp("release")
    (root / "StickyAssignor.java").write_text(MISBEHAVING)
    javac = shutil.which("javac")
    if javac is None:
        raise Unavailable("there is no javac on the PATH")
    subprocess.run([javac, "-d", str(root), str(root / "StickyAssignor.java")], check=True, timeout=120)
    return root


@pytest.fixture
def misbehaving(folder: Path) -> Iterator[JavaCodec]:
    with judge_of({"0.11.0.0": [folder]}, case_milliseconds=700) as judge:
        yield judge


def provoke(byte: int) -> Order:
    return Order("decode", "StickyAssignorUserData", 0, hex=f"{byte:02x}")


@pytest.mark.jars
def test_errors_and_refusals_are_told_apart_and_do_not_end_it(misbehaving: JavaCodec) -> None:
    printed = list(misbehaving.answers([provoke(1), provoke(2), provoke(3), provoke(4)]))
    assert [(each.status, each.thrown) for each in printed] == [
        ("internal", "java.lang.OutOfMemoryError"),
        ("internal", "java.lang.StackOverflowError"),
        ("accepted", None),
        ("rejected", "java.io.IOException"),
    ]
    assert printed[3].message == "refused"


@pytest.mark.jars
@pytest.mark.parametrize(("byte", "why"), [(5, "left with exit code 3"), (6, "more than 700 ms of processor time")])
def test_an_end_and_a_loop_are_named(byte: int, why: str, folder: Path) -> None:
    """Of a loop the stack is told, as evidence."""
    with pytest.raises(Ended) as ended, judge_of({"0.11.0.0": [folder]}, case_milliseconds=700) as judge:
        judge.one(provoke(byte))
    assert why in str(ended.value)
    assert ("deserializeTopicPartitionAssignment" in ended.value.evidence) == (byte == 6)


@pytest.mark.jars
def test_releases_live_side_by_side_in_one_process(folder: Path) -> None:
    found = maven.fetch(coordinates("3.9.2"))
    with judge_of({"0.11.0.0": [folder], "3.9.2": list(found.values())}) as judge:
        data = "0000000100017400000001000000020000002a"
        printed = judge.one(Order("decode", "StickyAssignorUserData", 1, hex=data, release="3.9.2"))
        assert printed.value == {"previousAssignment": [{"topic": "t", "partitions": [2]}], "generation": 42}
        assert judge.one(provoke(4)).status == "rejected"
        assert judge.one(Order("decode", "HeartbeatRequest", 4, hex="00", release="9.9.9")).status == "unsupported"
