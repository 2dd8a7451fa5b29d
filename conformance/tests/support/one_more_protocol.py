"""A copy of kipcheck with one more protocol: a folder, and lines of data files."""

import os
import subprocess
import sys
from collections.abc import Collection
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from shutil import copytree

import kipcheck
from kipcheck.conformance import protocols

TESTS = "kipcheck.conformance.tests.protocols"
"""The package of the folder in a checkout."""
COPIED = ("core", "targets", "docs")
"""The packages of ``conformance`` whose files ``publish`` writes; others are links."""


@dataclass(frozen=True, slots=True)
class Copy:
    root: Path
    """The folder that has to be on the path."""

    @property
    def conformance(self) -> Path:
        return self.root / "kipcheck" / "conformance"

    def run(self, *arguments: str, module: str = "kipcheck", given: str = "") -> str:
        """Runs a module, which must exit with 0, on this input, and returns its output."""
        done = subprocess.run(
            [sys.executable, "-P", "-m", module, *arguments],
            check=False,
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": str(self.root)},
            input=given,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{arguments}: {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done.stdout


def with_protocol(root: Path, folder: Path) -> Copy:
    """``folder``: the package, whose modules get their names in ``protocols``; the files in its folder ``data`` are
    appended to those of ``conformance``.
    """
    origin, copy = Path(str(files(kipcheck))), Copy(root)
    _linked(origin, root / "kipcheck", without=("conformance",))
    _linked(origin / "conformance", copy.conformance, without=("tests", "protocols", *COPIED))
    _linked(origin / "conformance" / "protocols", copy.conformance / "protocols")
    made = copy.conformance / "protocols" / folder.name
    made.mkdir()
    for each in folder.glob("*.py"):
        text = each.read_text("utf-8").replace(f"{TESTS}.{folder.name}", f"{protocols.__name__}.{folder.name}")
        (made / each.name).write_text(text, "utf-8")
    for name in COPIED:
        copytree(origin / "conformance" / name, copy.conformance / name)
    for each in (folder / "data").iterdir():
        whole = copy.conformance / each.name
        text = f"{whole.read_text('utf-8')}\n{each.read_text('utf-8')}"
        whole.unlink()
        whole.write_text(text, "utf-8")
    return copy


def _linked(origin: Path, to: Path, without: Collection[str] = ()) -> None:
    to.mkdir(parents=True)
    for each in origin.resolve().iterdir():
        if each.name not in without and each.name != "__pycache__":
            (to / each.name).symlink_to(each.resolve())
