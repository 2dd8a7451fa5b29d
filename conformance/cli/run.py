"""The commands ``run`` and ``replay``."""

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kipcheck.conformance.cli import options as cli_options
from kipcheck.conformance.cli.configuration import ALL
from kipcheck.conformance.core.values.untrusted_text import one_line


def add(commands: cli_options.Commands) -> None:
    gate = commands.add("run", _run, "run checks against targets", cli_options.EXIT_CODES)
    gate.set_defaults(interrupted=cli_options.UNDECIDED)
    _add_targets(gate)
    _add_cases(gate)
    _add_expectations(gate)
    cli_options.add_out(gate, "folder for the ledger, the reports and the failures")
    gate.configured = ALL
    gate.add_argument("--events", metavar="FILE", help="write events at once, as JSON Lines; - for standard output")
    gate.add_argument("--dry-run", action="store_true", help="print what would run, and run nothing")
    gate.add_argument("--json", action="store_true", help="print the report, or the plan of --dry-run, as JSON")
    gate.add_argument(
        "--trace",
        nargs="?",
        const="failed",
        choices=("failed", "all"),
        help="report all that was sent and answered in conversations that fail, or with --script in each script; "
        "all: in every conversation, with its verdicts",
    )
    gate.add_argument("--details", action="store_true", help="print every failure in full; default at most 40 lines")
    _add_replay(commands)


def _add_targets(gate: cli_options.Parser) -> None:
    """The options about targets, and the edition of their protocol."""
    gate.add_argument(
        "--target",
        type=cli_options.target_name,
        action="append",
        metavar="T",
        help=f"default kafka-python; may be repeated; {cli_options.CLIENTS}",
    )
    gate.add_argument(
        "--name",
        action="append",
        metavar="NAME",
        help="name in results of a target that is a command (cmd:, client: with placeholders) or a running broker "
        "(broker:), instead of its own, or NAME@VERSION with its release; repeated in the order of --target",
    )
    gate.add_argument("--topic", metavar="NAME", help="of broker: targets: use this topic, and create none")
    gate.add_argument("--allow-remote", action="store_true", help="accept broker: targets on other machines")
    gate.add_argument(
        "--config", metavar="FILE", help="of broker: targets: TLS and SASL, as properties of Java's clients"
    )
    gate.add_argument(
        "--allow-changes", action="store_true", help="of broker: targets: update features, instead of validating only"
    )
    gate.add_argument(
        "--timeout",
        type=cli_options.duration,
        metavar="TIME",
        help="of broker: targets: the time for an answer, such as 5s (default 30s)",
    )
    gate.add_argument(
        "--edition",
        type=cli_options.edition_name,
        default="apache",
        metavar="E",
        help="the text that applies; default apache, see kipcheck editions",
    )


def _add_cases(gate: cli_options.Parser) -> None:
    """The options that decide which cases are run, and how many."""
    gate.add_argument("--check", action="append", metavar="GLOB", help="checks to run; default all; may be repeated")
    gate.add_argument("--message", action="append", metavar="GLOB", help="subjects; default all; may be repeated")
    gate.add_argument(
        "--require",
        action="append",
        metavar="GLOB",
        help="checks that must pass or fail in at least one case, else the run is inconclusive; may be repeated",
    )
    gate.add_argument(
        "--script",
        action="append",
        metavar="STEPS|FILE",
        help="play this conversation in place of those that are drawn, in the shorthand of the target's machine, such "
        "as 'late OffsetFetch 1500; restart; stop' for client: targets, whose steps kipcheck play client --events "
        "lists; or the scripts in a file, one in each line; may be repeated",
    )
    gate.add_argument(
        "--seed", type=int, default=0, metavar="N", help="the same number gives the same cases; default 0"
    )
    gate.add_argument(
        "--cases",
        type=cli_options.positive,
        metavar="N",
        help="values drawn for each check and message version, instead of the check's own number; with --script: how "
        "often each script is played, side by side",
    )
    gate.add_argument(
        "--workers",
        type=cli_options.positive,
        metavar="N",
        help="processes (default 2, or 1 on one core); the number does not change the verdicts",
    )
    gate.add_argument(
        "--budget",
        type=cli_options.duration,
        metavar="TIME",
        help="90s, 5m, 8h: start no work after this time; the rest is undecided",
    )


