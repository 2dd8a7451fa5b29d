"""The frame of an HTML page without network, scripts and fonts."""

import base64
import hashlib
from importlib.resources import files

from kipcheck.reports.markup import Child, Safe, joined, tag


def page(title: str, *body: Child) -> str:
    """``title``: of the window."""
    style = (files("kipcheck.reports") / "templates" / "report.css").read_text("utf-8")
    made = tag("html", tag("head", _head(title, style)), tag("body", *body), lang="en")
    return f"<!DOCTYPE html>\n{made}\n"


def _head(title: str, style: str) -> Safe:
    hashed = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    # The policy forbids the page to load anything, whatever text a target gets into it.
    policy = f"default-src 'none'; style-src 'sha256-{hashed}'; img-src data:; base-uri 'none'; form-action 'none'"
    return joined(
        tag("meta", charset="utf-8"),
        Safe(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("link", rel="icon", href="data:,"),
        tag("title", title),
        tag("style", Safe(style)),
    )
