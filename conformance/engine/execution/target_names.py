"""The names under which the targets of a run stand in its results.

A target that is a command (``cmd:...``) has the name that it gives in hello, or that of ``--name``; a running broker
(``broker:...``) that of ``--name``, or its address. Ids of failures and lists of known deviations contain the name, and
stay the same in another folder, or with another address. ``--name NAME@VERSION`` gives its release too, which it may
not know itself.
"""

import re
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Final, NamedTuple

from kipcheck.conformance.core.values.untrusted_text import one_line
from kipcheck.conformance.engine.execution.selection import InvalidOptions, Options, Selection
from kipcheck.conformance.engine.execution.worker import Worker
from kipcheck.conformance.targets.command import is_command, may_be_named
from kipcheck.conformance.targets.protocol import Broken, Unavailable
from kipcheck.conformance.targets.session import LONGEST_NAME

GIVEN: Final = re.compile(r"(?P<name>.+)@(?P<version>v?\d[\w.+-]*)")


class Label(NamedTuple):
    """What ``--name`` says of a target."""

    name: str = ""
    """Empty: its own."""
    version: str = ""
    """Empty: the one that it states itself, or 0."""

    @classmethod
    def of(cls, text: str) -> "Label":
        found = GIVEN.fullmatch(text)
        return cls(text) if found is None else cls(**found.groupdict())

    def __str__(self) -> str:
        return f"{self.name}@{self.version}" if self.version else self.name


UNLABELED: Final = Label()


def labels_of(options: Options) -> dict[str, Label]:
    """By target, of those that ``--name`` names. Errors: ``InvalidOptions``."""
    nameable = [each for each in dict.fromkeys(options.targets) if may_be_named(each)]
    if len(options.names) > len(nameable):
        raise InvalidOptions(
            f"--name {options.names[len(nameable)]!r} is for no target: it names commands (cmd:...) and brokers "
            f"(broker:...), of which there are {len(nameable)}; other targets keep their names"
        )
    for name in options.names:
        if not name.strip() or name != one_line(name).strip() or len(name) > LONGEST_NAME:
            raise InvalidOptions(f"--name {name!r}: use 1 to {LONGEST_NAME} visible characters")
    return dict(zip(nameable, map(Label.of, options.names), strict=False))


def names_of(workers: Mapping[str, Worker], selection: Selection) -> dict[str, str]:
    """The name of each target, by what opens it: commands are started for it, and brokers that have a name are
    reached. A target that does not start keeps what opens it.

    Errors: ``InvalidOptions`` if two targets have one name.
    """
    names: dict[str, str] = {}
    with ExitStack() as stack:
        for opened, worker in workers.items():
            stack.callback(worker.close)
            names[opened] = _name(worker, selection) if is_command(opened) or worker.label else opened
        require_distinct(names)
        if len(workers) == 1:
            stack.pop_all()  # the run continues with its session
    return names


def require_distinct(names: Mapping[str, str]) -> None:
    """Errors: ``InvalidOptions`` if two targets have one name. ``names``: by what opens them."""
    first: dict[str, str] = {}
    for opened, name in names.items():
        if (other := first.setdefault(name, opened)) != opened:
            raise InvalidOptions(
                f"{other} and {opened} are both named {name!r}, so their results cannot be distinguished: "
                "give each cmd: and broker: target a --name, in the order of --target"
            )


def _name(worker: Worker, selection: Selection) -> str:
    try:
        return worker.info(str(selection.edition), selection.checks[0].role).name
    except (Unavailable, Broken):
        return worker.name  # the run reports why, when it comes to this target
