"""The command ``roll``: what a cluster persists at each step of an upgrade, and the last step that can be undone."""

import argparse

from kipcheck.conformance.cli.options import (
    INCONCLUSIVE,
    OK,
    USAGE,
    Commands,
    add_json,
    complain,
    print_harmless,
    print_json,
    release,
)

EPILOG = """\
kipcheck roll --from 2.0.1 --to 2.3.1
kipcheck roll --from 3.9.2 --to 4.4.0
kipcheck roll --from 2.0.1 --to 2.3.1 --edition kip-384

Formats are the records of __consumer_offsets and __transaction_state, and the files beside a log. A step can be undone
if the cluster takes its setting back, and the old release reads all that was written until then, as runs of released
nodes showed. In KRaft a level that was lowered is still written in the metadata, and the old release ends at it, until
each node has a snapshot from after the lowering: the way back names the wait, and how to observe its end. UNKNOWN: no
run shows that the old release comes back. kip-384 shows the same roll with the setting of its draft,
persistent.metadata.version.

exit codes: 0 printed; 2 usage: an unknown release, a downgrade, an upgrade that no single roll makes; 7 printed, and no
run shows whether the first step that cannot be undone can be"""


def add(commands: Commands) -> None:
    made = commands.add("roll", _roll, "print what an upgrade of brokers persists, and when it cannot go back", EPILOG)
    made.add_argument(
        "--from", type=release, dest="old", required=True, metavar="R", help="the release that runs: 3.9.2"
    )
    made.add_argument("--to", type=release, dest="new", required=True, metavar="R", help="the release of the upgrade")
    made.add_argument(
        "--mode", choices=("zookeeper", "kraft"), help="default: kraft where both releases run without ZooKeeper"
    )
    made.add_argument("--edition", choices=("apache", "kip-384"), default="apache", help="default apache")
    add_json(made)


def _roll(options: argparse.Namespace) -> int:
    from kipcheck.conformance.protocols.features.upgrades import roll_report
    from kipcheck.conformance.protocols.features.upgrades.roll import roll

    try:
        found = roll(options.old, options.new, options.mode, options.edition)
    except LookupError as wrong:
        return complain(wrong.args[0], USAGE)
    if options.json:
        print_json(roll_report.as_json(found))
    else:
        for line in roll_report.lines(found):
            print_harmless(line)
    return INCONCLUSIVE if found.unknown else OK
