"""Consumers that come with kipcheck: released clients, each in a short program that does what its documentation shows.

A program reads its settings from the environment, ``KIPCHECK_BOOTSTRAP`` and so on, consumes until SIGTERM, and closes.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, final

from kipcheck.conformance.core.values.nearest import hint
from kipcheck.conformance.core.values.release import NEWEST, version_numbers
from kipcheck.conformance.live.client import compiled
from kipcheck.conformance.targets.target_entries import Entry, target_entries
from kipcheck.conformance.targets.toolchains import environments, node

PREFIX: Final = "KIPCHECK_"
JAVA: Final = "Consume"
"""The program of the consumer of Java, whose name is that of its class."""
RELEASES: Final[Mapping[str, Any]] = tomllib.loads((files(__package__) / "releases.toml").read_text("utf-8"))
DEFAULT: Final[Mapping[str, str]] = RELEASES["default"]
SINCE: Final[Mapping[str, Mapping[str, str]]] = RELEASES["since"]
"""The releases from which on clients have an optional setting, where their programs read it for all."""
ENDS_ON_ERRORS: Final = frozenset({"kafka-python", "aiokafka", "java", "sarama", "kafkajs", "platformatic-kafka"})
"""The clients whose programs end when an error is raised that no client recovers from. franz-go and librdkafka send all
errors to their users alike, and try again; kafka-go logs them."""
OPTIONAL: Final = (
    "instance", "client_id", "assignors", "session_ms", "heartbeat_ms", "rebalance_ms", "protocol", "commit",
    "max_poll_ms", "pause_ms", "pattern", "offset_reset", "commit_ms", "poll_ms", "resume",
)  # fmt: skip
"""Placeholders that a command may have."""


@final
@dataclass(frozen=True, slots=True)
class Settings:
    """What a consumer may be given; empty or 0: its own default."""

    bootstrap: str
    group: str
    topics: tuple[str, ...]
    client_id: str = ""
    instance: str = ""
    assignors: str = ""
    """Names with commas between them, preferred first."""
    session_ms: int = 0
    heartbeat_ms: int = 0
    rebalance_ms: int = 0
    protocol: str = ""
    """``classic`` or ``consumer`` (KIP-848)."""
    commit: str = ""
    """``auto``, ``sync``, ``async`` or ``late``."""
    max_poll_ms: int = 0
    """The longest time between two polls: max.poll.interval.ms."""
    pause_ms: int = 0
    """So long the program works after a poll, from its first records on."""
    pattern: str = ""
    """A regular expression for the whole name of a topic. The program subscribes by it, and not by ``topics``."""
    offset_reset: str = ""
    """``earliest`` or ``latest``: where the program begins without a committed offset: auto.offset.reset."""
    commit_ms: int = 0
    """The interval at which a program commits whose client does that by itself: auto.commit.interval.ms."""
    poll_ms: int | None = None
    """So long a poll waits for records; None: 100 ms."""
    resume: str = ""
    """``always``: the program resumes all its partitions before each poll."""

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a program, without those that are not given."""
        found = {
            "BOOTSTRAP": self.bootstrap, "GROUP": self.group, "TOPICS": ",".join(self.topics),
            "CLIENT_ID": self.client_id, "INSTANCE": self.instance, "ASSIGNORS": self.assignors,
            "SESSION_MS": str(self.session_ms or ""), "HEARTBEAT_MS": str(self.heartbeat_ms or ""),
            "REBALANCE_MS": str(self.rebalance_ms or ""), "PROTOCOL": self.protocol, "COMMIT": self.commit,
            "MAX_POLL_MS": str(self.max_poll_ms or ""), "PAUSE_MS": str(self.pause_ms or ""), "PATTERN": self.pattern,
            "OFFSET_RESET": self.offset_reset, "RESUME": self.resume,
            "COMMIT_MS": str(self.commit_ms or ""), "POLL_MS": "" if self.poll_ms is None else str(self.poll_ms),
        }  # fmt: skip
        return {PREFIX + name: value for name, value in found.items() if value}


@final
@dataclass(frozen=True, slots=True)
class BuiltIn:
    default: Callable[[], str]
    """The release that is used where none is named. Errors: ``Unavailable``."""
    command: Callable[[str], tuple[str, ...]]
    """The command of a release, which is installed or built if needed. Errors: ``Unavailable``."""


