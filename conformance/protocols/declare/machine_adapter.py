"""Makes adapters of machines whose operations are declared."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from kipcheck.conformance.core.files.releases_table import since
from kipcheck.conformance.core.operations.declaration import Operations
from kipcheck.conformance.core.values.edition import Edition, edition
from kipcheck.conformance.core.values.machine import Driven
from kipcheck.conformance.core.values.release import NEWEST
from kipcheck.conformance.protocols.declare.package import released_since
from kipcheck.conformance.targets.machine_target import MachineAdapter

Made = TypeVar("Made", bound=Driven[Any, Any, Any])


def adapter_of(operations: Operations[Any, Any], machine: Driven[Any, Any, Any]) -> MachineAdapter[Any, Any, Any]:
    """A machine as an adapter of its operations."""
    return MachineAdapter(machine, operations.verbs, operations.event_of, operations.answer_of)


@dataclass(frozen=True, slots=True)
class ReleasedMachine(Generic[Made]):
    """A machine that all releases have from one on."""

    operations: Operations[Any, Any]
    behaviour: str
    """In ``releases.toml``: the first release that has it."""
    of_release: Callable[[str], Made]
    owed: Callable[[], Made] | None = None
    """The machine where no exact release is asked for; None: that of the newest release."""

    def of(self, edition: Edition) -> Made:
        """As an exact release has it, or as it is owed."""
        if self.owed is not None and not edition.exact:
            return self.owed()
        return self.of_release(edition.release if edition.exact else NEWEST)

    def adapter(self, edition: Edition) -> MachineAdapter[Any, Any, Any] | None:
        """None in editions that do not have the machine."""
        return adapter_of(self.operations, self.of(edition)) if self._is_in(edition) else None

    def editions(self, name: str) -> tuple[str, ...]:
        """The editions in which a run of an edition checks the machine."""
        return (str(edition(name)),) if self._is_in(edition(name)) else ()

    def others(self, edition: Edition) -> str | None:
        """None for an edition that has the machine; for another one, the editions that do."""
        return None if self._is_in(edition) else f"apache@{since(self.behaviour)} or later"

    def _is_in(self, edition: Edition) -> bool:
        return released_since(since(self.behaviour))(edition)
