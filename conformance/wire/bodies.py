"""Layouts and bodies of requests and answers whose classes name a message: ``core.operations.wire_form`` says how."""

from collections.abc import Mapping
from dataclasses import fields, make_dataclass
from functools import cache
from typing import Annotated, Any, Final, TypeAlias, TypeVar

from kipcheck.conformance.core.operations import wire_form
from kipcheck.conformance.core.operations.field_annotations import wire
from kipcheck.conformance.core.operations.wire_form import Context
from kipcheck.conformance.core.values.edition import APACHE, Edition
from kipcheck.conformance.wire import layout
from kipcheck.conformance.wire.schema import Layout, spec

T = TypeVar("T")
NO_CONTEXT: Final = Context()


def api_of(made: type) -> str:
    """For example ``JoinGroup``."""
    return wire_form.message_of(made).removesuffix("Request").removesuffix("Response")


def key_of(made: type) -> int:
    """The API key of a request or its answer."""
    key = spec(APACHE, wire_form.message_of(made)).api_key
    assert key is not None
    return key


def layout_of(made: type, version: int, edition: Edition = APACHE) -> Layout:
    """Errors: LookupError where the edition has no such version of the message."""
    return layout(edition, wire_form.message_of(made), version)


def body_of(value: Any, version: int, context: Context, edition: Edition = APACHE) -> dict[str, Any]:
    """Errors: ``Inexpressible``; LookupError."""
    return wire_form.write(value, layout_of(type(value), version, edition), context)


def read_body(
    made: type[T], version: int, body: Mapping[str, Any], context: Context, edition: Edition = APACHE,
    **others: Any,
) -> T:  # fmt: skip
    """Errors: ``Unfit``; LookupError."""
    return wire_form.read(made, layout_of(made, version, edition), body, context, **others)


Places: TypeAlias = str | tuple[str, ...]
Rows: TypeAlias = tuple[tuple[Any, ...], ...]


def values_in(
    name: str, version: int, body: Mapping[str, Any], *places: Places, context: Context = NO_CONTEXT,
    edition: Edition = APACHE,
) -> tuple[Any, ...]:  # fmt: skip
    """What the body of a message has at each place, without a class; at several places in a tuple, the rows of them.

    Errors: ``Unfit``; LookupError.
    """
    found = read_body(_class_of(name, places), version, body, context, edition)
    return tuple(getattr(found, field.name) for field in fields(found))


@cache
def _class_of(name: str, places: tuple[Places, ...]) -> type[Any]:
    columns = [
        (f"value{number}", Annotated[Any, wire(place)] if isinstance(place, str) else Annotated[Rows, wire(*place)])
        for number, place in enumerate(places)
    ]
    return wire_form.message(name)(make_dataclass(name, columns, frozen=True, slots=True))
