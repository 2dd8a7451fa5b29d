"""Selects the executor that runs the shards."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from kipcheck.conformance.campaign.executors import local, preflight
from kipcheck.conformance.campaign.executors.local import Executor
from kipcheck.conformance.campaign.executors.preflight import Unready

ExecutorName: TypeAlias = Literal["auto", "inline", "pool", "spark"]
EXECUTORS: tuple[ExecutorName, ...] = ("auto", "inline", "pool", "spark")


@dataclass(frozen=True, slots=True)
class Chosen:
    executor: Executor
    why: str
    """The reason for the choice, in one line for users."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Recorded in the manifest."""


@contextmanager
def ready(
    name: ExecutorName, workers: int, master: str | None, remote: str | None, ship: bool = False
) -> Iterator[Chosen]:
    """``workers``: the number of concurrent shards; 0: one for each core, here or in the cluster. ``ship``: sends the
    workers what they need. Errors: ``Unready``.
    """
    if ship and (master is None or preflight.LOCAL.fullmatch(master)):
        instead = "a Spark Connect server has its own libraries" if remote else "this machine has all that it needs"
        raise Unready(f"--ship is for the workers of a cluster (--master spark://HOST:PORT): {instead}, omit it")
    settings = {key: url for key, url in (("master", master), ("remote", remote)) if url is not None}
    if settings and name in ("inline", "pool"):
        raise Unready(f"--{next(iter(settings))} is for Spark: omit it, or use --executor spark instead of {name}")
    why = "as requested"
    if name == "auto":
        name, why = ("spark", "a cluster is given") if settings else _automatic()
    if name == "spark":
        preflight.libraries(remote is not None)
        # Imported here because it needs the extra, which other executors do not.
        from kipcheck.conformance.campaign.executors.spark import spark

        with spark(master, remote, workers, ship=ship) as executor:
            where = master or remote or f"local[{executor.slots}]"
            yield Chosen(executor, f"Spark at {where} runs the shards: {why}", {"workers": executor.slots, **settings})
    elif name == "inline":
        with local.inline() as executor:
            yield Chosen(executor, f"one shard after the other: {why}")
    else:
        workers = workers or _cores()
        with local.pool(workers) as executor:
            yield Chosen(executor, f"{workers} processes run the shards: {why}", {"workers": workers})


def _cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _automatic() -> tuple[ExecutorName, str]:
    try:
        preflight.libraries(remote=False)
        home = preflight.java()
    except Unready as missing:
        return "pool", str(missing).partition(": pip")[0].partition(". Install")[0]
    return "spark", f"the extra is installed, and Java is in {home}"
