"""Tools for operators with one planted defect each. Least cases are in shorthand."""

from collections.abc import Sequence
from dataclasses import replace

from kipcheck.conformance.core.files.releases_table import named
from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.declare.mutant import MachineMutant, mutant, mutants_of
from kipcheck.conformance.protocols.features.invariants.tool import COMMANDS, RELEASED
from kipcheck.conformance.protocols.features.model.draft_rules import FEATURE_UPDATE_FAILED
from kipcheck.conformance.protocols.features.model.kraft_rules import Rules
from kipcheck.conformance.protocols.features.model.released_tool import ReleasedTool
from kipcheck.conformance.protocols.features.model.tool import DELETE, Change, FeatureTool, State
from kipcheck.conformance.protocols.features.ops.cluster import Requested
from kipcheck.conformance.protocols.features.ops.tool import OPERATIONS, Action, Misused, Row, ToolUpdate

PLACE = 80


class Tool(MachineMutant, FeatureTool):
    """The reference machine as an adapter, with overridable decisions."""

    operations = OPERATIONS

    def __init__(self) -> None:
        FeatureTool.__init__(self)
        MachineMutant.__init__(self)


_mutant = mutants_of(COMMANDS, OPERATIONS.machine, edition="kip-584")


@_mutant("describes", "tool broker a:1-1; tool describe")
class DescribesWhatIsFinalized(Tool):
    """describe leaves out a feature that is supported and not finalized."""

    def rows(self, state: State) -> Sequence[Row]:
        return [each for each in super().rows(state) if each.finalized_high is not None]


@_mutant("all-features", "tool broker a:1-1; tool update upgrade a:1; tool downgrade-all")
class KeepsUnknownFeatures(Tool):
    """downgrade-all keeps the features that the tool does not know."""

    def downgrades(self, state: State) -> list[Change]:
        return [each for each in super().downgrades(state) if each.kind != DELETE]


@_mutant("dry-run", "tool knows a:1; tool upgrade-all dry")
class RunsDry(Tool):
    """--dry-run is not read."""

    def sends(self, dry_run: bool) -> bool:
        return True


@_mutant("lists", "tool broker a:1-1; tool update upgrade a:1 delete a")
class TakesTheFirstList(Tool):
    """Only the first list of an update is read."""

    def named(self, state: State, event: ToolUpdate) -> list[Change]:
        if event.upgrade:
            event = replace(event, downgrade=(), delete=())
        return super().named(state, event)


@_mutant("downgrade-flag", "tool broker a:1-1; tool update delete a")
class DeletesWithoutFlag(Tool):
    """A deletion is sent without the downgrade flag."""

    def requested(self, change: Change) -> Requested:
        return replace(
            super().requested(change), allow_downgrade=change.level > 0 and super().requested(change).allow_downgrade
        )


@_mutant("exit-code", "tool knows a:1; tool upgrade-all")
class AlwaysExitsWithZero(Tool):
    """The tool exits with 0 as soon as the controller has answered."""

    def exit(self, errors: Sequence[str]) -> int:
        return 0


@_mutant("runs", "tool upgrade-all")
class RefusesItsOptions(Tool):
    """The tool knows no command."""

    def run(self, state: State, changes: Sequence[Change], dry_run: bool) -> Transition[State, Action]:
        return Transition(state, (Misused("unknown command"),))


@_mutant("sends-its-lines", "tool knows a:1; tool upgrade-all")
class ListsAndSendsNothing(Tool):
    """Every run is a dry one."""

    def sends(self, dry_run: bool) -> bool:
        return False


@_mutant("performs", "tool broker a:1-1; tool update upgrade a:1")
class ChangesNothing(Tool):
    """The cluster refuses whatever the tool asks for."""

    def applied(self, state: State, requests: Sequence[Requested]) -> tuple[State, list[str]]:
        return state, [FEATURE_UPDATE_FAILED for _ in requests]


@_mutant("performs", "tool broker a:1-1; tool update upgrade a:1; tool update delete a")
class NeverDeletes(Tool):
    """A deletion is asked for as a downgrade to level 1."""

    def requested(self, change: Change) -> Requested:
        return replace(super().requested(change), level=max(change.level, 1))


@_mutant("epoch-rises", "tool broker a:1-1; tool update upgrade a:1; tool describe")
class ShowsNoEpoch(Tool):
    """describe shows a dash for the epoch."""

    def rows(self, state: State) -> Sequence[Row]:
        return [replace(each, epoch=None) for each in super().rows(state)]


@_mutant("describes", "tool broker a:1-1; tool update upgrade a:1; tool describe")
class DescribesWhatBrokersSupport(Tool):
    """describe shows a dash for every finalized level."""

    def rows(self, state: State) -> Sequence[Row]:
        return [replace(each, finalized_low=None, finalized_high=None) for each in super().rows(state)]


@_mutant("exit-code", "tool upgrade-all")
class AlwaysExitsWithOne(Tool):
    """The tool exits with 1, whatever the controller answered."""

    def exit(self, errors: Sequence[str]) -> int:
        return 1


@_mutant("downgrade-flag", "tool broker a:1-1; tool update upgrade a:1")
class RaisesWithTheFlag(Tool):
    """Every update is sent with the downgrade flag."""

    def requested(self, change: Change) -> Requested:
        return replace(super().requested(change), allow_downgrade=True)


@mutant(
    RELEASED,
    "feature-tool/exit-code",
    OPERATIONS.machine,
    None,
    "tool update upgrade group.version:2",
    edition="apache@4.3.1",
)
class HidesARefusedRequest(MachineMutant, ReleasedTool):
    """The tool exits with 0 although the controller refused the request."""

    operations = OPERATIONS

    def __init__(self) -> None:
        ReleasedTool.__init__(self, Rules.of(named("mutants-of-controllers")))
        MachineMutant.__init__(self)

    def exit(self, errors: Sequence[str]) -> int:
        return 0
