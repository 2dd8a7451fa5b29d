"""What all commands share: exit codes, types of options, output, and error messages."""

import argparse
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn, TextIO, TypeAlias

from kipcheck.conformance.core.values.nearest import hint
from kipcheck.conformance.core.values.part import Part
from kipcheck.conformance.core.values.plain import plain
from kipcheck.conformance.core.values.untrusted_text import harmless, harmless_json, harmless_line

OK, FAILED, USAGE, NOT_STARTED, UNSTABLE, STALE, UNDECIDED, INCONCLUSIVE, OUR_BUG = 0, 1, 2, 3, 4, 5, 6, 7, 70
EXIT_CODES = """\
exit codes:
  0  conformant, or done       4  unstable target
  1  a failure, or refused     5  stale expectations
  2  usage                     6  undecided within the budget
  3  a target did not start    7  inconclusive: nothing passed, too much was skipped, or a client never read
                               70 a bug in kipcheck
if several apply: the first of 70, 2, 3, 1, 5, 4, 7, 6"""

Call: TypeAlias = Callable[[argparse.Namespace], int]


OUT: Final = Path("kipcheck-out")
"""Where runs, campaigns and matrices write, and where other commands find them."""


class Absent(NamedTuple):
    """The default of an option that ``kipcheck.toml`` may give: the option is absent from the command line."""

    default: object


MOST_CHOICES: Final = 12
"""An error lists as many valid values; more are in the help."""


class Parser(argparse.ArgumentParser):
    """The argument parser of kipcheck, or of one command."""

    mixed = False
    """True: positional arguments may stand before and after options, as in ``play MODEL --edition E FILE``."""
    configured: Mapping[str, str] = {}
    """Key of ``kipcheck.toml`` -> the option, or argument, whose value it gives where that is absent."""

    about_more: str | Callable[[], str] = ""
    """The epilog; a function where it names what other modules declare, which are imported only for it."""

    def format_help(self) -> str:
        if self.about_more:
            self.epilog = self.about_more() if callable(self.about_more) else self.about_more
        return super().format_help()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self.mixed:
            self.mixed = False  # parse_known_intermixed_args calls this method
            try:
                return self._all_known(self.parse_known_intermixed_args(args, namespace))
            finally:
                self.mixed = True
        for action in self._actions:
            if action.dest in self.configured.values() and not isinstance(action.default, Absent | None):
                action.default = Absent(action.default)
        self.set_defaults(configured=self.configured)
        found = super().parse_known_args(args, namespace)
        return found if "mixed" in vars(self) else self._all_known(found)

    def _all_known(self, found: tuple[argparse.Namespace, list[str]]) -> tuple[argparse.Namespace, list[str]]:
        """Errors: exit code 2, with the nearest option of this command."""
        if found[1]:
            options = [each for action in self._actions for each in action.option_strings if each.startswith("--")]
            wrong = found[1][0]
            near = hint(wrong.partition("=")[0], options) if wrong.startswith("-") else ""
            self.error(f"unknown {'option' if wrong.startswith('-') else 'argument'} {wrong}{near}")
        return found

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            names = list(map(str, action.choices))
            is_command = isinstance(action, argparse._SubParsersAction)
            what = "command" if is_command else "value"
            use = "" if is_command and len(names) > MOST_CHOICES else f": use {', '.join(names)}"
            raise argparse.ArgumentError(
                None if is_command else action, f"unknown {what} {value!r}{hint(str(value), names)}{use}"
            )

    def _get_value(self, action: argparse.Action, text: str) -> Any:
        try:
            return super()._get_value(action, text)
        except argparse.ArgumentError:
            if action.type not in (int, float):
                raise
            kind = "an integer" if action.type is int else "a number"
            raise argparse.ArgumentError(action, f"must be {kind}, got {text!r}") from None

    def error(self, message: str) -> NoReturn:
        """Exit code 2, after two lines: what is wrong, and the command that describes what is right."""
        print(harmless_line(f"{self.prog}: {message}"), file=sys.stderr)
        print(f"try: {self.prog} --help", file=sys.stderr)
        self.exit(USAGE)


INTERRUPTED = 130
"""The exit code that shells expect of a command ended by Ctrl-C. Commands with reports exit with 6 (undecided)."""


