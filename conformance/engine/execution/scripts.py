"""Reads the scripts of ``run --script``: conversations that a user writes in the shorthand of a machine."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from kipcheck.conformance.core.files.unreadable_file import unreadable
from kipcheck.conformance.core.operations.declaration import Operations
from kipcheck.conformance.core.operations.requests import Requests
from kipcheck.conformance.core.values.case import Case, Step
from kipcheck.conformance.core.values.edition import edition as edition_of
from kipcheck.conformance.protocols import registry
from kipcheck.conformance.protocols.checks import CHECKS, Check
from kipcheck.conformance.protocols.declare.check import Impossible, Sample
from kipcheck.conformance.protocols.playables import PLAYABLES

COMMENT: Final = "#"
Place: TypeAlias = tuple[Check[Any], Any]
"""A check, and a subject of its family."""


class Script(NamedTuple):
    """A script as a machine reads it: its case, or why there is none."""

    case: Case | None
    step: int
    """The step that cannot be read or played, from 0 on; the number of steps if there is none."""
    why: str = ""


def given(text: str) -> tuple[str, ...]:
    """The scripts of ``--script``: the text, or the content of the file of this name, with a script in each line.

    A line that ends with a semicolon continues in the next one; empty lines, and lines that begin with ``#``, are left
    out. Errors: ValueError, which names the file and says what to do.
    """
    path = Path(text)
    try:
        is_file = path.is_file()
    except (OSError, ValueError):  # a text that is too long for a name
        is_file = False
    if is_file:
        try:
            found = path.read_text("utf-8")
        except OSError as wrong:
            raise ValueError(unreadable(wrong, path)) from None
        except UnicodeDecodeError:
            raise ValueError(f"{path} cannot be read: it is not UTF-8") from None
        if found.lstrip().startswith("{"):
            raise ValueError(f"{path} has no scripts: it begins as JSON; a failure file is run with kipcheck replay")
        lines = [line.strip() for line in found.splitlines()]
        kept = [line if line.endswith(";") else f"{line}\n" for line in lines if line and not line.startswith(COMMENT)]
        scripts = tuple(each.strip("; ") for each in " ".join(kept).split("\n") if each.strip("; "))
        if not scripts:
            raise ValueError(f"{path} has no scripts: write one in each line, such as: rebalance; restart; stop")
        return scripts
    if not text.strip("; "):
        raise ValueError("the script has no steps: write them with semicolons between them, such as: rebalance; stop")
    if len(text.split()) == 1 and ";" not in text and ("/" in text or path.suffix):
        raise ValueError(unreadable(FileNotFoundError(), path))
    return (text,)


def sample(check: str, edition: str, machine: str, text: str) -> Sample:
    """The script as a case of a check. Errors: ValueError if the machine cannot play it."""
    found = read(check, edition, machine, text)
    if found.case is None:
        raise ValueError(found.why)
    return Sample(found.case, found.case.data, 0, "")


@lru_cache(256)
def read(check: str, edition: str, machine: str, text: str) -> Script:
    """How a machine reads a script. ``check``: one of its checks."""
    made = CHECKS[check]
    parse = _parser(machine, edition)
    if parse is None:
        return Script(None, -1, f"{machine} has no shorthand")
    texts = [" ".join(each.split()) for each in text.split(";") if each.strip()]
    steps: list[Step] = []
    for at, each in enumerate(texts):
        try:
            steps += parse(each)
        except (ValueError, LookupError, TypeError) as wrong:
            return Script(None, at, f"step {at + 1}, {each!r}, cannot be read: {_why_unread(machine, each, wrong)}")
    case = Case(check, edition, made.role, made.family.finished(tuple(steps)))
    fault = next((each for each in _unplayable(made, case) if not each.idle), None)
    if fault is not None:
        named = repr(texts[fault.step]) if fault.step < len(texts) == len(steps) else case.steps[fault.step].verb
        return Script(None, fault.step, f"step {fault.step + 1}, {named}, cannot be played: {fault.why}")
    return Script(case, len(texts))


def shorthand(machine: str, steps: Sequence[Step]) -> str:
    """The steps as the machine reads them again; empty: it has no shorthand, or no word for a step."""
    operations = _operations(machine)
    try:
        text = "" if operations is None else operations.shorthand(steps)
        return text if operations is not None and operations.parse_shorthand(text) == tuple(steps) else ""
    except (LookupError, TypeError, ValueError):
        return ""


def text_of(machine: str, steps: Sequence[Step]) -> str:
    """The steps in shorthand, or their verbs."""
    return shorthand(machine, steps) or "; ".join(step.verb for step in steps)


def suits(check: Check[Any], subject: Any, text: str) -> bool:
    """Whether the subject is a machine that can play the script."""
    return read(check.id, subject.edition, subject.name, text).case is not None


def why_unsuited(target: str, asked: Sequence[Place], text: str) -> str:
    """Why no machine of a target plays a script: what the machine says that reads the most of it."""
    scripts = {subject.name: read(check.id, subject.edition, subject.name, text) for check, subject in asked}
    readable = {name: script for name, script in scripts.items() if script.step >= 0}
    if not readable:
        return f"--script: {target} plays no machine of the selected checks, so it can be given no script"
    name, furthest = max(readable.items(), key=lambda item: item[1].step)
    others = [each for each in readable if each != name]
    more = f" (as a script of {name}; others that {target} plays: {', '.join(others)})" if others else ""
    return f"--script: {furthest.why}{more}"


def _parser(machine: str, edition: str) -> Callable[[str], Iterable[Step]] | None:
    """How a machine reads its shorthand in an edition; None: it has none, such as a message or an assignor."""
    model, operations = PLAYABLES.get(machine), _operations(machine)
    if model is not None and model.conversation is not None and model.editions(edition_of(edition)) is None:
        return model.conversation(edition_of(edition)).spoken
    return None if operations is None else operations.parse_shorthand


def _operations(machine: str) -> Operations[Any, Any] | None:
    return next((each for each in registry.operations().values() if machine in each.machines), None)


def _why_unread(machine: str, text: str, wrong: Exception) -> str:
    """What to write in place of a step."""
    operations = _operations(machine)
    if operations is None or isinstance(operations, Requests):  # these name one form, or the words alone
        return str(next(iter(wrong.args), wrong))
    return operations.usage_of(text)


def _unplayable(check: Check[Any], case: Case) -> Iterator[Impossible]:
    family = check.family
    return family.impossible(case, ()) if family.unplayable is None else family.unplayable(case)
