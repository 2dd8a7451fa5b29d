"""Installation advice for error messages, from kipcheck's own metadata, since no package index has kipcheck."""

import re
import shlex
from importlib import metadata
from typing import Final

EXTRA: Final = re.compile(r"""extra\s*==\s*['"]([\w.-]+)['"]""")
NAME: Final = re.compile(r"[\w.-]+")


def advice(extra: str, name: str | None = None) -> str:
    """``pip install ...`` with the requirements of an extra, or with the one for the package ``name`` only.

    Where kipcheck is not installed, and so has no metadata, the advice names the extra of a clone.
    """
    found = requirements(extra, name)
    return f"pip install {shlex.join(found)}" if found else f"pip install '.[{extra}]' in a clone of kipcheck"


def requirements(extra: str, name: str | None = None) -> list[str]:
    """The requirements of an extra, without markers; with ``name`` only the one for that package, even if it is not
    optional.
    """
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
