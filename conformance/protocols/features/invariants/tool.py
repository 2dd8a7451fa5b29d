"""Invariants of KIP-584's tool for operators. Each reads what it prints, none compares with a model."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from kipcheck.conformance.core.values.cached_on_history import cached_on_history
from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.declare.invariant import impact, invariant
from kipcheck.conformance.protocols.declare.trace import AnsweredStep, plain_steps

PLACE = 80

COMMANDS: Final = "feature-tool/commands"
RELEASED: Final = "feature-tool/as-released"
commands = partial(invariant, role=Role.CONTROLLER, checks=(COMMANDS,))
ALL: Final = ("tool-upgrade-all", "tool-downgrade-all")
RUNS: Final = (*ALL, "tool-update")
NONE: Final = "NONE"
DRAFT: Final = "kip-584"
KIP: Final = ("KIP-584",)


@dataclass(frozen=True, slots=True)
class KnownTool:
    brokers: tuple[Mapping[str, tuple[int, int]], ...] = ()
    """What each broker supports."""
    levels: Mapping[str, int] = field(default_factory=dict)
    """What the tool knows."""
    finalized: Mapping[str, int] = field(default_factory=dict)
    """The highest finalized levels, after the changes that the tool reported."""
    applied: int = 0
    """The requests with an applied update."""
    described: tuple[int, int | None] | None = None
    """Of the last description: the requests with an applied update before it, and its epoch; None: there was none."""

    @property
    def supported(self) -> Mapping[str, tuple[int, int]]:
        """By the first broker."""
        return self.brokers[0] if self.brokers else {}


@dataclass(frozen=True, slots=True)
class ToolStep(AnsweredStep[Step, Mapping[str, Any], KnownTool]):
    def known_after(self) -> KnownTool:
        known = self.before
        if self.verb == "tool-broker":
            supported = {each["feature"]: (each["low"], each["high"]) for each in self.request["supported"]}
            return replace(known, brokers=(*known.brokers, supported))
        if self.verb == "tool-describe" and self.accepted and self.answer["rows"]:
            return replace(known, described=(known.applied, self.answer["rows"][0]["epoch"]))
        if self.verb == "tool-knows":
            return replace(known, levels={each["feature"]: each["level"] for each in self.request["levels"]})
        if self.verb not in RUNS or not self.accepted or self.dry:
            return known
        finalized = dict(known.finalized)
        for each in self.answer["results"]:
            if each["error"] == NONE:
                finalized.pop(each["feature"], None)
                if each["new"] is not None:
                    finalized[each["feature"]] = each["new"]
        done = any(each["error"] == NONE for each in self.answer["results"])
        return replace(known, finalized=finalized, applied=known.applied + done)

    @property
    def dry(self) -> bool:
        return bool(self.request.body.get("dry_run"))

    def lowers(self) -> dict[str, bool]:
        """The features of the command, and whether it lowers or deletes them."""
        if self.verb != "tool-update":
            return {each["feature"]: self.verb == "tool-downgrade-all" for each in self.answer["results"]}
        raised = {each["feature"]: False for each in self.request["upgrade"]}
        return {
            **raised,
            **{each["feature"]: True for each in self.request["downgrade"]},
            **dict.fromkeys(self.request["delete"], True),
        }


@cached_on_history
def trace(history: History) -> tuple[ToolStep, ...]:
    return plain_steps(history, KnownTool(), ToolStep)


def on(*verbs: str) -> Callable[[Case, Step], bool]:
    return lambda case, step: step.verb in verbs


def _ran(history: History, *verbs: str) -> Iterator[ToolStep]:
    return (step for step in trace(history) if step.verb in verbs and step.accepted)


def _breach(step: ToolStep, why: str, expected: object, observed: object, shape: str) -> Violation:
    return Violation(why, (step.op.index,), str(expected), str(observed), shape=(shape,))


@impact("The tool shows other levels than the cluster has", "wrong data", "answers", "misled-operator", links=KIP)
@commands("feature-tool/describes", "584-27", checks=(COMMANDS, RELEASED), applies_to=on("tool-describe"))
def describes(history: History) -> Iterator[Violation]:
    """describe has each supported or finalized feature: its range, its finalized level or a dash, and one epoch."""
    for step in _ran(history, "tool-describe"):
        supported, finalized = step.before.supported, step.before.finalized
        found = {each["feature"]: (each["low"], each["high"], each["finalized_high"]) for each in step.answer["rows"]}
        names = {*supported, *finalized}
        if history.case.edition != DRAFT:  # a released cluster begins with levels
            names = {*finalized}
            found = {name: each for name, each in found.items() if name in names}
            supported = {name: each[:2] for name, each in found.items()}
        expected = {name: (*supported.get(name, (None, None)), finalized.get(name)) for name in names}
        if found != expected:
            yield _breach(step, "supported and finalized levels", dict(sorted(expected.items())), found, "levels")
        for each in step.answer["rows"]:
            if (each["finalized_low"] is None) is not (each["finalized_high"] is None):
                why = f"{each['feature']} has one finalized level and one dash"
                yield _breach(step, why, "both or none", f"{each['finalized_low']}, {each['finalized_high']}", "dash")
        epochs = {each["epoch"] for each in step.answer["rows"]}
        if len(epochs) > 1:
            yield _breach(step, "the features have a common epoch", "one epoch", epochs, "epochs")


@impact("A command for all features leaves some behind", "wrong data", "answers", "stuck-upgrade", links=KIP)
@commands("feature-tool/all-features", "584-28", applies_to=on(*ALL))
def all_features(history: History) -> Iterator[Violation]:
    """upgrade-all adds and raises up to the tool's levels; downgrade-all lowers to them, and deletes what it lacks."""
    for step in _ran(history, *ALL):
        levels, finalized = step.before.levels, step.before.finalized
        expected: dict[str, tuple[str, int | None, int | None]] = {}
        if step.verb == "tool-upgrade-all":
            for name, level in levels.items():
                if finalized.get(name, 0) < level:
                    expected[name] = ("Upgrade" if name in finalized else "Add", finalized.get(name), level)
        else:
            for name, level in finalized.items():
                if name not in levels:
                    expected[name] = ("Delete", level, None)
                elif levels[name] < level:
                    expected[name] = ("Downgrade", level, levels[name])
        found = {each["feature"]: (each["change"], each["existing"], each["new"]) for each in step.answer["results"]}
        if found != expected:
            why = f"{dict(finalized)} is finalized, and the tool knows {dict(levels)}"
            yield _breach(step, why, dict(sorted(expected.items())), found, "lines")


