"""What ``kipcheck matrix`` found, rendered: ``render(Path("kipcheck-out/matrix.json"), "text")``."""

import json
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

from kipcheck.conformance.core import exits
from kipcheck.conformance.core.ledger import Line
from kipcheck.conformance.core.output_folder import OF_A_MATRIX, OutputFolder
from kipcheck.reports.phrases import some
from kipcheck.reports.results import dumped

NAME: Final = "matrix.json"
HISTORIES: Final = "histories"
"""The folder beside it: of each cell the worst history, as ``matrix.schema.json`` has it, and a page of each."""
FORMS: Final = ("text", "html", "markdown", "json")
FILES: Final[Mapping[str, str]] = {"html": "matrix.html", "markdown": "matrix.md"}
DRAFT: Final[Mapping[str, str]] = {"2.0": "1.2", "future": "post-1.2"}
"""What the KIP's table calls releases that it did not live to see named."""
PROBES: Final = 3
"""The first metadata version with which a single bounce will do."""
BY: Final[Mapping[str | None, str]] = {
    "foreseen": "the text of the KIP",
    "fitted": "what was known of releases",
    "observed": "a rule made after it was played",
    None: "nothing",
}
"""On whose word a cell is predicted."""


CASE: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]*")


class Table(NamedTuple):
    """The cells of one scenario."""

    scenario: str
    about: str
    rows: tuple[str, ...]
    """Names of releases, oldest first."""
    columns: tuple[str, ...]


