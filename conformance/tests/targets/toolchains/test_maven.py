"""Jars by coordinates: where they come from, what is verified, what is said when they cannot be had."""

import hashlib
import os
import subprocess
import sys
import time
import urllib.error
from email.message import Message
from pathlib import Path

import pytest

from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.toolchains import jar_digests, maven

ONE, TWO = "org.example:one:1.0", "org.example:two:2.0.1"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with an empty home, no Maven, no repository."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KIPCHECK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("KIPCHECK_MAVEN_REPOSITORY", raising=False)
    return tmp_path / "home"


def publish(root: Path, coordinate: str, data: bytes, sha1: str | None = None) -> Path:
    jar = root / maven.Coordinate.parse(coordinate).path
    jar.parent.mkdir(parents=True)
    jar.write_bytes(data)
    jar.with_name(jar.name + ".sha1").write_text(sha1 or hashlib.sha1(data).hexdigest())
    return jar


def test_a_repository_serves_and_the_cache_remembers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar = publish(tmp_path / "repo", ONE, b"jar bytes")
    monkeypatch.setenv("KIPCHECK_MAVEN_REPOSITORY", (tmp_path / "repo").as_uri())
    assert maven.cached(ONE) is None
    found = maven.fetch([ONE])
    assert found[ONE].read_bytes() == b"jar bytes"
    assert jar_digests.sha256(found[ONE]) == hashlib.sha256(b"jar bytes").hexdigest()
    jar.unlink()
    monkeypatch.delenv("KIPCHECK_MAVEN_REPOSITORY")
    assert maven.fetch([ONE]) == found == {ONE: maven.cached(ONE)}


def test_a_wrong_checksum_is_refused_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(tmp_path / "repo", ONE, b"jar bytes", sha1="00" * 20)
    monkeypatch.setenv("KIPCHECK_MAVEN_REPOSITORY", (tmp_path / "repo").as_uri())
    with pytest.raises(Unavailable, match=r"org\.example:one:1\.0: .*sha1"):
        maven.fetch([ONE])
    assert not [each for each in (tmp_path / "cache").rglob("*.jar*") if each.is_file()]


def test_a_missing_jar_is_named_and_the_others_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(tmp_path / "repo", ONE, b"jar bytes")
    monkeypatch.setenv("KIPCHECK_MAVEN_REPOSITORY", (tmp_path / "repo").as_uri())
    with pytest.raises(Unavailable) as printed:
        maven.fetch([TWO, ONE])
    assert str(printed.value).startswith(TWO)
    assert "\n" not in str(printed.value)
    assert maven.cached(ONE)


def test_the_local_repository_is_a_source(home: Path) -> None:
    jar = publish(home / ".m2" / "repository", ONE, b"from maven")
    assert maven.fetch([ONE]) == {ONE: jar}


def test_settings_move_the_local_repository_and_name_a_mirror(tmp_path: Path, home: Path) -> None:
    moved = publish(tmp_path / "moved", ONE, b"moved")
    publish(tmp_path / "mirror", TWO, b"mirrored")
    (home / ".m2").mkdir()
    (home / ".m2" / "settings.xml").write_text(
        '<settings xmlns="http://maven.apache.org/SETTINGS/1.0.0">'
        f"<localRepository>{tmp_path / 'moved'}</localRepository>"
        "<mirrors><mirror><id>m</id><mirrorOf>central</mirrorOf>"
        f"<url>{(tmp_path / 'mirror').as_uri()}</url></mirror></mirrors></settings>"
    )
    found = maven.fetch([ONE, TWO])
    assert found[ONE] == moved
    assert found[TWO].read_bytes() == b"mirrored"


def test_without_maven_or_repository_one_line_says_what_to_do() -> None:
    with pytest.raises(Unavailable, match=r"^org\.example:one:1\.0: mvn is not on the PATH .*REPOSITORY"):
        maven.fetch([ONE])


