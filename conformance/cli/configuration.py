"""Reads ``kipcheck.toml``, or ``[tool.kipcheck]`` of ``pyproject.toml``: values of options that are not given."""

import argparse
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kipcheck.conformance.cli.options import OK, Absent, complain, duration, edition_name, positive, target_name
from kipcheck.conformance.core.files.unreadable_file import unreadable
from kipcheck.conformance.core.values.nearest import hint

NAME: Final = "kipcheck.toml"
SHARED: Final = "pyproject.toml"
TABLE: Final = "tool.kipcheck"
DEFAULT: Final = "default"
"""Stands for the lists shipped with kipcheck: no path."""


class InvalidConfiguration(ValueError):
    """``troubles``: lines that begin with path and line number."""

    def __init__(self, troubles: list[str]) -> None:
        super().__init__("; ".join(troubles))
        self.troubles = tuple(troubles)


@dataclass(frozen=True, slots=True)
class Key:
    option: str
    """The option of ``kipcheck run`` that it replaces, without hyphens."""
    form: type
    """list (of strings; one string is a list of one), str or int."""
    default: str
    """As ``kipcheck config`` prints it."""
    convert: Callable[[str], Any] = str


KEYS: Final[Mapping[str, Key]] = {
    "targets": Key("target", list, "kafka-python", target_name),
    "names": Key("name", list, "the targets' own"),
    "edition": Key("edition", str, "apache", edition_name),
    "checks": Key("check", list, "all"),
    "messages": Key("message", list, "all"),
    "known": Key("known", list, "no list"),
    "require": Key("require", list, "none"),
    "profile": Key("profile", list, "none"),
    "cases": Key("cases", int, "each check's own", positive),
    "budget": Key("budget", str, "no limit", duration),
    "seed": Key("seed", int, "0", int),
    "out": Key("out", str, "kipcheck-out", Path),
}
FORMS: Final[Mapping[type, str]] = {list: "a string or a list of strings", str: "a string", int: "an integer"}
ALL: Final[Mapping[str, str]] = {name: key.option for name, key in KEYS.items()}
"""Key -> option, of a command that reads all keys."""


@dataclass(frozen=True, slots=True)
class Configuration:
    path: Path
    values: Mapping[str, Any]
    """Key -> a list of strings, a string or an integer. Paths are relative to the working folder."""
    lines: Mapping[str, int]
    """Key -> its line in the file."""


def found(folder: Path | None = None) -> Configuration | None:
    """The configuration of the working folder, or of the nearest folder above it that has one.

    The search ends at the top of a git repository. Errors: ``InvalidConfiguration``.
    """
    try:
        start = (folder or Path.cwd()).resolve()
        for place in (start, *start.parents):
            for path in (place / NAME, place / SHARED):
                if path.is_file() and (made := _read(path, place != start)) is not None:
                    return made
            if (place / ".git").exists():
                return None
    except OSError:  # the working folder was deleted, or one above it cannot be searched
        pass
    return None


def _read(path: Path, above: bool) -> Configuration | None:
    """None: a ``pyproject.toml`` that does not mention kipcheck."""
    import tomllib

    shared = path.name == SHARED
    try:
        text = path.read_text("utf-8")
        if shared and "kipcheck" not in text:
            return None
        listed: Any = tomllib.loads(text)
    except OSError as error:
        raise InvalidConfiguration([unreadable(error, path)]) from None
    except UnicodeDecodeError:
        raise InvalidConfiguration([f"{path}:1: is not UTF-8"]) from None
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        raise InvalidConfiguration([f"{path}:{line[1] if line else 1}: not valid TOML: {error}"]) from None
    if shared:
        tools = listed.get("tool")
        listed = tools.get("kipcheck") if isinstance(tools, dict) else None
        if listed is None:
            return None
        if not isinstance(listed, dict):
            raise InvalidConfiguration([f"{path}:1: {TABLE} must be a table, got {listed!r}"])
    if above and path.stat().st_uid not in (os.getuid(), 0):
        why = "it belongs to another user, and its targets would be started: copy it, or change to its folder"
        raise InvalidConfiguration([f"{path}: {why}"])
    lines = _lines(text, shared)
    troubles = [f"{path}:{lines.get(key, 1)}: {why}" for key, value in listed.items() if (why := _wrong(key, value))]
    if troubles:
        raise InvalidConfiguration(troubles)
    return Configuration(path, {key: _value(key, listed[key], path.parent) for key in KEYS if key in listed}, lines)


