"""The command ``doctor``: tests whether a testee follows the testee protocol."""

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from kipcheck.conformance.cli import options as cli_options
from kipcheck.conformance.core.values.untrusted_text import one_line

if TYPE_CHECKING:
    from kipcheck.conformance.engine.doctor.report import ProbeResult

ABOUT = "test whether a testee follows the testee protocol: its harness, not the code behind it"
EPILOG = """\
exit codes: 0 all probes passed, 2 usage, 3 a probe failed, or the testee did not start

Each line names a probe and its result, and how to fix a failure. The protocol is described in
conformance/docs/testee.md and, as JSON schema, in conformance/targets/testee.schema.json."""


def add(commands: cli_options.Commands) -> None:
    made = commands.add("doctor", _doctor, ABOUT, EPILOG)
    made.add_argument(
        "--target",
        type=cli_options.target_name,
        metavar="T",
        help=f'"cmd:node testee.mjs", tcp:127.0.0.1:PORT, {cli_options.CLIENTS}; default the one in kipcheck.toml',
    )
    made.configured = {"targets": "target"}
    made.add_argument(
        "--seconds", type=float, default=20.0, metavar="N", help="seconds to wait for each response (default 20)"
    )
    cli_options.add_json(made)


def _doctor(options: argparse.Namespace) -> int:
    from kipcheck.conformance.engine.doctor.probes import PROBES
    from kipcheck.conformance.engine.doctor.report import run_probes
    from kipcheck.conformance.targets.protocol import Unavailable
    from kipcheck.conformance.targets.registry import target
    from kipcheck.conformance.targets.transport.pipe import NoProgram

    named: list[str] = [options.target] if isinstance(options.target, str) else options.target or []
    if len(named) != 1:
        return cli_options.complain("name the target: --target, or one as targets in kipcheck.toml", cli_options.USAGE)
    lines: list[ProbeResult] = []
    try:
        opened = target(named[0])
        for line in _of_client(opened) if _is_client(opened) else run_probes(opened, options.seconds, PROBES):
            lines.append(line)
            if not options.json:
                _print(line)
    except LookupError as unknown:
        return cli_options.complain(unknown.args[0], cli_options.USAGE)
    except Unavailable as missing:
        return cli_options.complain(missing, cli_options.NOT_STARTED)
    except NoProgram as missing:
        return cli_options.complain(f"{missing}: nothing was started, so no testee was probed", cli_options.NOT_STARTED)
    failed = [each for each in lines if each.state == "wrong"]
    if options.json:
        cli_options.print_json({"target": named[0], "healthy": not failed, "examinations": lines})
    else:
        cli_options.print_harmless(one_line(_conclusion(lines)))
    return cli_options.NOT_STARTED if failed else cli_options.OK


def _conclusion(lines: "Sequence[ProbeResult]") -> str:
    """What the probes show, and which show nothing."""
    states = [each.state for each in lines]
    if "wrong" in states:
        return f"{states.count('wrong')} of {len(lines)} probes failed"
    skipped = ", ".join(each.tried for each in lines if each.state == "skipped")
    return f"healthy: {states.count('ok')} probes passed{f'; not probed: {skipped}' if skipped else ''}"


def _is_client(target: object) -> bool:
    from kipcheck.conformance.live.client.target import LiveClient

    return isinstance(target, LiveClient)


def _of_client(target: Any) -> "Iterator[ProbeResult]":
    """The probes of a program that consumes."""
    from kipcheck.conformance.engine.doctor.report import ProbeResult
    from kipcheck.conformance.live.client.doctor import examine

    for each in examine(target, "apache"):
        yield ProbeResult(each.id, each.tried, each.state, each.found, each.fix)


def _print(line: "ProbeResult") -> None:
    cli_options.print_harmless(one_line(f"{line.state:<8}{line.tried}: {line.found}"))
    for each in line.stderr:
        cli_options.print_harmless(one_line(f"        stderr: {each}"))
    if line.fix:
        cli_options.print_harmless(one_line(f"        how to fix it: {line.fix}"))