def _add_expectations(gate: cli_options.Parser) -> None:
    """The options that decide how results are judged."""
    gate.add_argument(
        "--known",
        action="append",
        metavar="FILE",
        help="known deviations: they are run, and do not fail the run as long as they do not change; with a list a "
        "warning that it lacks fails the run; "
        "the word default stands for the lists shipped with kipcheck for each target; may be repeated",
    )
    gate.add_argument(
        "--least",
        type=_search_limit,
        metavar="TIME",
        help="the time of each search for the least case of a failure, such as 2m; 0 leaves it out (default 30s for "
        "targets whose cases take real time, such as live clients and brokers, else until none is smaller)",
    )
    gate.add_argument(
        "--profile",
        action="append",
        metavar="FILE",
        help="what a target must claim: a file, or the name of a shipped profile (consumer-client, feature-tool)",
    )
    gate.add_argument(
        "--part",
        type=cli_options.part,
        metavar="I/N",
        default=os.environ.get("KIPCHECK_PART") or None,
        help="run the I-th of N parts, to be merged afterwards; default: the environment variable KIPCHECK_PART",
    )
    cli_options.add_patience(gate)


def _search_limit(text: str) -> float:
    return 0.0 if text == "0" else cli_options.duration(text)


def _add_replay(commands: cli_options.Commands) -> None:
    about = "run stored failures again: exit 1 if one still fails, 0 if all are gone"
    replay_parser = commands.add("replay", _replay, about, cli_options.EXIT_CODES)
    replay_parser.add_argument(
        "failure",
        nargs="*",
        metavar="ID|FILE|DIR",
        help="failures/ID.json of a run, an ID in --out, or a folder; default all failures in --out",
    )
    replay_parser.add_argument(
        "--target",
        type=cli_options.target_name,
        metavar="T",
        help="a target instead of the one in the failure file, for example tcp:127.0.0.1:9000 in a debugger",
    )
    replay_parser.add_argument(
        "--trust",
        action="store_true",
        help="start the command (cmd:...) that a failure file names; otherwise it must be given with --target",
    )
    replay_parser.add_argument("--trace", action="store_true", help="print all that was sent and answered")
    cli_options.add_json(replay_parser)
    replay_parser.add_argument("--prune", action="store_true", help="delete the files of failures that are gone")
    cli_options.add_out(replay_parser)
    cli_options.add_patience(replay_parser)


def _of_broker(target: str, options: argparse.Namespace) -> str:
    """A target ``broker:HOST:PORT`` with the options about it in its name, so that replays have them."""
    from kipcheck.conformance.targets.command import BROKER

    given = [
        *([f"topic={options.topic}"] if options.topic else []),
        *(["allow-remote"] if options.allow_remote else []),
        *([f"config={quote(options.config)}"] if options.config else []),
        *(["allow-changes"] if options.allow_changes else []),
        *([f"timeout={options.timeout:.0f}"] if options.timeout is not None else []),
    ]
    if not target.startswith(BROKER) or not given:
        return target
    return f"{target}{'&' if '?' in target else '?'}{'&'.join(given)}"


def _run(options: argparse.Namespace) -> int:
    from kipcheck.conformance.engine.execution import profile, run, scripts, selection
    from kipcheck.conformance.targets.command import with_patience

    profiles = tuple(options.profile or ())
    try:
        named = [_of_broker(each, options) for each in options.target or ("kafka-python",)]
        targets = tuple(with_patience(profile.with_options(each, profiles), options.patience) for each in named)
        given = tuple(each for text in options.script or () for each in scripts.given(text))
    except (profile.InvalidProfile, ValueError) as why:
        return cli_options.complain(why, cli_options.USAGE)
    outcome = run.run(
        run.Options(
            targets=targets,
            edition=options.edition,
            checks=tuple(options.check or ("*",)),
            messages=tuple(options.message or ("*",)),
            seed=options.seed,
            cases=options.cases,
            workers=options.workers or selection.WORKERS,
            out=options.out,
            dry_run=options.dry_run,
            budget=options.budget,
            part=options.part,
            events=options.events,
            names=tuple(options.name or ()),
            require=tuple(options.require or ()),
            known=tuple(options.known or ()),
            profiles=profiles,
            # A script is a least case already: it is played once, unless a search is asked for.
            least=0.0 if given and options.least is None else options.least,
            scripts=given,
            trace="all" if given and options.trace else options.trace or "",
        )
    )
    if options.dry_run and not outcome.why:
        _print_plan(outcome.plan, options.json)
    elif options.events != "-" and outcome.text:
        _print_report(outcome.text, outcome.ledger, options)
    return cli_options.complain(outcome.why, outcome.exit_code) if outcome.why else outcome.exit_code