def _lines(text: str, shared: bool) -> dict[str, int]:
    """Key -> the first line that it begins, in the table of kipcheck."""
    lines: dict[str, int] = {}
    inside = not shared
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[([^\[\]]+)\]", line):
            inside = inside if not shared else header[1].strip().startswith(TABLE)
        if inside and (key := re.match(rf"\s*\[?\s*(?:{re.escape(TABLE)}\.)?[\"']?([\w-]+)[\"']?\s*[\]=.]", line)):
            lines.setdefault(key[1], number)
    return lines


def _wrong(key: str, value: Any) -> str:
    if key not in KEYS:
        return f"unknown key {key!r}{hint(key, KEYS)}: use {', '.join(KEYS)}"
    known = KEYS[key]
    strings = type(value) is list and all(isinstance(each, str) for each in value)
    if known.form is list and (strings or type(value) is str):
        return "" if value else f"{key} is empty: remove it, or give it a value"
    if type(value) is not known.form or known.form is list:  # bool is a subclass of int
        return f"{key} must be {FORMS[known.form]}, got {value!r}"
    try:
        known.convert(str(value))
    except (argparse.ArgumentTypeError, ValueError) as why:
        return f"{key}: {why}"
    return ""


def _value(key: str, value: Any, folder: Path) -> Any:
    if KEYS[key].form is list:
        return [_from(key, each, folder) for each in ([value] if isinstance(value, str) else value)]
    return _from(key, value, folder) if isinstance(value, str) else value


def _from(key: str, text: str, folder: Path) -> str:
    """The text with the path in it relative to the working folder, and not to that of the file."""
    here = Path.cwd().resolve()
    if folder == here:
        return text
    if key == "targets" and (command := re.match(r"((?:cmd|client):)(\.\.?/\S+)(.*)", text, re.DOTALL)):
        return f"{command[1]}{_moved(command[2], folder, here)}{command[3]}"
    if key == "edition" and text.startswith("jar:"):
        return f"jar:{_moved(text.removeprefix('jar:'), folder, here)}"
    is_path = key == "out" or (key == "known" and text != DEFAULT) or (
        key == "profile" and ("/" in text or text.endswith(".toml"))
    )  # fmt: skip
    return _moved(text, folder, here) if is_path else text


def _moved(path: str, folder: Path, here: Path) -> str:
    if Path(path).is_absolute():
        return path
    moved = os.path.relpath(folder / path, here)
    return moved if moved.startswith("..") else f"./{moved}"


# ---- options that are not given


def complete(options: argparse.Namespace) -> None:
    """Gives each option that was not given its value in the file, or its default.

    ``options.configured``: key -> option. Errors: ``InvalidConfiguration``.
    """
    configured: Mapping[str, str] = options.configured
    made = found() if configured and not getattr(options, "resume", None) else None
    # A list of names belongs to the targets beside it.
    alone = made is not None and "target" in vars(options) and options.target is not None
    for key, option in configured.items():
        value = getattr(options, option, None)
        if value not in (None, []) and not isinstance(value, Absent):
            continue
        default = value.default if isinstance(value, Absent) else None
        given = None if made is None or (key == "names" and alone) else made.values.get(key)
        if given is not None and key == option == "known":
            given = list(_existing(given)) or None
        if given is not None:
            convert = KEYS[key].convert
            given = [convert(each) for each in given] if isinstance(given, list) else convert(str(given))
        setattr(options, option, default if given is None else given)


def _existing(names: list[str]) -> Iterator[str]:
    """The lists that exist: a project has none before its first run."""
    for each in names:
        if each == DEFAULT or Path(each).exists():
            yield each
        else:
            why = "no deviation is known; after a run, kipcheck known update creates it"
            complain(f"there is no list {each} yet: {why}", OK)
