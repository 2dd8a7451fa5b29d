"""The page about brokers for tests: its test passes in each language, as it is printed."""

import json
import os
import re
import runpy
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from kipcheck import testing  # before pytester, which forgets what is imported inside
from kipcheck.conformance.core.values.release import NEWEST
from kipcheck.conformance.live.client import built_in, compiled
from kipcheck.conformance.targets.toolchains import build, go

pytest_plugins = ["pytester"]

PAGE: Final = (Path(__file__).resolve().parents[3] / "docs" / "testing.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_in_python(pytester: pytest.Pytester) -> None:
    test, _ = blocks("python")
    pytester.makepyfile(test)
    # kafka-python now and then sends nothing any more: findings/kafka-python-forgets-a-join-for-a-new-subscription.md.
    ended = [pytester.runpytest_inprocess("-p", "no:cacheprovider")]
    while ended[-1].ret and len(ended) < 3:
        ended.append(pytester.runpytest_inprocess("-p", "no:cacheprovider"))
    ended[-1].assert_outcomes(passed=1)


def test_without_pytest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, program = blocks("python")
    (tmp_path / "program.py").write_text(program, "utf-8")
    assert runpy.run_path(str(tmp_path / "program.py"))["testing"] is testing
    assert capsys.readouterr().out.startswith("127.0.0.1:")


@pytest.fixture
def url() -> Iterator[str]:
    """Of a command that the page names."""
    argv = [sys.executable, "-m", "kipcheck", "serve", "--http", "0"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("listening 127.0.0.1:")
        yield process.stdout.readline().strip().removeprefix("scripts at ")
        process.send_signal(signal.SIGTERM)


def passes(argv: tuple[str, ...], place: Path, url: str) -> None:
    env = {**os.environ, "KIPCHECK_URL": url}
    done = subprocess.run(argv, cwd=place, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with urllib.request.urlopen(f"{url}/brokers/2/requests") as answer:
        arrived = [each["request"] for each in json.load(answer)["requests"]]
    assert "LeaveGroup" in arrived and arrived.count("JoinGroup") >= 3


@pytest.mark.jars
def test_in_java(tmp_path: Path, url: str) -> None:
    (text,) = blocks("java")
    (tmp_path / "ComesBackTest.java").write_text(text, "utf-8")
    passes(compiled.java(NEWEST, tmp_path / "ComesBackTest.java"), tmp_path, url)


@pytest.mark.go
def test_in_go(tmp_path: Path, url: str) -> None:
    (text,) = blocks("go")
    release = built_in.release("franz-go")
    recipe = go.recipe(f"the test of franz-go {release}", {"github.com/twmb/franz-go": release}, {"page_test.go": text})
    compiles = (recipe.steps[1][0], ["test", "-mod=mod", "-c", "-o", go.PROGRAM, "."])
    folder = build.built("page-go", release, replace(recipe, steps=(recipe.steps[0], compiles)))
    passes((str(folder / go.PROGRAM), "-test.v"), tmp_path, url)


@pytest.mark.node
def test_in_javascript(tmp_path: Path, url: str) -> None:
    (text,) = blocks("js")
    runs, *_, folder = built_in.command("kafkajs")
    (tmp_path / "page.test.mjs").write_text(text, "utf-8")
    (tmp_path / "node_modules").symlink_to(Path(folder) / "node_modules")
    passes((runs, "--test", "page.test.mjs"), tmp_path, url)
