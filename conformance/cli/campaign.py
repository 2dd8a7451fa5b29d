"""The command ``campaign``: long fuzzing."""

import argparse
from pathlib import Path
from typing import Any

from kipcheck.conformance.cli import options as cli_options
from kipcheck.conformance.cli.configuration import ALL

EXECUTORS = ("auto", "inline", "pool", "spark")
"""The names in ``campaign.plan`` and ``campaign.executors``; a test compares them."""
FIXED = ("target", "name", "edition", "check", "cases", "rounds", "seed", "known", "corpus", "out")
"""Options whose values a resumed campaign takes from its manifest."""

CONFIGURED = ("targets", "names", "edition", "checks", "known", "cases", "budget", "seed", "out")
"""The keys of ``kipcheck.toml`` that it reads. A resumed campaign reads none."""


def add(commands: cli_options.Commands) -> None:
    about = "run checks for minutes or days, on all cores or on Spark, and report which failures are new"
    made = commands.add("campaign", _campaign, about, cli_options.EXIT_CODES)
    made.set_defaults(interrupted=cli_options.UNDECIDED)
    made.add_argument(
        "--target",
        type=cli_options.target_name,
        action="append",
        metavar="T",
        help="target to test; default kafka-python; may be repeated",
    )
    made.add_argument("--name", action="append", metavar="NAME", help="name of a cmd: or broker: target, as for run")
    made.add_argument("--edition", type=cli_options.edition_name, metavar="E", help="default apache")
    made.add_argument("--check", action="append", metavar="GLOB", help="checks to run; default all; may be repeated")
    made.add_argument(
        "--cases",
        type=cli_options.positive,
        metavar="N",
        help="cases for each target over all rounds (default 20000, unless --budget is given)",
    )
    made.add_argument(
        "--budget",
        type=cli_options.duration,
        metavar="TIME",
        help="90s, 5m, 8h: planning, reductions and reports included; with --cases, the remaining cases are undecided",
    )
    made.add_argument(
        "--rounds",
        type=cli_options.positive,
        metavar="N",
        help="shards of a round start from the corpus of the rounds before (default 4)",
    )
    made.add_argument("--seed", type=int, metavar="N", help="default 0")
    made.add_argument("--known", action="append", metavar="FILE", help="known deviations, as for run; may be repeated")
    _add_executor(made)
    cli_options.add_json(made)
    made.add_argument(
        "--corpus",
        type=Path,
        metavar="DIR|FILE",
        help="start with the corpus of an earlier campaign: its newest snapshot, or the one in FILE",
    )
    where = made.add_mutually_exclusive_group()
    where.add_argument("--out", type=Path, metavar="DIR", help="default kipcheck-out")
    made.configured = {key: option for key, option in ALL.items() if key in CONFIGURED}
    where.add_argument("--resume", type=Path, metavar="DIR", help="continue the campaign in DIR")


def _add_executor(made: argparse.ArgumentParser) -> None:
    """The options that decide where shards run."""
    made.add_argument(
        "--executor",
        choices=EXECUTORS,
        default="auto",
        help="auto: Spark if the extra and Java are installed, otherwise a pool of processes",
    )
    made.add_argument(
        "--workers",
        type=cli_options.positive,
        metavar="N",
        help="processes, or cores of a local Spark; the number does not change the verdicts",
    )
    cluster = made.add_mutually_exclusive_group()
    cluster.add_argument("--master", metavar="URL", help="Spark master: local[4], spark://HOST:7077, yarn, k8s://...")
    cluster.add_argument("--remote", metavar="sc://HOST:PORT", help="a Spark Connect server")
    made.add_argument(
        "--ship", action="store_true", help="send kipcheck, its libraries, jars and cache to the workers of --master"
    )


def _campaign(options: argparse.Namespace) -> int:
    from kipcheck.conformance.campaign.driver import CampaignRequest, campaign
    from kipcheck.conformance.cli.reports import print_written_report
    from kipcheck.conformance.core.ledger import NAME as LEDGER

    if options.resume is not None and (given := [name for name in FIXED if getattr(options, name) is not None]):
        return cli_options.complain(
            f"--{given[0]} is fixed by the manifest of {options.resume}: omit it", cli_options.USAGE
        )
    request: dict[str, Any] = {
        "targets": options.target and tuple(options.target),
        "names": options.name and tuple(options.name),
        "edition": options.edition,
        "checks": options.check and tuple(options.check),
        "cases": options.cases,
        "budget": options.budget,
        "rounds": options.rounds,
        "seed": options.seed,
        "known": options.known and tuple(options.known),
        "executor": options.executor,
        "workers": options.workers,
        "master": options.master,
        "remote": options.remote,
        "ship": options.ship,
        "corpus": options.corpus,
        "out": options.resume or options.out,
        "resume": options.resume is not None,
    }
    asked = CampaignRequest(**{name: value for name, value in request.items() if value is not None})
    outcome = campaign(asked)
    if outcome.text:
        print_written_report(asked.out / LEDGER, outcome.text, options.json)
    return cli_options.complain(outcome.why, outcome.exit_code) if outcome.why else outcome.exit_code
