"""``kfake``, ``librdkafka-mock`` and ``tansu-broker``: brokers in libraries, as coordinators of classic groups.

Each runs in a program of kipcheck's, which prints its address and ends with its standard input.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from threading import Timer
from typing import IO, Any, Final, final

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.untrusted_text import clean
from kipcheck.conformance.live.client import compiled
from kipcheck.conformance.live.client.built_in import program
from kipcheck.conformance.live.coordinator.address import Address
from kipcheck.conformance.live.coordinator.admin import LARGEST
from kipcheck.conformance.live.coordinator.broker_settings import rules_of
from kipcheck.conformance.live.coordinator.session import session
from kipcheck.conformance.live.coordinator.target import TIMES
from kipcheck.conformance.protocols.damage.ops import DAMAGE
from kipcheck.conformance.protocols.group.model.answers import DEFAULT, Config
from kipcheck.conformance.protocols.group.ops import GROUP
from kipcheck.conformance.targets.protocol import Claims, NotPlayed, Session, Target, TargetInfo, Unavailable
from kipcheck.conformance.targets.session import Limits
from kipcheck.conformance.targets.target_entries import Entry
from kipcheck.conformance.targets.toolchains import build, environments, go, rust

STARTS_S: Final = 30.0
LINES: Final = 3
"""Of stderr, from its beginning: a panic is followed by hundreds of lines of stacks."""
LISTENING: Final = re.compile(rb"listening (\S+):([0-9]{1,5})\n")
FRANZ_GO: Final = "v1.22.2"
"""The module that kfake is built with: it needs a newer one than its releases state."""
TANSU: Final = "0.6.0"
"""The release of which ``serve_tansu`` has the versions of all libraries."""
TANSU_MINUTES: Final = 9
"""Measured with two cores that others used; see docs/compatible-coordinators.md."""


ANY_SESSION: Final = Config(max_size=LARGEST, initial_delay_ms=0, min_session_ms=0, max_session_ms=LARGEST)
"""Of a broker without such settings."""


@final
@dataclass(frozen=True, slots=True)
class Library:
    command: Callable[[str], tuple[str, ...]]
    """The command of a release, which is installed or built if needed. Errors: ``Unavailable``."""
    there: Callable[[], Sequence[str]]
    """The releases that are installed or built."""
    needed: Callable[[], object]
    """Errors: ``Unavailable`` where what builds it is missing."""
    settings: Config
    """Of the broker, in the time of conversations."""
    times: int = 1
    """The broker's time passes so much faster."""
    topic: str = ""
    """A topic that exists as soon as a client asks for it; empty: topics are created."""


def _kfake(version: str) -> tuple[str, ...]:
    modules = {"github.com/twmb/franz-go/pkg/kfake": version.removeprefix("v"),
               "github.com/twmb/franz-go": FRANZ_GO}  # fmt: skip
    bounds = (DEFAULT.min_session_ms // TIMES, DEFAULT.max_session_ms // TIMES)
    return (*compiled.in_go(modules, program("serve_kfake.go")), *map(str, bounds))


def _mock(version: str) -> tuple[str, ...]:
    python = environments.interpreter("confluent-kafka", version)
    return (str(python), "-s", "-P", str(program("serve_librdkafka_mock.py")))


def _mocks_there() -> list[str]:
    return [version for name, version in environments.made() if name == "confluent-kafka"]


def _tansu(version: str) -> tuple[str, ...]:
    if version != TANSU:
        raise Unavailable(f"tansu-broker {version} cannot be built: kipcheck has the locked versions of {TANSU} alone")
    return compiled.in_rust("tansu-broker", version, program("serve_tansu"), TANSU_MINUTES)


LIBRARIES: Final[Mapping[str, Library]] = {
    "kfake": Library(
        _kfake, partial(build.releases_built, "live-kfake"), go.go, Config(initial_delay_ms=0, max_size=LARGEST), TIMES
    ),
    "librdkafka-mock": Library(_mock, _mocks_there, lambda: sys.executable, Config(max_size=LARGEST), topic="kipcheck"),
    "tansu-broker": Library(_tansu, partial(build.releases_built, "live-tansu-broker"), rust.cargo, ANY_SESSION, TIMES),
}


def target(name: str, entry: Entry, version: str, limits: Limits | None) -> Target:
    return LibraryBroker(name, LIBRARIES[name.partition("@")[0]], version or entry.default)


def rows(name: str, entry: Entry) -> Iterator[dict[str, Any]]:
    """The default release, and those already built."""
    library = LIBRARIES[name]
    yield from build.rows(name, entry, library.needed, library.there())


@dataclass(frozen=True, slots=True)
class LibraryBroker:
    name: str
    library: Library
    release: str

    @contextmanager
    def open(self, edition: str, role: Role, /) -> Iterator[Session]:
        info = TargetInfo(self.name, self.release, "", "", CLAIMS.roles, CLAIMS)
        if role is not Role.COORDINATOR:
            raise NotPlayed(info, role)
        rules = rules_of(edition)
        with ExitStack() as stack:
            process = Process(self.name, self.library.command(self.release))
            stack.callback(process.stop)
            host, port = process.start()
            address = Address(host, port, self.library.topic)
            found = stack.enter_context(
                session(info, address, rules, self.library.times, self.library.settings, process)
            )
            found.pids = lambda: process.pids
            yield found


class Process:
    """The program of a broker, which can be started again."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self._name, self._command = name, command
        self._running: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None

    def another(self) -> "Process":
        """A process of the same program, not started."""
        return Process(self._name, self._command)

    def start(self) -> tuple[str, int]:
        """Host and port. Errors: ``Unavailable`` with the end of its stderr."""
        self.stop()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed with the process
        process = self._running = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, start_new_session=True
        )
        assert process.stdout is not None
        late = Timer(STARTS_S, process.kill)
        late.start()
        try:
            line = LISTENING.fullmatch(process.stdout.readline())
        finally:
            late.cancel()
        if line is None:
            process.kill()
            process.wait()
            raise Unavailable(f"{self._name} did not start: {self._written()}")
        return line[1].decode(), int(line[2])

    @property
    def why_ended(self) -> str:
        """How it ended, with what its stderr says first; empty while it runs."""
        if self._running is None or self._running.poll() is None:
            return ""
        return f"its process ended with {self._running.returncode}: {self._written()}"

    @property
    def pids(self) -> tuple[int, ...]:
        return () if self._running is None else (self._running.pid,)

    def stop(self) -> None:
        if self._running is None or self._errors is None:
            return
        assert self._running.stdin is not None and self._running.stdout is not None
        with suppress(BrokenPipeError):
            self._running.stdin.close()
        try:
            self._running.wait(5)
        except subprocess.TimeoutExpired:
            self._running.kill()
            self._running.wait()
        self._running.stdout.close()
        self._errors.close()
        self._running = None

    def _written(self) -> str:
        assert self._errors is not None
        self._errors.seek(0)
        lines = clean(self._errors.read(1 << 16).decode("utf-8", "replace")).split("\n")
        return " | ".join([each.strip() for each in lines if each.strip()][:LINES])[:500] or "it wrote nothing"


CLAIMS: Final = Claims(machines=(GROUP, DAMAGE))
