"""Commands and waits of ways back, which ``roll`` and ``features plan`` print: how to raise and lower a level, and how
to observe that each node has a snapshot from after the lowering.
"""

from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Any, Final, assert_never

from kipcheck.conformance.core.files.releases_table import since
from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.protocols.features.upgrades.upgrade_plan import Step, run_together
from kipcheck.conformance.protocols.features.upgrades.ways_back import By, Played

FEATURES: Final = "kafka-features.sh --bootstrap-server HOST:PORT"
STATUS: Final = "kafka-metadata-quorum.sh --bootstrap-server HOST:PORT describe --status"
LIST: Final = "ls METADATA_LOG_DIR/__cluster_metadata-0/*.checkpoint"
INTERVAL_SINCE: Final = Release.parse(since("snapshot-interval"))
"""The first release with metadata.log.max.snapshot.interval.ms."""


def raising(step: Step) -> str:
    return f"{FEATURES} upgrade --feature {step.feature}={step.after}"


def lowering(step: Step) -> str:
    """A level 0 is that of a feature that is disabled."""
    if step.before == 0:
        return f"{FEATURES} disable --feature {step.feature}"
    return f"{FEATURES} downgrade --feature {step.feature}={step.before}"


def wait(new: str) -> str:
    """The condition for a restart with the old release. ``new``: the release whose nodes write the snapshots."""
    hour = "an hour (metadata.log.max.snapshot.interval.ms) or " if Release.parse(new) >= INTERVAL_SINCE else ""
    return (
        "every node, controller or broker, has a .checkpoint file whose name begins with a number of at least that "
        f"HighWatermark; by default nodes write one after {hour}20 MB of records "
        "(metadata.log.max.record.bytes.between.snapshots)"
    )


def after_it(step: Step, old: str) -> str:
    """What a line about a step ends with."""
    match step.by:
        case By.RESTART:
            return ""
        case By.SNAPSHOT:
            return f"; after it was lowered, WAIT FOR A SNAPSHOT before {old} starts"
        case By.KEPT:
            return f"; cannot be lowered, and {old} runs with it"
        case By.IMPOSSIBLE:
            return "; cannot be undone"
        case By.NOT_RUN:
            return "; UNKNOWN whether it can be undone: not run with these releases"
        case _:
            assert_never(step.by)


def lines(old: str, new: str, raised: Iterable[Step]) -> Iterator[str]:
    """The way back from the steps before the first without one, the last step first; no lines without such steps."""
    undone = [*takewhile(lambda step: step.by.leads_back, raised)]
    lowered = [step for step in undone if step.lowered][::-1]
    if not lowered:
        return
    yield f"the way back to {old}:"
    tasks = [f"$ {lowering(step)}" for step in lowered]
    if any(step.by is By.SNAPSHOT for step in lowered):
        tasks += [f"$ {STATUS}", f"WAIT until {wait(new)}", f"$ {LIST}"]
    tasks.append(f"only then restart every node with {old}, one by one")
    yield from (f"   {mark}. {task}" for mark, task in zip("abcdefghijklmnop", tasks, strict=False))
    yield from (f"{step.feature} stays at {step.after}, and {old} runs with it" for step in undone if not step.lowered)
    if not run_together(old, new, undone):
        yield "UNKNOWN: each level was run alone, and all of them together were not"


def evidence(runs: Iterable[Played], quorum: bool) -> str:
    """Which releases were run, on how many nodes; empty without runs. ``quorum``: three nodes should have been run."""
    by_pair: dict[tuple[str, str], list[int]] = {}
    for run in runs:
        by_pair.setdefault((run.way.old, run.way.new), []).append(run.way.nodes)
    return "; ".join(
        f"run with {old} and {new} on {' and '.join(map(str, sorted(nodes)))} node{'' if nodes == [1] else 's'}"
        + (", not run on 3 nodes" if quorum and 3 not in nodes else "")
        for (old, new), nodes in by_pair.items()
    )


def as_json(by: By, step: Step | None, new: str, runs: Iterable[Played]) -> dict[str, Any]:
    """``by``: the word for it; ``commands``: to type, in this order; ``waits_for``: before the old release starts."""
    lowers = step is not None and step.lowered
    waits = by is By.SNAPSHOT
    return {
        "by": str(by),
        "commands": [*([lowering(step)] if step is not None and lowers else ()), *((STATUS, LIST) if waits else ())],
        "waits_for": wait(new) if waits else None,
        "runs": [run.way.name for run in runs],
    }
