"""The outcome as the JSON that badge services read, such as the endpoint badge of shields.io.

Only a run that is complete, with a verdict, without failures and known deviations is green.
"""

import json
from typing import Final

from kipcheck.conformance.core.values import exits
from kipcheck.reports.phrases import some
from kipcheck.reports.summary import KNOWN, Summary

SCHEMA: Final = 1
"""The version of their format."""
GREEN, YELLOW, RED, GREY = "brightgreen", "yellow", "red", "lightgrey"
UNKNOWN: Final = {
    exits.UNSTABLE: "unstable", exits.UNDECIDED: "undecided", exits.INCONCLUSIVE: "inconclusive",
}  # fmt: skip
"""Exit codes that say neither that a target is right nor that it is wrong."""


def render(found: Summary) -> str:
    message, colour = _outcome(found)
    value = {"schemaVersion": SCHEMA, "label": "kipcheck", "message": message, "color": colour}
    return json.dumps(value, ensure_ascii=False) + "\n"


def _outcome(found: Summary) -> tuple[str, str]:
    """What the run found, and the colour."""
    if severities := found.totals.severities:
        total = sum(severities.values())
        gravest = next(iter(severities))
        return f"{some(total, 'cause')}, gravest: {gravest}", RED
    if found.exit is None or not found.complete:
        return "incomplete", GREY
    if found.exit in UNKNOWN:
        return UNKNOWN[found.exit], GREY
    if found.exit != exits.CONFORMANT:
        return found.meaning, RED if found.exit == exits.FAILED else GREY
    if known := found.totals.causes[KNOWN]:
        return f"{some(known, 'known cause')}", YELLOW
    return "conformant", GREEN
