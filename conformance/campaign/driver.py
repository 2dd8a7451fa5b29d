"""Drives a campaign through its rounds: plan, shards, waves, union, reports.

Only the driver writes files. It does not run a shard again whose row is in the ledger, so a campaign that was
interrupted at any point continues from there with the same result.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self, TypeAlias

from kipcheck.conformance.campaign import directory, shard_sizing
from kipcheck.conformance.campaign.corpus import snapshots
from kipcheck.conformance.campaign.corpus.entries import Snapshot, grown
from kipcheck.conformance.campaign.executors.choice import Chosen, ExecutorName, ready
from kipcheck.conformance.campaign.executors.local import Executor
from kipcheck.conformance.campaign.executors.preflight import Unready
from kipcheck.conformance.campaign.files import NO_ROOM, SetAside
from kipcheck.conformance.campaign.manifest import Manifest, Unfit, named
from kipcheck.conformance.campaign.plan import USUAL_CASES, USUAL_ROUNDS, Aim, Engine, Plan, Shard, shard_size
from kipcheck.conformance.campaign.process.shard_pool import Barren
from kipcheck.conformance.campaign.progress import Watch
from kipcheck.conformance.campaign.report import campaign_report, row_files
from kipcheck.conformance.campaign.report.round_statistics import RoundEnd
from kipcheck.conformance.campaign.rows import ENDED, Found, Key, Row, hash_of
from kipcheck.conformance.checks import CHECKS
from kipcheck.conformance.core import exits
from kipcheck.conformance.core.ledger import NAME as LEDGER
from kipcheck.conformance.core.output_folder import Unusable
from kipcheck.conformance.engine import interrupts
from kipcheck.conformance.engine.failures import Kind
from kipcheck.conformance.engine.known.match import account
from kipcheck.conformance.engine.progress import show_traceback
from kipcheck.conformance.engine.selection import NOTHING, Misused, Options, Selection, subjects
from kipcheck.conformance.engine.worker import Worker
from kipcheck.conformance.targets.protocol import Broken, TargetInfo, Unavailable
from kipcheck.conformance.targets.registry import is_steady, target as target_of

WAVE: Final = 8
"""The most shards for each slot in a wave: they are lost if the driver dies, and delay the next report."""
TELLING: Final = 0.1
"""The largest share of the elapsed time that reports between rounds may take."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of a campaign."""

    targets: tuple[str, ...] = ("kafka-python",)
    edition: str = "apache"
    checks: tuple[str, ...] = ("*",)
    """Globs over the ids of checks."""
    cases: int | None = None
    """For each target, over all rounds."""
    budget: float | None = None
    """Seconds. Checked between waves."""
    rounds: int | None = None
    seed: int = 0
    engine: Engine = "mixed"
    known: tuple[str, ...] = ()
    executor: ExecutorName = "auto"
    workers: int = 0
    """0: one for each core."""
    master: str | None = None
    remote: str | None = None
    out: Path = Path("kipcheck-out")
    resume: bool = False
    """Continue the campaign in ``out``; options that its manifest fixes are ignored."""
    corpus: Path | None = None
    """The folder or snapshot of an earlier campaign whose corpus is the start."""


@dataclass(frozen=True, slots=True)
class Outcome:
    exit_code: int
    text: str = ""
    """The report for a terminal; the other reports are in the folder."""
    why: str = ""
    """One line if the campaign was cut short or did not start."""


class Stopped(Exception):
    """The campaign ends before its plan; the message says why."""

    def __init__(self, why: str, code: int) -> None:
        super().__init__(why)
        self.code = code


Ready: TypeAlias = Callable[[ExecutorName, int, str | None, str | None], AbstractContextManager[Chosen]]


