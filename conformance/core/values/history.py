"""What a target answered to the steps of a case."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, final

from kipcheck.conformance.core.values.case import Case, Step


@final
@dataclass(frozen=True, slots=True)
class Replied:
    payload: tuple[tuple[str, Any], ...]

    def __getitem__(self, key: str) -> Any:
        return dict(self.payload)[key]


@final
@dataclass(frozen=True, slots=True)
class Refused:
    error: str
    """The class, or the name of the protocol error."""
    why: str = ""
    """The target's error message."""
    offset: int | None = None
    at: str = field(default="", compare=False)
    """File and line of the innermost frame of the library, if the target reports it. It groups failures, and is a part
    of no shape and no id: lines move from release to release.
    """


@final
@dataclass(frozen=True, slots=True)
class Lost:
    """No answer: the step may or may not have taken effect."""

    reason: str


@final
@dataclass(frozen=True, slots=True)
class Unsupported:
    reason: str
    limit: str = ""
    """The limit that applies, if it is one of those that the target announced."""


@final
@dataclass(frozen=True, slots=True)
class Silent:
    """No answer, although all timers ran out: a parked request that was never answered."""


@final
@dataclass(frozen=True, slots=True)
class Died:
    """The target crashed, exceeded its limits, or broke the protocol."""

    cause: str
    """``crashed``, ``timeout``, ``memory`` or ``garbled``."""
    detail: str = ""
    evidence: str = ""
    """The end of its stderr."""
    at: str = field(default="", compare=False)
    """As ``Refused`` has it."""


Observation: TypeAlias = Replied | Refused | Lost | Unsupported | Silent | Died


@final
@dataclass(frozen=True, slots=True)
class Answer:
    """An observation, and the step it answers, which may be an earlier one than the step just sent."""

    to: int
    observation: Observation


@dataclass(frozen=True, slots=True)
class Op:
    index: int
    step: Step
    observation: Observation
    after: int | None = None
    """The number of steps that had been sent when the answer came; None if it never came."""


@dataclass(frozen=True, slots=True)
class History:
    case: Case
    target: str
    ops: tuple[Op, ...]

    @classmethod
    def of(cls, case: Case, target: str, observations: Sequence[Observation]) -> "History":
        """Of a case whose steps were taken one after the other."""
        steps = zip(case.steps, observations, strict=True)
        return cls(case, target, tuple(Op(at, step, each, at + 1) for at, (step, each) in enumerate(steps)))

    def replies(self, verb: str) -> Iterator[tuple[int, Replied]]:
        for op in self.ops:
            if op.step.verb == verb and isinstance(op.observation, Replied):
                yield op.index, op.observation

    def actions(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Yields each observed action with the index of the step it answers, up to the first step that was not
        answered: what follows a lost answer is not the target's fault.
        """
        for op in self.ops:
            if not isinstance(op.observation, Replied):
                return
            for each in dict(op.observation.payload).get("actions", ()):
                yield op.index, each
