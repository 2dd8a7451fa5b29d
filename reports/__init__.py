"""A ledger, rendered: ``render(Path("kipcheck-out/ledger.jsonl"), "text")``."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kipcheck.reports.summary import Summary

FORMS = ("brief", "text", "html", "junit", "json", "markdown", "sarif", "badge")
FILES: Mapping[str, str] = {
    "html": "report.html",
    "junit": "junit.xml",
    "json": "results.json",
    "markdown": "summary.md",
    "sarif": "results.sarif",
}
"""What ``write`` makes beside the ledger. Other forms have no file: ``brief``, for a terminal, ``text``, ``badge``."""


def render(ledger: Path, form: str = "text") -> str:
    """Errors: LookupError for an unknown form; FileNotFoundError or ValueError where there is no ledger to read."""
    if form not in FORMS:
        raise LookupError(f"no report has the form {form!r}; there are {', '.join(FORMS)}")
    rendered: str = import_module(f"kipcheck.reports.{_module(form)}").render(loaded(ledger))
    return rendered


def loaded(ledger: Path) -> "Summary":
    """The content of all forms. Errors: FileNotFoundError or ValueError where there is no ledger to read."""
    from kipcheck.conformance.core.ledger import read
    from kipcheck.reports.summary import summary

    return summary(read(ledger))


def history_of(ledgers: Sequence[Path]) -> str:
    """What is new, fixed and open over several runs, the oldest first. Errors: as ``loaded``."""
    from kipcheck.reports.history import render as rendered

    return rendered(sorted(map(loaded, ledgers), key=lambda each: each.header.begun or ""))


def write(ledger: Path) -> str:
    """All forms that have a file, beside the ledger; gives the brief one.

    Errors: as ``render``; OSError; ``output_folder.Unusable`` where files that kipcheck did not write have their names.
    """
    from kipcheck.conformance.core.files.output_folder import REPORTS, OutputFolder

    found = loaded(ledger)
    folder = OutputFolder(ledger.parent)
    folder.check(REPORTS)
    folder.claim(*FILES.values())
    for form, name in FILES.items():
        rendered: str = import_module(f"kipcheck.reports.{_module(form)}").render(found)
        # A reader never sees half a report: it is written aside and then put in its place.
        aside = ledger.with_name(_aside(name))
        aside.write_text(rendered, "utf-8", newline="\n")
        aside.replace(aside.with_name(name))
    text: str = import_module("kipcheck.reports.terminal").render(found)
    return text


def _aside(name: str) -> str:
    return f".{name}.part"


def _module(form: str) -> str:
    return {"json": "results", "brief": "terminal"}.get(form, form)
