"""The command ``golden``: verifies and regenerates the golden vectors."""

import argparse

from kipcheck.conformance.cli.options import (
    FAILED,
    OK,
    Commands,
    add_json,
    add_out,
    print_harmless,
    print_json,
    target_name,
)
from kipcheck.conformance.core.values.untrusted_text import one_line


def add(commands: Commands) -> None:
    golden = commands.add("golden", _golden_verify, "verify or regenerate the golden vectors")
    vectors = golden.add_subparsers(metavar="verify|make", required=True)
    about = (
        "check both decoders against every vector, and the models against every regression (no Java); with "
        "--target, check that target too"
    )
    verify = vectors.add_parser("verify", help=about, description=about)
    verify.add_argument(
        "--target", type=target_name, action="append", metavar="T", help="a target to check too; may be repeated"
    )
    add_out(verify, "folder for the ledger and the reports of --target")
    verify.add_argument("--details", action="store_true", help="print every difference; default one line a message")
    add_json(verify)
    verify.set_defaults(call=_golden_verify)
    about = "regenerate the vectors from released jars; exit 3 if the jars are not available"
    make = vectors.add_parser("make", help=about, description=about)
    make.add_argument("--check", action="store_true", help="write nothing; exit 1 if a vector would change")
    make.add_argument("--details", action="store_true", help="print every difference; default one line a message")
    make.set_defaults(call=_golden_make)


def _golden_verify(options: argparse.Namespace) -> int:
    from kipcheck.golden import regressions
    from kipcheck.golden.vectors import report

    found = report()
    failed = list(regressions.verify())
    if options.json:
        print_json({"vectors": list(found.troubles), "regressions": failed, "counted": regressions.total(len(failed))})
    else:
        for line in (*found.lines(options.details), *failed, regressions.total(len(failed))):
            print_harmless(one_line(line))
    code = FAILED if found.troubles or failed else OK
    if options.target:
        from kipcheck import reports
        from kipcheck.conformance.engine.execution import run as engine_run

        run = engine_run.run(
            engine_run.Options(targets=tuple(options.target), checks=("wire/vectors",), out=options.out)
        )
        if run.ledger is not None and not options.json:
            print(reports.render(run.ledger, "text"), end="")
        code = code or run.exit_code
    return code


def _golden_make(options: argparse.Namespace) -> int:
    from kipcheck.golden.make import main

    return main([f"--{each}" for each in ("check", "details") if getattr(options, each)])
