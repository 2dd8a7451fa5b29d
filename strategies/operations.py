"""The steps that are drawn by default, derived from operations (``core/operations/declaration.py``)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from kipcheck.conformance.core.operations.declaration import Form, Operation, declared
from kipcheck.conformance.core.operations.field_annotations import Field
from kipcheck.strategies.events import event
from kipcheck.strategies.nodes import Flag, Integer, Node, OneOf, Pick, Record, Row, Seq, Text


def nodes(*operations: type | Operation, drawn: Mapping[str, Node] = MappingProxyType({})) -> dict[str, Node]:
    """Verb -> the steps that are drawn, the simplest operation first. ``drawn``: fields that are drawn otherwise."""
    every = (each if isinstance(each, Operation) else declared(each) for each in operations)
    return {each.verb: event(each.actor, each.verb, body(each, drawn)) for each in every}


def body(operation: Operation, drawn: Mapping[str, Node] = MappingProxyType({})) -> Node:
    """The fields: an alternative for each form of the shorthand that leaves out other fields that may be null."""
    forms = tuple(_form(operation, each, drawn) for each in operation.shorthand)
    return forms[0] if len(forms) == 1 else OneOf(forms)


def _form(operation: Operation, form: Form, drawn: Mapping[str, Node]) -> Record:
    """In one form a field is null if the form does not name it, and may be null if it is optional there."""
    needed = tuple(
        (each.name, drawn.get(each.name) or _node(each, form)) for each in operation.fields if not each.optional
    )
    return Record(needed, tuple((each.name, field_node(each)) for each in operation.fields if each.optional))


def _node(field: Field, form: Form) -> Node:
    if field.name not in form.fields:
        return Pick((field.absent,))
    return field_node(field)


def field_node(field: Field) -> Node:
    """The typical values; without any: every flag, choice, list of choices, or short texts.

    Errors: TypeError for a field with none of them.
    """
    match field.typical:
        case (range() as values,):
            return Integer(values[0], values[-1])
        case ():
            return _any(field)
    if not any(isinstance(each, tuple) for each in field.typical):
        return Pick(field.typical)
    return OneOf(tuple(_constant(each) for each in field.typical))


def _constant(value: Any) -> Node:
    return Row(tuple(map(_constant, value))) if isinstance(value, tuple) else Pick((value,))


def _any(field: Field) -> Node:
    if field.kind.schema.get("type") == "boolean":
        return Flag()
    if "enum" in field.kind.schema:
        return Pick(tuple(field.kind.schema["enum"]))
    if field.size is not None:
        return Seq(Pick(tuple(field.kind.schema["items"]["enum"])), field.size.least, field.size.most)
    if field.kind.schema.get("type") == "string":
        return Text()
    raise TypeError(f"the field {field.name} has no typical values")
