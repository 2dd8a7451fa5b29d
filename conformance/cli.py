"""The command line: parse, call, print. What each command does lives elsewhere and is imported when it is called."""

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

EXIT_CODES = """\
exit codes:
  0  conformant, or done       4  unstable target
  1  a failure, or refused     5  stale expectations
  2  usage                     6  undecided within the budget
  3  a target did not start    70 a bug of ours
where several hold, the first of 70, 2, 3, 1, 5, 4, 6"""

if TYPE_CHECKING:
    from conformance.wire import Layout

Call = Callable[[argparse.Namespace], int]

OK, FAILED, USAGE, NOT_STARTED, OUR_BUG = 0, 1, 2, 3, 70


def run(arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    try:
        code: int = options.call(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader went away: ``kipcheck ... | head``
        sys.stderr.close()
        return OK
    except KeyboardInterrupt:
        return 130


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="kipcheck",
        description="Protocol fuzzing and conformance tests for Apache Kafka's group membership, "
        "Streams rebalance metadata and feature versions.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = top.add_subparsers(metavar="COMMAND", required=True)

    def command(
        name: str, call: Call, about: str, epilog: str = "", parents: Sequence[argparse.ArgumentParser] = ()
    ) -> argparse.ArgumentParser:
        made = commands.add_parser(
            name, help=about, description=about, epilog=epilog, parents=parents,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        made.set_defaults(call=call)
        return made

    gate = command("run", _run, "hold conversations with targets and judge them", EXIT_CODES)
    gate.add_argument("--target", action="append", metavar="T", help="default kafka-python; may be repeated")
    gate.add_argument("--edition", default="apache", metavar="E")
    gate.add_argument("--check", action="append", metavar="GLOB", help="default all; may be repeated")
    gate.add_argument("--message", action="append", metavar="GLOB", help="default all; may be repeated")
    gate.add_argument("--seed", type=int, default=0, metavar="N")
    gate.add_argument(
        "--cases", type=_positive, metavar="N",
        help="values drawn for each check and version of a message, instead of the check's own number",
    )
    gate.add_argument(
        "--workers", type=_positive, metavar="N",
        help="processes (default 2, where there are so many processors); the verdicts stay the same",
    )
    gate.add_argument(
        "--budget", type=_duration, metavar="TIME", help="90s, 5m, 8h: begins nothing later; what is left is undecided"
    )
    gate.add_argument("--out", type=Path, default=Path("kipcheck-out"), metavar="DIR")
    gate.add_argument("--dry-run", action="store_true", help="say what would run, and run nothing")
    gate.add_argument("--json", action="store_true", help="the plan of --dry-run as JSON")

    again = command("replay", _replay, "hold a failed conversation again: 1 it still fails, 0 it is gone", EXIT_CODES)
    again.add_argument("failure", metavar="ID|FILE", help="failures/ID.json of a run, or the ID in a run's --out")
    again.add_argument("--out", type=Path, default=Path("kipcheck-out"), metavar="DIR")

    codec = argparse.ArgumentParser(add_help=False)
    codec.add_argument(
        "--edition", default="apache", metavar="E", help="default apache; apache@3.9.2, kip-584, jar:PATH, maven:4.1.0"
    )
    codec.add_argument("--message", metavar="M", help="JoinGroupRequest, SubscriptionInfo, ...")
    codec.add_argument("--version", type=int, metavar="N")
    for name, call, about, payload, wants in (
        ("encode", _encode, "one JSON object to hex", "FILE", "a file with one JSON object, or - for standard input"),
        ("decode", _decode, "hex to one JSON object", "HEX", "the bytes as hex, or - for standard input"),
        ("explain", _explain, "hex to one line a field: offset, bytes, path, type, value, meaning", "HEX",
         "the bytes as hex, or - for standard input"),
    ):
        made = command(name, call, about, _bytes_epilog(name), [codec])
        made.add_argument("input", nargs="?", default="-", metavar=payload, help=wants)
        if name == "explain":
            made.add_argument("--json", action="store_true")
        else:
            made.add_argument("--batch", action="store_true", help="JSON Lines in and out, one for one")

    listed = command("checks", _checks, "what is checked, against which requirements")
    listed.add_argument("--json", action="store_true")
    wanted = command("requirements", _requirements, "every normative statement, and the checks that cover it")
    wanted.add_argument("id", nargs="?", metavar="ID", help="one of them, with its clause and text")
    wanted.add_argument("--json", action="store_true")
    there = command("targets", _targets, "what can be tested, and what is there of it")
    there.add_argument("--json", action="store_true")

    golden = command("golden", _golden_verify, "the golden vectors")
    vectors = golden.add_subparsers(metavar="verify|make", required=True)
    about = "hold our codec and the second reading to every vector (no Java); with --target that target too"
    verify = vectors.add_parser("verify", help=about, description=about)
    verify.add_argument("--target", action="append", metavar="T")
    verify.add_argument("--out", type=Path, default=Path("kipcheck-out"), metavar="DIR")
    verify.set_defaults(call=_golden_verify)
    about = "make the vectors again from released jars; exit 3 where the jars cannot be had"
    make = vectors.add_parser("make", help=about, description=about)
    make.add_argument("--check", action="store_true", help="write nothing; exit 1 where something would change")
    make.set_defaults(call=_golden_make)

    texts = command("editions", _editions, "the editions, and which versions each release speaks")
    texts.add_argument("--json", action="store_true")
    about = "what differs, and who can read what of whom; exit 1 where a reader would misread"
    diff = texts.add_subparsers(metavar="[diff A B]").add_parser("diff", help=about, description=about)
    diff.add_argument("a", metavar="A")
    diff.add_argument("b", metavar="B")
    diff.add_argument("--json", action="store_true")
    diff.set_defaults(call=_diff)
    return top


def _bytes_epilog(name: str) -> str:
    if name == "explain":
        return "exit codes: 0 whole, 1 damaged (explained up to the damage), 2 unreadable"
    from conformance.wire.workbench import classes_help

    given, gives = ("value", "hex") if name == "encode" else ("hex", "value")
    return (
        "exit codes: 0 done, 1 refused by the layout, 2 unreadable; with --batch 1 if any line failed\n\n"
        f'--batch: {{"message", "version", "{given}"}} gives {{"{gives}"}}; a line may carry its own "edition";\n'
        f'a failure gives {{"error": {{"class", "message", "path", "offset"}}}}. Classes:\n{classes_help()}'
    )


def _duration(text: str) -> float:
    unit = {"s": 1, "m": 60, "h": 3600}.get(text[-1:], 0)
    number = text[:-1] if unit else text
    if not number.isascii() or not number.isdigit() or int(number) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no time such as 90s, 5m or 8h")
    return float(int(number) * (unit or 1))


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 on")
    return int(text)


# ---- run, replay


def _run(options: argparse.Namespace) -> int:
    import reports
    from conformance import gate, selection

    outcome = gate.run(
        gate.Options(
            targets=tuple(options.target or ("kafka-python",)),
            edition=options.edition,
            checks=tuple(options.check or ("*",)),
            messages=tuple(options.message or ("*",)),
            seed=options.seed,
            cases=options.cases,
            workers=options.workers or selection.WORKERS,
            out=options.out,
            dry_run=options.dry_run,
            budget=options.budget,
        )
    )
    if options.dry_run and not outcome.why:
        _print_plan(outcome.plan, options.json)
    elif outcome.ledger is not None:
        print(reports.render(outcome.ledger, "text"), end="")
    return _complain(outcome.why, outcome.exit_code) if outcome.why else outcome.exit_code


def _print_plan(plan: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    if as_json:
        import json

        print(json.dumps({"plan": plan, "cases": sum(row["cases"] for row in plan)}))
        return
    for row in plan:
        versions = "-".join(map(str, sorted({min(row["versions"]), max(row["versions"])})))
        print(f"{row['target']}  {row['check']:<20} {row['grade']:<12} {row['message']} v{versions}: "
              f"{row['cases']} cases  {' '.join(row['requirements'])}")
    print(f"{sum(row['cases'] for row in plan)} cases; nothing was run")


def _replay(options: argparse.Namespace) -> int:
    from conformance import gate

    named = Path(options.failure)
    by_id = options.out / "failures" / f"{options.failure}.json"
    found = gate.replay(by_id if by_id.is_file() and not named.is_file() else named)
    print(found.says, file=sys.stdout if found.exit_code in (OK, FAILED) else sys.stderr)
    return found.exit_code


# ---- bytes and values


def _encode(options: argparse.Namespace) -> int:
    from conformance.wire import workbench

    if options.batch:
        return _batch(options, workbench.encode_lines)
    return _one(options, lambda: workbench.hex_of(_layout(options), _text(options.input)))


def _decode(options: argparse.Namespace) -> int:
    from conformance.wire import workbench

    if options.batch:
        return _batch(options, workbench.decode_lines)
    return _one(options, lambda: workbench.json_of(_layout(options), _hex(options.input)))


def _explain(options: argparse.Namespace) -> int:
    from conformance.wire import explain
    from conformance.wire.workbench import Unreadable, unhex

    try:
        found = explain.explain(_layout(options), unhex(_hex(options.input)))
    except Unreadable as error:
        return _complain(error, USAGE)
    print(explain.as_json(found) if options.json else explain.text(found))
    return _complain(found.damage, FAILED) if found.damage else OK


def _one(options: argparse.Namespace, work: Callable[[], str]) -> int:
    from conformance.wire.errors import Refused
    from conformance.wire.workbench import Unreadable

    try:
        print(work())
        return OK
    except Refused as error:
        return _complain(error, FAILED)
    except Unreadable as error:
        return _complain(error, USAGE)


def _batch(options: argparse.Namespace, work: Callable[..., Iterable[tuple[str, bool]]]) -> int:
    defaults = {key: value for key in ("edition", "message", "version") if (value := getattr(options, key)) is not None}
    if options.input == "-":
        return _lines(work(sys.stdin, defaults))
    try:
        with open(options.input, encoding="utf-8", errors="surrogateescape") as lines:
            return _lines(work(lines, defaults))
    except OSError as error:
        return _complain(error, USAGE)


def _lines(results: Iterable[tuple[str, bool]]) -> int:
    well = True
    write = sys.stdout.write
    for text, good in results:
        write(text + "\n")
        well = well and good
    return OK if well else FAILED


def _layout(options: argparse.Namespace) -> "Layout":
    from conformance.wire.workbench import Unreadable, named

    if options.message is None or options.version is None:
        raise Unreadable("bad-line", "--message and --version say what the bytes are")
    return named(options.edition, options.message, options.version)


def _text(source: str) -> str:
    from conformance.wire.workbench import Unreadable

    try:
        return sys.stdin.read() if source == "-" else Path(source).read_text("utf-8", "surrogateescape")
    except OSError as error:
        raise Unreadable("not-json", f"{source}: {error}") from None


def _hex(source: str) -> str:
    return sys.stdin.read() if source == "-" else source


# ---- golden vectors


def _golden_verify(options: argparse.Namespace) -> int:
    from golden.vectors import report

    found = report()
    for line in found.lines():
        print(line)
    code = FAILED if found.troubles else OK
    if options.target:
        import reports
        from conformance import gate

        run = gate.run(gate.Options(targets=tuple(options.target), checks=("wire/vectors",), out=options.out))
        if run.ledger is not None:
            print(reports.render(run.ledger, "text"), end="")
        code = code or run.exit_code
    return code


def _golden_make(options: argparse.Namespace) -> int:
    from golden.make import main

    return main(["--check"] if options.check else [])


# ---- looking up


def _checks(options: argparse.Namespace) -> int:
    from conformance.catalogue import checks_table

    rows = checks_table()
    if options.json:
        return _json({"checks": rows})
    for row in rows:
        print(f"{row['id']}  ({row['role']})  {row['sentence']}")
        for each in row["invariants"]:
            print(f"    {each['grade']:<6} {each['id']}: {each['statement']}  [{', '.join(each['requirements'])}]")
    return OK


def _requirements(options: argparse.Namespace) -> int:
    from conformance.catalogue import requirement, requirements_table

    if options.id:
        try:
            rows = [requirement(options.id)]
        except LookupError as unknown:
            return _complain(unknown.args[0], USAGE)
    else:
        rows = requirements_table()
    if options.json:
        return _json({"requirements": rows})
    for row in rows:
        covered = ", ".join(row["checks"]) or "not covered yet"
        print(f"{row['id']:<8} {row['grade']:<6} {row['edition']:<8} {row['role']:<13} {covered}")
        if options.id:
            print(f"\n{row['clause']}\n{row['text']}\n\ninvariants: {', '.join(row['invariants']) or 'none'}")
            print(f"releases: {row['releases'] or 'none, a draft'}")
    if not options.id:
        print(f"{sum(bool(row['checks']) for row in rows)} of {len(rows)} covered")
    return OK


def _targets(options: argparse.Namespace) -> int:
    from conformance.targets.roll import targets_table

    rows = targets_table()
    if options.json:
        return _json({"targets": rows})
    for row in rows:
        state = "available" if row["available"] else row["why"]
        print(f"{row['name']:<16} {row['version'] or '-':<10} {', '.join(row['roles']):<10} {state}")
    return OK


def _json(found: Mapping[str, Any]) -> int:
    import json

    print(json.dumps(found, ensure_ascii=False))
    return OK

def _editions(options: argparse.Namespace) -> int:
    from conformance.wire import editions

    if options.json:
        return _json(editions.editions_table())
    print(editions.text())
    return OK


def _diff(options: argparse.Namespace) -> int:
    import json

    from conformance.core.edition import edition
    from conformance.wire import diff

    try:
        found = diff.diff(edition(options.a), edition(options.b))
    except LookupError as error:
        return _complain(error.args[0], USAGE)
    print(json.dumps(found.as_json()) if options.json else found.text())
    return FAILED if found.misreads else OK


def _complain(what: object, code: int) -> int:
    print(f"kipcheck: {what}".replace("\n", " "), file=sys.stderr)
    return code


