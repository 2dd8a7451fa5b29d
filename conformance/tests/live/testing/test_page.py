"""The page about brokers for tests: its test passes in each language, as it is printed."""

import re
import runpy
from pathlib import Path
from typing import Final

import pytest

from kipcheck import testing  # before pytester, which forgets what is imported inside

pytest_plugins = ["pytester"]

PAGE: Final = (Path(__file__).resolve().parents[3] / "docs" / "testing.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_in_python(pytester: pytest.Pytester) -> None:
    test, _ = blocks("python")
    pytester.makepyfile(test)
    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_without_pytest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, program = blocks("python")
    (tmp_path / "program.py").write_text(program, "utf-8")
    assert runpy.run_path(str(tmp_path / "program.py"))["testing"] is testing
    assert capsys.readouterr().out.startswith("127.0.0.1:")
