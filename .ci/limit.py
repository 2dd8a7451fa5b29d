"""Runs a command, prints its time, and fails if its processor time exceeds a limit: ``limit.py --cpu-minutes 10 --
COMMAND...``.

Processor time includes all descendants of the command that were waited for. It is divided by the speed of the machine:
a fixed piece of work is timed again and again while the command runs, since machines that are shared or hot take two or
three times as long for the same tests, and that says nothing of the tests.
"""

import argparse
import ast
import json
import resource
import statistics
import subprocess
import sys
import threading
import time
from typing import Final

WORK: Final = "\n".join(
    f"def f{each}(a, b=({each}, 'x')):\n    return [a * {each} for a in b if a] or {{'k': a, 'v': [b, {each}]}}"
    for each in range(400)
)
"""The source of a program that is parsed and written as JSON: as in tests, most of the time goes to small objects. The
time of a loop of additions hardly changes where tests take half as long again, since others use the memory."""
USUAL_S: Final = 0.028
"""Its processor time on the machine that the limit is stated for, with both cores at work."""
PAUSE_S: Final = 5


def slowness(until: threading.Event) -> float:
    """How many times longer than usual the piece of work takes: the median over the time."""
    times = []
    while True:
        begun = time.thread_time()
        json.loads(json.dumps([ast.dump(each) for each in ast.parse(WORK).body]))
        times.append((time.thread_time() - begun) / USUAL_S)
        if until.wait(PAUSE_S):
            return statistics.median(times)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--cpu-minutes", type=float, required=True)
    options.add_argument("command", nargs="+")
    asked = options.parse_args()
    begun, ended, found = time.monotonic(), threading.Event(), []
    probe = threading.Thread(target=lambda: found.append(slowness(ended)))
    probe.start()
    code = subprocess.run(asked.command, check=False).returncode
    ended.set()
    probe.join()
    wall = (time.monotonic() - begun) / 60
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent, slow = (used.ru_utime + used.ru_stime) / 60, found[0]
    cpu = spent / max(slow, 1)
    print(
        f"wall {wall:.1f} min, processor {spent:.1f} min on a machine {slow:.2f} times slower than usual: "
        f"{cpu:.1f} min (limit {asked.cpu_minutes:g})", flush=True,
    )  # fmt: skip
    if code == 0 and cpu > asked.cpu_minutes:
        print("processor time exceeds the limit: move slow tests to a later tier (conformance/tests/conftest.py)")
        return 1
    return code


if __name__ == "__main__":
    sys.exit(main())
