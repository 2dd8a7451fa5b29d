"""Probes whether a testee follows the testee protocol. A run, not the doctor, tests the code behind the harness."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias, cast

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.engine.doctor.samples import EDITION
from kipcheck.conformance.protocols import registry
from kipcheck.conformance.targets import answers
from kipcheck.conformance.targets.answers import Hello, ProtocolViolation
from kipcheck.conformance.targets.protocol import VERSION, Target
from kipcheck.conformance.targets.session import Link
from kipcheck.conformance.targets.session_wrapper import TargetWrapper
from kipcheck.conformance.targets.transport.channel import Ended
from kipcheck.conformance.targets.transport.framing import Framing
from kipcheck.conformance.targets.transport.pipe import Command, NoProgram


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result of one probe."""

    id: str
    tried: str
    state: str
    """``ok``, ``wrong``, ``told`` (measured, not judged) or ``skipped``."""
    found: str
    fix: str = ""
    stderr: tuple[str, ...] = ()
    """The first lines that a testee wrote to stderr at its death."""


class ProbeFailed(Exception):
    """A probe failed. ``fix``: how to fix this failure, if the probe's usual advice does not apply."""

    def __init__(self, what: str, fix: str = "") -> None:
        super().__init__(what)
        self.fix = fix


class Unsuitable(Exception):
    """The probe does not apply to this testee; the message says why."""


class Measurement(str):
    """A measurement, not judged."""


class StartableTarget(Protocol):
    """A target whose process can be started."""

    def begin(self) -> Link: ...


@dataclass(slots=True)
class TesteeUnderTest:
    """A testee that is probed; it is started again whenever it has ended."""

    startable: StartableTarget
    seconds: float
    hello: Hello | None = None
    hello_message: Mapping[str, Any] = field(default_factory=dict)
    """Its hello response, as received."""
    link: Link | None = None
    role: Role | None = None
    batches: int = 0
    numbers: int = 0
    stderr_bytes: int = 0
    """Bytes on stderr of processes that have ended."""
    translated: bool = False
    """Whether kipcheck translates its answers in a run, so that values here may have other names."""

    def exchange(self, message: Mapping[str, Any]) -> dict[str, Any]:
        assert self.link is not None
        return self.link.exchange(message, self.seconds)

    def start(self) -> None:
        """Starts a new process, without sending anything. Errors: OSError."""
        self.stop()
        self.link = self.startable.begin()
        self.role = None

    def stop(self) -> None:
        if self.link is not None:
            self.stderr_bytes += self.link.channel.stderr_bytes
            self.link.kill()
        self.link = None

    def missing_file(self) -> str:
        """Advice if it ended before hello and its command line has the path of a file that does not exist."""
        command = getattr(self.startable, "command", None)
        if self.hello is not None or not isinstance(command, Command):
            return ""
        for word in command.argv[1:]:
            if not word.startswith("-") and Path(word).suffix and " " not in word and not Path(word).exists():
                return f"{word!r} in its command line does not exist in {Path.cwd()}"
        return ""

    def send_hello(self) -> Hello:
        self.hello_message = self.exchange({"type": "hello", "protocol": VERSION, "run": "doctor"})
        return answers.hello(self.hello_message)

    def ready(self, role: Role | None = None, framing: Framing | None = None) -> None:
        """Starts it if necessary, and configures it for a role that it supports."""
        assert self.hello is not None
        role = role or next(each for each in registry.roles() if each in self.hello.roles)
        if self.link is None or self.link.over:
            self.start()
            self.send_hello()
        if self.role is not role:
            framing = framing or (Framing.LINES if Framing.LINES in offered(self.hello_message) else Framing.FRAMES)
            request = {"type": "configure", "role": role.value, "edition": EDITION, "framing": framing.value}
            if (why := answers.configured(self.exchange(request))) is not None:
                raise ProbeFailed(f"configure for its own role {role.value} is answered with unsupported: {why}")
            assert self.link is not None
            self.link.set_framing(framing)
            self.role = role

    def batch(self, *operations: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Results in the order of the operations. Errors: ``Ended``, ``ProtocolViolation``."""
        self.batches += 1
        cases = [{"n": n, "case": n, **each} for n, each in enumerate(operations, self.numbers)]
        self.numbers += len(cases)
        results = self.exchange(
            {"type": "batch", "id": self.batches, "deadline_ms": int(self.seconds * 1000), "cases": cases}
        )
        found = answers.results(results, self.batches, answers.operations_by_number(cases))
        self.in_order = [each["n"] for each in results["results"]] == sorted(found)
        return [found[each["n"]] for each in cases]

    in_order: bool = True
    """Whether the last results came in the order of the operations."""


def offered(hello: Mapping[str, Any]) -> tuple[Framing, ...]:
    known = {each.value: each for each in Framing}
    return tuple(known[each] for each in hello.get("framing", ()) if each in known) or (Framing.LINES,)


ProbeFunction: TypeAlias = Callable[[TesteeUnderTest], str]
"""Returns what it found. Errors: ``ProbeFailed``, ``Unsuitable``, ``Ended``, ``ProtocolViolation``."""


@dataclass(frozen=True, slots=True)
class Probe:
    id: str
    tried: str
    fix: str
    look: ProbeFunction
    decisive: bool = False
    """If this probe fails, no further probe is run."""
    usual: bool = False
    """It sends operations as every run does: if the testee dies of one, the probe's own advice is not the reason."""


def run_probes(target: Target, seconds: float, examinations: Iterable[Probe]) -> Iterator[ProbeResult]:
    """Yields each line as soon as it is known.

    Errors: LookupError for a target without the testee protocol; ``NoProgram`` if its command starts nothing.
    """
    if not hasattr(target, "begin"):
        raise LookupError(f"{target.name} is not a testee: use cmd:, tcp:, or a client that kipcheck starts")
    testee = TesteeUnderTest(cast(StartableTarget, target), seconds, translated=isinstance(target, TargetWrapper))
    try:
        for each in examinations:
            line = _line(each, testee)
            yield line
            if each.decisive and line.state == "wrong":
                return
    finally:
        testee.stop()


FIRST_LINES = 6
"""Lines of a death that are shown."""


def _after_a_crash(probe: Probe, testee: TesteeUnderTest) -> str:
    """Advice where the process has ended."""
    if testee.hello is None:
        return "run the command by hand: it has to read standard input until bye, or until its end"
    if probe.usual:
        return "catch every exception of a case, and answer rejected or internal: one case must not end the process"
    return probe.fix


def _line(probe: Probe, testee: TesteeUnderTest) -> ProbeResult:
    state, fix, lines = "ok", "", list[str]()
    try:
        found = probe.look(testee)
        state = "told" if isinstance(found, Measurement) else "ok"
    except Unsuitable as why:
        state, found = "skipped", str(why)
    except Ended as death:
        last = death.evidence.strip().rpartition("\n")[2]
        lines = [each for each in (death.first or death.evidence).splitlines() if each.strip()]
        state, found = "wrong", f"{death}{f' ({last})' if last else ''}"
        fix = testee.missing_file() or (_after_a_crash(probe, testee) if death.cause == "crashed" else probe.fix)
    except NoProgram:
        raise
    except (ProbeFailed, ProtocolViolation, OSError) as wrong:
        state, found, fix = "wrong", str(wrong), getattr(wrong, "fix", "") or probe.fix
    return ProbeResult(probe.id, probe.tried, state, found, fix, tuple(lines[:FIRST_LINES]) if len(lines) > 1 else ())
