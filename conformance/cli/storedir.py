"""The command ``storedir``: the formats in the directory of a store of Kafka Streams, without opening it."""

import argparse
from pathlib import Path
from typing import Any, Final

from kipcheck.conformance.cli.options import FAILED, OK, USAGE, Commands, complain, print_harmless, print_json

TIMESTAMPED: Final = "keyValueWithTimestamp"
EPILOG = """\
kipcheck storedir /tmp/kafka-streams/my-app/0_0/rocksdb/my-store

Reads CURRENT, the MANIFEST and the end of each table: which column families there are, and so which formats (KIP-258),
whether values without timestamps are left, and which file is damaged, where. Nothing is written.

exit codes: 0 read; 1 a file is damaged; 2 usage: no such directory, or none of a store"""


def add(commands: Commands) -> None:
    made = commands.add("storedir", _storedir, "print the formats in the directory of a Streams store", EPILOG)
    made.add_argument("folder", type=Path, metavar="DIR")
    made.add_argument("--json", action="store_true")


def _storedir(options: argparse.Namespace) -> int:
    from kipcheck.conformance.core.unreadable_file import unreadable
    from kipcheck.conformance.wire.rocksdb_files import Damaged, NoStore, read

    folder = options.folder
    if not folder.is_dir():
        return complain(f"{folder} is no directory", USAGE)
    try:
        families = read(folder)
    except NoStore as wrong:
        return complain(f"{wrong}: give a directory like STATE_DIR/APPLICATION/TASK/rocksdb/STORE", USAGE)
    except Damaged as wrong:
        return complain(f"{wrong}: delete the store, and let the task restore it from its changelog", FAILED)
    except OSError as wrong:
        return complain(unreadable(wrong, folder), USAGE)
    found = [{"name": each.name, "tables": len(each.tables), "bytes": sum(each.tables.values())} for each in families]
    meaning = _meaning({each.name: len(each.tables) for each in families})
    if options.json:
        print_json({"families": found, "format": meaning[0], "means": meaning[1]})
        return OK
    for each in found:
        print_harmless(f"{each['name']:<24} {each['tables']:>5} tables {each['bytes']:>14,} bytes")
    print_harmless(f"{meaning[0]}: {meaning[1]}")
    return OK


def _meaning(tables: dict[str, Any]) -> tuple[str, str]:
    """The format of the store, and what it means for an upgrade."""
    if TIMESTAMPED not in tables:
        return "plain", "values have no timestamps; every release from 2.3 on adds them when it opens the store"
    if tables["default"]:
        return "both", "values without timestamps may be left; releases before 2.3 refuse the store"
    return "timestamped", "all values have timestamps; releases before 2.3 refuse the store"
