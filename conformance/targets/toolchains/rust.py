"""Builds programs of kipcheck's in Rust, with a library of a release, by the user's cargo and registry."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kipcheck.conformance.targets.toolchains import build as toolchains_build

PROGRAM: Final = "program"
"""The name that ``Cargo.toml`` gives the program."""
MADE: Final = "target"
ENVIRONMENT: Final = {"CARGO_TERM_COLOR": "never"}


def cargo() -> Path:
    """The user's cargo. Errors: ``Unavailable``."""
    return toolchains_build.tool("cargo")


def recipe(wanted: str, texts: Mapping[str, str], minutes: int) -> toolchains_build.Recipe:
    """Builds a program from its sources, by path, among which are ``Cargo.toml`` and ``Cargo.lock``.

    ``minutes``: about how long that takes. Errors: ``Unavailable``.
    """
    program = [str(cargo())]
    return toolchains_build.Recipe(
        wanted,
        tools=[toolchains_build.version_text((*program, "version"))],
        texts=texts,
        steps=[(lambda: program, ["build", "--locked", "--target-dir", MADE])],
        env=ENVIRONMENT,
        reason=_reason,
        finish=_program_alone,
        minutes=minutes,
    )


def _program_alone(folder: Path) -> None:
    """Keeps the program of a build that has a gigabyte."""
    (folder / MADE / "debug" / PROGRAM).rename(folder / PROGRAM)
    shutil.rmtree(folder / MADE)


def _reason(output: str) -> str:
    if needs := re.search(r"requires rustc (\S+)|is not supported by the following packages|edition2024. is", output):
        return f"it needs Rust {needs[1]}" if needs[1] else "it needs a newer Rust"
    errors = (line for line in output.splitlines() if line.startswith("error"))
    return next(errors, toolchains_build.last_line(output))[:300]
