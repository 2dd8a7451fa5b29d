"""What members of a Streams group say of themselves: subscribe."""

import argparse

from kipcheck.conformance.cli.assign import answering, one_file
from kipcheck.conformance.cli.options import Commands

GIVEN = """\
{"topics": {"t": 3},
 "topology": {"subtopologies": [{"id": 0, "sources": ["t"], "repartition": [],
                                 "stores": [{"name": "s", "logged": true}], "copartition": [["t"]]}], "standbys": 0},
 "members": {"c1": {"subscription": ["t"], "upgradeFrom": null, "processId": null, "previousTasks": ["0_0"],
                    "standbyTasks": [], "offsetSums": {}, "userEndPoint": null, "clientTags": {}}}}"""


def add(commands: Commands) -> None:
    made = commands.add("subscribe", _subscribe, "what members of a Kafka Streams group say when they join", EPILOG)
    made.add_argument(
        "--target", default="reference", metavar="T", help="reference (default) or java:kafka-streams:RELEASE"
    )
    made.add_argument("--assignor", default="stream", choices=("stream",), help="default stream")
    made.add_argument("--edition", default="apache", metavar="E", help="default apache; kip-268, apache@2.0.1")
    one_file(made)


EPILOG = f"""\
{GIVEN}
gives
{{"c1": {{"userData": "0000000b0000000b..."}}}}

Only topics (or a topology) and the names of members have to be there: the topology is then one subtopology without
state over all topics, a member subscribes to all that it reads, and its processId is made of its name. The answer
merged into the file is what `kipcheck assign --assignor stream` wants:
  kipcheck subscribe group.json | jq -s '.[0] * {{members: .[1]}}' group.json - |
    kipcheck assign --target reference --assignor stream

exit codes: 0 said, 1 {{"error": {{"class", "message"}}}} in the place of a result (upgradeFrom that the release does
not know, say), 2 unreadable, 3 the target did not start; with --batch 1 if any line failed. Classes: those of the
exceptions, and those that `kipcheck assign --help` lists."""


def _subscribe(options: argparse.Namespace) -> int:
    from kipcheck.conformance.cli import streams_members

    return answering(options, streams_members.subscribed, streams_members.subscribe_lines)