@impact("A dry run changes the cluster", "wrong data", "atomicity", "unsafe-downgrade", links=KIP)
@commands("feature-tool/dry-run", "584-28", applies_to=on(*RUNS))
def dry_run(history: History) -> Iterator[Violation]:
    """With --dry-run the tool sends no request."""
    for step in _ran(history, *RUNS):
        if step.dry and step.answer["sent"]:
            yield _breach(step, "--dry-run was given", "no request", step.answer["sent"], "sent")


@impact("An update does another thing than it lists", "wrong data", "answers", "misled-operator", links=KIP)
@commands("feature-tool/lists", "584-29", checks=(COMMANDS, RELEASED), applies_to=on("tool-update"))
def lists(history: History) -> Iterator[Violation]:
    """update sends the changes of its three lists in one request, and refuses a feature that is listed twice."""
    for step in _ran(history, "tool-update"):
        upgrade, downgrade, delete = (step.request[each] for each in ("upgrade", "downgrade", "delete"))
        listed = [
            *((each["feature"], each["level"]) for each in (*upgrade, *downgrade)),
            *((each, 0) for each in delete),
        ]
        names = [name for name, _ in listed]
        if len({*names}) < len(names):
            yield _breach(step, "a feature is listed twice", "a refusal", step.answer["results"], "twice")
            continue
        found = sorted((each["feature"], each["new"] or 0) for each in step.answer["results"])
        sent = sorted((each["feature"], each["level"]) for each in step.answer["sent"])
        if found != sorted(listed):
            yield _breach(step, "each listed change has a line", sorted(listed), found, "lines")
        elif not step.dry and sent != sorted(listed):
            yield _breach(step, "one request has all listed changes", sorted(listed), sent, "request")


@impact("The tool lowers levels without the flag, or raises them with it", "wrong data", "gating", "unsafe-downgrade",
        links=KIP)  # fmt: skip
@commands("feature-tool/downgrade-flag", "584-63", applies_to=on(*RUNS))
def downgrade_flag(history: History) -> Iterator[Violation]:
    """A feature under --downgrade, --delete or downgrade-all is sent with the downgrade flag, any other without it."""
    for step in _ran(history, *RUNS):
        lowers = step.lowers()
        for each in step.answer["sent"]:
            expected = lowers.get(each["feature"])
            if expected is not None and each["allow_downgrade"] is not expected:
                why = f"{each['feature']} {'is' if expected else 'is not'} lowered or deleted by the command"
                yield _breach(step, why, f"flag {expected}", f"flag {not expected}", "missing" if expected else "set")


