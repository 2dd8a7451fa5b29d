"""Runs a command, prints what it cost, and fails where that was too much: ``limit.py --cpu-minutes 12 -- COMMAND...``.

Processor time is that of the command and of all its descendants that were waited for.
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
        print("too much processor time: give slow tests the marker of a later tier (conformance/tests/conftest.py)")
        return 1
    return code


if __name__ == "__main__":
    sys.exit(main())
