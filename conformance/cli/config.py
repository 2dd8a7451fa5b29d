"""The command ``config``: what ``kipcheck.toml`` sets, and where it was found."""

import argparse
from pathlib import Path

from kipcheck.conformance.cli import configuration
from kipcheck.conformance.cli.options import OK, Commands, add_json, print_harmless, print_json
from kipcheck.conformance.core.values.untrusted_text import one_line

ABOUT = "print the values that kipcheck.toml gives to options, and the file that they are from"
EPILOG = """\
kipcheck.toml, or the table [tool.kipcheck] of pyproject.toml, in the working folder or the nearest one above it, up to
the top of the repository:

  targets = ["cmd:./my-testee"]          # as --target; a string is a list of one
  checks = ["wire/*", "assign/*"]        # as --check
  known = "conformance/known.toml"       # as --known; kipcheck known update creates it
  require = "wire/*"                     # as --require
  profile = "consumer-client"            # as --profile
  budget = "10m"                         # as --budget
  seed = 0                               # as --seed
  out = "kipcheck-out"                   # as --out, of all commands

Also names, edition, messages and cases. Paths are relative to the folder of the file. An option on the command line
replaces the value of its key. run reads all keys, campaign those that it has options for.

exit codes: 0 printed, 2 an unknown key or a wrong value"""


def add(commands: Commands) -> None:
    made = commands.add("config", _config, ABOUT, EPILOG)
    add_json(made)


def _config(options: argparse.Namespace) -> int:
    made = configuration.found()
    values = {} if made is None else made.values
    if options.json:
        path = None if made is None else str(made.path)
        return print_json({"file": path, "values": values})
    if made is None:
        print_harmless(f"no {configuration.NAME}, and no [{configuration.TABLE}] in {configuration.SHARED}, in "
                       f"{Path.cwd()} or above: all values are defaults")  # fmt: skip
    else:
        print_harmless(str(made.path))
    for key, about in configuration.KEYS.items():
        value = values.get(key)
        shown = ", ".join(value) if isinstance(value, list) else about.default if value is None else str(value)
        origin = "default" if made is None or value is None else f"line {made.lines.get(key, 1)}"
        print_harmless(one_line(f"{key:<9} {shown}  ({origin})"))
    return OK
