"""Writes what declared operations say into the published files: ``python -m kipcheck.conformance.protocols.publish``.

The files are the two JSON schemas, in which each derived part is one line, and the table of operations in
``docs/testee.md``. In the schema of cases the verbs of a role are derived as well. With ``--check`` it writes nothing,
and exits with 1 if a file differs.
"""

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from kipcheck.conformance.core.operations.declaration import Operation, Operations
from kipcheck.conformance.protocols import registry

ROOT: Final = Path(str(files("kipcheck.conformance")))
DEFINITION: Final = r'"\w+": {.*},$'
"""A definition in one line of a schema, which is not the last one."""
MACHINES: Final = '"description": "features, '
"""The line of the schema that lists all machines, of which this one is the first."""
OF_A_ROLE: Final = r'{ "if": { "properties": { "role": { "const": .*,$'
"""A line of the schema of cases: the verbs of a role."""
OF_MACHINES: Final = r"\| [a-z-]+, `"
"""The row of a machine in the table."""
Lines = list[str]


def published() -> Mapping[Path, str]:
    """Each file with its text as it has to be. Errors: ValueError for a file without a place for a derived line."""
    every = [*registry.operations().values()]
    found: Mapping[Path, Callable[[Operations[Any, Any], Lines], Lines]] = {
        ROOT / "targets" / "testee.schema.json": _testee_schema,
        ROOT / "core" / "case.schema.json": _case_schema,
        ROOT / "docs" / "testee.md": _table,
    }
    texts = {}
    for path, put in found.items():
        lines = path.read_text("utf-8").splitlines()
        for each in every:
            lines = put(each, lines)
        if put is _case_schema:
            lines = _put(lines, 8, _roles(every), OF_A_ROLE)
        texts[path] = "\n".join(lines) + "\n"
    return texts


def definition_name(text: str) -> str:
    """``broker-up`` -> ``brokerUp``."""
    first, *others = text.split("-")
    return first + "".join(map(str.capitalize, others))


def definition(operations: Operations[Any, Any], operation: Operation) -> dict[str, Any]:
    """The definition of an operation in the schema of the testee protocol."""
    answer = operations.answer_keys(operation)
    accepted = f" Accepted with {' and '.join(answer)}." if answer else ""
    machines = f"machine{'s' if len(operations.machines) > 1 else ''} {' and '.join(operations.machines)}"
    about = f"Role {operations.role.value}, {machines}: {operation.meaning}.{accepted}"
    return {"description": f"{about} {operation.details}".strip(), **operation.schema}


def _testee_schema(operations: Operations[Any, Any], lines: Lines) -> Lines:
    names = {each.verb: definition_name(each.verb) for each in operations.declared if each.fields}
    conditions = [(_condition("op", verb), f'{{ "$ref": "#/$defs/{name}" }} }},') for verb, name in names.items()]
    definitions = [
        (f'"{name}": ', f"{_compact(definition(operations, operations.by_verb[verb]))},")
        for verb, name in names.items()
    ]
    conditioned = _put(lines, 8, conditions, r'{ "if": { "properties": { "op": { "const": .*,$')
    return _put(_put(conditioned, 4, definitions, DEFINITION), 12, [(MACHINES, _machines())], MACHINES)


def _case_schema(operations: Operations[Any, Any], lines: Lines) -> Lines:
    bodies = []
    for each in operations.declared:
        if each.fields:
            name = definition_name(each.verb)
            body = {"properties": {"body": {"$ref": f"urn:kipcheck:testee:1#/$defs/{name}"}}}
            bodies.append((_condition("verb", each.verb), f"{_compact(body)} }},"))
    verbs = _compact({"enum": [*operations.verbs]})
    bodied = _put(lines, 8, bodies, r'{ "if": { "properties": { "verb": { "const": .*,$')
    return _put(bodied, 4, [(f'"{definition_name(operations.machine)}Verbs": ', f"{verbs},")], DEFINITION)


def _roles(every: Iterable[Operations[Any, Any]]) -> list[tuple[str, str]]:
    """For each role of a machine the verbs that its cases have."""
    names: dict[str, list[str]] = {}
    for each in every:
        names.setdefault(each.role.value, []).append(definition_name(each.machine))
    lists = {role: [{"$ref": f"#/$defs/{each}Verbs"} for each in sorted(of)] for role, of in names.items()}
    found = []
    for role, of in sorted(lists.items()):
        steps = {"items": {"properties": {"verb": {"anyOf": of}}}}
        found.append((_condition("role", role), f"{_compact({'properties': {'steps': steps}})} }},"))
    return found


def _condition(key: str, verb: str) -> str:
    return f'{{ "if": {{ "properties": {{ "{key}": {{ "const": "{verb}" }} }} }}, "then": '


def _put(lines: Lines, indent: int, derived: Iterable[tuple[str, str]], alike: str) -> Lines:
    """Replaces the lines with these beginnings, and adds those that are not there behind the one before them.

    ``alike``: the first one is added behind the last line that begins so, a regular expression.
    """
    lines, at = [*lines], None
    for beginning, end in derived:
        start = " " * indent + beginning
        place = next((number for number, line in enumerate(lines) if line.startswith(start)), None)
        if place is None:
            place = (_last(lines, " " * indent + alike) if at is None else at) + 1
            lines.insert(place, "")
        lines[place] = start + end
        at = place
    return lines


def _last(lines: Lines, beginning: str) -> int:
    """Errors: ValueError if no line begins so."""
    found = [number for number, line in enumerate(lines) if re.match(beginning, line)]
    if not found:
        raise ValueError(f"no line begins with {beginning!r}: put one where the derived lines have to stand")
    return found[-1]


def _machines() -> str:
    """The rest of the line that begins with ``MACHINES``."""
    return f'{", ".join(registry.machines()[1:])}.", "type": "array", "items": {{ "type": "string" }}'


def _compact(value: Any) -> str:
    """In one line, with spaces inside of braces, as the rest of the schemas."""
    match value:
        case dict():
            items = ", ".join(f"{json.dumps(key)}: {_compact(each)}" for key, each in value.items())
            return f"{{ {items} }}" if items else "{}"
        case list():
            return f"[{', '.join(map(_compact, value))}]"
    return json.dumps(value)


def _table(operations: Operations[Any, Any], lines: Lines) -> Lines:
    """The row of a machine: its operations. A new one follows the last."""
    first = f"| {operations.role.value}, {', '.join(f'`{each}`' for each in operations.machines)} | "
    return _put(lines, 0, [(first, f"{', '.join(f'`{each}`' for each in operations.verbs)} |")], OF_MACHINES)


def main(arguments: list[str]) -> int:
    changed = [(path, text) for path, text in published().items() if path.read_text("utf-8") != text]
    for path, text in changed:
        print(f"{path.relative_to(ROOT)}: {'differs' if '--check' in arguments else 'written'}")
        if "--check" not in arguments:
            path.write_text(text, "utf-8")
    return 1 if changed and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