class Matrix:
    """A matrix and ways to look at it. ``found``: as ``matrix.schema.json`` has it. ``path``: where it was read."""

    def __init__(self, found: Line, path: Path | None = None) -> None:
        self.found = found
        self.path = path
        self.cells: list[Line] = found["cells"]
        self.releases: dict[str, Line] = {each["name"]: each for each in found["releases"]}
        self._at = {_place(each): each for each in self.cells}
        for each in self.cells:  # files are written by these names
            if not CASE.fullmatch(each["case"]):
                raise ValueError(f'"case" is {each["case"]!r:.80}: a history is named by letters, digits and hyphens')
        self._skipped = {_place(each): each["why"] for each in found["skipped"]}

    def cell(self, scenario: str, old: str, new: str) -> Line | None:
        return self._at.get((scenario, old, new))

    def skipped(self, scenario: str, old: str, new: str) -> str | None:
        """Why it was not played, where it was asked for and was not."""
        return self._skipped.get((scenario, old, new))

    @property
    def tables(self) -> Iterator[Table]:
        places = {*self._at, *self._skipped}
        for each in self.found["scenarios"]:
            there = [(old, new) for scenario, old, new in places if scenario == each["name"]]
            if there:
                rows, columns = ({pair[side] for pair in there} for side in (0, 1))
                yield Table(each["name"], each["about"], self._sorted(rows), self._sorted(columns))

    @property
    def of_the_kip(self) -> dict[tuple[str, str], Line]:
        """The cells of KIP-268's own table: each upgraded in the way that the KIP has for it."""
        return {
            (each["from"], each["to"]): each
            for each in self.cells
            if each["in_kip"] and each["scenario"] == self.way(each["from"], each["to"])
        }

    def way(self, old: str, new: str) -> str:
        """``two-bounce`` where a release from before version probing meets other metadata, else ``bounce``."""
        known, wanted = (self.releases[each]["latest"] for each in (old, new))
        return "two-bounce" if known < PROBES and wanted != known else "bounce"

    def sides_of(self, pairs: Mapping[tuple[str, str], Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Rows and columns of a table of such pairs."""
        return self._sorted({old for old, _ in pairs}), self._sorted({new for _, new in pairs})

    def _sorted(self, names: set[str]) -> tuple[str, ...]:
        return tuple(each for each in self.releases if each in names)

    @property
    def differing(self) -> list[Line]:
        return [each for each in self.cells if each["differs"]]

    @property
    def known(self) -> list[Line]:
        return [each for each in self.cells if each["known"] is not None]

    @property
    def broken(self) -> dict[str, list[Line]]:
        """Cells that break or are refused, by requirement; the requirement with the most of them first."""
        found: dict[str, list[Line]] = {}
        for each in self.cells:
            if each["verdict"] != "ok":
                found.setdefault(each["requirement"] or "", []).append(each)
        return dict(sorted(found.items(), key=lambda item: -len(item[1])))

    @property
    def text_alone(self) -> dict[tuple[str | None, str], int]:
        """How many cells came out so, by what the text of the KIP alone foretells (None: nothing)."""
        found: dict[tuple[str | None, str], int] = {}
        for each in self.cells:
            pair = each["foreseen"], each["verdict"]
            found[pair] = found.get(pair, 0) + 1
        return found

    @property
    def exit(self) -> int:
        """As the run that made it ended."""
        codes = {
            exits.FAILED: bool(self.differing), exits.STALE: bool(self.found["stale"]),
            exits.UNDECIDED: not self.found["complete"], exits.USAGE: not self.cells and not self.found["skipped"],
        }  # fmt: skip
        return exits.first(code for code, holds in codes.items() if holds)

    @property
    def verdict(self) -> str:
        """One line."""
        counts = self.found["counts"]
        if not self.cells:
            return "no cell was played"
        unlike = "every cell is as predicted, or a known deviation"
        if self.differing:
            unlike = f"{some(len(self.differing), 'cell')} unlike what was predicted"
        elif not counts["known"]:
            unlike = "every cell is as predicted"
        return unlike if self.found["complete"] else f"INCOMPLETE: of what was played, {unlike}"

    @property
    def page(self) -> Path | None:
        """Where it is shown, if it is."""
        page = self.path.with_name(FILES["html"]) if self.path is not None else None
        return page if page is not None and page.is_file() else None

    @property
    def counted(self) -> str:
        counts = self.found["counts"]
        named = {"ok": "ok", "breaks": "break", "refused": "refused", "skipped": "skipped"}
        told = ", ".join(f"{counts[key]:,} {word}" for key, word in named.items() if counts[key])
        played = f"{counts['histories']:,} {'history' if counts['histories'] == 1 else 'histories'}"
        return f"{some(len(self.cells), 'cell')}: {told or 'none played'}; {played} played"

    @property
    def predicted(self) -> str:
        """On whose word."""
        counts = self.found["counts"]
        named = {key: counts[key] for key in ("foreseen", "fitted", "observed")}
        told = ", ".join(f"{number} by {BY[key]}" for key, number in named.items() if number)
        return f"predicted: {told or 'none'}" + (f"; known deviations: {counts['known']}" if counts["known"] else "")


def _place(cell: Line) -> tuple[str, str, str]:
    return cell["scenario"], cell["from"], cell["to"]


def read(path: Path) -> Matrix:
    """Errors: FileNotFoundError; ValueError for what is no matrix."""
    try:
        found: Line = json.loads(path.read_text("utf-8"))
        return Matrix(found, path)
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as wrong:
        raise ValueError(f"{path} is no result of kipcheck matrix: {type(wrong).__name__}: {wrong}") from None


def rendered(found: Matrix, form: str) -> str:
    """Errors: LookupError for a form that a matrix does not have."""
    if form not in FORMS:
        raise LookupError(f"a matrix has no form {form!r}; it has {', '.join(FORMS)}")
    if form == "json":
        return dumped(found.found)
    made: str = getattr(import_module(f"kipcheck.reports.matrix_{'html' if form == 'html' else 'text'}"), form)(found)
    return made


def render(path: Path, form: str = "text") -> str:
    """Errors: as ``read`` and ``rendered``."""
    return rendered(read(path), form)


def write(path: Path) -> str:
    """All files of it beside ``path``, the pages of its histories included; gives the text.

    Errors: as ``read``; OSError; ``output_folder.Unusable`` where files that kipcheck did not write have their names.
    """
    from kipcheck.reports.matrix_history import html as page

    found = read(path)
    cases = dict.fromkeys(cell["case"] for cell in found.cells)
    histories = [told for each in cases if (told := path.parent / HISTORIES / f"{each}.json").is_file()]
    pages = [f"{HISTORIES}/{told.stem}.html" for told in histories]
    folder = OutputFolder(path.parent)
    folder.check(*OF_A_MATRIX)
    folder.claim(*FILES.values(), *pages)
    for form, name in FILES.items():
        _put(path.with_name(name), rendered(found, form))
    for told in histories:
        history = json.loads(told.read_text("utf-8"))
        _put(told.with_suffix(".html"), page(history, found.found["requirements"]))
    return rendered(found, "text")


def _put(path: Path, text: str) -> None:
    """A reader never sees half a page."""
    aside = path.with_name(f".{path.name}.part")
    aside.write_text(text, "utf-8", newline="\n")
    aside.replace(path)