@impact("A script takes a refused update for an applied one", "wrong data", "error-codes", "misled-operator", links=KIP)
@invariant("feature-tool/exit-code", "584-50", role=Role.CONTROLLER, grade=Grade.SHOULD,
           checks=(COMMANDS, RELEASED), applies_to=on(*RUNS))  # fmt: skip
def exit_code(history: History) -> Iterator[Violation]:
    """The tool exits with 0 if every update was applied, and with 1 if one was refused."""
    for step in _ran(history, *RUNS):
        refused = [each["feature"] for each in step.answer["results"] if each["error"] != NONE]
        if step.answer["exit"] != (1 if refused else 0):
            why = f"refused: {', '.join(refused) or 'none'}"
            yield _breach(step, why, 1 if refused else 0, step.answer["exit"], "refused" if refused else "applied")


@impact("The tool cannot be used", "refused peer", "answers", "stuck-upgrade", links=KIP)
@commands("feature-tool/runs", "584-27", "584-28", "584-29", "584-84", checks=(COMMANDS, RELEASED),
          applies_to=on("tool-describe", *RUNS))  # fmt: skip
def runs(history: History) -> Iterator[Violation]:
    """A command runs; update alone may refuse its lists: empty ones, an unknown feature, one that is named twice."""
    for step in trace(history):
        if step.verb not in ("tool-describe", *RUNS) or step.accepted:
            continue
        if step.verb == "tool-update":
            levels = [each["feature"] for each in (*step.request["upgrade"], *step.request["downgrade"])]
            names = [*levels, *step.request["delete"]]
            known = {
                *step.before.finalized,
                *step.before.levels,
                *(name for own in step.before.brokers for name in own),
            }
            if not names or len({*names}) < len(names) or {*names} - known:
                continue
        yield _breach(step, "the command is well formed", "it runs", f"refused: {step.error}", step.verb)


@impact("A command lists changes and does not make them", "wrong data", "answers", "stuck-upgrade", links=KIP)
@commands("feature-tool/sends-its-lines", "584-28", "584-84", applies_to=on(*ALL))
def sends_its_lines(history: History) -> Iterator[Violation]:
    """upgrade-all and downgrade-all send the changes of their lines in one request."""
    for step in _ran(history, *ALL):
        lines = sorted((each["feature"], each["new"] or 0) for each in step.answer["results"])
        sent = sorted((each["feature"], each["level"]) for each in step.answer["sent"])
        if not step.dry and sent != lines:
            yield _breach(step, "each line is a change", lines, sent, "request")


@impact("A change that the cluster allows fails", "refused peer", "guards", "stuck-upgrade", links=KIP)
@commands("feature-tool/performs", "584-84", "584-28", "584-29", applies_to=on(*RUNS))
def performs(history: History) -> Iterator[Violation]:
    """A change to a level that every broker supports, in the direction of its command, is applied, as is a deletion."""
    for step in _ran(history, *RUNS):
        lowers = step.lowers()
        for each in step.answer["results"]:
            name, new, before = each["feature"], each["new"], step.before.finalized.get(each["feature"])
            ranges = [own.get(name) for own in step.before.brokers]
            fits = bool(ranges) and all(own is not None and own[0] <= (new or 0) <= own[1] for own in ranges)
            rises = not lowers.get(name) and fits and new is not None and new > (before or 0)
            falls = lowers.get(name) and before is not None and (new is None or (fits and new < before))
            if (rises or falls) and each["error"] != NONE:
                why = f"{name} was at {before}, and each broker supports {new}" if new else f"{name} was at {before}"
                yield _breach(step, why, NONE, each["error"], each["change"])


@impact("The tool shows an epoch that does not rise", "wrong data", "epochs", "stale-view", links=KIP)
@commands("feature-tool/epoch-rises", "584-27", "584-16", applies_to=on("tool-describe"))
def epoch_rises(history: History) -> Iterator[Violation]:
    """Between two descriptions the epoch rises by the requests that were applied; before the first one it is a dash."""
    for step in _ran(history, "tool-describe"):
        epoch = step.answer["rows"][0]["epoch"] if step.answer["rows"] else None
        if epoch is not None and not step.before.applied:
            yield _breach(step, "nothing was ever applied", "a dash", epoch, "too early")
        if epoch is None and step.before.applied and step.answer["rows"]:
            yield _breach(step, "an update was applied", "an epoch", "a dash", "missing")
        if step.before.described is None or None in (epoch, step.before.described[1]):
            continue
        applied, last = step.before.described
        assert last is not None and epoch is not None
        if epoch - last != step.before.applied - applied:
            expected = last + step.before.applied - applied
            why = f"the epoch was {last}, and {step.before.applied - applied} requests were applied"
            yield _breach(step, why, expected, epoch, "counted")
