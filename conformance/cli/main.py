"""The command line. The module of a command is imported, but its heavy imports happen when it runs."""

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

import kipcheck.conformance.targets  # noqa: F401 - lets editions such as maven:4.1.0 find their jars
from kipcheck.conformance.cli import (
    assign,
    campaign,
    completion,
    config,
    configuration,
    corpus,
    doctor,
    explore,
    export,
    features,
    golden,
    inspect,
    known,
    logdir,
    lookup,
    matrix,
    mutants,
    mutate,
    play,
    recall,
    reports as telling,
    roll,
    run as running,
    serve,
    show,
    storedir,
    subscribe,
    testee,
    triage,
    watch,
    workbench,
)
from kipcheck.conformance.cli.options import EXIT_CODES, OK, UNDECIDED, USAGE, Commands, Parser, complain
from kipcheck.conformance.engine.execution.interrupts import handled

GROUPS = (
    running, show, campaign, matrix, triage, known, config, telling, workbench, assign, subscribe, play, explore,
    golden, lookup, mutants, doctor, testee, serve, watch, inspect, features, roll, logdir, storedir, export,
    corpus, recall, mutate, completion,
)  # fmt: skip
"""In the order of ``kipcheck --help``."""


def run(arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    try:
        configuration.complete(options)
        with handled():
            code: int = options.call(options)
            sys.stdout.flush()
            return code
    except configuration.InvalidConfiguration as wrong:
        for each in wrong.troubles:
            complain(each, USAGE)
        return USAGE
    except BrokenPipeError:  # the reader closed the pipe: ``kipcheck ... | head``
        sys.stderr.close()
        return OK
    except KeyboardInterrupt:  # commands with reports handle it themselves once they run
        if options.interrupted == UNDECIDED:
            complain("interrupted before it started", UNDECIDED)
        return int(options.interrupted)


class _Version(argparse.Action):
    """As argparse's own, but the metadata of packages are read only where they are printed."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib import metadata

        print(f"kipcheck {metadata.version('kipcheck')}")
        parser.exit()


def parser() -> argparse.ArgumentParser:
    top = Parser(
        prog="kipcheck",
        description="Protocol fuzzing and conformance tests for Apache Kafka's group membership, "
        "Streams rebalance metadata and feature versions.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = Commands(top)
    for group in GROUPS:
        group.add(commands)
    return top
