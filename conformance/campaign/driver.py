"""Drives a campaign through its rounds: plan, shards, union, reports.

Only the driver writes files. It writes a row when its shard ends, and then keeps only what the row adds to the summary.
It does not run a shard again whose row is in the ledger, so a campaign that was interrupted at any point continues from
there with the same result.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self, TypeAlias

from kipcheck.conformance.campaign import directory, shard_sizing
from kipcheck.conformance.campaign.corpus import snapshots
from kipcheck.conformance.campaign.corpus.entries import Snapshot
from kipcheck.conformance.campaign.executors.choice import Chosen, ExecutorName, ready
from kipcheck.conformance.campaign.executors.local import Executor, Progress
from kipcheck.conformance.campaign.executors.preflight import Unready
from kipcheck.conformance.campaign.files import NO_ROOM, SetAside
from kipcheck.conformance.campaign.manifest import Manifest, UnusableCampaign, with_id
from kipcheck.conformance.campaign.plan import USUAL_CASES, USUAL_ROUNDS, Aim, Plan, Shard, shard_size
from kipcheck.conformance.campaign.process.shard_pool import CannotRunShards
from kipcheck.conformance.campaign.progress import CampaignProgress
from kipcheck.conformance.campaign.report import campaign_report, row_files
from kipcheck.conformance.campaign.rows import FINAL_STATUSES, Row
from kipcheck.conformance.campaign.summary import CampaignSummary, RoundEnd, RoundSummary
from kipcheck.conformance.core.files.output_folder import OutputFolder, Unusable
from kipcheck.conformance.core.files.unreadable_file import unwritable
from kipcheck.conformance.core.ledger import NAME as LEDGER
from kipcheck.conformance.core.operations.field_kinds import to_json
from kipcheck.conformance.core.values import exits
from kipcheck.conformance.engine.execution import interrupts, selection as execution_selection
from kipcheck.conformance.engine.execution.progress import show_traceback
from kipcheck.conformance.engine.execution.target_names import UNLABELED, Label, labels_of
from kipcheck.conformance.engine.execution.worker import Worker
from kipcheck.conformance.engine.findings.failures import Kind
from kipcheck.conformance.engine.known.match import known_deviations
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.targets.protocol import Broken, TargetInfo, Unavailable
from kipcheck.conformance.targets.registry import is_steady, target as target_of
from kipcheck.reports.phrases import some

ROWS_IN_A_FILE: Final = 64
"""Rows are written one by one, and so many are then put into one file."""
REPORT_SHARE: Final = 0.1
"""The largest share of the elapsed time that reports between rounds may take."""
REPORT_INTERVAL_S: Final = 60.0
"""The least time from the beginning, or from one report between rounds, to the next: a short campaign has one."""
REPORTS_S: Final = (0.05, 30.0)
"""The part of the budget that is left for the reports: a share of it and the most seconds, or twice what they took."""
REDUCTIONS_S: Final = (0.15, 600.0)
"""The part of the budget that is left for reductions, if there is something to reduce."""


@dataclass(frozen=True, slots=True)
class CampaignRequest:
    """The options of a campaign."""

    targets: tuple[str, ...] = ("kafka-python",)
    edition: str = "apache"
    checks: tuple[str, ...] = ("*",)
    """Globs over the ids of checks."""
    names: tuple[str, ...] = ()
    """Of the targets that are commands, in results, as for a run."""
    cases: int | None = None
    """For each target, over all rounds."""
    budget: float | None = None
    """Seconds, for all of it: shards that are running when it runs out are stopped."""
    rounds: int | None = None
    seed: int = 0
    known: tuple[str, ...] = ()
    executor: ExecutorName = "auto"
    workers: int = 0
    """0: one for each core."""
    master: str | None = None
    remote: str | None = None
    ship: bool = False
    """Sends kipcheck, its libraries and its cache to the workers of ``master``."""
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


class _OutOfTime(Exception):
    """The time for the stage is over."""


Ready: TypeAlias = Callable[[ExecutorName, int, str | None, str | None, bool], AbstractContextManager[Chosen]]


def campaign(request: CampaignRequest, ready: Ready = ready) -> Outcome:
    """Runs a campaign. Raises nothing: errors become an exit code and a line."""
    began = time.monotonic()
    try:
        folder = directory.checked_folder(request.out)
        with ExitStack() as stack:
            stack.enter_context(folder.trial(LEDGER))
            # Invalid options are reported before waiting for a cluster.
            resolved = _resumed_manifest(request) if request.resume else _Intent.of(request)
            where = request.executor, request.workers, request.master, request.remote, request.ship
            chosen = stack.enter_context(ready(*where))
            watch = CampaignProgress()
            stack.callback(watch.close)
            watch.note(chosen.why)
            manifest = resolved if isinstance(resolved, Manifest) else _new_manifest(request, resolved, chosen, watch)
            return _CampaignRun(request, manifest, chosen.executor, watch, began).outcome()
    except (execution_selection.InvalidOptions, UnusableCampaign, Unready, Unusable, row_files.Unreadable) as why:
        return Outcome(exits.USAGE, why=str(why))
    except OSError as denied:
        return Outcome(exits.USAGE, why=unwritable(denied, request.out))
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
    def of(cls, request: CampaignRequest) -> Self:
        """Errors: ``InvalidOptions``, ``Unavailable``, ``Broken``, ``UnusableCampaign``, OSError."""
        options = execution_selection.Options(
            targets=request.targets, edition=request.edition, checks=request.checks, known=request.known,
            names=request.names,
        )  # fmt: skip
        selection = execution_selection.Selection.of(options)
        known_deviations(options)  # reports invalid lists before anything runs
        directory.require_no_unfinished(request.out)
        corpus = directory.starting_corpus(request.corpus)  # before the folder is cleared, which may contain it
        aims, skipped = _aims(selection, options)
        return cls(tuple(each.id for each in selection.checks), aims, skipped, corpus)


def _new_manifest(request: CampaignRequest, intent: _Intent, chosen: Chosen, watch: CampaignProgress) -> Manifest:
    """Writes nothing before all values of the manifest are known. Errors: ``Unusable``; OSError."""
    by_time = request.cases is None and request.budget is not None
    cases = None if by_time else request.cases or USUAL_CASES
    rounds = request.rounds if by_time else request.rounds or min(USUAL_ROUNDS, cases or USUAL_ROUNDS)
    plan = Plan(
        "", intent.aims, request.edition, intent.checks, "mixed", request.seed, cases, rounds,
        shard_size(cases or 1, rounds or 1), corpus=intent.corpus.digest,
    )  # fmt: skip
    if by_time:
        assert request.budget is not None
        watch.note("measuring how many cases make a shard")
        plan = shard_sizing.sized(with_id(plan), request.budget, chosen.executor.slots)
    settings = {
        "executor": chosen.executor.name, "slots": chosen.executor.slots, "budget_s": request.budget, **chosen.settings,
    }  # fmt: skip
    manifest = Manifest.of(with_id(plan), settings, request.known, intent.skipped)
    earlier_corpus = directory.earlier_snapshot(request.out)
    directory.clear_for_new(request.out)
    if earlier_corpus is not None and earlier_corpus != snapshots.snapshot_path(request.out, intent.corpus.digest):
        watch.note(
            f"the corpus of the previous campaign is kept in {earlier_corpus}; to start from it: --corpus "
            f"{earlier_corpus}"
        )
    if intent.corpus.digest:
        directory.save(request.out, intent.corpus)
    manifest.write(request.out)
    return manifest


def _aims(
    selection: execution_selection.Selection, options: execution_selection.Options
) -> tuple[tuple[Aim, ...], Mapping[str, str]]:
    """The targets, and those that are not available with the reason, if others are."""
    targets, labels = options.targets, labels_of(options)
    found: list[Aim] = []
    skipped: dict[str, str] = {}
    for name in dict.fromkeys(targets):
        try:
            found.append(_aim(selection, name, labels.get(name, UNLABELED)))
        except LookupError as unknown:
            raise execution_selection.InvalidOptions(str(unknown)) from None
        except Unavailable as missing:
            if len(targets) == 1:
                raise
            skipped[name] = str(missing)
    if not found:
        raise Unavailable("; ".join(skipped.values()))
    names = Counter(each.label or each.name for each in found)
    if twice := [each.name for each in found if names[each.label or each.name] > 1]:
        raise execution_selection.InvalidOptions(
            f"{' and '.join(twice)} have the same name: give each cmd: and broker: target a --name"
        )
    return tuple(found), skipped


def _aim(selection: execution_selection.Selection, name: str, label: Label) -> Aim:
    with Worker(name, target_of(name), *label) as worker:
        info = worker.info(str(selection.edition), selection.checks[0].role)
    if not any(_has_subjects(selection, check, info) for check in selection.checks if check.role in info.roles):
        raise execution_selection.InvalidOptions(f"{name}: {execution_selection.NOTHING_SELECTED}")
    named = info.name if info.command else ""
    return Aim(name, info.version, is_steady(name), label=named, states_version=not label.version)


def _has_subjects(selection: execution_selection.Selection, check: Any, info: TargetInfo) -> bool:
    return next(execution_selection.subjects(check, str(selection.edition), info), None) is not None


def _resumed_manifest(request: CampaignRequest) -> Manifest:
    """Errors: ``Unfit``."""
    manifest = Manifest.read(request.out).require_same_versions()
    for aim in manifest.plan.aims:
        with Worker(aim.name, target_of(aim.name)) as worker:
            version = worker.info(manifest.plan.edition, CHECKS[manifest.plan.checks[0]].role).version
        if aim.states_version and version != aim.version:
            raise UnusableCampaign(
                f"{aim.name} was {aim.version} and is {version} now: install that again, or start anew"
            )
    return manifest


# ---- the rounds


@dataclass(slots=True)
class _CampaignRun:
    request: CampaignRequest
    manifest: Manifest
    executor: Executor
    watch: CampaignProgress
    started_at: float = field(default_factory=time.monotonic)
    summary: CampaignSummary = field(default_factory=CampaignSummary)
    """Of the rounds before."""
    reduced: set[tuple[str, Kind]] = field(default_factory=set)
    """Targets and kinds of failures that have been reduced."""
    clashes: list[row_files.Clash] = field(default_factory=list)
    set_aside: list[SetAside] = field(default_factory=list)
    unreduced: set[tuple[str, Kind]] = field(default_factory=set)
    """Those that have been found, and not reduced."""
    reported_at: float = field(default_factory=time.monotonic)
    reporting_s: float = 0.0
    last_report_s: float = 0.0

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
        except (Unready, CannotRunShards) as why:  # the executor is gone
            stopped = Stopped(f"{why}; continue with --resume {self.request.out}", exits.UNDECIDED)
        except row_files.Unreadable:
            raise  # no report is possible without the ledger
        except (UnusableCampaign, Unusable) as why:
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
        message = unwritable(why, self.request.out)
        return Stopped(f"{message}; free some space, and continue with --resume {self.request.out}", exits.UNDECIDED)

    def _end(self, stopped: Stopped | None) -> Outcome:
        planned = stopped is not None and stopped.code == exits.CONFORMANT
        reason = str(stopped or "the plan")
        if self.unreduced:
            reason += f"; {some(len(self.unreduced), 'failure')} not reduced: --resume {self.request.out} reduces more"
        why = None if stopped is None or planned else reason
        self.manifest = self.manifest.ended(why is None, reason, self.summary.hash)
        try:
            self.manifest.write(self.request.out)
            found = self._report(why is None, why, exits.CONFORMANT if stopped is None else stopped.code)
        except (OSError, Unusable) as denied:
            lack = self._no_room(denied) or Stopped(f"no report: {denied}", exits.USAGE)
            return Outcome(exits.first({lack.code, stopped.code if stopped else lack.code}), why=why or str(lack))
        return Outcome(found.exit_code, found.text, why or "")

    def _rounds(self) -> None:
        self._note_damaged(snapshots.set_aside_damaged(self.request.out))
        snapshot = directory.first_snapshot(self.request.out, self.plan.corpus)
        if self.request.budget is not None:
            self.watch.ends = self.started_at + self.request.budget
        if self.plan.cases is not None:
            self.watch.total = self.plan.cases * len(self.plan.aims)
        for round_ in self._numbers():
            snapshot = self._round(round_, snapshot)
            if round_ + 1 != self.plan.rounds:
                self._report_between_rounds()

    def _note_damaged(self, found: Sequence[SetAside]) -> None:
        self.set_aside += found
        for each in found:
            self.watch.note(str(each))

    def _numbers(self) -> Iterator[int]:
        round_ = 0
        while self.plan.rounds is None or round_ < self.plan.rounds:
            yield round_
            round_ += 1

    def _round(self, round_: int, snapshot: Snapshot) -> Snapshot:
        """Returns the snapshot for the next round."""
        started_at = time.monotonic()
        summary = self._rows_before(round_)
        planned_shards = list(self.plan.shards(round_, snapshot.digest))
        try:
            try:
                self._run("hold", planned_shards, summary, snapshot)
            except Stopped as why:
                if why.code != exits.BROKEN:
                    self._reduce_partial(len(planned_shards), summary)
                raise
            self._run("reduce", self._reductions(len(planned_shards), summary), summary, Snapshot.empty())
        finally:  # a partial round's corpus is saved too, as a start for the next campaign
            with interrupts.deferred():
                after = summary.corpus.after(snapshot)
                self.watch.keys = len(after.keys)
                self._end_round(summary, len(planned_shards), after, started_at)
                directory.save(self.request.out, after)
        return after

    def _rows_before(self, round_: int) -> RoundSummary:
        """The rows of the round that an earlier driver wrote."""
        summary = RoundSummary(self.plan.campaign, round_)
        scan = row_files.Scan(self.request.out, [round_])
        for found in self.executor.fold(summary.campaign, round_, scan.parts(round_)):
            if isinstance(found, RoundSummary):
                summary.unite(found)
            else:
                summary.add_final(scan.rows_of(found))
        for name, target in summary.targets.items():
            self.reduced.update((name, group) for group, kind in target.kinds.items() if kind.alone)
            self.reduced.update((name, group) for group in target.reduced)
            self.unreduced |= {(name, group) for group in target.kinds}
        self.unreduced -= self.reduced
        self.watch.failures = len(self.reduced)
        self.watch.cases += summary.cases
        self.clashes += scan.clashes
        self._note_damaged(scan.set_aside)
        return summary

    def _run(self, stage: str, shards: Sequence[Shard], summary: RoundSummary, snapshot: Snapshot) -> None:
        """Adds the rows of all shards to ``summary``. Errors: ``Stopped``; OSError."""
        pending = [shard for shard in shards if shard.key.shard not in summary.ends]
        if pending:
            of = "" if self.plan.rounds is None else f"/{self.plan.rounds}"
            self.watch.stage(f"round {summary.round + 1}{of} {stage}", len(pending))
            rows = _RowWriter(self.request.out, summary.round)
            try:
                for row in self._rows(pending, snapshot):
                    if row.status in FINAL_STATUSES:
                        self._add(row, summary)
                        rows.write(row)
            except _OutOfTime:
                raise self._out_of_time(summary.round) from None
            finally:
                with interrupts.deferred():
                    rows.close()

    def _rows(self, shards: Sequence[Shard], snapshot: Snapshot) -> Iterator[Row]:
        """Runs shards of one stage. Errors: ``_OutOfTime``; ``Stopped``."""
        is_out_of_time = self._is_out_of_time_to_hold if shards[0].stage == "hold" else self._is_out_of_time_to_reduce

        def tick(shards: Progress) -> None:
            self.watch.tick(shards)
            if is_out_of_time():
                raise _OutOfTime

        if is_out_of_time():
            raise _OutOfTime
        with closing(self.executor.run(shards, snapshot.dump(), tick)) as running:
            for row in running:
                if row.stage == "hold":
                    self.watch.add_cases(row.cases)
                yield row
                if row.status == "unlike":
                    raise Stopped(row.detail, exits.BROKEN)

    def _add(self, row: Row, summary: RoundSummary) -> None:
        summary.add(row)
        if row.stage == "reduce":
            self.reduced.update((row.target, each.group) for each in row.found)
        self._note_kinds(row)
        self.watch.failures = len(self.reduced)

    def _note_kinds(self, row: Row) -> None:
        kinds = {(row.target, each.group) for each in row.found}
        if row.stage == "reduce":
            self.unreduced -= kinds
        else:
            self.unreduced |= kinds - self.reduced

    def _is_out_of_time_to_hold(self) -> bool:
        return self._is_out_of_time(self._reports_s() + (self._reserve(*REDUCTIONS_S) if self.unreduced else 0.0))

    def _is_out_of_time_to_reduce(self) -> bool:
        return self._is_out_of_time(self._reports_s())

    def _reports_s(self) -> float:
        return max(self._reserve(*REPORTS_S), 2 * self.last_report_s)

    def _reserve(self, share: float, most_s: float) -> float:
        return min(share * (self.request.budget or 0.0), most_s)

    def _is_out_of_time(self, reserved_s: float = 0.0) -> bool:
        return self.watch.ends is not None and time.monotonic() >= self.watch.ends - reserved_s

    def _out_of_time(self, round_: int) -> Stopped:
        """Without a number of cases the end of the budget is the end of the plan."""
        code = exits.CONFORMANT if self.plan.cases is None else exits.UNDECIDED
        return Stopped(f"the budget ran out in round {round_ + 1}", code)

    # ---- reductions

    def _reductions(self, after: int, summary: RoundSummary) -> list[Shard]:
        """Shards that reduce kinds of failures not reduced before, in the order in which they were found."""
        shards: list[Shard] = []
        for aim in self.plan.aims:
            before, here = self.summary.targets.get(aim.name), summary.targets.get(aim.name)
            reduced = {group for group, kind in before.kinds.items() if kind.alone} if before is not None else set()
            kinds = here.kinds if here is not None else {}
            new = sorted((kind.at, kind.first) for group, kind in kinds.items() if group not in reduced)
            found = tuple(first for _, first in new)
            shards += self.plan.reductions(summary.round, after + len(shards), aim, found)
        return shards

    def _reduce_partial(self, after: int, summary: RoundSummary) -> None:
        """For an unfinished round. The result is reported, but not stored: the finished round will have its own."""
        shards = self._reductions(after, summary)
        if shards:
            self.watch.stage(f"round {summary.round + 1} reduce", len(shards))
            with suppress(_OutOfTime):  # the report names what is not reduced
                for row in self._rows(shards, Snapshot.empty()):
                    summary.add_reductions(row)
                    self._note_kinds(row)

    # ---- reports

    def _end_round(self, summary: RoundSummary, planned: int, after: Snapshot, started_at: float) -> None:
        round_ = summary.round
        planned += sum(each.stage == "reduce" for each in summary.ends.values())
        seconds = self.manifest.seconds.get(round_, 0.0) + time.monotonic() - started_at
        self.summary.add(summary, RoundEnd(round_, planned, len(after.entries), seconds))
        self.manifest = replace(self.manifest, seconds={each.round: each.seconds for each in self.summary.rounds})

    def _report_between_rounds(self) -> None:
        """Writes reports after a round, as long as they take a small share of the time."""
        now = time.monotonic()
        if now - self.reported_at < REPORT_INTERVAL_S or self._is_out_of_time(2 * self._reports_s()):
            return
        if self.reporting_s <= REPORT_SHARE * (now - self.started_at):
            self.manifest.write(self.request.out)
            self._report(complete=False, stopped_by=None)
            self.reported_at = time.monotonic()
            self.last_report_s = self.reported_at - now
            self.reporting_s += self.last_report_s

    def _report(
        self, complete: bool, stopped_by: str | None, code: int = exits.CONFORMANT
    ) -> campaign_report.CampaignReport:
        return campaign_report.report(
            self.request.out,
            to_json(self.manifest),
            self.summary,
            complete,
            stopped_by,
            self.manifest.known,
            self.clashes,
            self.set_aside,
            code,
        )


@dataclass(slots=True)
class _RowWriter:
    """Writes each row of a stage when it comes, and puts many of them into one file."""

    out: Path
    round: int
    rows: list[Row] = field(default_factory=list)
    singles: list[Path] = field(default_factory=list)
    """Their files, until all are in one file."""

    def write(self, row: Row) -> None:
        self.rows.append(row)
        self.singles.append(self._write([row], as_lines=True))
        if len(self.rows) == ROWS_IN_A_FILE:
            self.close()

    def close(self) -> None:
        """Puts the rows into one file. Errors: ``Full``; OSError."""
        if self.rows:
            self._write(self.rows)
            OutputFolder(self.out).forget({str(each.relative_to(self.out)) for each in self.singles})
            self.rows, self.singles = [], []

    def _write(self, rows: Sequence[Row], as_lines: bool = False) -> Path:
        return row_files.write(self.out, self.round, row_files.next_wave(self.out, self.round), rows, as_lines)
