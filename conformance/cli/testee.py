"""The command ``testee``: serves one of kipcheck's own testees."""

import argparse

from kipcheck.conformance.cli.options import NOT_STARTED, OK, USAGE, Commands, complain, target_name

ABOUT = "run a testee on stdin and stdout, or on a local port, where kipcheck tests it as tcp:127.0.0.1:PORT"


def add(commands: Commands) -> None:
    made = commands.add("testee", _testee, ABOUT)
    made.add_argument(
        "name", type=target_name, nargs="?", default="reference", metavar="T",
        help="kafka-python, java:kafka-clients:4.4.0, miniature/forgets-the-sign, ...; default reference",
    )  # fmt: skip
    made.add_argument("--schema", action="store_true", help="print the JSON schema of the testee protocol and exit")
    made.add_argument(
        "--listen", type=int, metavar="PORT",
        help="listen on 127.0.0.1, serve one connection after another, and run Python clients in this process, so that "
        "a debugger can attach to it; 0 takes any free port",
    )  # fmt: skip


def _testee(options: argparse.Namespace) -> int:
    if options.schema:
        from importlib.resources import files

        print((files("kipcheck.conformance.targets") / "testee.schema.json").read_text("utf-8"), end="")
        return OK
    from kipcheck.conformance.targets.protocol import Unavailable
    from kipcheck.conformance.targets.transport import serve

    try:
        if options.listen is None:
            return serve.serve_stdio(options.name)
        return serve.listen(options.name, options.listen)
    except LookupError as unknown:
        return complain(unknown.args[0], USAGE)
    except Unavailable as missing:
        return complain(missing, NOT_STARTED)
    except OSError as denied:
        return complain(denied, USAGE)
    except KeyboardInterrupt:
        return OK
