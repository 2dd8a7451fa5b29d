"""An adapter of ours behind the testee protocol: ``python -m conformance.targets.child NAME``."""

import json
import os
import signal
import sys
from collections.abc import Mapping
from typing import IO, Any

from conformance.targets.protocol import VERSION, Adapter, Unavailable
from conformance.targets.roll import adapter
from conformance.targets.supervised import Supervised


def serve(player: Adapter, heard: IO[bytes], said: IO[bytes]) -> None:
    """Until ``bye`` or the end of the file."""
    at_work = Supervised(lambda op, budget: _result(player, op, budget))
    for line in heard:
        message = json.loads(line)
        said.write(json.dumps(_reply(player, at_work, message), separators=(",", ":")).encode() + b"\n")
        said.flush()
        if message["type"] == "bye":
            return


def _reply(player: Adapter, at_work: Supervised, message: Mapping[str, Any]) -> dict[str, Any]:
    match message["type"]:
        case "hello":
            claims = player.claims()
            return {
                "type": "hello", "protocol": VERSION, "name": player.name, "version": player.version,
                "language": "python", "issues": player.issues, "roles": sorted(each.value for each in claims.roles),
                "capabilities": {name: list(span) for name, span in claims.messages.items()},
                "missing": claims.missing,
                "assignors": claims.assignors, "machines": claims.machines,
            }  # fmt: skip
        case "configure":
            why = player.configure(message["edition"])
            return {"type": "configure", "ok": True} if why is None else {"type": "configure", "unsupported": why}
        case "batch":
            cases, budget = message["cases"], message.get("cpu_ms", 0) / 1000
            found = at_work.results(cases, budget)
            results = [{"n": case["n"], **result} for case, result in zip(cases, found, strict=True)]
            return {"type": "results", "id": message["id"], "results": results}
        case "bye":
            return {"type": "bye"}
    return {"type": "error", "message": f"no message is called {message['type']!r}"}


def _result(player: Adapter, op: Mapping[str, Any], budget: float) -> dict[str, Any]:
    # Past its budget of processor time the case ends this process: code that spins cannot be asked to stop.
    signal.setitimer(signal.ITIMER_PROF, budget)
    try:
        return player.answer({key: value for key, value in op.items() if key != "n"})
    except Exception as unexpected:  # noqa: BLE001 - whatever an adapter raises is an answer here
        return {"status": "internal", "class": type(unexpected).__name__, "message": str(unexpected)[:500]}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def main() -> int:
    os.environ["RUST_BACKTRACE"] = "0"  # takes longer than all else about a death, and hides its cause
    # What the target prints must not mix with what we say.
    said = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        player = adapter(sys.argv[1])
    except Unavailable as why:
        said.write(json.dumps({"type": "hello", "unavailable": str(why)}).encode() + b"\n")
        said.flush()
        return 0
    serve(player, sys.stdin.buffer, said)
    return 0


if __name__ == "__main__":
    sys.exit(main())
