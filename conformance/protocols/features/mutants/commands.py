"""Tools with the commands of a release, with one planted defect each. Least cases are in shorthand."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from kipcheck.conformance.core.files.releases_table import named
from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.declare.mutant import MachineMutant, mutant, mutants_of
from kipcheck.conformance.protocols.features.invariants.commands import COMMANDS
from kipcheck.conformance.protocols.features.model.commands import FeatureCommands
from kipcheck.conformance.protocols.features.model.kraft import State
from kipcheck.conformance.protocols.features.model.kraft_rules import METADATA, Rules
from kipcheck.conformance.protocols.features.ops import commands as ops
from kipcheck.conformance.protocols.features.ops.kraft import SAFE_DOWNGRADE, Level, TypedUpdate

PLACE = 90
RELEASE: Final = named("first-without-zookeeper")
BEFORE_KRAFT: Final = named("last-before-kraft")
Change = ops.CommandChange | ops.CommandDisable
Changed = Transition[State, ops.CommandLines | ops.CommandMisused]


class Commands(MachineMutant, FeatureCommands):
    """The reference machine as an adapter, with overridable decisions."""

    operations = ops.OPERATIONS

    def __init__(self) -> None:
        FeatureCommands.__init__(self, Rules.of(RELEASE))
        MachineMutant.__init__(self)

    def reprinted(self, changed: Changed, reprint: Callable[[ops.CommandLines], ops.CommandLines]) -> Changed:
        actions = (reprint(each) if isinstance(each, ops.CommandLines) else each for each in changed.actions)
        return Transition(changed.state, tuple(actions))


_mutant = mutants_of(COMMANDS, ops.OPERATIONS.machine, edition=f"apache@{RELEASE}")


@_mutant("exit-code", "command disable kip.check")
class ExitsWithZero(Commands):
    """The tool exits with 0 as soon as the controller has answered."""

    def exit(self, failed: int) -> int:
        return 0


@_mutant("words", "command disable group.version dry")
class PrintsDryRunsAsDone(Commands):
    """A dry run is printed as a change."""

    def change(self, rules: Rules, state: State, event: Change) -> Changed:
        def reprint(answer: ops.CommandLines) -> ops.CommandLines:
            return replace(answer, lines=tuple(replace(each, dry=False) for each in answer.lines))

        return self.reprinted(super().change(rules, state, event), reprint)


@_mutant("words", "command disable kip.check")
class CountsNoRefusal(Commands):
    """The last line, which counts the refused features, is missing."""

    def change(self, rules: Rules, state: State, event: Change) -> Changed:
        return self.reprinted(super().change(rules, state, event), lambda answer: replace(answer, failed=None))


@_mutant("describes", "command describe; command levels")
class DescribesFinalizedOnly(Commands):
    """describe leaves out a feature that is supported and not finalized."""

    def rows(self, rules: Rules, state: State) -> Sequence[ops.CommandRow]:
        return [each for each in super().rows(rules, state) if each.level]


@_mutant("describes", "command disable group.version; command describe; command levels")
class DescribesTheFirstLevels(Commands):
    """describe shows the levels of the new cluster."""

    def rows(self, rules: Rules, state: State) -> Sequence[ops.CommandRow]:
        return super().rows(rules, replace(self.initial(), epoch=state.epoch))


@_mutant("dry-run", "command levels; command disable group.version dry; command levels")
class ChangesWhileDry(Commands):
    """--dry-run changes what is printed, and the request is sent as if it were not there."""

    def sent(
        self, rules: Rules, state: State, updates: Sequence[TypedUpdate], dry_run: bool
    ) -> tuple[State, dict[str, str]]:
        return super().sent(rules, state, updates, False)


@_mutant("does-what-it-prints", "command levels; command disable group.version; command levels")
class NeverSends(Commands):
    """Every command is a dry run, and is printed as done."""

    def sent(
        self, rules: Rules, state: State, updates: Sequence[TypedUpdate], dry_run: bool
    ) -> tuple[State, dict[str, str]]:
        return super().sent(rules, state, updates, True)


@_mutant("does-what-it-prints", "command levels; command disable group.version,group.version; command levels")
class SendsWhatItRefuses(Commands):
    """A command that names a feature twice is sent before the tool refuses it."""

    def change(self, rules: Rules, state: State, event: Change) -> Changed:
        after, actions = super().change(rules, state, event)
        if isinstance(event, ops.CommandDisable) and len({*event.features}) < len(event.features):
            after, _ = self.sent(rules, state, [TypedUpdate(event.features[0], 0, SAFE_DOWNGRADE)], event.dry_run)
        return Transition(after, actions)


@_mutant("a-line-for-each", "command disable group.version,transaction.version")
class PrintsTheFirstFeature(Commands):
    """Of several features only the first one has a line."""

    def change(self, rules: Rules, state: State, event: Change) -> Changed:
        def reprint(answer: ops.CommandLines) -> ops.CommandLines:
            return replace(answer, lines=answer.lines[:1], failed=None if answer.lines[0].done else 1)

        return self.reprinted(super().change(rules, state, event), reprint)


@_mutant("refuses", "command levels; command upgrade transaction.version:1")
class LowersWithUpgrade(Commands):
    """upgrade lowers a level, too."""

    def updates(self, rules: Rules, event: Change) -> list[TypedUpdate]:
        found = super().updates(rules, event)
        lowered = {"group.version": 1, "transaction.version": 2}
        return [
            replace(each, upgrade_type=SAFE_DOWNGRADE) if each.level < lowered.get(each.feature, 0) else each
            for each in found
        ]


@_mutant("applies", "command levels; command disable group.version")
class RefusesEveryCommand(Commands):
    """Every change is refused."""

    def sent(
        self, rules: Rules, state: State, updates: Sequence[TypedUpdate], dry_run: bool
    ) -> tuple[State, dict[str, str]]:
        return state, dict.fromkeys((each.feature for each in updates), "INVALID_UPDATE_VERSION")


@_mutant("applies", "command levels; command disable group.version unsafe")
class KnowsNoUnsafe(Commands):
    """--unsafe is no option of disable."""

    def updates(self, rules: Rules, event: Change) -> list[TypedUpdate]:
        if isinstance(event, ops.CommandDisable) and event.unsafe:
            raise ValueError("there is no --unsafe")
        return super().updates(rules, event)


@_mutant("lowers-to-a-release", "command mapping 24; command levels; command downgrade release 24")
class NeverGoesBack(Commands):
    """downgrade --release-version is always refused."""

    def sent(
        self, rules: Rules, state: State, updates: Sequence[TypedUpdate], dry_run: bool
    ) -> tuple[State, dict[str, str]]:
        if len(updates) > 1 and updates[0].upgrade_type == SAFE_DOWNGRADE and METADATA in {e.feature for e in updates}:
            return state, dict.fromkeys((each.feature for each in updates), "INVALID_UPDATE_VERSION")
        return super().sent(rules, state, updates, dry_run)


@_mutant("mapping", "command mapping 24")
class MapsToTheNewest(Commands):
    """version-mapping prints the newest release, whatever is asked for."""

    def mapping(self, rules: Rules, release: int) -> dict[str, int]:
        return {**super().mapping(rules, release), METADATA: rules.newest}


@_mutant("dependencies", "command needs eligible.leader.replicas.version:1")
class KnowsNoDependency(Commands):
    """Every level has no dependencies."""

    def depends(self, rules: Rules, features: Sequence[Level]) -> ops.CommandNeeds | ops.CommandMisused:
        found = super().depends(rules, features)
        if isinstance(found, ops.CommandMisused):
            return found
        return replace(found, rows=tuple(replace(each, needs=()) for each in found.rows))


@mutant(
    COMMANDS, "feature-commands/a-line-for-each", ops.OPERATIONS.machine, None, "command upgrade-all",
    edition=f"apache@{BEFORE_KRAFT}",
)  # fmt: skip
class PrintsWhatIsNotThere(MachineMutant, FeatureCommands):
    """A command for all features prints a line, although the release supports none."""

    operations = ops.OPERATIONS

    def __init__(self) -> None:
        FeatureCommands.__init__(self, None)
        MachineMutant.__init__(self)

    def before_kraft(self, event: ops.Event) -> ops.Action:
        if not isinstance(event, ops.CommandAll):
            return super().before_kraft(event)
        return ops.CommandLines((ops.ChangeLine("upgrade", METADATA, 1, done=True, dry=False),), None, (), 0)
