"""Kafka's own tool for operators on a new cluster of one node of its release (classes FeatureCommand).

From 3.3.0 on it has describe, upgrade, downgrade and disable, from 4.0.0 on version-mapping and feature-dependencies
too; before, the commands of the draft for all features, on clusters with ZooKeeper that have none.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final, assert_never

from kipcheck.conformance.core.files.releases_table import table
from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.features.model.kraft import NONE, WITHOUT_RESULTS, KraftController, State
from kipcheck.conformance.protocols.features.model.kraft_rules import KRAFT, METADATA, Rules
from kipcheck.conformance.protocols.features.ops import commands as ops, kraft

DISABLE: Final = "disable"
BOOTSTRAPS_KRAFT: Final = 21
"""The level of metadata.version from which on version-mapping has level 1 of kraft.version."""
EMPTY: Final = State((), 0)
"""Of a cluster with ZooKeeper."""


class FeatureCommands:
    def __init__(self, rules: Rules | None) -> None:
        """``rules``: None before 3.3.0."""
        self.rules = rules
        self.controller = None if rules is None else KraftController(rules)

    def initial(self) -> State:
        """A new cluster has the default levels of the release."""
        if self.rules is None or self.controller is None:
            return EMPTY
        defaults = self.rules.defaults()
        state = self.controller.initial()
        for name, level in defaults.items() if self.rules.all_or_nothing else ():
            state = state.with_level(name, level)
        return state

    def step(self, state: State, event: ops.Event, /) -> Transition[State, ops.Action]:
        if isinstance(event, ops.CommandLevels):
            return Transition(state, (self.shown(state),))
        if self.rules is None:
            return Transition(state, (self.before_kraft(event),))
        match event:
            case ops.CommandDescribe():
                return Transition(state, (ops.CommandRows(tuple(self.rows(self.rules, state)), (), 0),))
            case ops.CommandChange() | ops.CommandDisable():
                return self.change(self.rules, state, event)
            case ops.CommandAll():
                return Transition(state, (ops.CommandMisused("there is no such command"),))
            case ops.CommandMap(release):
                return Transition(state, (self.mapped(self.rules, release),))
            case ops.CommandDepends(features):
                return Transition(state, (self.depends(self.rules, features),))
            case _:
                assert_never(event)

    def shown(self, state: State) -> ops.ClusterLevels:
        declared = () if self.rules is None else self.rules.declares()
        levels = tuple(kraft.Level(name, level) for name, level in state.shown())
        return ops.ClusterLevels(
            state.epoch, levels, tuple(kraft.Declared(name, *span) for name, span in sorted(declared))
        )

    def before_kraft(self, event: ops.Event) -> ops.Action:
        """No feature is defined: there is nothing to show, to raise or to lower."""
        match event:
            case ops.CommandDescribe():
                return ops.CommandRows((), (), 0)
            case ops.CommandAll():
                return ops.CommandLines((), None, (), 0)
            case _:
                return ops.CommandMisused("there is no such command")

    def rows(self, rules: Rules, state: State) -> Sequence[ops.CommandRow]:
        levels = dict(state.shown())
        return [
            ops.CommandRow(name, *span, levels.get(name, 0), state.epoch) for name, span in sorted(rules.declares())
        ]

    # Changes

    def change(
        self, rules: Rules, state: State, event: ops.CommandChange | ops.CommandDisable
    ) -> Transition[State, ops.CommandLines | ops.CommandMisused]:
        try:
            updates = self.updates(rules, event)
        except ValueError as why:
            return Transition(state, (ops.CommandMisused(str(why)),))
        if isinstance(event, ops.CommandChange) and event.release is not None and event.command == "downgrade":
            updates = self.lowered(state, updates)
        word = DISABLE if isinstance(event, ops.CommandDisable) else event.command
        after, errors = self.sent(rules, state, updates, event.dry_run)
        lines = tuple(
            ops.ChangeLine(word, each.feature, each.level, done, event.dry_run and (done or rules.all_or_nothing))
            for each in sorted(updates, key=lambda each: each.feature)
            for done in (errors[each.feature] == NONE,)
        )
        failed = sum(not each.done for each in lines)
        return Transition(after, (ops.CommandLines(lines, failed or None, (), self.exit(failed)),))

    def lowered(self, state: State, updates: list[kraft.TypedUpdate]) -> list[kraft.TypedUpdate]:
        """What is above the levels of a release, or at them. Released tools name the features below them, too, so that
        the controller refuses all.
        """
        return [each for each in updates if each.level <= state.level(each.feature)]

    def exit(self, failed: int) -> int:
        return 1 if failed else 0

    def updates(self, rules: Rules, event: ops.CommandChange | ops.CommandDisable) -> list[kraft.TypedUpdate]:
        """What the tool asks for. Errors: ValueError if it refuses its options."""
        if isinstance(event, ops.CommandDisable):
            asked = [(name, 0) for name in event.features]
        else:
            asked = self.asked(rules, event)
        if repeated := [name for name, count in Counter(name for name, _ in asked).items() if count > 1]:
            raise ValueError(f"{repeated[0]} is named twice")
        if not asked:
            raise ValueError("no feature is named")
        if isinstance(event, ops.CommandChange) and event.command == "upgrade":
            if event.unsafe:
                raise ValueError("upgrade has no --unsafe")
            if any(level < 1 for _, level in asked):
                raise ValueError("a level below 1 needs downgrade")
            return [kraft.TypedUpdate(*each, kraft.UPGRADE) for each in asked]
        kind = kraft.UNSAFE_DOWNGRADE if event.unsafe else kraft.SAFE_DOWNGRADE
        return [kraft.TypedUpdate(*each, kind) for each in asked]

    def asked(self, rules: Rules, event: ops.CommandChange) -> list[tuple[str, int]]:
        """Errors: ValueError."""
        named = [(each.feature, each.level) for each in event.features]
        if event.release is not None:
            if not rules.all_or_nothing or named or event.metadata is not None:
                raise ValueError("--release-version is alone, from 4.0.0 on")
            levels = self.mapping(rules, event.release)
            lowers = event.command == "downgrade"
            return [(name, level) for name, level in levels.items() if level or lowers]
        if event.metadata is None:
            return named
        if not rules.first_bootstrap <= event.metadata <= self.known(rules):
            raise ValueError(f"unknown metadata.version {event.metadata}")
        return [(METADATA, event.metadata), *named]

    def known(self, rules: Rules) -> int:
        """The highest level of metadata.version whose name the tool knows."""
        return rules.newest

    def sent(
        self, rules: Rules, state: State, updates: Sequence[kraft.TypedUpdate], dry_run: bool
    ) -> tuple[State, dict[str, str]]:
        """After the request, and the error of each feature."""
        assert self.controller is not None
        version = WITHOUT_RESULTS if rules.all_or_nothing else 1
        after, (answer,) = self.controller.step(state, kraft.KraftUpdate(version, tuple(updates), dry_run))
        if isinstance(answer, kraft.Failed):
            return after, dict.fromkeys((each.feature for each in updates), answer.error)
        assert isinstance(answer, kraft.Results)
        errors = {each.feature: each.error for each in answer.results}
        return after, {each.feature: errors.get(each.feature, NONE) for each in updates}

    # What the tool knows

    def mapping(self, rules: Rules, release: int) -> dict[str, int]:
        """The levels of a release, by its level of metadata.version. Errors: ValueError for one that is not known."""
        if not rules.first_bootstrap <= release <= self.known(rules):
            raise ValueError(f"unknown release version {release}")
        found = dict.fromkeys((name for name, _ in rules.declares()), 0)
        for each in table()["feature-levels"]["defaults"]:
            if each["metadata"] <= release and each["feature"] in found:
                found[each["feature"]] = max(each["level"], found[each["feature"]])
        return {**found, METADATA: release, KRAFT: int(release >= BOOTSTRAPS_KRAFT)}

    def mapped(self, rules: Rules, release: int | None) -> ops.CommandMapping | ops.CommandMisused:
        if not rules.all_or_nothing:
            return ops.CommandMisused("there is no such command")
        try:
            levels = self.mapping(rules, rules.newest if release is None else release)
        except ValueError as why:
            return ops.CommandMisused(str(why))
        return ops.CommandMapping(tuple(kraft.Level(*each) for each in sorted(levels.items())), (), 0)

    def depends(self, rules: Rules, features: Sequence[kraft.Level]) -> ops.CommandNeeds | ops.CommandMisused:
        if not rules.all_or_nothing:
            return ops.CommandMisused("there is no such command")
        rows = []
        for each in features:
            span = rules.supported.get(each.feature)
            low, high = (rules.first_bootstrap, self.known(rules)) if each.feature == METADATA else span or (1, 0)
            if not low <= each.level <= high:
                return ops.CommandMisused(f"unknown level {each.level} of {each.feature}")
            needed = rules.needs.get((each.feature, each.level))
            rows.append(
                ops.Dependency(each.feature, each.level, () if needed is None else (kraft.Level(METADATA, needed),))
            )
        return ops.CommandNeeds(tuple(sorted(rows, key=lambda row: row.feature)), (), 0)