def _print_report(brief: str, ledger: Path | None, options: argparse.Namespace) -> None:
    """``brief``: the report for a stream that is no terminal."""
    from kipcheck import reports
    from kipcheck.conformance.cli.reports import print_written_report

    assert ledger is not None
    if options.json:
        print_written_report(ledger, brief, as_json=True)
        return
    if options.details:
        cli_options.print_harmless(reports.render(ledger, "text"))
        return
    if options.trace:
        from kipcheck.conformance.core.ledger import read
        from kipcheck.reports.text import scripts

        cli_options.print_harmless("\n".join(scripts(read(ledger))))
    print_written_report(ledger, brief)


def _print_plan(plan: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    if as_json:
        cli_options.print_json({"plan": plan, "cases": sum(row["cases"] for row in plan)})
        return
    for row in plan:
        claimed = row["versions"]
        versions = " v" + "-".join(map(str, sorted({min(claimed), max(claimed)}))) if claimed else ""
        cli_options.print_harmless(
            one_line(
                f"{row['target']}  {row['check']:<20} {row['grade']:<12} {row['subject']}{versions}: "
                f"{row['cases']} cases  {' '.join(row['requirements'])}"
            )
        )
    print(f"{sum(row['cases'] for row in plan)} cases; nothing was run")


def _replay(options: argparse.Namespace) -> int:
    from kipcheck.conformance.cli.stored_failures import failure_file
    from kipcheck.conformance.core.values.exits import first
    from kipcheck.conformance.engine.execution.replay import looked_in, replay, stored

    codes: list[int] = []
    rows: list[dict[str, Any]] = []
    try:
        places = [failure_file(each, options.out) for each in options.failure] or [options.out]
    except LookupError as missing:
        return cli_options.complain(missing.args[0], cli_options.USAGE)
    for path in stored(places):
        found = replay(path, options.target, options.trust, options.patience)
        codes.append(found.exit_code)
        rows.append({"file": str(path), "exit": found.exit_code, "message": found.message})
        several = f"{path.stem}  " if len(options.failure) != 1 else ""
        if options.trace and found.exchanges and not options.json:
            from kipcheck.reports.text import exchanges

            cli_options.print_harmless("\n".join(exchanges(found.exchanges)))
        is_result = found.exit_code in (cli_options.OK, cli_options.FAILED, cli_options.UNSTABLE)
        line = one_line(f"{several}{found.message}".replace("\n", " "))
        if is_result and not options.json:
            cli_options.print_harmless(line)
        elif not is_result:
            cli_options.complain(line, found.exit_code)
        if options.prune and found.exit_code == cli_options.OK and options.target is None:
            _prune(path)
    if not codes:
        return cli_options.complain(
            f"no stored failures (ID.json) in {', '.join(map(str, looked_in(places)))}", cli_options.USAGE
        )
    if options.json:
        cli_options.print_json({"replays": rows})
    return first(codes)


def _prune(path: Path) -> None:
    """Deletes a failure file if its name is the id of its failure and it is not a symbolic link."""
    from kipcheck.conformance.engine.findings.failures import is_filed

    if is_filed(path):
        path.unlink()
    else:
        cli_options.complain(
            f"{path} is kept: only files written by kipcheck and named ID.json after their failure are deleted",
            cli_options.OK,
        )
