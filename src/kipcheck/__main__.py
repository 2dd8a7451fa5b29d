"""``kipcheck`` and ``python -m kipcheck``."""

import io
import os
import signal
import sys

HASH_SEED = "PYTHONHASHSEED"


def main() -> int:
    """Run the command line. Exit codes: see ``kipcheck --help``."""
    if sys.argv[1:2] == ["campaign"] and sys.platform == "linux" and sys.flags.hash_randomization:
        # Shards run with this hash seed: now their processes can be forks of this one, and need not import kipcheck.
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, HASH_SEED: "0"})
    from kipcheck.conformance.cli.main import run

    _open_closed_streams()
    _speak_utf8()
    try:
        return run(sys.argv[1:])
    except Exception as ours:  # noqa: BLE001 - whatever it is, it is told with an exit code that is no verdict
        from kipcheck.conformance.cli.options import OUR_BUG, complain
        from kipcheck.conformance.engine.execution.progress import show_traceback

        show_traceback()
        return complain(f"a bug of kipcheck's own: {type(ours).__name__}: {ours}", OUR_BUG)
    finally:
        # The reports are written, and the exit code is known: Ctrl-C once more, while Python ends, must not change it.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)


def _open_closed_streams() -> None:
    """Connects those that were closed (``kipcheck run >&-``) to nowhere: the next file that is opened would be one."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False))


def _speak_utf8() -> None:
    """Whatever the locale. Input that is no UTF-8 is then refused where it is looked at, and not by the stream."""
    for stream, errors in ((sys.stdin, "surrogateescape"), (sys.stdout, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=errors, line_buffering=stream is sys.stdout)


if __name__ == "__main__":
    sys.exit(main())
