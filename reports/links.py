"""Addresses of findings pages and of lists of known deviations, as links of a page that lies on this machine."""

import re
from importlib.resources import files
from pathlib import Path

from kipcheck.conformance.core.ledger import KnownEntry
from kipcheck.reports.markup import Safe, joined, link, tag

OURS = re.compile(r"conformance/(docs/findings/[\w-]+\.md|clients/known/[\w.-]+\.toml)")
"""Files of kipcheck that entries name. No other path becomes a link to a file: ledgers are not trusted."""


def document(name: str) -> Safe:
    """A page: an address, or a file of the installed kipcheck, if it is there; else its name."""
    if name.startswith("https://"):
        return link(name, name)
    path = Path(str(files("kipcheck").joinpath(name))) if OURS.fullmatch(name) else None
    return tag("a", name, href=path.as_uri()) if path is not None and path.is_file() else joined(name)


def entry(found: KnownEntry) -> Safe:
    """The entry of a list, by file and line."""
    return joined(document(found.file), f":{found.line}")
