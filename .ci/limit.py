"""Runs a command, prints its time, and fails if its processor time exceeds a limit: ``limit.py --cpu-minutes 12 --
COMMAND...``.

Processor time includes all descendants of the command that were waited for.
"""

import argparse
import resource
import subprocess
import sys
import time


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--cpu-minutes", type=float, required=True)
    options.add_argument("command", nargs="+")
    asked = options.parse_args()
    begun = time.monotonic()
    code = subprocess.run(asked.command, check=False).returncode
    wall = (time.monotonic() - begun) / 60
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = (used.ru_utime + used.ru_stime) / 60
    print(f"wall {wall:.1f} min, processor {cpu:.1f} min (limit {asked.cpu_minutes:g})", flush=True)
    if code == 0 and cpu > asked.cpu_minutes:
        print("processor time exceeds the limit: move slow tests to a later tier (conformance/tests/conftest.py)")
        return 1
    return code


if __name__ == "__main__":
    sys.exit(main())
