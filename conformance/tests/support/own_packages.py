"""A project whose own packages have the names of our folders: what it needs of pytest and of kipcheck still works."""

import os
import subprocess
from pathlib import Path

NAMES = ("conformance", "strategies", "golden", "reports")
RUN = ("run", "--target", "reference", "--check", "nodes/round-trip", "--cases", "5", "--out", "out")


def project(folder: Path) -> None:
    for name in NAMES:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(f"OWNER = 'the project, {name}'\n")
    (folder / "tests").mkdir()
    (folder / "tests" / "test_own.py").write_text(
        "".join(f"import {name}\n" for name in NAMES)
        + "from kipcheck import layout\n"
        + "from kipcheck.strategies import values\n\n\n"
        + "def test_they_are_the_projects_own():\n"
        + "".join(f"    assert {name}.OWNER == 'the project, {name}'\n" for name in NAMES)
        + "    assert layout('apache', 'Heartbeat' 'Request', 4).defaults() and values\n\n\n"
        + "def test_kipcheck_is_here(request):\n"
        + "    assert request.config.pluginmanager.has_plugin('kipcheck')\n"
    )


def runs_beside_packages_of_the_same_names(python: Path, folder: Path) -> None:
    """With the kipcheck that this Python finds."""
    project(folder)
    own = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests")
    testee = f"cmd:{python} -m kipcheck testee reference"
    for command in (
        (str(python), *own),
        (str(python), "-m", "kipcheck", *RUN),
        (str(python.with_name("kipcheck")), *RUN, "--target", testee, "--name", "testee"),
        (str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs", "kipcheck.conformance.suite",
         "--kipcheck-target", "reference", "--kipcheck-check", "nodes/round-trip", "--kipcheck-cases", "5"),
    ):  # fmt: skip
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "PYTHON"))}
        done = subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
