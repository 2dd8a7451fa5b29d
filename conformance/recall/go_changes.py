"""Lists where a file in Go can be changed, by the program ``go/changes.go``, which reads Go with Go's own parser."""

import json
import subprocess
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Final

from kipcheck.conformance.recall.bugs import folder
from kipcheck.conformance.recall.change import KINDS, Site
from kipcheck.conformance.targets.toolchains import build, go

SECONDS: Final = 60
"""How long it may read a file, on a busy machine."""


def sites(text: str) -> list[Site]:
    """In the order of their places. A change may not build, as where a variable is no longer used.

    Errors: SyntaxError; ``Unavailable`` without Go.
    """
    done = subprocess.run([_program()], input=text.encode(), capture_output=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise SyntaxError(build.last_line(done.stderr.decode()))
    # Go counts bytes.
    at = [*accumulate((len(each.encode()) for each in text), initial=0)] if not text.isascii() else range(len(text) + 1)
    characters = {byte: character for character, byte in enumerate(at)}
    found = [
        Site(characters[each["Start"]], characters[each["End"]], each["Becomes"], each["Kind"], each["Inside"],
             range(each["First"], each["Last"] + 1))
        for each in json.loads(done.stdout)
    ]  # fmt: skip
    return sorted(found, key=lambda site: (site.start, KINDS.index(site.kind), site.end, site.becomes))


@cache
def _program() -> Path:
    """Built once. Errors: ``Unavailable``."""
    compiler = [str(go.go())]
    recipe = build.Recipe(
        "the reader of Go",
        tools=[build.version_text((*compiler, "version"))],
        texts={
            "changes.go": (folder() / "go" / "changes.go").read_text("utf-8"),
            "go.mod": f"module kipcheck/changes\n\ngo {go.LANGUAGE}\n",
        },
        steps=[(lambda: compiler, ["build", "-trimpath", "-o", go.PROGRAM, "."])],
        env=go.ENVIRONMENT,
    )
    return build.built("recall-changes", "1", recipe) / go.PROGRAM
