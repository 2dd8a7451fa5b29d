"""Reads ``data/broker_settings.json``: the settings of groups and offsets that the brokers of each release define.

``python -m kipcheck.golden.broker_settings`` makes the file from the definitions in the jars of brokers.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar, final

from kipcheck.conformance.core.files.releases_table import patches
from kipcheck.conformance.core.values.release import Release, releases, text_of

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

FILE: Final = "broker_settings.json"
Of: TypeAlias = Literal["broker", "group"]
"""Settings of brokers, or those of single groups, which IncrementalAlterConfigs changes (from 4.0 on)."""
Value: TypeAlias = int | bool | str | tuple[str, ...] | None
C = TypeVar("C", bound="DataclassInstance")
INTEGERS: Final = {"short": 2**15, "int": 2**31, "long": 2**63}
"""By type, the end of its positive values."""


@final
@dataclass(frozen=True, slots=True)
class Setting:
    """What some releases define of a setting."""

    releases: str
    """Written as in requirements.toml: 2.3.0+."""
    type: str
    """boolean, class, int, list, long, short or string."""
    default: Value
    least: int | None = None
    most: int | None = None
    """Bounds of the value; None: those of the type."""
    values: tuple[str, ...] = ()
    """The valid values, or elements of a list; empty: any, or what the broker checks in another way."""
    internal: bool = False
    """Not for users: no documentation has it."""

    def parse(self, text: str) -> Value:
        """The value of a text. Errors: ValueError with the valid form."""
        if self.type in INTEGERS:
            end = INTEGERS[self.type]
            least, most = (-end if self.least is None else self.least), (end - 1 if self.most is None else self.most)
            if not re.fullmatch("-?[0-9]{1,19}", text) or not least <= int(text) <= most:
                raise ValueError(f"use an integer from {least} to {most}")
            return int(text)
        if self.type == "boolean":
            if text not in ("true", "false"):
                raise ValueError("use true or false")
            return text == "true"
        parts = tuple(each.strip() for each in text.split(",")) if self.type == "list" else (text,)
        if self.values and not {*parts} <= {*self.values}:
            several = " or several of them, with commas" if self.type == "list" else ""
            raise ValueError(f"use one of {', '.join(self.values)}{several}")
        return parts if self.type == "list" else text


@cache
def table() -> Mapping[str, Any]:
    """The file as it is."""
    found: Mapping[str, Any] = json.loads((files("kipcheck.conformance.core") / "data" / FILE).read_text("utf-8"))
    return found


def rows(of: Of = "broker") -> Iterator[tuple[str, Setting]]:
    """All rows of the file, by names of settings."""
    for name, some in table()[of].items():
        for row in some:
            fields: dict[str, Any] = {key: tuple(each) if isinstance(each, list) else each for key, each in row.items()}
            yield name, Setting(**fields)


@cache
def settings(release: str, of: Of = "broker") -> Mapping[str, Setting]:
    """By name, those of a release that users may set. Errors: ValueError for an invalid release."""
    this = Release.parse(release)
    return {name: each for name, each in rows(of) if this in releases(each.releases) and not each.internal}


def defaults(release: str, of: Of = "broker") -> Mapping[str, Value]:
    """By name, the default of each setting that users may set. Errors: ValueError for an invalid release."""
    return {name: each.default for name, each in settings(release, of).items()}


def releases_with(name: str, of: Of = "broker") -> str:
    """The releases in which users may set this, such as 2.2.0+; empty: there is none."""
    return text_of([each for each in patches() if name in settings(each, of)])


def configured(config: C, fields: Mapping[str, str], values: Mapping[str, Value]) -> C:
    """A dataclass with the values of settings. ``fields``: by name of a setting, that of its field."""
    return replace(config, **{field: values[name] for name, field in fields.items() if name in values})