def campaign(asked: Asked, ready: Ready = ready) -> Outcome:
    """Runs a campaign. Raises nothing: errors become an exit code and a line."""
    try:
        folder = directory.checked(asked.out)
        with ExitStack() as stack:
            stack.enter_context(folder.tried(LEDGER))
            # Invalid options are reported before waiting for a cluster.
            given = _resumed(asked) if asked.resume else _Intent.of(asked)
            chosen = stack.enter_context(ready(asked.executor, asked.workers, asked.master, asked.remote))
            watch = Watch()
            stack.callback(watch.close)
            watch.say(chosen.why)
            manifest = given if isinstance(given, Manifest) else _begun(asked, given, chosen, watch)
            return _Campaign(asked, manifest, chosen.executor, watch).outcome()
    except (Misused, Unfit, Unready, Unusable, row_files.Unread) as why:
        return Outcome(exits.USAGE, why=str(why))
    except OSError as denied:
        return Outcome(exits.USAGE, why=f"{denied.filename or asked.out} cannot be written: {denied.strerror}")
    except (Unavailable, Broken) as why:
        return Outcome(exits.BROKEN, why=str(why))
    except KeyboardInterrupt:
        return Outcome(exits.UNDECIDED, why="interrupted before it started")
    except Exception as ours:  # noqa: BLE001 - errors become exit codes
        show_traceback()
        return Outcome(exits.OURS, why=f"{type(ours).__name__}: {ours}")


# ---- the plan


@dataclass(frozen=True, slots=True)
class _Intent:
    """The resolved options: everything in the plan except the size of the shards."""

    checks: tuple[str, ...]
    aims: tuple[Aim, ...]
    skipped: Mapping[str, str]
    """Targets that are not available, with the reason, if others are."""
    corpus: Snapshot

    @classmethod
    def of(cls, asked: Asked) -> Self:
        """Errors: ``Misused``, ``Unavailable``, ``Broken``, ``Unfit``, OSError."""
        options = Options(targets=asked.targets, edition=asked.edition, checks=asked.checks, known=asked.known)
        selection = Selection.of(options)
        account(options)  # reports invalid lists before anything runs
        directory.free(asked.out)
        corpus = directory.begun_with(asked.corpus)  # before the folder is cleared, which may contain it
        aims, skipped = _aims(selection, asked.targets)
        return cls(tuple(each.id for each in selection.checks), aims, skipped, corpus)


def _begun(asked: Asked, intent: _Intent, chosen: Chosen, watch: Watch) -> Manifest:
    """Writes nothing before all values of the manifest are known. Errors: ``Unusable``; OSError."""
    by_time = asked.cases is None and asked.budget is not None
    cases = None if by_time else asked.cases or USUAL_CASES
    rounds = asked.rounds if by_time else asked.rounds or min(USUAL_ROUNDS, cases or USUAL_ROUNDS)
    plan = Plan(
        "", intent.aims, asked.edition, intent.checks, asked.engine, asked.seed, cases, rounds,
        shard_size(cases or 1, rounds or 1), corpus=intent.corpus.digest,
    )  # fmt: skip
    if by_time:
        assert asked.budget is not None
        watch.say("measuring how many cases make a shard")
        plan = shard_sizing.sized(named(plan), asked.budget, chosen.executor.slots)
    settings = {
        "executor": chosen.executor.name, "slots": chosen.executor.slots, "budget_s": asked.budget, **chosen.settings,
    }  # fmt: skip
    manifest = Manifest.of(named(plan), settings, asked.known, intent.skipped)
    kept = directory.earlier(asked.out)
    directory.cleared(asked.out)
    if kept is not None and kept != snapshots.place(asked.out, intent.corpus.digest):
        watch.say(f"the corpus of the previous campaign is kept in {kept}; to start from it: --corpus {kept}")
    if intent.corpus.digest:
        directory.save(asked.out, intent.corpus)
    manifest.write(asked.out)
    return manifest


def _aims(selection: Selection, targets: Sequence[str]) -> tuple[tuple[Aim, ...], Mapping[str, str]]:
    """The targets, and those that are not available with the reason, if others are."""
    found: list[Aim] = []
    skipped: dict[str, str] = {}
    for name in dict.fromkeys(targets):
        try:
            found.append(_aim(selection, name))
        except LookupError as unknown:
            raise Misused(str(unknown)) from None
        except Unavailable as missing:
            if len(targets) == 1:
                raise
            skipped[name] = str(missing)
    if not found:
        raise Unavailable("; ".join(skipped.values()))
    return tuple(found), skipped


