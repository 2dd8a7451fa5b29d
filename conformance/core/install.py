"""What to install, as errors advise it: from the metadata of this very kipcheck, which no package index has."""

import re
import shlex
from importlib import metadata
from typing import Final

EXTRA: Final = re.compile(r"""extra\s*==\s*['"]([\w.-]+)['"]""")
NAME: Final = re.compile(r"[\w.-]+")


def advice(extra: str, name: str | None = None) -> str:
    """``pip install ...`` with the requirements of an extra, or the one for the package ``name`` among them.

    Where kipcheck is not installed, and so has no metadata, it names the extra of a clone.
    """
    found = requirements(extra, name)
    return f"pip install {shlex.join(found)}" if found else f"pip install '.[{extra}]' in a clone of kipcheck"


def requirements(extra: str, name: str | None = None) -> list[str]:
    """The requirements of an extra, without markers; with ``name`` the one for that package, which is never absent."""
    try:
        lines = metadata.requires("kipcheck") or []
    except metadata.PackageNotFoundError:
        return []
    found = []
    for text, _, marker in (line.partition(";") for line in lines):
        extras = EXTRA.findall(marker)
        if name is None:
            wanted = extra in extras
        else:
            wanted = NAME.findall(text)[:1] == [name] and (extra in extras or not extras)
        if wanted:
            found.append(text.strip())
    return found
