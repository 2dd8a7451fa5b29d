"""The command ``completion``: prints a script with which a shell completes commands and options."""

import argparse
import sys

from kipcheck.conformance.cli.options import NOT_STARTED, OK, Commands, complain

SHELLS = ("bash", "zsh", "tcsh")
EPILOG = """\
It needs the extra completion: in a clone, pip install ".[completion]".

  kipcheck completion bash > ~/.local/share/bash-completion/completions/kipcheck
  kipcheck completion zsh > ~/.zfunc/_kipcheck      # with fpath+=~/.zfunc before compinit

exit codes: 0 printed, 2 usage, 3 the extra is not installed"""


def add(commands: Commands) -> None:
    made = commands.add("completion", _completion, "print a script that completes commands and options", EPILOG)
    made.add_argument("shell", choices=SHELLS, help="bash, zsh or tcsh")
    made.set_defaults(top=commands.top)


def _completion(options: argparse.Namespace) -> int:
    try:
        import shtab
    except ImportError:
        from kipcheck.conformance.core.files.install import advice

        return complain(f"shtab is not installed: {advice('completion')}", NOT_STARTED)
    sys.stdout.write(shtab.complete(options.top, options.shell))
    return OK