def program(name: str) -> Path:
    """The path of a program of kipcheck's."""
    return Path(str(files("kipcheck.conformance.live"))) / "programs" / name


def _python(distribution: str) -> Callable[[str], tuple[str, ...]]:
    file = f"consume_{distribution.replace('-', '_')}.py"
    return lambda version: (*environments.program(distribution, version), str(program(file)))


def _listed(name: str) -> Entry:
    """The target of this name, whose release is tested through an adapter too."""
    return target_entries()[name]


def sources(stem: str, version: str) -> tuple[Path, ...]:
    """The files of a program: its own, and one of those named ``STEM_from_RELEASE``, which contain what has to be done
    in another way from that release on: that of the newest release up to this one.
    """
    own: list[Path] = []
    parts: dict[tuple[int, ...], tuple[Path, ...]] = {(): ()}
    for each in sorted(program("").iterdir()):
        if each.stem == stem:
            own.append(each)
        elif since := re.fullmatch(rf"{stem}_from_(\d+_\d+_\d+)", each.stem):
            parts[version_numbers(since[1])] = (each,)
    return (*own, *parts[max(each for each in parts if each <= version_numbers(version))])


def _go(module: str, stem: str, before: Mapping[str, str] | None = None) -> Callable[[str], tuple[str, ...]]:
    """``before``: the paths that the module had, by the release from which on it had the next one."""

    def command(version: str) -> tuple[str, ...]:
        earlier = (path for since, path in (before or {}).items() if version_numbers(version) < version_numbers(since))
        return compiled.in_go({next(earlier, module): version}, *sources(stem, version), imported=module)

    return command


def _node(package: str, file: str) -> Callable[[str], tuple[str, ...]]:
    return lambda version: compiled.in_node(package, version, program(file))


BUILT_IN: Final[Mapping[str, BuiltIn]] = {
    "kafka-python": BuiltIn(lambda: DEFAULT["kafka-python"], _python("kafka-python")),
    "aiokafka": BuiltIn(lambda: DEFAULT["aiokafka"], _python("aiokafka")),
    "confluent-kafka": BuiltIn(lambda: DEFAULT["confluent-kafka"], _python("confluent-kafka")),
    "java": BuiltIn(lambda: NEWEST, lambda version: compiled.java(version, program("Consume.java"))),
    "franz-go": BuiltIn(lambda: _listed("franz-go").default, _go("github.com/twmb/franz-go", "consume_franz_go")),
    "sarama": BuiltIn(
        lambda: DEFAULT["sarama"], _go("github.com/IBM/sarama", "consume_sarama", RELEASES["earlier-paths"]["sarama"])
    ),
    "kafkajs": BuiltIn(lambda: DEFAULT["kafkajs"], _node("kafkajs", "consume_kafkajs.mjs")),
    "platformatic-kafka": BuiltIn(
        lambda: node.default(_listed("platformatic-kafka")),
        _node("@platformatic/kafka", "consume_platformatic_kafka.mjs"),
    ),
    "kafka-go": BuiltIn(lambda: DEFAULT["kafka-go"], _go("github.com/segmentio/kafka-go", "consume_kafka_go")),
}


def taken(name: str) -> frozenset[str]:
    """The optional settings that the program of a client reads. Errors: LookupError; ``Unavailable``."""
    _known(name)
    client = name.partition("@")[0]
    stem = JAVA if client == "java" else f"consume_{client.replace('-', '_')}"
    text = "".join(each.read_text("utf-8") for each in sources(stem, release(name)))
    since = SINCE.get(client, {})
    had = (each for each in OPTIONAL if version_numbers(release(name)) >= version_numbers(since.get(each, "0")))
    return frozenset(each for each in had if re.search(rf"[\"']{each.upper()}[\"']", text))


def release(name: str) -> str:
    """The release of ``NAME`` or ``NAME@VERSION``. Errors: LookupError; ``Unavailable``."""
    return name.partition("@")[2] or _known(name).default()


def _known(name: str) -> BuiltIn:
    client = name.partition("@")[0]
    if client not in BUILT_IN:
        raise LookupError(f"unknown client {client!r}{hint(client, BUILT_IN) or '; known: ' + ', '.join(BUILT_IN)}")
    return BUILT_IN[client]


def command(name: str) -> tuple[str, ...]:
    """The command of ``NAME`` or ``NAME@VERSION``. Errors: LookupError for an unknown name; ``Unavailable``."""
    return _known(name).command(release(name))
