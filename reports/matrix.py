"""Renders the results of ``kipcheck matrix``: ``render(Path("kipcheck-out/matrix.json"), "text")``."""

import json
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

from kipcheck.conformance.core.files.output_folder import OF_A_MATRIX, OutputFolder
from kipcheck.conformance.core.ledger import Json
from kipcheck.conformance.core.values import exits
from kipcheck.conformance.core.values.failure_group import grouped
from kipcheck.reports.phrases import some
from kipcheck.reports.results import dumped

NAME: Final = "matrix.json"
HISTORIES: Final = "histories"
"""The folder beside it: of each cell the worst history, as ``matrix.schema.json`` has it, and a page of each."""
FORMS: Final = ("text", "html", "markdown", "json")
FILES: Final[Mapping[str, str]] = {"html": "matrix.html", "markdown": "matrix.md"}
DRAFT: Final[Mapping[str, str]] = {"2.0": "1.2", "future": "post-1.2"}
"""Names in the KIP's table of releases that were named later."""
PROBES: Final = 3
"""The first metadata version with which a single bounce is enough."""
BY: Final[Mapping[str | None, str]] = {
    "foreseen": "the text of the KIP",
    "fitted": "what was known of releases",
    "observed": "a rule made after it was run",
    None: "nothing",
}
"""The sources of predictions."""
WORKS, CONDITIONAL, BROKEN, UNKNOWN = "works", "conditional", "breaks", "unknown"
"""Results of answers: the way works, also if a member fails meanwhile; it works under the condition in its sentence; no
way that was run works; what decides was not run."""
JOIN: Final = "join"
"""The scenario that pairs of releases have in both directions."""
IN_WORDS: Final = {WORKS: "works", CONDITIONAL: "only if", BROKEN: "breaks", UNKNOWN: "not run"}
FEW: Final = 6
"""Up to so many pairs of releases are one table, with an answer for each."""
NOT_COVERED: Final = (
    "Not covered: state stores on disk (kipcheck matrix --scenario store-upgrade), your topology, brokers, and "
    "failures on the way back."
)
EXIT_MEANS: Final = (
    "Exit code 0 means that every cell is as predicted, not that an upgrade works; with --require works it means both."
)

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

    def __init__(self, found: Json, path: Path | None = None) -> None:
        self.found = found
        self.path = path
        self.cells: list[Json] = found["cells"]
        self.releases: dict[str, Json] = {each["name"]: each for each in found["releases"]}
        self._at = {_place(each): each for each in self.cells}
        for each in self.cells:  # files are written by these names
            if not CASE.fullmatch(each["case"]):
                raise ValueError(f'"case" is {each["case"]!r:.80}: a history is named by letters, digits and hyphens')
        for each in self.answers:
            if each["result"] not in IN_WORDS:
                raise ValueError(f'"result" is {each["result"]!r:.80}: use one of {", ".join(IN_WORDS)}')
        self._skipped = {_place(each): each["why"] for each in found["skipped"]}

    def cell(self, scenario: str, old: str, new: str) -> Json | None:
        return self._at.get((scenario, old, new))

    def skipped(self, scenario: str, old: str, new: str) -> str | None:
        """Why it was not run, if it was requested."""
        return self._skipped.get((scenario, old, new))

    def in_words(self, scenario: str, old: str, new: str) -> str:
        """``ok 2``, ``breaks 2``, ``refused``, ``not run``; a hyphen where there is no such cell."""
        cell = self.cell(scenario, old, new)
        if cell is None:
            names = [*self.releases]
            there = scenario == JOIN or names.index(old) < names.index(new)
            return "not run" if there else "-"
        rounds = f" {cell['rounds']}" if cell["rounds"] else ""
        return f"{cell['verdict']}{rounds}{'!' if cell['differs'] else ''}"

    @property
    def tables(self) -> Iterator[Table]:
        places = {*self._at, *self._skipped}
        for each in self.found["scenarios"]:
            there = [(old, new) for scenario, old, new in places if scenario == each["name"]]
            if there:
                rows, columns = ({pair[side] for pair in there} for side in (0, 1))
                yield Table(each["name"], each["about"], self._sorted(rows), self._sorted(columns))

    @property
    def answers(self) -> list[Json]:
        """For operators; none in files of older versions of kipcheck."""
        found: list[Json] = self.found.get("answers", [])
        return found

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """All pairs of releases, in the order of the releases."""
        order = {name: number for number, name in enumerate(self.releases)}
        there = {(old, new) for _, old, new in (*self._at, *self._skipped)}
        return tuple(sorted(there, key=lambda pair: (order[pair[0]], order[pair[1]])))

    @property
    def is_small(self) -> bool:
        return len(self.pairs) <= FEW

    @property
    def result(self) -> str:
        """What the answers have in common; conditional if they differ, unknown without one."""
        found = {each["result"] for each in self.answers}
        return found.pop() if len(found) == 1 else CONDITIONAL if found else UNKNOWN

    @property
    def head(self) -> str:
        """The answers in a sentence; of a single pair its answer."""
        if len(self.answers) == 1:
            text: str = self.answers[0]["text"]
            return text
        results = [each["result"] for each in self.answers]
        named = {WORKS: "work", CONDITIONAL: "work under a condition", BROKEN: "break", UNKNOWN: "are undecided"}
        counted = ", ".join(f"{results.count(each)} {word}" for each, word in named.items() if each in results)
        return f"{some(len(results), 'upgrade')}: {counted}" if counted else "no answer: no upgrade was run"

    @property
    def of_the_kip(self) -> dict[tuple[str, str], Json]:
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
        """The rows and columns of a table of these pairs."""
        return self._sorted({old for old, _ in pairs}), self._sorted({new for _, new in pairs})

    def _sorted(self, names: set[str]) -> tuple[str, ...]:
        return tuple(each for each in self.releases if each in names)

    @property
    def differing(self) -> list[Json]:
        return [each for each in self.cells if each["differs"]]

    @property
    def known(self) -> list[Json]:
        return [each for each in self.cells if each["known"] is not None]

    @property
    def broken(self) -> dict[str, list[Json]]:
        """Cells that break or are refused, by requirement; the requirement with the most of them first."""
        groups = grouped((each for each in self.cells if each["verdict"] != "ok"), _requirement)
        return {
            _requirement(each.first): list(each.members) for each in sorted(groups, key=lambda it: -len(it.members))
        }

    @property
    def text_alone(self) -> dict[tuple[str | None, str], int]:
        """How many cells came out so, by what the text of the KIP alone predicts (None: nothing)."""
        found: dict[tuple[str | None, str], int] = {}
        for each in self.cells:
            pair = each["foreseen"], each["verdict"]
            found[pair] = found.get(pair, 0) + 1
        return found

    @property
    def exit(self) -> int:
        """As the run that made it ended."""
        nothing = not self.cells and not self.found["skipped"]
        codes = {
            exits.FAILED: bool(self.differing), exits.STALE: bool(self.found["stale"]),
            exits.UNDECIDED: not self.found["complete"], exits.USAGE: nothing and self.found["complete"],
            exits.INCONCLUSIVE: bool(self.found["skipped"]),
        }  # fmt: skip
        if self.found.get("require") == WORKS:
            results = {each["result"] for each in self.answers}
            codes[exits.FAILED] |= bool(results & {CONDITIONAL, BROKEN})
            codes[exits.INCONCLUSIVE] |= UNKNOWN in results or not results
        return exits.first(code for code, holds in codes.items() if holds)

    @property
    def verdict(self) -> str:
        """One line."""
        counts = self.found["counts"]
        if not self.cells:
            return "no cell was run"
        unlike = "every cell is as predicted, or a known deviation"
        if self.differing:
            unlike = f"{some(len(self.differing), 'cell')} unlike what was predicted"
        elif not counts["known"]:
            unlike = "every cell is as predicted"
        if self.found["complete"] and not self.found["skipped"]:
            return unlike
        return f"INCOMPLETE: of the cells that were run, {unlike}"

    @property
    def page(self) -> Path | None:
        """The HTML page, if there is one."""
        page = self.path.with_name(FILES["html"]) if self.path is not None else None
        return page if page is not None and page.is_file() else None

    @property
    def counted(self) -> str:
        counts = self.found["counts"]
        named = {"ok": "ok", "breaks": "break", "refused": "refused", "skipped": "skipped"}
        counted = ", ".join(f"{counts[key]:,} {word}" for key, word in named.items() if counts[key])
        played = f"{counts['histories']:,} {'history' if counts['histories'] == 1 else 'histories'}"
        return f"{some(len(self.cells), 'cell')}: {counted or 'none was run'}; {played} run"

    @property
    def predicted(self) -> str:
        """The number of cells by the source of their prediction."""
        counts = self.found["counts"]
        named = {key: counts[key] for key in ("foreseen", "fitted", "observed")}
        counted = ", ".join(f"{number} by {BY[key]}" for key, number in named.items() if number)
        return f"predicted: {counted or 'none'}" + (f"; known deviations: {counts['known']}" if counts["known"] else "")


