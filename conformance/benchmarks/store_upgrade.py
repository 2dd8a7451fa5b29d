"""Measures the conversion of a store without timestamps, record by record, on RocksDB through a released store.

    python -m kipcheck.conformance.benchmarks.store_upgrade [--records 1000000] [--from 2.2.2] [--to 3.9.2]

The cost of a record is that of a get, which moves it, and of a flush each 100,000 records. The second reading of the
same records, which moves none, is the base of the ratio: it depends less on the machine.
"""

import argparse
import sys
from typing import Final

from kipcheck.conformance.clients.java.store_process import StoreProcess, store_process
from kipcheck.conformance.core.files.releases_table import named
from kipcheck.conformance.engine.execution.progress import Progress
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.toolchains.temporary import temporary_folder

RECORDS: Final = 1_000_000


def _timed(process: StoreProcess, op: str, count: int, what: str, progress: Progress) -> float:
    """Microseconds for each record."""
    process.send(op, count=count)
    answer = process.receive(lambda done: progress.say(f"store: {what} {done:,} of {count:,} records"))
    if answer["status"] != "accepted" or answer["wrong"]:
        raise ValueError(f"{what}: {answer.get('wrong', 0)} records are wrong; {answer.get('message', 'no error')}")
    return float(answer["nanoseconds"]) / 1000 / count


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--from", dest="old", default=named("last-before-timestamps"))
    parser.add_argument("--to", dest="new", default=named("last-before-4"))
    options = parser.parse_args()
    progress, count = Progress(), options.records
    try:
        with temporary_folder("store") as folder:
            place = folder
            with store_process(options.old, place) as old:
                old.answer("store-open", format="plain")
                filled = _timed(old, "fill", count, "wrote", progress)
                old.answer("store-close")
            with store_process(options.new, place) as new:
                both = new.answer("store-open", format="timestamped")["both"]
                converted = _timed(new, "convert", count, "converted", progress)
                again = _timed(new, "convert", count, "read again", progress)
                new.answer("store-close")
            with store_process(options.new, place) as new:
                left = new.answer("store-open", format="timestamped")["both"]
    except (Unavailable, ValueError) as wrong:
        progress.close()
        print(wrong, file=sys.stderr)
        return 1
    progress.close()
    print(f"{count:,} records of {options.old}, converted by {options.new}: both formats before {both}, after {left}")
    print(f"written   {filled:8.2f} us a record")
    print(f"converted {converted:8.2f} us a record, {converted / again:.2f} times a reading that moves nothing")
    print(f"read      {again:8.2f} us a record")
    return 0


if __name__ == "__main__":
    sys.exit(main())
