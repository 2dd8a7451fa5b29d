"""The command ``known``: updates, checks and lists known deviations."""

import argparse
from pathlib import Path

from kipcheck.conformance.cli.configuration import DEFAULT
from kipcheck.conformance.cli.filters import NothingFits, add_filters, family, filtered
from kipcheck.conformance.cli.options import (
    FAILED,
    OK,
    OUT,
    USAGE,
    Commands,
    add_json,
    complain,
    print_harmless,
    print_json,
    target_name,
)
from kipcheck.conformance.core.files.unreadable_file import unreadable
from kipcheck.conformance.core.values.untrusted_text import one_line


def add(commands: Commands) -> None:
    known = commands.add("known", _list, "update, check or list known deviations")
    kinds = known.add_subparsers(metavar="update|check|list", required=True)
    about = (
        "update a list from runs: add entries for their failures (write their reason and link yourself), remove "
        "entries that no longer fail, count their cases, and keep everything else, comments included; runs with "
        "another seed or number of cases than the list, and campaigns, only add; exit 1 if entries need manual work"
    )
    update = kinds.add_parser("update", help=about.partition(":")[0], description=about)
    update.add_argument(
        "file", nargs="?", metavar="FILE", help="created if it does not exist; default the list in kipcheck.toml"
    )
    update.add_argument(
        "--from",
        dest="out",
        type=Path,
        action="append",
        metavar="DIR",
        help="the --out of a run or campaign; may be repeated; default kipcheck-out",
    )
    update.add_argument(
        "--target", type=target_name, metavar="T", help="one of the run's targets; required if it has several"
    )
    add_json(update)
    update.set_defaults(call=_update)
    update.configured = {"known": "file", "out": "out"}
    about = "check that lists are well formed, complete, and refer to things that exist; exit 1 if not"
    check = kinds.add_parser("check", help=about, description=about)
    about = "a file, or default: all lists shipped with kipcheck; default the lists in kipcheck.toml"
    check.add_argument("file", nargs="*", default=None, metavar="FILE", help=about)
    check.configured = {"known": "file"}
    add_json(check)
    check.set_defaults(call=_check)
    about = "list the known deviations with reason and expiry"
    listed = kinds.add_parser("list", help=about, description=about)
    listed.add_argument(
        "file",
        nargs="*",
        default=["default"],
        metavar="FILE",
        help="a file, or default: all lists shipped with kipcheck",
    )
    add_json(listed)
    add_filters(listed, {"family": "of checks of the family, such as wire", "target": "of the target"})
    listed.set_defaults(call=_list)


def _update(options: argparse.Namespace) -> int:
    from datetime import date

    from kipcheck.conformance.core.ledger import NAME, read
    from kipcheck.conformance.engine.known.edit import updated
    from kipcheck.conformance.engine.known.files import InvalidKnownFile

    file, outs = _one_list(options.file), options.out if isinstance(options.out, list) else [options.out or OUT]
    if file is None:
        return complain("name the list to update: FILE, or one list as known in kipcheck.toml", USAGE)
    try:
        ledgers = [read(each / NAME if each.is_dir() else each) for each in outs]
        text = file.read_text("utf-8") if file.exists() else ""
        made = updated(text, str(file), ledgers, options.target, date.today())
        if made.text != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(made.text, "utf-8")
    except InvalidKnownFile as wrong:
        return _troubles(wrong.troubles, USAGE)
    except OSError as error:
        return complain(unreadable(error), USAGE)
    except ValueError as error:
        return complain(error, USAGE)
    except (LookupError, TypeError, AttributeError) as wrong:
        return complain(f"a ledger of {', '.join(map(str, outs))} does not match its schema: {wrong!r}", USAGE)
    todo = [*made.left, *(["replace TODO with reason and link in the added entries"] if made.added else [])]
    changes = {
        "added": [*made.added, *made.explained], "removed": made.removed, "narrowed": made.narrowed,
        "widened": made.widened, "counted": made.counted, "to do": todo,
    }  # fmt: skip
    if options.json:
        print_json({"file": str(file), **changes})
    else:
        for word, lines in changes.items():
            for line in lines:
                print_harmless(one_line(f"{word:<9} {line}"))
    return FAILED if todo else OK


def _one_list(named: str | list[str] | None) -> Path | None:
    """The list that is named, or the one of ``kipcheck.toml`` that does not come with kipcheck."""
    files = [named] if isinstance(named, str) else [each for each in named or () if each != DEFAULT]
    return Path(files[0]) if len(files) == 1 else None


def _check(options: argparse.Namespace) -> int:
    from datetime import date

    from kipcheck.conformance.engine.known.files import InvalidKnownFile, UnreadableKnownFile
    from kipcheck.conformance.engine.known.lists import everything, unknown_names

    if not options.file:
        return complain("name the lists to check: FILE, or known in kipcheck.toml", USAGE)
    troubles: list[str] = []
    try:
        for known in everything(options.file):
            for entry in known.entries:
                troubles += [f"{entry.at}: {why}" for why in unknown_names(entry, known.draw.edition)]
                if entry.expired(date.today()):
                    troubles.append(f"{entry.at}: it expired on {entry.expires}")
    except UnreadableKnownFile as missing:
        return _troubles(missing.troubles, USAGE)
    except InvalidKnownFile as wrong:
        troubles += wrong.troubles
    if options.json:
        print_json({"troubles": troubles})
        return FAILED if troubles else OK
    return _troubles(troubles, FAILED) if troubles else OK


def _list(options: argparse.Namespace) -> int:
    from kipcheck.conformance.engine.known.files import InvalidKnownFile
    from kipcheck.conformance.engine.known.lists import everything, row

    try:
        every = [row(entry) for known in everything(options.file) for entry in known.entries]
        rows = filtered(every, options, {
            "family": lambda row: [*map(family, row["checks"])], "target": lambda row: [row["target"]],
        })  # fmt: skip
    except NothingFits as unknown:
        return complain(unknown, USAGE)
    except InvalidKnownFile as wrong:
        return _troubles(wrong.troubles, USAGE)
    if options.json:
        return print_json({"known": rows})
    for each in rows:
        until = f", until {each['expires']}" if each["expires"] else ""
        head = f"{each['target']} {each['versions']}  {each['kind']}  {each['invariant']}  ({each['entry']}{until})"
        for line in (head, f"    {' '.join(each['reason'].split())}", f"    {each['link']}"):
            print_harmless(one_line(line))
    print(f"{len(rows)} entries")
    return OK


def _troubles(troubles: tuple[str, ...] | list[str], code: int) -> int:
    for each in troubles:
        complain(each, code)
    return code