def _place(cell: Json) -> tuple[str, str, str]:
    return cell["scenario"], cell["from"], cell["to"]


def _requirement(cell: Json) -> str:
    return cell["requirement"] or ""


def read(path: Path) -> Matrix:
    """Errors: FileNotFoundError; ValueError if the file is not a matrix."""
    try:
        found: Json = json.loads(path.read_text("utf-8"))
        return Matrix(found, path)
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as wrong:
        raise ValueError(f"{path} is not a result of kipcheck matrix: {type(wrong).__name__}: {wrong}") from None


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
    histories = [file for each in cases if (file := path.parent / HISTORIES / f"{each}.json").is_file()]
    pages = [f"{HISTORIES}/{file.stem}.html" for file in histories]
    folder = OutputFolder(path.parent)
    folder.check(*OF_A_MATRIX)
    folder.claim(*FILES.values(), *pages)
    for form, name in FILES.items():
        _put(path.with_name(name), rendered(found, form))
    for file in histories:
        history = json.loads(file.read_text("utf-8"))
        _put(file.with_suffix(".html"), page(history, found.found["requirements"]))
    return rendered(found, "text")


def _put(path: Path, text: str) -> None:
    """Replaces the file at once: readers never get half a page."""
    aside = path.with_name(f".{path.name}.part")
    aside.write_text(text, "utf-8", newline="\n")
    aside.replace(path)