def test_maven_is_asked_once_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for Maven that knows one of two jars, as the modules of the project ask for them."""
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "mvn"
    script.write_text(
        f"#!{sys.executable}\n"
        "import pathlib, re, sys\n"
        f"open({str(tmp_path / 'runs')!r}, 'a').write('run ')\n"
        "root = pathlib.Path(sys.argv[sys.argv.index('-f') + 1]).parent\n"
        "for module in re.findall('<module>(.*?)</module>', (root / 'pom.xml').read_text()):\n"
        "    pom = (root / module / 'pom.xml').read_text()\n"
        "    if '<artifactId>one</artifactId>' in pom:\n"
        "        out = pathlib.Path(re.search('<outputDirectory>(.*?)</', pom)[1])\n"
        "        out.mkdir(parents=True)\n"
        "        (out / 'one-1.0.jar').write_bytes(b'by maven')\n"
        "    else:\n"
        "        what = 'Could not find artifact org.example:two:jar:2.0.1 in central'\n"
        "        goal = 'Failed to execute goal x:copy (default) on project m0: '\n"
        "        print('\\x1b[0m[ERROR] ' + goal + what + ' -> [Help 1]')\n"
        "        print('[ERROR] ')\n"
        "        code = 1\n"
        "sys.exit(code)\n"
    )
    script.chmod(0o755)
    with pytest.raises(Unavailable) as printed:
        maven.fetch([TWO, ONE])
    assert str(printed.value) == f"{TWO}: mvn: Could not find artifact org.example:two:jar:2.0.1 in central"
    found = maven.cached(ONE)
    assert found and found.read_bytes() == b"by maven"
    with pytest.raises(Unavailable, match=r"did not have it at the last attempt, within a day: remove (\S+)") as again:
        maven.fetch([TWO])
    assert (tmp_path / "runs").read_text().split() == ["run"]
    (note,) = (tmp_path / "cache").rglob("*.missing")
    assert str(note) in str(again.value)
    os.utime(note, (0, time.time() - maven.MISS_REMEMBERED_S - 9))
    with pytest.raises(Unavailable, match="mvn: Could not find"):
        maven.fetch([TWO])
    assert (tmp_path / "runs").read_text().split() == ["run", "run"]


def test_what_one_repository_lacks_another_may_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(url: str) -> bytes:
        raise urllib.error.HTTPError(url, 404, "Not Found", Message(), None)

    monkeypatch.setenv("KIPCHECK_MAVEN_REPOSITORY", "https://example.org/maven")
    with monkeypatch.context() as patched:
        patched.setattr(maven, "_read", lacking)
        with pytest.raises(Unavailable, match="404"):
            maven.fetch([ONE])
    with pytest.raises(Unavailable, match="last attempt"):
        maven.fetch([ONE])
    publish(tmp_path / "repo", ONE, b"elsewhere")
    monkeypatch.setenv("KIPCHECK_MAVEN_REPOSITORY", (tmp_path / "repo").as_uri())
    assert maven.fetch([ONE])[ONE].read_bytes() == b"elsewhere"


def test_processes_that_fetch_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    publish(tmp_path / "repo", ONE, os.urandom(300_000))
    program = (
        "import hashlib; from kipcheck.conformance.targets.toolchains import jar_digests, maven; "
        f"print(jar_digests.sha256(maven.fetch([{ONE!r}])[{ONE!r}]))"
    )
    environment = {**os.environ, "KIPCHECK_MAVEN_REPOSITORY": (tmp_path / "repo").as_uri()}
    running = [
        subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    printed = {each.communicate(timeout=60)[0].strip() for each in running}
    assert printed == {jar_digests.sha256(tmp_path / "repo" / maven.Coordinate.parse(ONE).path)}


@pytest.mark.parametrize("text", ["org.example:one", "a:b:c:d", "a:b:../../c", "a:b:", "a:<b>:1"])
def test_what_is_no_coordinate_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="use group:artifact:version"):
        maven.cached(text)


def test_an_unwritable_cache_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KIPCHECK_CACHE", str(tmp_path / "file" / "below"))
    with pytest.raises(Unavailable, match="KIPCHECK_CACHE"):
        maven.fetch([ONE])


@pytest.mark.parametrize(
    ("printed", "cause"),
    [
        ("", "exit code 1"),
        ("[ERROR] Plugin p:1 could not be resolved: \n[ERROR] \tCould not transfer p:pom:1: PKIX\n[ERROR] \n",
         "Plugin p:1 could not be resolved: Could not transfer p:pom:1: PKIX"),
        ("[INFO] x\n[ERROR] Failed to execute goal a:b:1:c (default-cli) on project d: No such jar -> [Help 1]",
         "No such jar"),
        ("[ERROR] Half a sentence:", "Half a sentence:"),
    ],
)  # fmt: skip
def test_why_maven_failed_is_said_to_its_end(printed: str, cause: str) -> None:
    assert maven.cause_of(subprocess.CompletedProcess("mvn", 1, printed, "")) == cause
