"""The command ``features``: KIP-584's tool for operators, on a cluster that a file describes or that runs."""

import argparse
from pathlib import Path

from kipcheck.conformance.cli.options import (
    FAILED,
    INCONCLUSIVE,
    OK,
    USAGE,
    Commands,
    add_timeout,
    address,
    complain,
    print_harmless,
    print_json,
    release,
)

ACTIONS = ("describe", "upgrade-all", "downgrade-all", "update", "plan")
LISTS = ("upgrade", "downgrade", "delete")
EPILOG = """\
describe       supported and finalized levels of each feature, and the epoch
upgrade-all    raise all features to the levels that the tool of a release knows
downgrade-all  lower them to those levels, and delete the features that it does not know
update         the changes that --upgrade, --downgrade and --delete list
plan           which features rise in an upgrade --from one release --to another, in which order, and what cannot be
               undone, explored with models of the released KRaft controllers; it needs no file

The file is JSON, and is replaced as a whole once an update is applied:
{"brokers": [{"group_coordinator": [1, 2]}, {"group_coordinator": [1, 3]}],
 "node": {"version": 0, "status": 1, "features":
          {"group_coordinator": {"min_version_level": 1, "max_version_level": 1}}},
 "epoch": 1,
 "known": {"2.7.0": {"group_coordinator": 2}}}

brokers: the supported levels of each broker. node: /features in ZooKeeper, or null. epoch: its version (default 0).
known: for each release, the highest levels that its tool knows.

With --bootstrap-server the cluster is one that runs, and its controller decides: up to 3.9 each update succeeds or
fails alone, from 4.0 on one refused update fails all. upgrade-all asks for the levels of a new cluster of a release,
downgrade-all for the highest ones that it supports: the release of the broker, or --from-kafka-release. --dry-run has
the controller validate the request, and change nothing. --unsafe permits downgrades that lose metadata.

exit codes: 0 all updates were applied, 1 one was refused, 2 usage, or the file is unreadable (nothing is written), or
the cluster does not answer, 7 a plan of which no run shows the way back"""


def add(commands: Commands) -> None:
    made = commands.add("features", _features, "describe, upgrade and downgrade feature versions as in KIP-584", EPILOG)
    made.mixed = True
    made.add_argument("action", choices=ACTIONS, metavar="ACTION", help=", ".join(ACTIONS))
    made.add_argument("--state", type=Path, metavar="FILE", help="the cluster, as JSON")
    made.add_argument(
        "--bootstrap-server", type=address, metavar="HOST:PORT", help="in place of --state: a broker of the cluster"
    )
    made.add_argument(
        "--config", metavar="FILE", help="with --bootstrap-server: TLS and SASL, as properties of Java's clients"
    )
    add_timeout(made, "with --bootstrap-server: ")
    made.add_argument("--unsafe", action="store_true", help="with --bootstrap-server: downgrades may lose metadata")
    made.add_argument(
        "--allow-remote", action="store_true", help="accept a --bootstrap-server that is not this machine"
    )
    made.add_argument(
        "--upgrade", default="", metavar="A:N,...", help="update: features to add or raise, and their new levels"
    )
    made.add_argument(
        "--downgrade", default="", metavar="A:N,...", help="update: features to lower, and their new levels"
    )
    made.add_argument("--delete", default="", metavar="A,...", help="update: features to delete")
    made.add_argument("--dry-run", action="store_true", help="print what an update would do, and do not do it")
    made.add_argument(
        "--from-kafka-release",
        type=release,
        metavar="R",
        help="the release whose tool this is (default: the newest in the file, or that of the broker)",
    )
    made.add_argument(
        "--from", type=release, dest="old", metavar="R", help="plan: the release that runs, from 3.3.0 on"
    )
    made.add_argument("--to", type=release, dest="new", metavar="R", help="plan: the release of the upgrade")
    made.add_argument("--json", action="store_true", help="plan: print JSON")


def _plan(options: argparse.Namespace) -> int:
    from kipcheck.conformance.protocols.features.upgrades import plan_report
    from kipcheck.conformance.protocols.features.upgrades.upgrade_plan import plan

    if options.old is None or options.new is None or options.state or options.bootstrap_server:
        return complain("plan needs --from and --to, and takes no --state and --bootstrap-server", USAGE)
    try:
        found = plan(options.old, options.new)
    except LookupError as wrong:
        return complain(wrong.args[0], USAGE)
    if options.json:
        print_json(plan_report.as_json(found))
    else:
        for line in plan_report.lines(found):
            print_harmless(line)
    return INCONCLUSIVE if found.unknown else OK


def _features(options: argparse.Namespace) -> int:
    if options.action == "plan":
        return _plan(options)
    if options.old is not None or options.new is not None or options.json:
        return complain(f"{options.action} takes no --from, --to and --json: they belong to plan", USAGE)
    if (options.state is None) == (options.bootstrap_server is None):
        return complain(f"{options.action} needs --state or --bootstrap-server, and only one of them", USAGE)
    if options.action != "update" and (given := [f"--{each}" for each in LISTS if getattr(options, each)]):
        return complain(f"{given[0]} belongs to the action update, not to {options.action}", USAGE)
    if options.bootstrap_server is not None:
        return _of_cluster(options)
    if options.unsafe or options.allow_remote or options.config:
        return complain("--unsafe, --allow-remote and --config belong to --bootstrap-server, not to --state", USAGE)
    return _of_state(options)


def _of_cluster(options: argparse.Namespace) -> int:
    from kipcheck.conformance.cli.feature_cluster import of_cluster
    from kipcheck.conformance.live.connections.security import InvalidSecurity
    from kipcheck.conformance.live.controller.admin import Unanswered
    from kipcheck.conformance.wire.workbench import Unreadable

    try:
        return of_cluster(options)
    except (Unreadable, Unanswered, InvalidSecurity) as wrong:
        return complain(wrong, USAGE)


def _of_state(options: argparse.Namespace) -> int:
    from kipcheck.conformance.protocols.features import state_file, tool_report
    from kipcheck.conformance.protocols.features.model import tool
    from kipcheck.conformance.wire.workbench import Unreadable

    try:
        state = state_file.read_state(options.state)
        if options.action == "update":
            changes = tool_report.named_changes(state, *(getattr(options, each) for each in LISTS))
            if options.from_kafka_release is not None:
                tool_report.known_levels(state, options.from_kafka_release)
        elif options.action == "describe":
            for line in tool_report.described(state):
                print_harmless(line)
            return OK
        else:
            levels = tool_report.known_levels(state, options.from_kafka_release)
            made = tool.upgrades if options.action == "upgrade-all" else tool.downgrades
            changes = made(state, levels)
    except Unreadable as wrong:
        return complain(wrong, USAGE)
    done = tool_report.updated(state, changes)
    try:
        if not options.dry_run and done.state != state:
            state_file.write_state(options.state, done.state)
    except OSError as wrong:
        return complain(f"{options.state} cannot be written: {wrong.strerror or wrong}; no feature was changed", USAGE)
    for line in done.lines:
        print_harmless(line)
    return OK if done.well else FAILED
