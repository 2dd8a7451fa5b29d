"""The stream of all verdicts of a run, one JSON object a line: header, verdicts, failures, footer.

A ledger without a footer was cut off. Whatever a report shows stands in it, so that a report needs nothing else.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO, TypeAlias

FORMAT = 1
Line: TypeAlias = dict[str, Any]


class Writer:
    """Writes one ledger. Lines reach the disk at every ``flush`` and at the end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: TextIO = path.open("w", encoding="utf-8")

    def write(self, kind: str, line: Mapping[str, Any], /) -> None:
        self._file.write(json.dumps({"type": kind, **line}, ensure_ascii=False, separators=(",", ":")) + "\n")

    def flush(self) -> None:
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, what: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()


@dataclass(frozen=True, slots=True)
class Ledger:
    """What a report reads. The verdicts of single cases stay in the file: ``verdicts`` goes through them."""

    path: Path
    header: Line
    skips: list[Line] = field(default_factory=list)
    failures: list[Line] = field(default_factory=list)
    troubles: list[Line] = field(default_factory=list)
    footer: Line | None = None
    """None: the run was cut off."""
    differences: list[Line] = field(default_factory=list)
    """Where several targets were not of one mind about the same cases."""

    @property
    def complete(self) -> bool:
        return self.footer is not None and bool(self.footer["complete"])

    def verdicts(self) -> Iterator[Line]:
        return (line for line in _lines(self.path) if line["type"] == "verdict")


def read(path: Path) -> Ledger:
    """Errors: FileNotFoundError; ValueError where the file is no ledger of a format that we read."""
    lines = _lines(path)
    header = next(lines, None)
    if header is None or header.get("type") != "header" or header.get("format") != FORMAT:
        raise ValueError(f"{path} is no ledger of format {FORMAT}")
    ledger = Ledger(path, header)
    footer = None
    for line in lines:
        match line["type"]:
            case "skip":
                ledger.skips.append(line)
            case "failure":
                ledger.failures.append(line)
            case "trouble":
                ledger.troubles.append(line)
            case "difference":
                ledger.differences.append(line)
            case "footer":
                footer = line
    return Ledger(path, header, ledger.skips, ledger.failures, ledger.troubles, footer, ledger.differences)


def _lines(path: Path) -> Iterator[Line]:
    with path.open(encoding="utf-8") as file:
        for text in file:
            if not text.endswith("\n"):
                return  # the run died while it wrote this line
            try:
                line = json.loads(text)
            except ValueError:
                raise ValueError(f"{path} is no ledger: {text[:60]!r} is not JSON") from None
            if not isinstance(line, dict):
                raise ValueError(f"{path} is no ledger: {text[:60]!r} is no object")  # noqa: TRY004 - of the file's text
            yield line
