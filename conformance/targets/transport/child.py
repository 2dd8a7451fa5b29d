"""Serves one of kipcheck's adapters over the testee protocol.

``python -m kipcheck.conformance.targets.transport.child NAME``
"""

import faulthandler
import json
import os
import signal
import sys
from collections.abc import Collection, Mapping, Sequence
from types import FrameType
from typing import IO, Any, Final, Protocol

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.targets.error_mapping import place
from kipcheck.conformance.targets.protocol import VERSION, Adapter, Claims, ImportsByRole, Unavailable
from kipcheck.conformance.targets.registry import adapter, omitted
from kipcheck.conformance.targets.transport import framing as transport_framing
from kipcheck.conformance.targets.transport.garbage import collect_seldom
from kipcheck.conformance.targets.transport.supervised import DUMP, Supervised

SHARE: Final = 3
"""An operation may take the deadline of its batch divided by this, so that a hang is reported before the deadline."""


class Executor(Protocol):
    """Runs operations. ``budget`` is processor time and ``seconds`` wall time for each; 0 and None mean no limit."""

    def results(
        self, operations: Sequence[Mapping[str, Any]], budget: float, seconds: float | None = None
    ) -> list[dict[str, Any]]: ...
    def renew(self) -> None:
        """Forgets what earlier operations left behind, if it can."""
        ...


class InlineExecutor:
    """Runs operations in this process, for a debugger."""

    def __init__(self, player: Adapter) -> None:
        self._player = player

    def results(
        self, operations: Sequence[Mapping[str, Any]], budget: float, seconds: float | None = None
    ) -> list[dict[str, Any]]:
        return [_result(self._player, op, budget) for op in operations]

    def renew(self) -> None:
        """A debugger stays in its process."""


def serve(
    player: Adapter, executor: Executor, reader: IO[bytes], writer: IO[bytes], omits: Collection[str] = ()
) -> None:
    """Serves until ``bye`` or the end of the input. ``omits``: families of messages that hello does not name."""
    framing = transport_framing.Framing.LINES
    while text := _next(reader, framing):
        try:
            message = transport_framing.parse_message(text)
            reply = _reply(player, executor, message, omits)
        except (transport_framing.Unreadable, KeyError, TypeError) as wrong:
            message, reply = {}, {"type": "unsupported", "message": f"{type(wrong).__name__}: {wrong}"}
        writer.write(transport_framing.pack_message(reply, framing))
        writer.flush()
        if message.get("type") == "bye":
            return
        if reply.get("ok") and "framing" in message:
            framing = transport_framing.Framing(message["framing"])


def _next(reader: IO[bytes], framing: transport_framing.Framing) -> bytes:
    """One message; empty at the end of the input."""
    if framing is transport_framing.Framing.LINES:
        return reader.readline(transport_framing.MOST + 1)
    length = int.from_bytes(reader.read(transport_framing.LENGTH), "big")
    return reader.read(length) if 0 < length <= transport_framing.MOST else b""


def _reply(player: Adapter, executor: Executor, message: Mapping[str, Any], omits: Collection[str]) -> dict[str, Any]:
    match message["type"]:
        case "hello":
            return {
                "type": "hello", "protocol": VERSION, "name": player.name, "version": player.version,
                "language": "python", "issues": player.issues, **_claims_to_json(player.claims().without(omits)),
                "framing": [each.value for each in FRAMING], "dump_signal": DUMP.name,
            }  # fmt: skip
        case "configure":
            if message["role"] not in {each.value for each in player.claims().roles}:
                return {"type": "configure", "unsupported": f"{player.name} does not play the role {message['role']}"}
            executor.renew()
            why = player.configure(message["edition"])
            if why is None and isinstance(player, ImportsByRole):
                player.import_for(Role(message["role"]))
            return {"type": "configure", "ok": True} if why is None else {"type": "configure", "unsupported": why}
        case "batch":
            cases, budget = message["cases"], message.get("cpu_ms", 0) / 1000
            seconds = message.get("deadline_ms", 0) / 1000 / SHARE or None
            found = executor.results(cases, budget, seconds)
            results = [{"n": case["n"], **result} for case, result in zip(cases, found, strict=True)]
            return {"type": "results", "id": message["id"], "results": results}
        case "bye":
            return {"type": "bye"}
    return {"type": "unsupported", "message": f"unknown message type {message['type']!r}"}


FRAMING: Final = (transport_framing.Framing.LINES, transport_framing.Framing.FRAMES)
"""The framings offered, preferred first: finding the end of a line costs nothing compared with parsing its JSON."""


def _claims_to_json(claims: Claims) -> dict[str, Any]:
    return {
        "roles": sorted(each.value for each in claims.roles),
        "capabilities": {name: list(span) for name, span in claims.messages.items()},
        "missing": {name: list(versions) for name, versions in claims.missing.items()},
        "assignors": list(claims.assignors), "machines": list(claims.machines), "limits": dict(claims.limits),
        "operations": {name: list(operations) for name, operations in claims.operations.items()},
    }  # fmt: skip


WHOLE_BYTES: Final = 1 << 20
"""An input of so many bytes may take the whole budget."""
LEAST_S: Final = 0.5
"""Any input may take so long, or a quarter of the budget, if that is more."""


def in_proportion(budget_s: float, size: int) -> float:
    """The processor time for an input of so many bytes, up to the budget; 0: no limit. An operation without bytes, as
    of an assignor, has the whole budget.

    A decoder of pure Python reads 400 KB in 0.03 s. One that needs twenty times as long is out of proportion: it is
    ended then, and not after the time of a megabyte.
    """
    if not size:
        return budget_s
    return min(budget_s, max(LEAST_S, budget_s / 4, budget_s * size / WHOLE_BYTES))


def _result(player: Adapter, op: Mapping[str, Any], budget: float) -> dict[str, Any]:
    # A case that exceeds its processor time ends this process: code that spins cannot be interrupted otherwise.
    signal.setitimer(signal.ITIMER_PROF, in_proportion(budget, len(op.get("hex", "")) // 2))
    try:
        return player.answer({key: value for key, value in op.items() if key != "n"})
    except Exception as unexpected:  # noqa: BLE001 - any exception of an adapter is a result
        kind, message = type(unexpected).__name__, str(unexpected)[:500]
        return {"status": "internal", "class": kind, "message": message, **place(unexpected)}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def supervised(player: Adapter) -> Supervised:
    """Runs the adapter in a process of its own, and writes that process's stack to stderr on the dump signal."""
    executor = Supervised(lambda op, budget: _result(player, op, budget), getattr(player, "prepare", None))
    here = os.getpid()

    def write_dump(number: int, frame: FrameType | None) -> None:
        if os.getpid() == here:
            os.write(2, executor.dump())

    signal.signal(DUMP, write_dump)
    for number in (DUMP, signal.SIGPROF):
        faulthandler.register(number, file=2, all_threads=True, chain=True)
    return executor


def run(name: str) -> int:
    """Serves on stdin and stdout. Errors: LookupError for an unknown adapter."""
    os.environ["RUST_BACKTRACE"] = "0"  # a backtrace takes longer than the rest of a crash report and hides its cause
    # What the target prints must not mix with the protocol.
    writer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        player = adapter(name)
    except Unavailable as why:
        writer.write(json.dumps({"type": "hello", "unavailable": str(why)}).encode() + b"\n")
        writer.flush()
        return 0
    collect_seldom()
    serve(player, supervised(player), sys.stdin.buffer, writer, omitted(name))
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1]))
