"""Fork servers that are forks of their driver."""

import os
import subprocess
import sys

import pytest

from kipcheck.conformance.targets.transport import process_tree

DRIVER = """
import os, sys
from kipcheck.conformance.campaign.plan import Shard
from kipcheck.conformance.campaign.process.shard_pool import ShardRunner

shard = Shard("c", 0, 0, "hold", "drill:raise@1000000", "1", "apache", ("wire/round-trip",), "mixed", 0, 20, "")
print("not yet written", end="")
with ShardRunner() as one, ShardRunner() as other:
    rows = [each.run_shard(shard, b"") for each in (one, other)]
    one.stop()  # while a later fork is alive: none has the pipes of another
    kinds = {type(other._process).__name__}
print("", rows[0].status, rows[0].digest, rows[1].digest == rows[0].digest, *kinds)
"""


def output(seed: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-P", "-c", DRIVER], env={**os.environ, "PYTHONHASHSEED": seed}, stdout=subprocess.PIPE,
        check=True, text=True, timeout=100,
    )  # fmt: skip
    return done.stdout.split()


@pytest.mark.skipif(not process_tree.LINUX, reason="only Linux reports the threads of native code")
def test_a_fork_of_the_driver_gives_the_same_rows_as_a_new_python() -> None:
    *forked, kind = output("0")
    *anew, other = output("7")
    assert forked == anew
    assert forked[:4] == ["not", "yet", "written", "done"]
    assert (kind, other) == ("_Forked", "Popen")