def _aim(selection: Selection, name: str) -> Aim:
    with Worker(name, target_of(name)) as worker:
        info = worker.info(str(selection.edition), selection.checks[0].role)
    if not any(_has_subjects(selection, check, info) for check in selection.checks if check.role in info.roles):
        raise Misused(f"{name}: {NOTHING}")
    return Aim(info.name, info.version, is_steady(name))


def _has_subjects(selection: Selection, check: Any, info: TargetInfo) -> bool:
    return next(subjects(check, str(selection.edition), info), None) is not None


def _resumed(asked: Asked) -> Manifest:
    """Errors: ``Unfit``."""
    manifest = Manifest.read(asked.out).fitting()
    for aim in manifest.plan.aims:
        with Worker(aim.name, target_of(aim.name)) as worker:
            version = worker.info(manifest.plan.edition, CHECKS[manifest.plan.checks[0]].role).version
        if version != aim.version:
            raise Unfit(f"{aim.name} was {aim.version} and is {version} now: install that again, or start anew")
    return manifest


# ---- the rounds


@dataclass(slots=True)
class _Campaign:
    asked: Asked
    manifest: Manifest
    executor: Executor
    watch: Watch
    digests: dict[Key, str] = field(default_factory=dict)
    """Of all rows that count."""
    reduced: set[tuple[str, Kind]] = field(default_factory=set)
    """Targets and kinds of failures that have been reduced."""
    loose: list[Row] = field(default_factory=list)
    """Reductions of an unfinished round: reported, but not stored, since the finished round will have its own."""
    told: list[RoundEnd] = field(default_factory=list)
    before: Mapping[Key, Row] = field(default_factory=dict)
    """Rows written by an earlier driver."""
    set_aside: list[SetAside] = field(default_factory=list)
    begun: float = field(default_factory=time.monotonic)
    telling_s: float = 0.0

    @property
    def plan(self) -> Plan:
        return self.manifest.plan

    def outcome(self) -> Outcome:
        stopped: Stopped | None = None
        try:
            self._rounds()
        except Stopped as why:
            stopped = why
        except KeyboardInterrupt:
            interrupts.finish()
            stopped = Stopped("interrupted", exits.UNDECIDED)
        except (Unready, Barren) as why:  # the executor is gone
            stopped = Stopped(f"{why}; continue with --resume {self.asked.out}", exits.UNDECIDED)
        except row_files.Unread:
            raise  # no report is possible without the ledger
        except (Unfit, Unusable) as why:
            stopped = Stopped(str(why), exits.USAGE)
        except Exception as ours:  # noqa: BLE001 - reports are written on every path
            stopped = self._no_room(ours)
            if stopped is None:
                self.watch.close()
                show_traceback()
                stopped = Stopped(f"{type(ours).__name__}: {ours}", exits.OURS)
        interrupts.finish()
        self.watch.close()
        return self._end(stopped)

    def _no_room(self, why: Exception) -> Stopped | None:
        """For a full disk, which is not a bug in kipcheck."""
        if not isinstance(why, OSError) or why.errno not in NO_ROOM:
            return None
        told = f"{why.filename or self.asked.out} cannot be written: {why.strerror}"
        return Stopped(f"{told}; free some space, and continue with --resume {self.asked.out}", exits.UNDECIDED)

    def _end(self, stopped: Stopped | None) -> Outcome:
        planned = stopped is not None and stopped.code == exits.CONFORMANT
        why = None if stopped is None or planned else str(stopped)
        self.manifest = self.manifest.ended(why is None, str(stopped or "the plan"), hash_of(self.digests))
        try:
            self.manifest.write(self.asked.out)
            found = self._tell(why is None, why, exits.CONFORMANT if stopped is None else stopped.code)
        except (OSError, Unusable) as denied:
            lack = self._no_room(denied) or Stopped(f"no report: {denied}", exits.USAGE)
            return Outcome(exits.first({lack.code, stopped.code if stopped else lack.code}), why=why or str(lack))
        return Outcome(found.exit_code, found.text, why or "")

    def _rounds(self) -> None:
        holdings = row_files.read(self.asked.out)
        self._was_damaged([*holdings.set_aside, *snapshots.checked(self.asked.out)])
        self.before = holdings.rows
        snapshot = directory.first(self.asked.out, self.plan.corpus)
        if self.asked.budget is not None:
            self.watch.ends = self.begun + self.asked.budget
        if self.plan.cases is not None:
            self.watch.total = self.plan.cases * len(self.plan.aims)
        for round_ in self._numbers():
            snapshot = self._round(round_, snapshot)
            self._between()

    def _was_damaged(self, found: Sequence[SetAside]) -> None:
        self.set_aside += found
        for each in found:
            self.watch.say(str(each))

    def _numbers(self) -> Iterator[int]:
        round_ = 0
        while self.plan.rounds is None or round_ < self.plan.rounds:
            yield round_
            round_ += 1

    def _round(self, round_: int, snapshot: Snapshot) -> Snapshot:
        """Returns the snapshot for the next round."""
        begun = time.monotonic()
        rows = self._kept(round_)
        wanted = list(self.plan.shards(round_, snapshot.digest))
        try:
            self._run(round_, "hold", wanted, rows, snapshot)
            self._run(round_, "reduce", self._reductions(round_, len(wanted), wanted, rows), rows, Snapshot.empty())
        except Stopped as why:
            if why.code != exits.BROKEN:
                self._reduce_loose(round_, wanted, rows)
            raise
        finally:  # a partial round's corpus is saved too, as a start for the next campaign
            with interrupts.deferred():
                after = grown(snapshot, (row for row in rows.values() if row.stage == "hold"))
                directory.save(self.asked.out, after)
                self.watch.keys = len(after.keys)
                self._told(round_, after, rows, begun)
        return after

    def _kept(self, round_: int) -> dict[Key, Row]:
        """Rows of the round that an earlier driver wrote."""
        rows = {key: row for key, row in self.before.items() if key.round == round_ and row.status in ENDED}
        self.watch.cases += sum(row.cases for row in rows.values() if row.stage == "hold")
        self._note(rows.values())
        return rows

    def _run(self, round_: int, stage: str, shards: Sequence[Shard], rows: dict[Key, Row], snapshot: Snapshot) -> None:
        """Adds the rows of all shards to ``rows``, wave by wave. Errors: ``Stopped``; OSError."""
        left = [shard for shard in shards if shard.key not in rows]
        size = self._wave()
        dump = snapshot.dump()
        for at in range(0, len(left), size):
            if stage == "hold" and self._late():
                raise self._out_of_time(round_)
            wave = left[at : at + size]
            of = "" if self.plan.rounds is None else f"/{self.plan.rounds}"
            self.watch.stage(f"round {round_ + 1}{of} {stage}", len(wave))
            self._waved(round_, wave, dump, rows)

    def _wave(self) -> int:
        slots = self.executor.slots
        if self.plan.cases is None and self.asked.budget is not None:
            return slots * max(1, min(WAVE, int(self.asked.budget / (10 * shard_sizing.shard_s(self.asked.budget)))))
        return slots * WAVE

    def _waved(self, round_: int, wave: Sequence[Shard], dump: bytes, rows: dict[Key, Row], keep: bool = True) -> None:
        """Adds the rows of a wave to ``rows``, also those from before an interruption."""
        came: list[Row] = []
        try:
            with closing(self.executor.run(wave, dump, self.watch.tick)) as running:
                for row in running:
                    came.append(row)
                    if row.stage == "hold":
                        self.watch.held(row.cases)
                    if row.status == "unlike":
                        raise Stopped(row.detail, exits.BROKEN)
        finally:
            ended = {row.key: row for row in came if row.status in ENDED}
            rows.update(ended)
            if keep and ended:
                with interrupts.deferred():
                    row_files.write(self.asked.out, round_, row_files.next_wave(self.asked.out, round_), ended.values())
                    self._note(ended.values())

    def _note(self, rows: Iterable[Row]) -> None:
        for row in rows:
            if row.deterministic:
                self.digests[row.key] = row.digest
            if row.stage == "reduce":
                self.reduced.update((row.target, each.group) for each in row.found)
        self.watch.failures = len(self.reduced)

    def _late(self) -> bool:
        return self.watch.ends is not None and time.monotonic() >= self.watch.ends

    def _out_of_time(self, round_: int) -> Stopped:
        """Without a number of cases the end of the budget is the end of the plan."""
        code = exits.CONFORMANT if self.plan.cases is None else exits.UNDECIDED
        return Stopped(f"the budget ran out in round {round_ + 1}", code)

    # ---- reductions

    def _reductions(self, round_: int, after: int, wanted: Sequence[Shard], rows: Mapping[Key, Row]) -> list[Shard]:
        """Shards that reduce kinds of failures not reduced before, in the order of the shards that found them."""
        found: dict[str, dict[Kind, Found]] = {}
        before = self._before(rows)
        for shard in wanted:
            row = rows.get(shard.key)
            for each in row.found if row is not None else ():
                if (shard.target, each.group) not in before:
                    found.setdefault(shard.target, {}).setdefault(each.group, each)
        shards: list[Shard] = []
        for aim in self.plan.aims:
            new = tuple(found.get(aim.name, {}).values())
            shards += self.plan.reductions(round_, after + len(shards), aim, new)
        return shards

    def _before(self, rows: Mapping[Key, Row]) -> set[tuple[str, Kind]]:
        """Kinds reduced in earlier rounds; those that this round has reduced belong to its own plan."""
        mine = {(row.target, each.group) for row in rows.values() if row.stage == "reduce" for each in row.found}
        return self.reduced - mine

    def _reduce_loose(self, round_: int, wanted: Sequence[Shard], rows: Mapping[Key, Row]) -> None:
        shards = self._reductions(round_, len(wanted), wanted, rows)
        if shards:
            self.watch.stage(f"round {round_ + 1} reduce", len(shards))
            loose: dict[Key, Row] = {}
            try:
                self._waved(round_, shards, Snapshot.empty().dump(), loose, keep=False)
            finally:
                self.loose = list(loose.values())

    # ---- reports

    def _told(self, round_: int, snapshot: Snapshot, rows: Mapping[Key, Row], begun: float) -> None:
        planned = sum(1 for _ in self.plan.shards(round_, "")) + sum(row.stage == "reduce" for row in rows.values())
        seconds = self.manifest.seconds.get(round_, 0.0) + time.monotonic() - begun
        self.told.append(RoundEnd(round_, planned, len(snapshot.entries), round(seconds, 1)))
        self.manifest = replace(self.manifest, seconds={each.round: each.seconds for each in self.told})

    def _between(self) -> None:
        """Writes reports after a round, as long as they take a small share of the time."""
        now = time.monotonic()
        if self.telling_s <= TELLING * (now - self.begun):
            self.manifest.write(self.asked.out)
            self._tell(complete=False, stopped_by=None)
            self.telling_s += time.monotonic() - now

    def _tell(
        self, complete: bool, stopped_by: str | None, code: int = exits.CONFORMANT
    ) -> campaign_report.CampaignReport:
        holdings = row_files.read(self.asked.out)
        self._was_damaged(holdings.set_aside)
        rows = [*holdings.rows.values(), *self.loose]
        return campaign_report.report(
            self.asked.out, asdict(self.manifest), rows, self.told, complete, stopped_by, self.manifest.known,
            holdings.clashes, self.set_aside, code,
        )  # fmt: skip