class Commands:
    """Registers commands with the top-level parser."""

    def __init__(self, top: argparse.ArgumentParser) -> None:
        self.top = top
        self._commands = top.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)

    def add(
        self,
        name: str,
        call: Call,
        about: str,
        epilog: str | Callable[[], str] = "",
        parents: Sequence[Any] = (),
        aliases: Sequence[str] = (),
    ) -> Parser:
        """``aliases`` are former names of the command, which keep working."""
        made = self._commands.add_parser(
            name, aliases=aliases, help=about, description=about, parents=parents,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip
        made.about_more = epilog
        made.set_defaults(call=call, interrupted=INTERRUPTED)
        return made


CLIENTS: Final = (
    "client:COMMAND starts a program that consumes: {bootstrap}, {group}, {topics} (names with commas between them) "
    "and optional placeholders are replaced, each by nothing where a script does not set it; a word with {instance?} "
    "is left out then"
)


def duration(text: str) -> float:
    unit = {"s": 1, "m": 60, "h": 3600}.get(text[-1:], 0)
    number = text[:-1] if unit else text
    if not number.isascii() or not number.isdigit() or int(number) < 1:
        raise argparse.ArgumentTypeError(f"invalid duration {text!r}: use 90s, 5m or 8h")
    return float(int(number) * (unit or 1))


def add_json(made: argparse.ArgumentParser, about: str = "one JSON value on standard output") -> None:
    made.add_argument("--json", action="store_true", help=about)


def add_out(made: Parser, about: str = "the --out of the run", *names: str) -> None:
    """The folder of results, which ``out`` of ``kipcheck.toml`` gives for all commands.

    ``names``: others than ``--out``; that of a positional argument makes it optional.
    """
    many: dict[str, Any] = {"nargs": "?"} if names and not names[0].startswith("-") else {}
    made_option = made.add_argument(
        *(names or ("--out",)), type=Path, default=OUT, metavar="DIR", help=f"{about} (default kipcheck-out)", **many
    )
    made.configured = {**made.configured, "out": made_option.dest}


def add_timeout(made: argparse.ArgumentParser, about: str = "") -> None:
    made.add_argument(
        "--timeout",
        type=duration,
        default=30.0,
        metavar="TIME",
        help=f"{about}the time for a broker to answer a request, such as 5s (default 30s)",
    )


def add_patience(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--patience",
        type=duration,
        metavar="TIME",
        help="of client: targets: the longest back-off that the client documents, such as 5s: it is awaited for its "
        "session timeout and ten such times before it is said not to return",
    )


def positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a positive integer, got {text!r}")
    return int(text)


def part(text: str) -> Part:
    try:
        return Part.read(text)
    except ValueError as wrong:
        raise argparse.ArgumentTypeError(str(wrong)) from None


LINE: Final = r"(?:0\.1[01]\.\d+|[1-9]\d*\.\d+)(?![.\d])"
"""A line of releases, where a release is expected: 3.9, 0.10.2."""
OF_KAFKA: Final = re.compile(r"(?:kafka|kafka-streams|java:[\w-]+):|client:(?:java|streams)@")
"""The beginning of a target that names a release of Kafka."""


def release(text: str) -> str:
    """A release; of a line its newest patch, which is reported."""
    return _patched(rf"\A{LINE}\Z", text)


def edition_name(text: str) -> str:
    """An edition, with the newest patch where it names a line: ``apache@3.9`` is ``apache@3.9.2``."""
    return _patched(rf"(?<=\Aapache@){LINE}\Z", text)


def target_name(text: str) -> str:
    """A target, with the newest patch where it names a line: ``kafka:3.9`` is ``kafka:3.9.2``."""
    return _patched(rf"(?<=[:@=]){LINE}(?=\Z|[?&])", text) if OF_KAFKA.match(text) and " " not in text else text


def _patched(pattern: str, text: str) -> str:
    def newest(line: re.Match[str]) -> str:
        from kipcheck.conformance.core.files.releases_table import newest_patch

        patch = newest_patch(line[0])
        if patch != line[0]:
            complain(f"{line[0]} is {patch}, its newest patch", OK)
        return patch

    return re.sub(pattern, newest, text)


def address(text: str) -> tuple[str, int]:
    """``HOST:PORT``, ``[HOST]:PORT``, also after ``broker:``. Errors: ArgumentTypeError."""
    host, _, port = text.removeprefix("broker:").rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 0xFFFF:
        raise argparse.ArgumentTypeError(f"invalid address {text!r}: use HOST:PORT, such as localhost:9092")
    return host, int(port)


def print_json(found: Mapping[str, Any]) -> int:
    """Prints data, and dataclasses in it as objects."""
    print(harmless_json(json.dumps(found, ensure_ascii=False, default=plain)))
    return OK


def print_harmless(what: object, file: TextIO | None = None) -> None:
    """Prints lines to stdout, or to another stream, without characters that a terminal or a CI service acts on.

    A closed pipe (``kipcheck run | head``) is no error: the exit code of the command stays the same.
    """
    text = harmless(str(what))
    try:
        print(text, end="" if text.endswith("\n") or not text else "\n", file=file, flush=True)
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, (file or sys.stdout).fileno())  # so that the flush at the end does not complain
        os.close(nowhere)


def print_table(head: Sequence[str], rows: Iterable[Sequence[str]], right: Collection[int] = ()) -> None:
    """Prints columns: on a terminal their cells wrap, elsewhere each row is a line. ``right``: columns of numbers."""
    cells = [[harmless_line(cell) for cell in row] for row in rows]
    if is_terminal(sys.stdout):
        from kipcheck.reports.styled import table

        print(table(head, cells, right, shutil.get_terminal_size().columns), end="", flush=True)
        return
    lines = [[*head], *cells] if any(head) else cells
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = (
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        print_harmless("  ".join(padded).rstrip())


def is_terminal(stream: TextIO) -> bool:
    """Whether the stream is a terminal that can move the cursor and show colours."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def complain(what: object, code: int) -> int:
    """Prints one line to stderr and returns the code."""
    print(harmless_line(f"kipcheck: {what}"), file=sys.stderr)
    return code
