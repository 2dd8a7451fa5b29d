"""A ledger, rendered: ``render(Path("kipcheck-out/ledger.jsonl"), "text")``."""

from importlib import import_module
from pathlib import Path

FORMS = ("text",)


def render(ledger: Path, form: str = "text") -> str:
    """Errors: LookupError for an unknown form; FileNotFoundError or ValueError where there is no ledger to read."""
    from conformance.core.ledger import read

    if form not in FORMS:
        raise LookupError(f"no report has the form {form!r}; there are {', '.join(FORMS)}")
    rendered: str = import_module(f"reports.{form}").render(read(ledger))
    return rendered
