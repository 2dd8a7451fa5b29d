"""Scenarios of ``kipcheck matrix`` that are no upgrades of groups: played alone, with fewer options and two files."""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kipcheck.conformance.cli.options import USAGE, complain
from kipcheck.conformance.core.files.output_folder import Kind, OutputFolder
from kipcheck.conformance.core.files.unreadable_file import unwritable


def unsuitable(options: argparse.Namespace, scenario: str) -> str | None:
    """Why the options do not suit the scenario."""
    if {*options.scenario} != {scenario}:
        return f"{scenario} is played alone: omit the other scenarios"
    given = [name for name in ("case", "predict", "budget", "require") if getattr(options, name) is not None]
    given += ["full"] if options.full else []
    return next((f"--{name} does not apply to {scenario}: omit it" for name in given), None)


def check(folder: Path, files: Kind) -> None:
    """Before cells are played, which can take long. Errors: ``Unusable``, OSError where the files cannot be written."""
    OutputFolder(folder).check(files)
    with OutputFolder(folder).trial(*files.tops):
        pass


def write(folder: Path, files: Kind, found: Mapping[str, Any], page: str) -> Path:
    """Writes the results and their page, the two files of the kind; returns the path of the page.

    Errors: ``Unusable``, OSError.
    """
    data, html = files.tops
    OutputFolder(folder).claim(data, html)
    for name, text in ((data, json.dumps(found, indent=1) + "\n"), (html, page)):
        aside = folder / f".{name}.part"
        aside.write_text(text, "utf-8")
        aside.replace(folder / name)
    return folder / html


def not_written(place: Path, wrong: Exception) -> int:
    """Prints why there are no files, and returns the exit code. ``place``: where the error names no file."""
    if isinstance(wrong, OSError):
        wrong = OSError(unwritable(wrong, place))
    return complain(wrong, USAGE)
