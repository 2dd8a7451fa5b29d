"""Measures how many scripts a minute each live client plays, and whether 200 take at most 3 minutes.

``python -m kipcheck.conformance.benchmarks.live_clients [NAME]...``; without names those that come with kipcheck.
The rate of the broker against a real one: ``benchmarks.front HOST:PORT``, which prints a ratio.
"""

import sys
import time
from typing import Final

from kipcheck.conformance.core.case import Case, Role
from kipcheck.conformance.live.built_in import BUILT_IN
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.targets.protocol import Broken, Unavailable
from kipcheck.conformance.targets.registry import target

CHECK: Final = "client/groups"
SCRIPTS: Final = 24
GOAL: Final = 200 / 3
"""Scripts a minute."""


def cases(number: int) -> list[Case]:
    check = CHECKS[CHECK]
    subject = next(iter(check.family.subjects("apache")))
    return [each.case for each in check.samples(subject, 0, number)]


def rate(name: str, scripts: list[Case]) -> float:
    """Scripts a minute. Errors: ``Unavailable``; ``Broken``."""
    with target(f"client:{name}").open("apache", Role.CLIENT) as session:
        began = time.monotonic()
        session.run(scripts)
        return len(scripts) / (time.monotonic() - began) * 60


def main(names: list[str]) -> None:
    scripts = cases(SCRIPTS)
    for name in names or BUILT_IN:
        try:
            found = rate(name, scripts)
        except (Unavailable, Broken) as why:
            print(f"{name:<20} {str(why).splitlines()[0]}", flush=True)
            continue
        print(f"{name:<20} {found:6.0f} scripts a minute, {found / GOAL:.1f} of the goal of {GOAL:.0f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
