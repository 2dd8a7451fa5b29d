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
    output = _run(text)
    # Go counts bytes.
    at = [*accumulate((len(each.encode()) for each in text), initial=0)] if not text.isascii() else range(len(text) + 1)
    characters = {byte: character for character, byte in enumerate(at)}
    found = [
        Site(characters[each["Start"]], characters[each["End"]], each["Becomes"], each["Kind"], each["Inside"],
             range(each["First"], each["Last"] + 1))
        for each in json.loads(output)
    ]  # fmt: skip
    return sorted(found, key=lambda site: (site.start, KINDS.index(site.kind), site.end, site.becomes))


def statement(text: str, place: int) -> int | None:
    """Where the innermost statement of a block begins that has the character at ``place``; None: there is none.

    Errors: as above.
    """
    begins = int(_run(text, str(len(text[:place].encode()))))
    return len(text.encode()[:begins].decode()) if begins >= 0 else None


def _run(text: str, *arguments: str) -> str:
    argv = [str(_program()), *arguments]
    done = subprocess.run(argv, input=text.encode(), capture_output=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise SyntaxError(build.last_line(done.stderr.decode()))
    return done.stdout.decode()


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
