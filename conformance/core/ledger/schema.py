"""Generates ``reports/ledger.schema.json`` and the parts that it shares with ``reports/results.schema.json``.

Types and required keys come from the annotations of the records, descriptions from their docstrings. Both files are
written by ``python -m kipcheck.conformance.core.ledger.schema``.
"""

import ast
import inspect
import json
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import NoneType
from typing import Any, Final, get_args

from kipcheck.conformance.core.ledger.failure import Exhibit, Failure, FirstFound, KnownEntry
from kipcheck.conformance.core.ledger.header import Campaign, Header, MergedFrom, PartOf
from kipcheck.conformance.core.ledger.lines import (
    TYPES,
    Cause,
    Difference,
    Flaky,
    HeldBack,
    Inconclusive,
    PlayedCells,
    Round,
    Skip,
    Stale,
    Target,
    Trouble,
)
from kipcheck.conformance.core.ledger.record import Json, Record, keys_of
from kipcheck.conformance.core.operations.field_kinds import kind_of

LEDGER: Final = "ledger.schema.json"
RESULTS: Final = "results.schema.json"
SHARED: Final[Mapping[type[Record], str]] = {KnownEntry: "entry", Campaign: "campaign", FirstFound: "met"}
"""Records with a definition of their own, besides the lines and exhibits."""
EXHIBIT: Final = "exhibit"
ABOUT: Final = (
    "One JSON object a line, in the order of the run: header, then for each target target, for each check begin, "
    "verdict ..., check; then failure, cause, stale and flaky; at the end difference and footer. --events writes the "
    "same lines without the verdicts. The ledger of a campaign is written anew after every round: header, tally ..., "
    "then for each target target, flaky, failure, stale, then round ... and footer. A reader must ignore unknown types."
)


def ledger_schema() -> Json:
    """The schema of a line of the ledger."""
    types = [_type(each) for each in TYPES]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of kipcheck's ledger.jsonl",
        "description": ABOUT,
        "oneOf": [{"$ref": f"#/$defs/{each}"} for each in types],
        "$defs": {
            **{_type(each): _record(each, {"type": {"const": _type(each)}}) for each in TYPES},
            EXHIBIT: _exhibit(),
            **{name: _record(kind) for kind, name in SHARED.items()},
        },
    }


def with_lines(results: Json) -> Json:
    """The schema of ``results.json`` with the parts that are lines of the ledger without their type."""
    defs = {**results["$defs"]}
    defs |= {_type(Failure): _record(Failure), _type(Round): _record(Round)}
    defs |= {EXHIBIT: _exhibit(), **{name: _record(kind) for kind, name in SHARED.items()}}
    properties = {**results["properties"]}
    listed = {
        "targets": Target,
        "causes": Cause,
        "differences": Difference,
        "skips": Skip,
        "inconclusive": Inconclusive,
        "held_back": HeldBack,
        "troubles": Trouble,
        "stale": Stale,
        "cells": PlayedCells,
    }
    for key, kind in {**listed, "flaky": Flaky}.items():
        properties[key] = {"type": "array", "items": _record(kind)}
    properties["part"] = _of(PartOf | None)
    properties["merged"] = _of(tuple[MergedFrom, ...] | None)
    return {**results, "properties": properties, "$defs": defs}


def dumped(schema: Json) -> str:
    """The text of a schema file."""
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


# ---- records


def _record(kind: type[Record], first: Mapping[str, Json] | None = None) -> Json:
    """``first``: properties that are not fields."""
    keys = [each for each in keys_of(kind).values() if each.declared]
    told, notes = _docs()[kind.__name__]
    nullable = {each.name for each in kind.__dataclass_fields__.values() if "nullable" in each.metadata}
    properties: Json = {**(first or {})}
    for each in keys:
        required = each.required
        found = _of(each.hint if required else _present(each.hint, each.name in nullable))
        properties[each.key] = _described(found, notes.get(each.name))
    made: Json = {
        "description": told,
        "type": "object",
        "properties": properties,
        "required": [*(first or {}), *(each.key for each in keys if each.required)],
    }
    return made | {"additionalProperties": False} if kind.closed else made


def _present(hint: Any, nullable: bool) -> Any:
    """The type of an optional key where it is there: null is written only if it means something."""
    if nullable or NoneType not in get_args(hint):
        return hint
    return next(each for each in get_args(hint) if each is not NoneType)


def _exhibit() -> Json:
    return {"description": "Evidence that a report shows.", "oneOf": [_record(each) for each in get_args(Exhibit)]}


def _type(kind: type[Record]) -> str:
    found: str = getattr(kind, "TYPE")  # noqa: B009 - each line has one, and Record has none
    return found


# ---- types


def _of(hint: Any) -> Json:
    return _whole(kind_of(hint).schema)


def _whole(found: Mapping[str, Any]) -> Json:
    """The schema of a kind, with those of records in their places."""
    inside = {key: _whole(found[key]) for key in ("items", "additionalProperties") if isinstance(found.get(key), dict)}
    match {**found, **inside}:
        case {"record": kind, **others}:
            return {**({"$ref": f"#/$defs/{SHARED[kind]}"} if kind in SHARED else _record(kind)), **others}
        case {"anyOf": [value, null]}:
            made = _whole(value)
            return {**made, "type": [made["type"], "null"]} if "type" in made else {"anyOf": [made, null]}
        case {"prefixItems": [first, *_] as items, **others}:  # they are equal
            made = {"items": _whole(first), "minItems": len(items), "maxItems": len(items)}
            return {key: each for key, each in {**others, **made}.items()}
        case made:
            return made


# ---- descriptions


def _described(found: Json, text: str | None) -> Json:
    return found if text is None else {"description": text, **{k: v for k, v in found.items() if k != "description"}}


@cache
def _docs() -> Mapping[str, tuple[str, Mapping[str, str]]]:
    """Class -> its docstring and those of its fields, each in one line."""
    found: dict[str, tuple[str, Mapping[str, str]]] = {}
    for module in (Failure.__module__, Header.__module__, Target.__module__):
        for each in ast.parse(inspect.getsource(sys.modules[module])).body:
            if isinstance(each, ast.ClassDef):
                found[each.name] = _one_line(ast.get_docstring(each) or ""), dict(_fields(each))
    return found


def _fields(kind: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, text in zip(kind.body, kind.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
        ):
            yield field.target.id, _one_line(str(text.value.value))


def _one_line(text: str) -> str:
    return " ".join(text.replace("``", "").split())


def main() -> None:
    """Writes both files."""
    folder = Path(str(files("kipcheck.reports")))
    (folder / LEDGER).write_text(dumped(ledger_schema()), "utf-8")
    results = json.loads((folder / RESULTS).read_text("utf-8"))
    (folder / RESULTS).write_text(dumped(with_lines(results)), "utf-8")


if __name__ == "__main__":
    main()
