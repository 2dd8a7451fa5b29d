"""A text with all that a terminal, a reader of logs or a CI service may act on, and how to see that it still would."""

import re
from typing import Final

from kipcheck.conformance.core.values.untrusted_text import UNSEEN

FORGED: Final = "complete: 0 distinct failures, 0 warnings; exit 0, conformant"
"""As the last line of a report has it."""
EVIL: Final = (
    "1.0\x1b[2J\x1b]8;;https://evil.example\x07link\x9b31m\x00\x7f\u202e\u2028\ud800"
    "\n::error file=x::y\n\u00a0::stop-commands::z\n##[error]z\n##vso[task.setvariable variable=x]y"
    f"\r\nreference: {FORGED}\n"
)
COMMAND: Final = re.compile(r"(?m)^\s*::|##\w*\[")


def live(text: str, is_log: bool = True) -> list[str]:
    """What in it acts, and the lines of a log that claim a verdict; nothing is as it should be."""
    found = [repr(each) for each in UNSEEN.findall(text)] + COMMAND.findall(text)
    lines = text.splitlines() if is_log else ()
    return found + [line for line in lines if line.startswith((FORGED, f"reference: {FORGED}"))]
