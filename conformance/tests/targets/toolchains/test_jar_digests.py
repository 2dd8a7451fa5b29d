"""Jars are used with the right digest only: from a repository, from the cache, and on the class path of a broker."""

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import pytest

from kipcheck.conformance.core.files.releases_table import patches
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.toolchains import jar_digests, kafka_broker, lock_files, maven

LOCKED, OTHER = "org.example:locked:1.0", "org.example:other:1.0"
GOOD, TAMPERED = b"jar bytes", b"jar bytes, and more"
RELEASE = "3.9.2"


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, a repository with two jars, and a lock with one of them."""
    for name in ("home", "bin"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KIPCHECK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("KIPCHECK_MAVEN_REPOSITORY", (tmp_path / "repo").as_uri())
    for coordinate in (LOCKED, OTHER):
        published(tmp_path, coordinate).parent.mkdir(parents=True)
        publish(tmp_path, coordinate, GOOD)
    lock(monkeypatch, {maven.Coordinate.parse(LOCKED).path: digest(GOOD)})
    lock_files._reported.clear()
    return tmp_path


def lock(patched: pytest.MonkeyPatch, digests: Mapping[str, str]) -> None:
    patched.setattr(jar_digests, "locked", lambda: digests)


def published(root: Path, coordinate: str) -> Path:
    return root / "repo" / maven.Coordinate.parse(coordinate).path


def publish(root: Path, coordinate: str, data: bytes) -> None:
    """With a checksum that fits."""
    jar = published(root, coordinate)
    jar.write_bytes(data)
    jar.with_name(f"{jar.name}.sha1").write_text(hashlib.sha1(data).hexdigest())


def test_a_tampered_repository_is_refused_whatever_it_states_and_leaves_nothing(machine: Path) -> None:
    publish(machine, LOCKED, TAMPERED)
    expected = f"{LOCKED}: .*locked-1.0.jar: its sha256 is {digest(TAMPERED)}, .*jars.sha256 states {digest(GOOD)}: try"
    with pytest.raises(Unavailable, match=expected):
        maven.fetch([LOCKED])
    assert not [*(machine / "cache").rglob("*.jar*")]


@pytest.mark.parametrize("coordinate", [LOCKED, OTHER])
def test_a_tampered_file_of_the_cache_is_refused(coordinate: str, capsys: pytest.CaptureFixture[str]) -> None:
    jar = maven.fetch([coordinate])[coordinate]
    assert maven.fetch([coordinate])[coordinate].read_bytes() == GOOD
    times = jar.stat()
    jar.write_bytes(TAMPERED[: len(GOOD) - 1] + b"!")
    os.utime(jar, ns=(times.st_atime_ns, times.st_mtime_ns))  # the size and the time of the file are as before
    found = jar_digests.sha256(jar)
    with pytest.raises(Unavailable) as refused:
        maven.fetch([coordinate])
    why = str(refused.value)
    assert why.startswith(f"{coordinate}: the sha256 of {jar} is {found}, but ")
    assert digest(GOOD) in why and "remove the jar" in why and "\n" not in why
    assert maven.fetched([coordinate])[coordinate] == why.partition(": ")[2]
    jar.unlink()
    assert maven.fetch([coordinate])[coordinate].read_bytes() == GOOD
    assert capsys.readouterr().err == ""


def test_a_tampered_lock_lets_nothing_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    maven.fetch([LOCKED])
    lock(monkeypatch, {maven.Coordinate.parse(LOCKED).path: digest(TAMPERED)})
    with pytest.raises(Unavailable, match=digest(TAMPERED)):
        maven.fetch([LOCKED])


def test_a_jar_of_maven_is_compared_with_the_checksum_that_maven_kept(machine: Path) -> None:
    jar = machine / "home" / ".m2" / "repository" / maven.Coordinate.parse(OTHER).path
    jar.parent.mkdir(parents=True)
    jar.write_bytes(GOOD)
    sums = jar.with_name(f"{jar.name}.sha1")
    sums.write_text(f"{hashlib.sha1(GOOD).hexdigest()}  {jar.name}\n")
    assert maven.fetch([OTHER]) == {OTHER: jar}
    jar.write_bytes(TAMPERED)
    with pytest.raises(Unavailable, match=f"the sha1 of .* is {hashlib.sha1(TAMPERED).hexdigest()}, but"):
        maven.fetch([OTHER])


@pytest.mark.parametrize("lacking", ["the repository has no checksum", "nothing is beside the jar"])
def test_a_jar_that_cannot_be_verified_is_used_with_a_warning(
    machine: Path, lacking: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if lacking == "the repository has no checksum":
        jar = published(machine, OTHER)
        jar.with_name(f"{jar.name}.sha1").unlink()
    else:
        jar = machine / "home" / ".m2" / "repository" / maven.Coordinate.parse(OTHER).path
        jar.parent.mkdir(parents=True)
        jar.write_bytes(GOOD)
    for _ in range(2):
        assert maven.fetch([OTHER])[OTHER].read_bytes() == GOOD
    (line,) = capsys.readouterr().err.splitlines()
    assert re.match(r"kipcheck: warning: \S+/other-1\.0\.jar is not verified: ", line)


def test_a_checksum_over_http_is_none(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    answers = {"jar": GOOD, "sha512": hashlib.sha512(GOOD).hexdigest().encode()}
    monkeypatch.setattr(maven, "_read", lambda url: answers[url.rpartition(".")[2]])
    for scheme, warnings in (("https", 0), ("http", 1)):
        monkeypatch.setenv("KIPCHECK_MAVEN_REPOSITORY", f"{scheme}://example.org")
        monkeypatch.setenv("KIPCHECK_CACHE", f"{maven.cache()}-{scheme}")
        maven.fetch([OTHER, LOCKED])
        assert capsys.readouterr().err.count("states no checksum over https") == warnings


def broker_path(root: Path, names: Mapping[str, bytes]) -> Path:
    """A class path that is kept for a release, of these jars of Maven's repository."""
    jars = [root / "home" / ".m2" / "repository" / name for name in names]
    for jar, data in zip(jars, names.values(), strict=True):
        jar.parent.mkdir(parents=True, exist_ok=True)
        jar.write_bytes(data)
    kept = root / "cache" / "brokers" / f"{RELEASE}.classpath"
    kept.parent.mkdir(parents=True)
    kept.write_text(os.pathsep.join(map(str, jars)))
    return jars[0]


