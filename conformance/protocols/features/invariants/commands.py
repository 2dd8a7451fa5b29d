"""Invariants of Kafka's own tool for operators: what it prints, its exit code, and what the cluster has afterwards.

Each invariant reads what the tool printed and what clients read of the cluster; none compares them with a model. What a
command may change is known from the ranges and levels that were read before it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any, Final

from kipcheck.conformance.core.files.releases_table import table
from kipcheck.conformance.core.values.cached_on_history import cached_on_history
from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.history import History, Op, Refused, Replied
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.declare.invariant import RightAnswer, impact, invariant
from kipcheck.conformance.protocols.declare.trace import AnsweredStep, answered_steps, payload

PLACE = 90

COMMANDS: Final = "feature-commands/on-a-cluster"
commands = partial(invariant, role=Role.CONTROLLER, checks=(COMMANDS,))
CHANGE, DISABLE, ALL = "command-change", "command-disable", "command-all"
DESCRIBE, MAPPING, NEEDS, LEVELS = "command-describe", "command-mapping", "command-dependencies", "command-levels"
CHANGES: Final = (CHANGE, DISABLE, ALL)
METADATA, KRAFT = "metadata.version", "kraft.version"
KIP: Final = ("KIP-584",)
Levels = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class KnownLevels:
    levels: Levels | None = None
    """What is finalized; None: not known, since a command was run."""
    epoch: int = -1
    supported: Mapping[str, tuple[int, int]] | None = None
    mappings: Mapping[int, Levels] = field(default_factory=dict)
    """By release: what version-mapping printed."""


@dataclass(frozen=True, slots=True)
class CommandStep(AnsweredStep[Step, Mapping[str, Any], KnownLevels]):
    following: Op | None = None

    @property
    def dry(self) -> bool:
        return bool(self.request.body.get("dry_run"))

    @property
    def word(self) -> str:
        return "disable" if self.verb == DISABLE else str(self.request.body.get("command", ""))

    @property
    def after(self) -> Levels | None:
        """The levels that the next step read."""
        return None if self.following is None else _levels(self.following)

    @property
    def asked(self) -> dict[str, int] | None:
        """What the options name, by feature; None: they name a release, or a feature twice."""
        if self.verb == ALL or self.request.body.get("release") is not None:
            return None
        if self.verb == DISABLE:
            pairs = [(name, 0) for name in self.request["features"]]
        else:
            pairs = [(each["feature"], each["level"]) for each in self.request["features"]]
            if (metadata := self.request.body.get("metadata")) is not None:
                pairs.append((METADATA, metadata))
        found = dict(pairs)
        return found if len(found) == len(pairs) else None

    @property
    def done(self) -> dict[str, int]:
        return {each["feature"]: each["level"] for each in self.answer.get("lines", ()) if each["done"]}

    def known_after(self) -> KnownLevels:
        known = self.before
        if self.verb in CHANGES:
            return known if self.dry or not self.accepted else replace(known, levels=None)
        if not self.accepted:
            return known
        if self.verb == LEVELS:
            spans = {each["feature"]: (each["low"], each["high"]) for each in self.answer["supported"]}
            return replace(known, levels=_levels(self.op), epoch=self.answer["epoch"], supported=spans)
        if self.verb == MAPPING and self.request["release"] is not None:
            levels = {each["feature"]: each["level"] for each in self.answer["levels"]}
            return replace(known, mappings={**known.mappings, self.request["release"]: levels})
        return known


@cached_on_history
def trace(history: History) -> tuple[CommandStep, ...]:
    def read(op: Op, known: KnownLevels) -> CommandStep | None:
        following = next(iter(history.ops[op.index + 1 : op.index + 2]), None)
        return CommandStep(op, op.step, payload(op), known, following)

    return tuple(answered_steps(history, KnownLevels(), read))


def _levels(op: Op) -> Levels | None:
    if op.step.verb != LEVELS or not isinstance(op.observation, Replied):
        return None
    return {each["feature"]: each["level"] for each in op.observation["levels"]}


def on(*verbs: str) -> Callable[[Case, Step], bool]:
    return lambda case, step: step.verb in verbs


def _breach(
    step: CommandStep, why: str, expected: object, observed: object, shape: str, read: bool = False
) -> Violation:
    """``read``: the next step, which reads the levels, shows it."""
    places = (step.op.index, step.op.index + 1) if read else (step.op.index,)
    return Violation(why, places, str(expected), str(observed), shape=(shape,))


def _changes(history: History) -> Iterator[CommandStep]:
    return (step for step in trace(history) if step.verb in CHANGES and step.accepted)


@impact(
    "A script takes a refused command for an applied one", "wrong data", "error-codes", "misled-operator", links=KIP
)
@commands("feature-commands/exit-code", "584-50", grade=Grade.SHOULD, applies_to=on(*CHANGES, DESCRIBE, MAPPING, NEEDS))
def exit_code(history: History) -> Iterator[Violation]:
    """The tool exits with 0 if it did all of the command, and with 1 if one feature was refused."""
    for step in trace(history):
        if not step.accepted or step.verb == LEVELS:
            continue
        refused = [each["feature"] for each in step.answer.get("lines", ()) if not each["done"]]
        if step.answer["exit"] != (1 if refused else 0):
            why = f"refused: {', '.join(refused) or 'none'}"
            yield _breach(step, why, 1 if refused else 0, step.answer["exit"], "refused" if refused else "done")


@impact("The tool prints what an operator cannot read", "trivia", "answers", "misled-operator", links=KIP)
@commands("feature-commands/words", "584-50", grade=Grade.SHOULD, applies_to=on(*CHANGES, DESCRIBE, MAPPING, NEEDS))
def words(history: History) -> Iterator[Violation]:
    """Each line has a known form, with the words of its command, and the last line counts the refused features."""
    for step in trace(history):
        for line in step.answer.get("unread", ()):
            yield _breach(step, "a line of the output", "a known form", line, "unread")
        if step.verb not in CHANGES or not step.accepted:
            continue
        for each in step.answer["lines"]:
            if each["change"] != step.word:
                yield _breach(step, f"the command is {step.word}", step.word, each["change"], "change")
            if each["done"] and each["dry"] is not step.dry:
                expected = "words of a dry run" if step.dry else "words of a change"
                yield _breach(step, f"{each['feature']} was changed or could be", expected, each["dry"], "dry")
        refused = sum(not each["done"] for each in step.answer["lines"])
        if (step.answer["failed"] or 0) != refused:
            yield _breach(step, f"{refused} features were refused", refused, step.answer["failed"], "count")


@impact("The tool shows other levels than the cluster has", "wrong data", "answers", "misled-operator", links=KIP)
@commands(
    "feature-commands/describes", "584-27", "584-50", applies_to=on(DESCRIBE, LEVELS), right_answer=RightAnswer.SEVERAL
)
def describes(history: History) -> Iterator[Violation]:
    """describe shows the range and the level of each supported feature, and the epoch, as the cluster has them."""
    steps = trace(history)
    for step, read in pairwise(steps):
        if step.verb != DESCRIBE or not step.accepted or read.verb != LEVELS or not read.accepted:
            continue
        finalized = {each["feature"]: each["level"] for each in read.answer["levels"]}
        expected = {
            each["feature"]: (each["low"], each["high"], finalized.get(each["feature"], 0))
            for each in read.answer["supported"]
        }
        found = {each["feature"]: (each["low"], each["high"], each["level"]) for each in step.answer["rows"]}
        if found != expected:
            yield _breach(step, "ranges and levels of the cluster", expected, found, "levels", read=True)
        epochs = {each["epoch"] for each in step.answer["rows"]}
        wrong = [each for each in epochs if not step.before.epoch <= each <= read.answer["epoch"]]
        if len(epochs) > 1 or wrong:
            span = f"one epoch from {step.before.epoch} to {read.answer['epoch']}"
            yield _breach(step, "the epoch of the cluster before and after", span, sorted(epochs), "epoch", read=True)


@impact("A dry run changes the cluster", "wrong data", "atomicity", "unsafe-downgrade", links=KIP)
@commands("feature-commands/dry-run", "584-28", "584-34", applies_to=on(*CHANGES, LEVELS))
def dry_run(history: History) -> Iterator[Violation]:
    """With --dry-run no level changes."""
    for step in _changes(history):
        if step.dry and step.before.levels is not None and step.after is not None and step.before.levels != step.after:
            why = f"levels were {dict(step.before.levels)}"
            yield _breach(step, why, "the same levels", dict(step.after), "changed", read=True)


@impact("A command does another thing than it prints", "wrong data", "answers", "misled-operator", links=KIP)
@commands("feature-commands/does-what-it-prints", "584-28", "584-29", applies_to=on(*CHANGES, LEVELS))
def does_what_it_prints(history: History) -> Iterator[Violation]:
    """After a command the cluster has the levels that it printed as done, and no other level has changed.

    Only kraft.version is left out: 3.9 and 4.0 accept it without effect.
    """
    for step in trace(history):
        before, after = step.before.levels, step.after
        if step.verb not in CHANGES or step.dry or before is None or after is None:
            continue
        done = step.done if step.accepted else {}
        expected = {name: level for name, level in {**before, **done}.items() if level and name != KRAFT}
        found = {name: level for name, level in after.items() if name != KRAFT}
        if found != expected:
            shape = "refused" if isinstance(step.op.observation, Refused) else "levels"
            yield _breach(step, f"levels were {dict(before)}", expected, found, shape, read=True)


@impact("A command leaves out a feature, or adds one", "wrong data", "answers", "misled-operator", links=KIP)
@commands("feature-commands/a-line-for-each", "584-28", "584-29", applies_to=on(*CHANGES, MAPPING))
def a_line_for_each(history: History) -> Iterator[Violation]:
    """A command has one line for each feature that its options name, with the level that is asked for."""
    for step in _changes(history):
        lines = sorted((each["feature"], each["level"]) for each in step.answer["lines"])
        if step.verb == ALL:
            if lines and not step.before.supported:
                yield _breach(step, "the cluster supports no feature", "no line", lines, "all")
            continue
        expected = step.asked
        if expected is None:
            mapping = step.before.mappings.get(step.request.body.get("release", 0))
            if mapping is None or step.request["features"] or step.request["metadata"] is not None:
                continue
            expected = {name: level for name, level in mapping.items() if level}
            if step.word == "downgrade":  # those above the release; others may be named as they are
                levels, named = step.before.levels or {}, dict(lines)
                expected = {
                    name: level for name, level in mapping.items() if name in named or level < levels.get(name, 0)
                }
        if lines != sorted(expected.items()):
            yield _breach(step, "the features of the command", sorted(expected.items()), lines, "lines")


def _obstacle(step: CommandStep, name: str, level: int) -> str | None:
    """Why a feature has to be refused; None: it need not be."""
    levels, supported = step.before.levels, step.before.supported
    if levels is None or supported is None or name == KRAFT:
        return None
    before = levels.get(name, 0)
    if level and name not in supported:
        return "no node supports the feature"
    low, high = supported.get(name, (0, 0))
    if not low <= level <= high:
        return f"the nodes support {low} to {high}"
    if step.word == "upgrade" and level < before:
        return f"an upgrade to {level} below {before}"
    return f"a downgrade to {level} above {before}" if step.word != "upgrade" and level > before else None


@impact("The tool applies what has to be refused", "wrong data", "guards", "unsafe-downgrade", links=KIP)
@commands("feature-commands/refuses", "584-06", "584-07", "584-37", "584-63", applies_to=on(CHANGE, DISABLE, LEVELS))
def refuses(history: History) -> Iterator[Violation]:
    """A level outside the range of the nodes, below the level for upgrade, or above it for the others, is refused."""
    for step in _changes(history):
        for name, level in step.done.items():
            if (why := _obstacle(step, name, level)) is not None:
                yield _breach(step, f"{step.word} {name} to {level}: {why}", "refused", "done", "done")


def _is_legal(step: CommandStep, name: str, level: int) -> bool:
    """Whether nothing speaks against a level: neither its range, nor records of metadata, nor another feature."""
    levels, supported = step.before.levels, step.before.supported
    if levels is None or supported is None or name not in supported or name == KRAFT:
        return False
    if _obstacle(step, name, level) is not None:
        return False
    if name == METADATA:
        lost = any(level < each <= levels.get(METADATA, 0) for each in table()["feature-levels"]["changes-metadata"])
        return not lost and not {*levels} - {METADATA, KRAFT}
    return levels.get(METADATA) == supported[METADATA][1]


@impact("An operator cannot change a level", "refused peer", "answers", "stuck-upgrade", links=KIP)
@commands("feature-commands/applies", "584-06", "584-07", "584-36", "584-37", applies_to=on(CHANGE, DISABLE, LEVELS))
def applies(history: History) -> Iterator[Violation]:
    """A command that names each feature once, with levels that the nodes support and that it may set, is done."""
    for step in trace(history):
        if step.verb not in (CHANGE, DISABLE) or not step.asked or (step.word == "upgrade" and _impossible(step)):
            continue
        if all(_is_legal(step, name, level) for name, level in step.asked.items()):
            refused = [*step.asked] if not step.accepted else [*({*step.asked} - {*step.done})]
            if refused:
                why = f"{step.word} {dict(step.asked)}, and the cluster has {dict(step.before.levels or {})}"
                yield _breach(step, why, "done", step.error or f"refused: {', '.join(sorted(refused))}", "refused")


def _impossible(step: CommandStep) -> bool:
    """Options that upgrade does not have."""
    return bool(step.request.body.get("unsafe")) or any(level < 1 for level in (step.asked or {}).values())


@impact("An operator cannot go back to an earlier release", "refused peer", "answers", "stuck-upgrade", links=KIP)
@commands("feature-commands/lowers-to-a-release", "584-28", applies_to=on(CHANGE, MAPPING, LEVELS))
def lowers_to_a_release(history: History) -> Iterator[Violation]:
    """downgrade --release-version lowers what is above the levels of the release, if no record is lost."""
    for step in trace(history):
        release, levels = step.request.body.get("release") or 0, step.before.levels
        mapping = step.before.mappings.get(release)
        if (
            step.verb != CHANGE
            or step.word != "downgrade"
            or mapping is None
            or levels is None
            or step.asked is not None
        ):
            continue
        if step.request["features"] or step.request["metadata"] is not None:
            continue
        lost = any(release < each <= levels.get(METADATA, 0) for each in table()["feature-levels"]["changes-metadata"])
        if levels.get(METADATA, 0) > release and not lost and not (step.accepted and step.done):
            why = f"the cluster has {dict(levels)}, and the release has {dict(mapping)}"
            above = [name for name, level in mapping.items() if level > levels.get(name, 0)]
            yield _breach(step, why, "lowered", f"refused: {', '.join(above) or 'all'}", "refused")


@impact(
    "The tool knows other levels of a release than its nodes", "wrong data", "answers", "misled-operator", links=KIP
)
@commands("feature-commands/mapping", "584-28", applies_to=on(MAPPING, LEVELS))
def mapping(history: History) -> Iterator[Violation]:
    """version-mapping prints the level of metadata.version that is asked for, and levels that the nodes support."""
    for step in trace(history):
        if step.verb != MAPPING or not step.accepted:
            continue
        found = {each["feature"]: each["level"] for each in step.answer["levels"]}
        supported, release = step.before.supported, step.request["release"]
        if release is None and supported is not None and METADATA in supported:
            release = supported[METADATA][1]
        if release is not None and found.get(METADATA) != release:
            yield _breach(step, "the level of metadata.version", release, found.get(METADATA), "metadata")
        if absent := sorted((supported or {}).keys() - found.keys()):
            yield _breach(step, "the nodes support these features", "a level of each", f"none of {absent}", "missing")
        for name, level in found.items() if supported is not None else ():
            low, high = (supported or {}).get(name, (0, 0))
            if not low <= level <= high:
                yield _breach(step, f"the nodes support {low} to {high} of {name}", "a level of these", level, "range")


@impact("The tool does not know what a level depends on", "wrong data", "answers", "stuck-upgrade", links=KIP)
@commands("feature-commands/dependencies", "584-50", grade=Grade.SHOULD, applies_to=on(NEEDS))
def dependencies(history: History) -> Iterator[Violation]:
    """feature-dependencies prints an entry for each feature that is named, with the dependencies of its level."""
    needs = {(each["feature"], each["level"]): each["metadata"] for each in table()["feature-levels"]["needs"]}
    for step in trace(history):
        if step.verb != NEEDS or not step.accepted:
            continue
        asked = {(each["feature"], each["level"]) for each in step.request["features"]}
        found = {(each["feature"], each["level"]): each["needs"] for each in step.answer["rows"]}
        if found.keys() != asked:
            yield _breach(step, "the named levels", sorted(asked), sorted(found), "entries")
        for key in sorted(asked & found.keys()):
            least = needs.get(key)
            expected = [] if least is None or key[0] == KRAFT else [{"feature": METADATA, "level": least}]
            if key[0] != KRAFT and [dict(each) for each in found[key]] != expected:
                yield _breach(step, f"level {key[1]} of {key[0]}", expected, found[key], "needs")
