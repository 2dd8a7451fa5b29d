"""A testee whose every text is hostile: ``python -m kipcheck.conformance.tests.support.hostile.testee [KIND]``."""

from __future__ import annotations

import sys
from typing import Any

from kipcheck.conformance.tests.support.broken_testees import Healthy
from kipcheck.conformance.tests.support.hostile.texts import EVIL


class Steers(Healthy):
    """In hello, in errors, and on stderr before it goes down."""

    def hello(self) -> dict[str, Any]:
        texts = dict.fromkeys(("name", "version", "language", "issues"), EVIL)
        return {**super().hello(), **texts, "limits": {"ones": EVIL}}

    def right(self, op: dict[str, Any], code: int) -> dict[str, Any]:
        if code == 2:
            return {"status": "rejected", "class": f"Evil{EVIL}", "message": EVIL}
        if code > 200:
            sys.stderr.buffer.write(EVIL.encode("utf-8", "replace"))
            sys.exit(1)
        return super().right(op, code)


class IsNotHere(Healthy):
    def hello(self) -> dict[str, Any]:
        return {"type": "hello", "unavailable": EVIL}


class GoesDown(Healthy):
    """At once."""

    def run(self) -> None:
        sys.stderr.buffer.write(EVIL.encode("utf-8", "replace"))
        sys.exit(1)


class BreaksTheProtocol(Healthy):
    def hello(self) -> dict[str, Any]:
        return {**super().hello(), "capabilities": {EVIL: EVIL}}


KINDS = {each.__name__: each for each in (Steers, IsNotHere, GoesDown, BreaksTheProtocol)}

if __name__ == "__main__":
    KINDS[sys.argv[1]]().run()
