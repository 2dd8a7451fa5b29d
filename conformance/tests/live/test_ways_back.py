"""A real way back: a run is as recorded, and Kafka's own tools take the commands that ``roll`` prints."""

import os
import shlex
from pathlib import Path

import pytest

from kipcheck.conformance.live import metadata_snapshots, ways_back
from kipcheck.conformance.live.controller.tool import command_of
from kipcheck.conformance.protocols.features.model.kraft_rules import METADATA
from kipcheck.conformance.protocols.features.upgrades import return_commands
from kipcheck.conformance.protocols.features.upgrades.upgrade_plan import plan
from kipcheck.conformance.protocols.features.upgrades.ways_back import Way, played
from kipcheck.conformance.targets.toolchains import kafka_broker
from kipcheck.conformance.targets.toolchains.kafka_nodes import BOTH, cluster
from kipcheck.conformance.targets.transport import process_tree

OLD, NEW = "3.7.2", "3.8.1"


@pytest.mark.jars
def test_a_run_is_as_recorded() -> None:
    way = Way(OLD, NEW, METADATA)
    assert ways_back.play(way).outcome == played()[way].outcome


def typed(release: str, port: int, printed: str) -> str:
    """The output of a printed command, run with the classes behind the scripts of the release. It has to succeed."""
    script, *options = shlex.split(printed.replace("HOST:PORT", f"{kafka_broker.HOST}:{port}"))
    argv = [*command_of(release)]
    if script == "kafka-metadata-quorum.sh":
        argv[-1] = argv[-1].replace("FeatureCommand", "MetadataQuorumCommand")
    done = process_tree.run([*argv, *options], 90.0)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.jars
def test_the_printed_commands_raise_lower_and_show_what_to_wait_for(tmp_path: Path) -> None:
    (step,) = plan(OLD, NEW).steps
    with cluster("3.7-IV4", {1: BOTH}, settings=metadata_snapshots.SOON) as nodes:
        nodes.start(1, NEW)
        nodes.wait(1)
        node = nodes.nodes[1]
        typed(NEW, node.port, return_commands.raising(step))
        typed(NEW, node.port, return_commands.lowering(step))
        status = typed(NEW, node.port, return_commands.STATUS)
        words = status.split()
        mark = int(words[words.index("HighWatermark:") + 1])
        data = node.folder / "data"
        ways_back.await_snapshots(nodes, mark)
        listed = process_tree.run(
            ["sh", "-c", return_commands.LIST.replace("METADATA_LOG_DIR", str(data))], 10.0, cwd=tmp_path
        )
        names = [os.path.basename(each) for each in listed.stdout.split()]
        assert max(int(name[:20]) for name in names) >= mark
        nodes.stop(1)
        nodes.start(1, OLD)
        nodes.wait(1)
        assert nodes.ended(1, ways_back.ENDS_WITHIN_S)[0] is None
