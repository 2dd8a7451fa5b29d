"""Declares mutants: adapters with one planted defect, and the check that has to find it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import EllipsisType
from typing import Any, ClassVar, Final, TypeAlias, TypeVar

from kipcheck.conformance.core.operations.declaration import Operations
from kipcheck.conformance.protocols.declare.machine_adapter import adapter_of
from kipcheck.conformance.targets.protocol import Adapter, Claims

Least: TypeAlias = "str | dict[str, Any] | EllipsisType"


@dataclass(frozen=True, slots=True)
class Mutant:
    """A mutant, and how it has to be found."""

    made: Callable[[], Adapter]
    sentence: str
    check: str
    invariant: str
    subject: str
    """The message, assignor or machine that shows the defect."""
    version: int | None
    """The version of a message; None for other subjects."""
    least: Least
    deadly: bool = False
    """It ends or hangs its process, so it is run only in a child process."""
    remembers: bool = False
    """It keeps state, so only a new process reproduces the failure."""
    edition: str = ""
    """The edition that shows the defect; empty: the first one that has the subject."""


MUTANTS: Final[dict[str, Mutant]] = {}
"""All mutants by name; complete once ``kipcheck.conformance.protocols.mutants`` is imported."""
Made = TypeVar("Made", bound=type[Adapter])


def mutant_name(made: type) -> str:
    """The name of a class in kebab case."""
    return "".join(f"-{each.lower()}" if each.isupper() else each for each in made.__name__).lstrip("-")


def mutant(
    check: str,
    invariant: str,
    subject: str,
    version: int | None,
    least: Least,
    deadly: bool = False,
    remembers: bool = False,
    edition: str = "",
) -> Callable[[Made], Made]:
    """Registers a class of adapters as a mutant: its id is the class name in kebab case, its sentence the docstring."""

    def declare(made: Made) -> Made:
        name = mutant_name(made)
        if name in MUTANTS:
            raise ValueError(f"the mutant id {name!r} is used twice")
        made.name = f"miniature/{name}"
        sentence = (made.__doc__ or "").strip()
        MUTANTS[name] = Mutant(made, sentence, check, invariant, subject, version, least, deadly, remembers, edition)
        return made

    return declare


def mutants_of(check: str, machine: str, edition: str = "") -> Callable[[str, Least], Callable[[Made], Made]]:
    """Registers mutants of a machine for one check, by the name of the invariant in the family of the check."""
    family = check.partition("/")[0]
    return lambda invariant, least: mutant(check, f"{family}/{invariant}", machine, None, least, edition=edition)


class MachineMutant:
    """An adapter of the machine that it is: a mutant inherits from this and from the reference machine."""

    operations: ClassVar[Operations[Any, Any]]
    name = ""
    version = "0"
    issues = ""

    def __init__(self) -> None:
        machine: Any = self
        self._player = adapter_of(self.operations, machine)

    def claims(self) -> Claims:
        return Claims(machines=(self.operations.machine,))

    def configure(self, edition: str, /) -> str | None:
        return None

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        return self._player.answer(op)
