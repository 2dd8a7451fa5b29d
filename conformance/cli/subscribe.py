"""The command ``subscribe``: prints the user data that members of a Streams group send when they join."""

import argparse

from kipcheck.conformance.cli.assign import answering, one_file
from kipcheck.conformance.cli.options import Commands, edition_name, target_name

GIVEN = """\
{"topics": {"t": 3},
 "topology": {"subtopologies": [{"id": 0, "sources": ["t"], "repartition": [],
                                 "stores": [{"name": "s", "logged": true}], "copartition": [["t"]]}], "standbys": 0},
 "members": {"c1": {"subscription": ["t"], "upgradeFrom": null, "processId": null, "previousTasks": ["0_0"],
                    "standbyTasks": [], "offsetSums": {}, "userEndPoint": null, "clientTags": {}}}}"""


def add(commands: Commands) -> None:
    made = commands.add(
        "subscribe", _subscribe, "print what members of a Kafka Streams group send when they join", EPILOG
    )
    made.add_argument(
        "--target",
        type=target_name,
        default="reference",
        metavar="T",
        help="reference (default) or java:kafka-streams:RELEASE",
    )
    made.add_argument("--assignor", default="stream", choices=("stream",), help="default stream")
    made.add_argument(
        "--edition", type=edition_name, default="apache", metavar="E", help="default apache; kip-268, apache@2.0.1"
    )
    one_file(made)


EPILOG = f"""\
{GIVEN}
gives
{{"c1": {{"userData": "0000000b0000000b..."}}}}

Only topics (or a topology) and the names of members are required: the topology is then one subtopology without
state over all topics, a member subscribes to all topics that it reads, and its processId is derived from its name. The
result, merged into the file, is the input of `kipcheck assign --assignor stream`:
  kipcheck subscribe group.json | jq -s '.[0] * {{members: .[1]}}' group.json - |
    kipcheck assign --target reference --assignor stream

exit codes: 0 done, 1 {{"error": {{"class", "message"}}}} in place of a result (for example an upgradeFrom that the
release does not support), 2 unreadable, 3 the target did not start; with --batch 1 if any line failed. Classes: those
of the target's exceptions, and those that `kipcheck assign --help` lists."""


def _subscribe(options: argparse.Namespace) -> int:
    from kipcheck.conformance.clients.java import user_data

    return answering(options, user_data.subscribed, user_data.subscribe_lines)
