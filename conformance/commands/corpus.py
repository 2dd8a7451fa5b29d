"""Inputs for other fuzzers: corpus seeds."""

import argparse
from pathlib import Path

from conformance.commands.declared import OK, USAGE, Commands, complain, positive

ABOUT = "one file for each input: golden bytes, drawn ones and damaged ones, with a dictionary"
EPILOG = """\
DIR/MESSAGE/vN/NAME    the bytes of one input; its name is a digest of them, so that the same input has the same name
DIR/kipcheck.dict      words of the protocol, for afl++ (-x) and libFuzzer (-dict=)
DIR/index.tsv          of each file: where it comes from

exit codes: 0 done, 2 usage"""


def add(commands: Commands) -> None:
    about = "inputs for other fuzzers"
    parts = commands.add("corpus", _seeds, about).add_subparsers(metavar="seeds", required=True)
    seeds = parts.add_parser(
        "seeds", help=ABOUT, description=ABOUT, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    seeds.add_argument("--out", type=Path, required=True, metavar="DIR")
    seeds.add_argument("--edition", default="apache", metavar="E")
    seeds.add_argument("--message", action="append", metavar="GLOB", help="default all; may be repeated")
    seeds.add_argument("--seed", type=int, default=0, metavar="N")
    about = "values for each version of a message (default 8)"
    seeds.add_argument("--cases", type=positive, default=8, metavar="N", help=about)
    seeds.set_defaults(call=_seeds)


def _seeds(options: argparse.Namespace) -> int:
    from conformance import seeds

    try:
        count = seeds.write(options.out, options.edition, options.message or ["*"], options.seed, options.cases)
    except LookupError as unknown:
        return complain(unknown.args[0], USAGE)
    except OSError as denied:
        return complain(f"{denied.filename or options.out} cannot be written: {denied.strerror}", USAGE)
    print(f"{count} inputs in {options.out}")
    return OK
