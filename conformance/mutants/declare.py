"""What a planted defect is, and the list of them."""

from collections.abc import Callable
from dataclasses import dataclass
from types import EllipsisType
from typing import Any, Final, TypeAlias, TypeVar

from kipcheck.conformance.targets.protocol import Adapter

Least: TypeAlias = "str | dict[str, Any] | EllipsisType"


@dataclass(frozen=True, slots=True)
class Vice:
    """A planted defect, and what has to come of it."""

    made: Callable[[], Adapter]
    sentence: str
    check: str
    invariant: str
    subject: str
    """A message, assignor or machine that shows it."""
    version: int | None
    """Of a message."""
    least: Least
    deadly: bool = False
    """It brings its process down, so it may only be held in a child."""
    remembers: bool = False
    """Only a process of its own, begun afresh, shows it again."""
    edition: str = ""
    """In which it shows; nothing: the first that has the subject."""


VICES: Final[dict[str, Vice]] = {}
"""By name; whole once ``kipcheck.conformance.mutants`` is imported."""
Made = TypeVar("Made", bound=type[Adapter])


def vice(
    check: str,
    invariant: str,
    subject: str,
    version: int | None,
    least: Least,
    deadly: bool = False,
    remembers: bool = False,
    edition: str = "",
) -> Callable[[Made], Made]:
    """Plants a class of adapters: its name becomes the name of the vice, its docstring the sentence."""

    def plant(made: Made) -> Made:
        name = "".join(f"-{each.lower()}" if each.isupper() else each for each in made.__name__).lstrip("-")
        if name in VICES:
            raise ValueError(f"two vices are called {name!r}")
        made.name = f"miniature/{name}"
        sentence = (made.__doc__ or "").strip()
        VICES[name] = Vice(made, sentence, check, invariant, subject, version, least, deadly, remembers, edition)
        return made

    return plant
