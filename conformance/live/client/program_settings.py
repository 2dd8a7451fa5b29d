"""What the settings of a script change at the next start of a program, and the event that states them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from kipcheck.conformance.live.client.built_in import Settings
from kipcheck.conformance.live.client.other_members import GROUP, TOPIC
from kipcheck.conformance.live.client.scripted import HEARTBEAT_MS, SECOND
from kipcheck.conformance.protocols.client import events, ops

SESSION_MS, REBALANCE_MS = 3000, 6000
INSTANCE: Final = "i"
PATTERN: Final = "^[a-z]$"
"""Matches the topics of scripts, but for those that do not exist. librdkafka takes what begins with ^ for a pattern."""
AUTO: Final = "auto"
SELDOM_MS: Final = 5000
"""The default of auto.commit.interval.ms, longer than most scripts: commits come where partitions are given up."""
FIRST: Final = Settings(
    "", GROUP, (TOPIC,), session_ms=SESSION_MS, heartbeat_ms=HEARTBEAT_MS, rebalance_ms=REBALANCE_MS, commit=AUTO,
    max_poll_ms=REBALANCE_MS,
)  # fmt: skip
"""Of a script without settings. The rebalance timeout of Kafka's consumer is its max.poll.interval.ms."""


def changed(settings: Settings, event: ops.Setting) -> Settings:
    """The settings after a step of a script, but for those of the broker, which are not those of the program."""
    match event:
        case ops.Static():
            return replace(settings, instance=INSTANCE)
        case ops.Assignors(names):
            return replace(settings, assignors=",".join(names))
        case ops.GroupProtocol(name):
            return replace(settings, protocol=name)
        case ops.Subscribe(number):
            return settings if settings.pattern else replace(settings, topics=(TOPIC, SECOND)[:number])
        case ops.Pattern():
            return replace(settings, pattern=PATTERN, topics=(TOPIC, SECOND))
        case ops.Commits("seldom"):
            return replace(settings, commit=AUTO, commit_ms=SELDOM_MS)
        case ops.Commits(how):
            return replace(settings, commit=how, commit_ms=0)
        case ops.Works(ms):
            return replace(settings, pause_ms=ms)
        case ops.MaxPoll(ms):
            return replace(settings, rebalance_ms=ms, max_poll_ms=ms)
        case ops.Polls(ms):
            return replace(settings, poll_ms=ms)
        case ops.Resumes():
            return replace(settings, resume="always")
        case ops.Begins(where):
            return replace(settings, offset_reset=where)
        case ops.Intervals(heartbeat_ms, session_ms):
            # librdkafka refuses a shorter one; of other clients max.poll.interval.ms is the rebalance timeout
            rebalance_ms, max_poll_ms = max(settings.rebalance_ms, session_ms), max(settings.max_poll_ms, session_ms)
            times = replace(settings, rebalance_ms=rebalance_ms, max_poll_ms=max_poll_ms)
            return replace(times, heartbeat_ms=heartbeat_ms, session_ms=session_ms)
        case ops.Older() | ops.Newer() | ops.Offer():
            return settings


def wanted(
    settings: Settings, release: str, offered: Mapping[ops.Kind, range] = {}, missing: tuple[str, ...] = ()
) -> str:
    """What a script needs of a program that some programs lack. ``release``: of the broker, if it is not its own;
    ``offered``: the versions of requests that a script chooses; ``missing``: the topics that do not exist."""
    needs = {
        f"a broker of {release}": release, "a static member": settings.instance,
        f"assignors {settings.assignors}": settings.assignors, f"protocol {settings.protocol}": settings.protocol,
        "two topics": settings.topics[1:], f"topic {', '.join(missing)} deleted": missing,
        f"the pattern {settings.pattern}": settings.pattern,
        f"commits {settings.commit}": settings.commit != FIRST.commit,
        **{f"{kind} {versions.start} to {versions.stop - 1}": "offered" for kind, versions in offered.items()},
    }  # fmt: skip
    return ", ".join(name for name, is_wanted in needs.items() if is_wanted)


def launched(
    ms: int, given: Mapping[str, str], topics: tuple[str, ...], patience_ms: int, ends_on_errors: bool = False
) -> events.Launched:
    """The settings of a program that laws compare with what it does. ``given``: those that reach it."""

    def number(name: str) -> int | None:
        return int(given[name]) if name in given else None

    return events.Launched(
        ms, number("session_ms"), number("heartbeat_ms"), number("rebalance_ms"),
        tuple(given["assignors"].split(",")) if "assignors" in given else None, topics, patience_ms or None,
        given.get("commit"), number("max_poll_ms"), number("pause_ms"), given.get("pattern"),
        ends_on_errors, given.get("offset_reset"),
    )  # fmt: skip
