"""Writes the generated tables of the docs again: ``python -m kipcheck.conformance.benchmarks.pages``.

Below ``docs/internals``, ``mutants.md`` has the mutants of every family, from ``generic_mutants.json``; ``metadata.md``
the strength of the documents, from ``strength.json`` and the declarations; ``power.md`` the released bugs and the
mutants of clients, from the files of ``recall``. ``docs/compatible-coordinators.md`` has the coordinators by groups of
laws, from recorded runs and known lists, and ``docs/scoreboard.md`` known causes by severity; pages of findings and
their index have the grade of what is broken.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from kipcheck.conformance.benchmarks import coordinator_laws, finding_heads, generic, scoreboard
from kipcheck.conformance.engine.strength.requirement_strength import BEGIN, END, strengths, table
from kipcheck.conformance.recall import power, record
from kipcheck.conformance.recall.bugs import bugs

DOCS: Final = Path(__file__).resolve().parents[1] / "docs"


def write(page: str, begin: str, end: str, lines: Iterable[str]) -> None:
    path = DOCS / page
    path.write_text(with_section(path.read_text("utf-8"), begin, end, lines), "utf-8")


def with_section(page: str, begin: str, end: str, lines: Iterable[str]) -> str:
    """The text of a page with these lines between its markers."""
    before, _, rest = page.partition(begin)
    return before + begin + "".join(f"{each}\n" for each in lines) + end + rest.partition(end)[2]


if __name__ == "__main__":
    write("internals/mutants.md", generic.BEGIN, generic.END, generic.table())
    write("internals/metadata.md", BEGIN, END, table(strengths()))
    for (begin, end), lines in power.sections(bugs().values(), record.results()):
        write("internals/power.md", begin, end, lines)
    write(
        "compatible-coordinators.md", coordinator_laws.BEGIN, coordinator_laws.END,
        coordinator_laws.table(coordinator_laws.read()),
    )  # fmt: skip
    for (begin, end), lines in scoreboard.sections(bugs().values()).items():
        write("scoreboard.md", begin, end, lines)
    for name, text in finding_heads.pages():
        (finding_heads.FOLDER / name).write_text(finding_heads.derived(text), "utf-8")
    write(f"findings/{finding_heads.INDEX}", finding_heads.BEGIN, finding_heads.END, finding_heads.index())
