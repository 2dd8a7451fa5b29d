"""The command ``inspect``: what the groups of a running cluster are, and which laws their assignments break."""

import argparse
from typing import TYPE_CHECKING

from kipcheck.conformance.cli import options as cli_options

if TYPE_CHECKING:
    from kipcheck.conformance.live.inspect.inspection import Inspection

ABOUT = "show the groups of a running cluster, and judge their assignments"
EPILOG = """\
kipcheck inspect localhost:9092
kipcheck inspect localhost:9092 --group orders
kipcheck inspect localhost:9092 --group orders --json | jq '.groups[].broken'
kipcheck inspect localhost:9093 --config client.properties

It only asks: nothing is created, joined or committed. It reads the record of a group in __consumer_offsets to learn who
leads. A group that rebalances is asked again for 10 seconds.

exit codes: 0 no requirement of grade MUST is broken, 1 one is, 2 usage, or no such group, 3 a broker does not answer,
6 a group has members and could not be judged, 7 no group has members, so nothing was judged"""


def add(commands: cli_options.Commands) -> None:
    made = commands.add("inspect", _inspect, ABOUT, EPILOG)
    made.add_argument(
        "broker", type=cli_options.address, metavar="HOST:PORT", help="a broker of the cluster; also broker:HOST:PORT"
    )
    made.add_argument("--group", action="append", default=[], metavar="G", help="may be repeated; default all groups")
    made.add_argument("--config", metavar="FILE", help="TLS and SASL, as properties of Java's clients")
    cli_options.add_timeout(made)
    made.add_argument("--json", action="store_true", help="print JSON")


def _inspect(options: argparse.Namespace) -> int:
    from kipcheck.conformance.live.connections.security import OPEN, InvalidSecurity, read_security
    from kipcheck.conformance.live.inspect.cluster import Unanswered
    from kipcheck.conformance.live.inspect.descriptions import NoGroup
    from kipcheck.conformance.live.inspect.inspection import inspect
    from kipcheck.conformance.live.inspect.report import lines, plain
    from kipcheck.conformance.matrix.group_advice import advice

    try:
        security = read_security(options.config) if options.config else OPEN
        found = inspect(options.broker, options.group, security, options.timeout)
    except InvalidSecurity as wrong:
        return cli_options.complain(wrong, cli_options.USAGE)
    except Unanswered as silent:
        return cli_options.complain(silent, cli_options.NOT_STARTED)
    except NoGroup as unknown:
        return cli_options.complain(unknown, cli_options.USAGE)
    code = _exit(found)
    if options.json:
        host, port = options.broker
        shown = {
            "broker": f"{host}:{port}",
            "unasked": [*found.unasked],
            "groups": [plain(group, [*advice(group)]) for group in found.groups],
        }
        cli_options.print_json({**shown, "exit": code})
        return code
    for group in found.groups:
        for line in lines(group, [*advice(group)]):
            cli_options.print_harmless(line)
    if not found.groups:
        cli_options.print_harmless("the brokers list no group that this user may describe")
    if code == cli_options.INCONCLUSIVE:
        cli_options.print_harmless("nothing was judged: no group has members")
    for each in found.unasked:
        cli_options.complain(each, code)
    return code


def _exit(found: "Inspection") -> int:
    from kipcheck.conformance.core.values.verdict import Grade

    broken = [one for each in found.groups for one in each.judged.broken]
    if any(each.law.grade is Grade.MUST for each in broken):
        return cli_options.FAILED
    if found.unasked:
        return cli_options.NOT_STARTED
    if any(each.judged.unjudged for each in found.groups):
        return cli_options.UNDECIDED
    return cli_options.OK if any(each.judged.laws for each in found.groups) else cli_options.INCONCLUSIVE
