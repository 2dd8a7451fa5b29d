"""``kipcheck`` and ``python -m conformance``."""

import io
import sys
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("conformance", "strategies", "golden", "reports")


def strangers() -> list[str]:
    """Of our four packages, those that Python would take from elsewhere than ``conformance`` itself.

    Their names are generic: a later install, or a folder of the user's own, can take their place in silence.
    """
    home = Path(__file__).resolve().parent.parent
    found = []
    for name in PACKAGES:
        spec = find_spec(name)
        origin = Path(spec.origin).resolve() if spec and spec.origin else None
        if origin != home / name / "__init__.py":
            found.append(f"{name} comes from {origin or 'nowhere'}, not from {home / name}")
    return found


def main() -> int:
    """Run the command line. Exit codes: see ``kipcheck --help``."""
    if wrong := strangers():
        print(f"kipcheck: another package stands in the way: {'; '.join(wrong)}. "
              "Give kipcheck an environment of its own, and run it elsewhere than beside that folder.", file=sys.stderr)
        return 2
    from conformance.cli import run  # only now: what it imports may be a stranger's

    _speak_utf8()
    try:
        return run(sys.argv[1:])
    except Exception as ours:  # noqa: BLE001 - whatever it is, it is told with an exit code that is no verdict
        from conformance.commands.declared import OUR_BUG, complain
        from conformance.progress import show_traceback

        show_traceback()
        return complain(f"a bug of kipcheck's own: {type(ours).__name__}: {ours}", OUR_BUG)


def _speak_utf8() -> None:
    """Whatever the locale. Input that is no UTF-8 is then refused where it is looked at, and not by the stream."""
    for stream, errors in ((sys.stdin, "surrogateescape"), (sys.stdout, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=errors, line_buffering=stream is sys.stdout)


if __name__ == "__main__":
    sys.exit(main())
