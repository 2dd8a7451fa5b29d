"""Measures how many scripts a minute each live client plays, and whether 200 take at most 3 minutes on two cores.

On a busy machine the processor time of a script says it: two cores have 1.8 s for each of 200 in 3 minutes.

``python -m kipcheck.conformance.benchmarks.live_clients [NAME]...``; without names those that come with kipcheck.
The rate of the broker against a real one: ``benchmarks.front HOST:PORT``, which prints a ratio.
"""

import resource
import sys
import time
from typing import Final

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.live.client.built_in import BUILT_IN
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


def rate(name: str, scripts: list[Case]) -> tuple[float, float]:
    """Scripts a minute, and seconds of processor time a script. Errors: ``Unavailable``; ``Broken``."""
    with target(f"client:{name}").open("apache", Role.CLIENT) as session:
        began, used = time.monotonic(), processor_s()
        session.run(scripts)
        return len(scripts) / (time.monotonic() - began) * 60, (processor_s() - used) / len(scripts)


def processor_s() -> float:
    """Of this process and of the programs that it started."""
    both = (resource.getrusage(each) for each in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in both)


def main(names: list[str]) -> None:
    scripts = cases(SCRIPTS)
    for name in names or BUILT_IN:
        try:
            found, used_s = rate(name, scripts)
        except (Unavailable, Broken) as why:
            print(f"{name:<20} {str(why).splitlines()[0]}", flush=True)
            continue
        goal = f"{found / GOAL:.1f} of the goal of {GOAL:.0f}"
        print(f"{name:<20} {found:6.0f} scripts a minute, {goal}, {used_s:.2f} s of processor time each", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