def test_the_class_path_of_a_broker_is_verified_each_time(machine: Path) -> None:
    jar = broker_path(machine, {maven.Coordinate.parse(LOCKED).path: GOOD})
    assert kafka_broker.class_path(RELEASE) == str(jar)
    jar.write_bytes(TAMPERED)
    with pytest.raises(Unavailable, match=f"the sha256 of {jar} is {digest(TAMPERED)}, but"):
        kafka_broker.class_path(RELEASE)


def test_a_jar_that_was_added_to_a_class_path_is_not_used(machine: Path) -> None:
    broker_path(machine, {maven.Coordinate.parse(LOCKED).path: GOOD, "org/example/evil/1/evil-1.jar": GOOD})
    with pytest.raises(Unavailable, match="install Maven, which finds the jars"):
        kafka_broker.class_path(RELEASE)


def test_the_lock_has_the_jars_of_all_releases_and_those_of_the_golden_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    digests = jar_digests.locked()
    assert [*digests] == sorted(digests)
    assert all(re.fullmatch("[0-9a-f]{64}", each) for each in digests.values())
    for release in patches():
        assert maven.Coordinate.parse(f"org.apache.kafka:kafka-clients:{release}").path in digests
    vectors = json.loads((files("kipcheck.golden") / "lock.json").read_text("utf-8"))["jars"]
    assert vectors == {each: digests[maven.Coordinate.parse(each).path] for each in vectors}


def test_a_command_says_which_jar_was_changed_and_ends_with_3(machine: Path) -> None:
    name = maven.Coordinate.parse(f"org.apache.kafka:kafka-clients:{RELEASE}").path
    jar = machine / "home" / ".m2" / "repository" / name
    jar.parent.mkdir(parents=True)
    jar.write_bytes(TAMPERED)
    words = [sys.executable, "-m", "kipcheck", "run", "--target", f"client:java@{RELEASE}", "--cases", "1"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=machine)
    assert done.returncode == 3
    assert f"the sha256 of {jar} is {digest(TAMPERED)}, but kipcheck's" in done.stderr
    assert "Traceback" not in done.stderr
