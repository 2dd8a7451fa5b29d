"""The command ``storedir``: the formats in the directory of a store of Kafka Streams, without opening it."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kipcheck.conformance.cli import options as cli_options

if TYPE_CHECKING:
    from kipcheck.conformance.protocols.stores.families import StoreFormat

VALUES: Final = (".log", ".blob")
"""The ends of the names of files with values that are in no table."""
EPILOG = """\
kipcheck storedir /tmp/kafka-streams/my-app/0_0/rocksdb/my-store
kipcheck storedir /tmp/kafka-streams/my-app/0_0/rocksdb/my-store --release 3.9.2

Reads CURRENT, the MANIFEST and the end of each table: which column families there are, and so which formats (KIP-258,
KIP-1271), whether values of an older format may be left, of which kind the store is, if that is to be read, and which
file is damaged, where. With --release, the RocksDB of that release opens the store read only and verifies the checksums
in all tables; this needs a JDK, and the jar of RocksDB from Maven Central. Stop the application first, or copy the
directory. Nothing is written there.

A column family that no release of Kafka Streams creates makes the format unknown: there is no verdict then, and the
exit code is 7. Files that are not read are named.

exit codes: 0 read; 1 a file is damaged, or the RocksDB of --release cannot read the store; 2 usage: no such directory,
none of a store, an unknown release; 3 no JDK, or no jar; 7 the format is unknown"""


def add(commands: cli_options.Commands) -> None:
    made = commands.add("storedir", _storedir, "print the formats in the directory of a Streams store", EPILOG)
    made.add_argument("folder", type=Path, metavar="DIR", help="the state directory of a store")
    made.add_argument(
        "--release",
        type=cli_options.release,
        metavar="R",
        help="verify the checksums in tables with the RocksDB of this release",
    )
    cli_options.add_json(made)


def _storedir(options: argparse.Namespace) -> int:
    from kipcheck.conformance.core.files.unreadable_file import unreadable
    from kipcheck.conformance.protocols.stores.families import kind_of, read_format
    from kipcheck.conformance.wire.rocksdb_files import Damaged, NoStore, read, unread

    folder = options.folder
    if not folder.is_dir():
        return cli_options.complain(f"{folder} is no directory", cli_options.USAGE)
    try:
        release = options.release and _known(options.release)
        families = read(folder)
        left = unread(folder)
        waiting = any(name.endswith(VALUES) for name in left)
        verified = _verified(release, folder) if release else None
    except NoStore as wrong:
        return cli_options.complain(
            f"{wrong}: give a directory like STATE_DIR/APPLICATION/TASK/rocksdb/STORE", cli_options.USAGE
        )
    except Damaged as wrong:
        return cli_options.complain(
            f"{wrong}: delete the store, and let the task restore it from its changelog", cli_options.FAILED
        )
    except _Stopped as stopped:
        return cli_options.complain(str(stopped), stopped.code)
    except OSError as wrong:
        return cli_options.complain(unreadable(wrong, folder), cli_options.USAGE)
    format = read_format({each.name: bool(each.tables or waiting) for each in families})
    place = folder.resolve()
    kind = kind_of(format, place.name, place.parent.name)
    found = [{"name": each.name, "tables": len(each.tables), "bytes": sum(each.tables.values())} for each in families]
    if options.json:
        cli_options.print_json(
            {
                "families": found, "format": format.name, "means": format.meaning, "kind": kind,
                "refused_before": format.refused_before, "unread": left, "verified": verified,
            }
        )  # fmt: skip
    else:
        rows = [(str(each["name"]), str(each["tables"]), f"{each['bytes']:,}") for each in found]
        cli_options.print_table(("column family", "tables", "bytes"), rows, right=(1, 2))
        cli_options.print_harmless("\n".join(_lines(format, kind, left, verified)))
    return cli_options.OK if format.known else cli_options.INCONCLUSIVE


def _lines(format: "StoreFormat", kind: str | None, left: dict[str, int], verified: dict[str, Any] | None) -> list[str]:
    lines = [f"{format.name}: {format.meaning}"]
    if format.refused_before is not None:
        lines.append(f"releases before {format.refused_before} refuse the store")
    lines.append(f"kind: {kind or 'unknown: neither the column families nor the name of the directory show it'}")
    for name, size in left.items():
        lines.append(f"not read: {name}, {size:,} bytes{'; values may be there' if name.endswith(VALUES) else ''}")
    return [*lines, _verification(verified)]


class _Stopped(Exception):
    """An error, with its exit code."""

    def __init__(self, why: object, code: int) -> None:
        super().__init__(str(why))
        self.code = code


def _known(text: str) -> str:
    from kipcheck.conformance.core.values.release import known_release

    try:
        return str(known_release(text))
    except LookupError as wrong:
        raise _Stopped(wrong.args[0], cli_options.USAGE) from None


def _verified(release: str, folder: Path) -> dict[str, Any]:
    from kipcheck.conformance.clients.java.store_checksums import Unread, verify
    from kipcheck.conformance.targets.protocol import Unavailable

    try:
        found = verify(release, folder)
    except LookupError as wrong:
        raise _Stopped(wrong.args[0], cli_options.USAGE) from None
    except Unread as wrong:
        raise _Stopped(wrong, cli_options.FAILED) from None
    except Unavailable as missing:
        raise _Stopped(missing, cli_options.NOT_STARTED) from None
    return {
        "release": release, "rocksdb": found.rocksdb, "families": found.families, "tables": found.tables,
        "blocks": "all" if found.every_block else "keys and values",
    }  # fmt: skip


def _verification(found: dict[str, Any] | None) -> str:
    if found is None:
        return (
            "the contents of tables were not read: --release R has the RocksDB of that release verify their checksums"
        )
    blocks = "all blocks" if found["blocks"] == "all" else "the blocks with keys and values"
    return (
        f"RocksDB {found['rocksdb']} of kafka-streams {found['release']} verified the checksums of {blocks}: "
        f"column families {found['families']}, tables {found['tables']}"
    )
