"""The lines of a client that run: of a package whose process forks and is killed, and of real clients."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from kipcheck.conformance.recall import reached as module, trace_lines
from kipcheck.conformance.recall.go_copies import copied
from kipcheck.conformance.recall.reached import reached
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.toolchains import go
from kipcheck.conformance.targets.toolchains.maven import cache
from kipcheck.conformance.targets.transport import process_tree

CODE = """
def asked(value):
    if value:
        found = [each for each in "ab"]
        return found
    return None


def never():
    return 1


class Member:
    limit = 5

    async def poll(self):
        return self.limit
"""
PROGRAM = """
import asyncio, os, signal, threading
from client import asked, Member
threading.Thread(target=asked, args=(True,)).start()
if os.fork() == 0:
    asyncio.run(Member().poll())
    os.kill(os.getpid(), signal.SIGKILL)
os.wait()
os._exit(3)
"""


def test_the_lines_of_a_process_that_is_killed(tmp_path: Path) -> None:
    """Of threads and forked processes too, none of other packages, and no file of which no function runs."""
    package, lines = tmp_path / "client", tmp_path / "lines"
    package.mkdir()
    lines.mkdir()
    (package / "__init__.py").write_text("from client.used import Member, asked\nimport client.unused\n")
    (package / "used.py").write_text(CODE)
    (package / "unused.py").write_text("LIMIT = 1\n\n\ndef never():\n    return LIMIT\n")
    begins = f"import sys; sys.path[:0] = [{str(Path(trace_lines.__file__).parent)!r}, {str(tmp_path)!r}]\n"
    begins += f"import trace_lines; trace_lines.start({str(package) + '/'!r})\n"
    done = subprocess.run(
        [sys.executable, "-c", begins + PROGRAM], env={**os.environ, trace_lines.FOLDER: str(lines)}, check=False
    )
    assert done.returncode == 3
    (lines / "0-cut.lines").write_text("used.py:3\nused.py:")
    assert module._lines(lines) == {"used.py": frozenset({2, 3, 4, 5, 9, 13, 14, 16, 17})}


def test_without_the_variable_nothing_is_traced(tmp_path: Path) -> None:
    code = "import sys, trace_lines; trace_lines.start('/'); sys.exit(sys.gettrace() is not None)"
    variables = {key: value for key, value in os.environ.items() if key != trace_lines.FOLDER}
    subprocess.run([sys.executable, "-c", code], env=variables, cwd=Path(trace_lines.__file__).parent, check=True)


def test_blocks_of_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the module alone, and only those that ran."""
    text = textwrap.dedent("""\
        mode: atomic
        example.org/m/group.go:10.20,12.3 2 7
        example.org/m/group.go:14.2,15.10 1 0
        example.org/m/pkg/kgo/a.go:3.2,3.9 1 1
        example.org/mine/group.go:1.1,9.9 1 4
        kipcheck/testee/main.go:1.1,9.9 1 1
        """)

    def run(argv: list[str], *rest: object, **more: object) -> "subprocess.CompletedProcess[str]":
        Path(argv[-1].removeprefix("-o=")).write_text(text)
        return subprocess.CompletedProcess(argv, 0, "", "")

    monkeypatch.setattr(process_tree, "run", run)
    monkeypatch.setattr(go, "go", lambda: Path("go"))
    found = module._blocks(tmp_path / "lines", "example.org/m")
    assert found == {"group.go": frozenset({10, 11, 12}), "pkg/kgo/a.go": frozenset({3})}


@pytest.mark.integration
@pytest.mark.timeout(600)
def test_a_real_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each check has lines of its own, which a second call reads; a check that the target lacks has none."""
    monkeypatch.setattr(module, "SECONDS", 500)
    globs = ("assign/static", "member/errors", "group/race")
    found = reached("kafka-python@3.0.12", globs, f"test-{tmp_path.name}")
    try:
        assert set(found) == {"assign/static", "member/errors"}
        base = {check: lines.get("coordinator/base.py", frozenset()) for check, lines in found.items()}
        assert len(base["member/errors"] - base["assign/static"]) > 200
        sticky = "coordinator/assignors/sticky/sticky_assignor.py"
        assert len(found["assign/static"][sticky]) > 50
        monkeypatch.setattr(module, "_run", lambda *arguments: pytest.fail("it is measured again"))
        assert reached("kafka-python@3.0.12", globs, f"test-{tmp_path.name}") == found
    finally:
        place = cache() / "recall" / "reached" / f"kafka-python@3.0.12-test-{tmp_path.name}"
        for each in place.iterdir():
            each.unlink()
        place.rmdir()


@pytest.mark.integration
def test_a_run_without_lines_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    traced = module._Traced(cache(), "KIPCHECK_NOTHING", lambda folder: {})
    with pytest.raises(Unavailable, match="the run of assign/static against aiokafka wrote no lines of the client"):
        module._run("aiokafka", "assign/static", traced)
    assert module._run("aiokafka", "member/errors", traced) == {}
    monkeypatch.setattr(module, "SECONDS", 0.1)
    with pytest.raises(Unavailable, match=r"assign/static took more than 0.1 s against aiokafka"):
        module._run("aiokafka", "assign/static", traced)


@pytest.mark.go
@pytest.mark.timeout(900)
def test_a_program_in_go(tmp_path: Path) -> None:
    copy = copied("client:sarama")
    lines = tmp_path / "lines"
    lines.mkdir()
    copy.build(tmp_path / "cache", None, counts_lines=True)
    program = tmp_path / "cache" / copy.program.relative_to(cache()) / "program"
    given = {
        "KIPCHECK_BOOTSTRAP": "127.0.0.1:1",
        "KIPCHECK_GROUP": "g",
        "KIPCHECK_TOPICS": "t",
        "GOCOVERDIR": str(lines),
    }
    with subprocess.Popen([program], env={**os.environ, **given}, stderr=subprocess.DEVNULL) as process:
        process.wait(60)
    found = module._blocks(lines, "github.com/IBM/sarama")
    assert found["client.go"] and "consumer_group_session.go" not in found
