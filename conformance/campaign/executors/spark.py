"""The Spark executor: one task for each shard; only the driver decides, writes and waits.

A wave is one job, ``range(0, n, 1, n).mapInArrow(..).toArrow()``: nothing else gives exactly one task per shard without
a shuffle, and it also works through Spark Connect. A shard that crashes its worker is given up at the third attempt,
which costs the job nothing, and then run once more in a job of its own.

Run as a program, the module is the daemon that starts Spark's Python workers: ``spark.python.daemon.module``.
"""

import gc
import json
import math
import pickle
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count
from typing import Any, Final, NamedTuple, Protocol

from pyspark import InheritableThread, TaskContext, daemon
from pyspark.sql import SparkSession

from kipcheck.conformance.campaign.executors import preflight, spark_logging, spark_worker
from kipcheck.conformance.campaign.executors.local import Progress, Tick
from kipcheck.conformance.campaign.executors.preflight import Unready
from kipcheck.conformance.campaign.plan import Shard
from kipcheck.conformance.campaign.process.child_outcome import RETRY_FACTOR, failed_row
from kipcheck.conformance.campaign.rows import Row

Answer = Callable[[Mapping[str, Any], bytes, int], tuple[str, str]]
"""``spark_worker.answer``, or a replacement in tests."""

DDL: Final = "number long, kind string, said string"
SESSION: Final = {
    "spark.app.name": "kipcheck",
    # The third attempt of a shard answers without running it: it must be possible, with room for failures that are
    # not caused by the shard.
    "spark.task.maxFailures": "8",
    "spark.python.daemon.module": "kipcheck.conformance.campaign.executors.spark",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
}
SMALL_JVM: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For a JVM that only schedules tasks: its start takes two thirds of the processor time."""
LOCAL_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": SMALL_JVM,
    "spark.executor.extraJavaOptions": SMALL_JVM,
}
"""For Spark on this machine: no port listens on the network."""
MODE: Final = (
    "SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_CONNECT_MODE", "SPARK_API_MODE",
)  # fmt: skip
"""Variables by which PySpark remembers, for the whole process, that it uses a server."""
IDLE: Final = "spark.sql.execution.pyspark.udf.idleTimeoutSeconds"
IDLE_ENDS: Final = "spark.sql.execution.pyspark.udf.killOnIdleTimeout"
TICK_S: Final = 0.25
"""Between two ticks."""
POLL_S: Final = 2.0
"""Between two queries of a job's progress, each of which costs the JVM some milliseconds."""
CANCEL_S: Final = 15.0
"""For a cancelled job: Spark gives a task two seconds before it kills its worker."""
FIRST_EXECUTOR_S: Final = 300.0
"""The time for the first executor to start."""


class Answered(NamedTuple):
    number: int
    """The index of the shard in its job."""
    kind: str
    said: str


class Spark:
    """An ``Executor``; created by ``spark``."""

    name = "spark"

    def __init__(self, session: SparkSession, remote: bool, where: str, answer: Answer = spark_worker.answer) -> None:
        self._session, self._where, self._answer = session, where, answer
        self._api: _SessionApi = _ConnectSession(session) if remote else _ClassicSession(session)
        self._names = count()
        self.slots = 1

    def ready(self, workers: int) -> None:
        """Waits for the first executor, and checks that its Python matches this one. Errors: ``Unready``."""
        self._require_same_environment(self._wave([b""], b"", _no_tick, FIRST_EXECUTOR_S))
        self.slots = workers or self._api.slots()
        self._require_same_environment(self._wave([b""] * self.slots, b"", _no_tick))

    def run(self, shards: Sequence[Shard], snapshot: bytes, tick: Tick) -> Generator[Row, None, None]:
        """The rows of a wave come when all of it is done. Errors: ``Unready`` if Spark itself has ended."""
        if not shards:
            return
        # A second limit, for a worker that does not end its shard in time.
        longest = max(shard.bounds.wall_s for shard in shards) * (1 + RETRY_FACTOR)
        with suppress(Exception):  # a server may forbid these settings
            self._session.conf.set(IDLE, str(int(2 * longest)))
            self._session.conf.set(IDLE_ENDS, "true")
        apart = []
        for number, kind, content in self._wave([pickle.dumps(shard) for shard in shards], snapshot, tick):
            if kind == "row":
                yield Row.of(json.loads(content))
            else:
                apart.append(shards[number])
        for done, shard in enumerate(apart, len(shards) - len(apart)):
            tick(Progress(done, 1, len(shards)))
            yield self._run_apart(shard, snapshot)

    def _run_apart(self, shard: Shard, snapshot: bytes) -> Row:
        """Runs a shard in a job of its own, because another shard may have caused the crash."""
        ((_, kind, content),) = self._wave([pickle.dumps(shard)], snapshot, _no_tick)
        if kind == "row":
            return Row.of(json.loads(content))
        return failed_row(shard, "unlike" if kind == "unlike" else "infra", content)

    def _wave(self, packed: Sequence[bytes], snapshot: bytes, tick: Tick, start_s: float = math.inf) -> list[Answered]:
        """Errors: ``Unready``."""
        job = _Job(self._session, self._api, f"kipcheck-{next(self._names)}", len(packed),
                   _task(self._answer, spark_worker.common(snapshot), packed))  # fmt: skip
        has_begun, latest = False, time.monotonic() + start_s
        try:
            while not job.finished.wait(TICK_S):
                tick(replace(job.progress, running=min(job.progress.running, self.slots)))
                has_begun = has_begun or bool(job.progress.done or job.progress.running)
                if not has_begun and time.monotonic() > latest:
                    raise Unready(
                        f"{self._where} has started no task for {start_s:g} s: its workers need a free core and the "
                        f"memory of an executor"
                    )
        finally:
            job.end()
        if job.error is not None:
            raise Unready(spark_logging.reason(job.error, self._where)) from job.error
        return sorted(job.answers)

    def _require_same_environment(self, answers: Sequence[Answered]) -> None:
        for each in answers:
            if each.kind == "unlike":
                raise Unready(f"the workers of {self._where} differ from this machine: {each.said}")
            if each.kind != "row":
                raise Unready(f"the workers of {self._where} cannot run shards: {each.said}")


def _no_tick(progress: Progress) -> None:
    """A tick that does nothing."""


def _task(answer: Answer, sent: Mapping[str, Any], packed: Sequence[bytes]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function that Spark calls in a worker, with the numbers of the task's shards: exactly one."""

    def answered(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow  # imported in workers only

        schema = pyarrow.schema([("number", pyarrow.int64()), ("kind", pyarrow.string()), ("said", pyarrow.string())])
        context = TaskContext.get()
        assert context is not None
        for batch in batches:
            for number in batch.column(0).to_pylist():
                kind, content = answer(sent, packed[number], context.attemptNumber())
                yield pyarrow.RecordBatch.from_pylist([Answered(number, kind, content)._asdict()], schema)

    return answered


# ---- jobs


class _Job:
    """A running wave, in a thread of its own: PySpark's calls do not survive a Ctrl-C in the main thread."""

    def __init__(
        self,
        session: SparkSession,
        way: "_SessionApi",
        name: str,
        total: int,
        task: Callable[[Iterator[Any]], Iterator[Any]],
    ) -> None:
        self._session, self._api, self._name, self._total, self._task = session, way, name, total, task
        self.progress = Progress(0, 0, total)
        self.answers: list[Answered] = []
        self.error: Exception | None = None
        self.finished = threading.Event()
        way.begin(self, self._run)

    def _run(self) -> None:
        try:
            self._api.tag_thread(self._name)
            numbers = self._session.range(0, self._total, 1, self._total)
            table = numbers.mapInArrow(self._task, DDL).toArrow()
            self.answers = [Answered(**each) for each in table.to_pylist()]
        except Exception as why:  # noqa: BLE001 - raised by the waiting thread
            self.error = why
        finally:
            self.finished.set()

    def set_progress(self, done: int, running: int) -> None:
        self.progress = Progress(done, running, self._total)

    def poll(self) -> None:
        """Polls the progress, in another thread."""
        while not self.finished.wait(POLL_S):
            with suppress(Exception):  # progress is only displayed
                self.set_progress(*self._api.task_counts(self._name))

    def end(self) -> None:
        """Cancels the job if it is not finished."""
        if not self.finished.is_set():
            off = threading.Thread(target=self._cancel, daemon=True)
            off.start()
            self.finished.wait(CANCEL_S)

    def _cancel(self) -> None:
        with suppress(Exception):  # the job has ended
            self._api.cancel(self._name)


class _SessionApi(Protocol):
    """The operations that differ between a session in this process and a remote one."""

    def begin(self, job: _Job, run: Callable[[], None], /) -> None: ...
    def tag_thread(self, name: str, /) -> None:
        """Tags the jobs of this thread."""

    def task_counts(self, name: str, /) -> tuple[int, int]:
        """Finished and running tasks."""

    def cancel(self, name: str, /) -> None: ...
    def slots(self) -> int: ...


class _ClassicSession:
    def __init__(self, session: SparkSession) -> None:
        self._context = session.sparkContext
        self._tracker = self._context.statusTracker()

    def begin(self, job: _Job, run: Callable[[], None], /) -> None:
        for each in (run, job.poll):
            InheritableThread(target=each, daemon=True).start()

    def tag_thread(self, name: str, /) -> None:
        self._context.setJobGroup(name, name, interruptOnCancel=True)

    def task_counts(self, name: str, /) -> tuple[int, int]:
        done = running = 0
        for job in self._tracker.getJobIdsForGroup(name):
            found = self._tracker.getJobInfo(job)
            for stage in map(self._tracker.getStageInfo, found.stageIds if found is not None else ()):
                if stage is not None:
                    done += stage.numCompletedTasks
                    running += min(stage.numActiveTasks, stage.numTasks - stage.numCompletedTasks)
        return done, running

    def cancel(self, name: str, /) -> None:
        self._context.cancelJobGroup(name)

    def slots(self) -> int:
        return self._context.defaultParallelism


class _ConnectSession:
    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._job: _Job | None = None
        session.registerProgressHandler(self._on_progress)  # type: ignore[arg-type]  # it is called with keywords

    def _on_progress(self, **progress: Any) -> None:
        """Must not raise: Spark ends a job whose progress handler fails."""
        job = self._job
        with suppress(Exception):
            if job is not None and progress["stages"]:
                done = sum(stage.num_completed_tasks for stage in progress["stages"])
                job.set_progress(done, progress["inflight_tasks"])

    def begin(self, job: _Job, run: Callable[[], None], /) -> None:
        self._job = job
        threading.Thread(target=run, daemon=True).start()

    def tag_thread(self, name: str, /) -> None:
        self._session.addTag(name)

    def task_counts(self, name: str, /) -> tuple[int, int]:
        raise NotImplementedError("the progress handler reports it")

    def cancel(self, name: str, /) -> None:
        self._session.interruptTag(name)

    def slots(self) -> int:
        """The number of partitions that the server makes by default."""
        return self._session.range(1 << 12).mapInArrow(_one_each, "one long").count()


def _one_each(batches: Iterator[Any]) -> Iterator[Any]:
    import pyarrow

    for _ in batches:
        pass
    yield pyarrow.RecordBatch.from_pydict({"one": [1]})


# ---- sessions


@contextmanager
def spark(
    master: str | None, remote: str | None, workers: int, answer: Answer = spark_worker.answer
) -> Iterator[Spark]:
    """Starts Spark at ``master``, or at ``remote`` through Spark Connect; with neither, on this machine. ``workers``:
    the number of concurrent shards; 0: as many as there are cores. Errors: ``Unready``.
    """
    with session(master, remote, workers) as (made, where):
        executor = Spark(made, remote is not None, where, answer)
        executor.ready(workers)
        yield executor


@contextmanager
def session(master: str | None, remote: str | None, workers: int) -> Iterator[tuple[SparkSession, str]]:
    """The session, and the URL at which it runs. It writes nothing to the terminal. Errors: ``Unready``."""
    url = preflight.master(master, workers) if remote is None else preflight.server(remote)
    preflight.libraries(remote is not None)
    preflight.require_reachable(url)
    here = preflight.on_this_machine(url)
    environment = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable} if here else {}
    if remote is None:
        environment["JAVA_HOME"] = str(preflight.java())
    capture = spark_logging.OutputCapture()
    with spark_logging.quiet_loggers(), spark_logging.environment_set(dict.fromkeys(MODE)):
        try:
            with (
                capture.while_starting(),
                spark_logging.environment_set(environment),
                spark_logging.keep_sigint_handler(),
            ):
                made = _remote(url) if remote else _classic(url, workers, here)
        except Exception as why:
            raise Unready(spark_logging.reason(why, url, capture.output)) from why
        try:
            yield made, url
        finally:
            with suppress(Exception):  # Spark may have ended
                made.stop()
            capture.close()


def _classic(master: str, workers: int, here: bool) -> SparkSession:
    settings: dict[str, bool | float | int | str | None] = {**SESSION, **(LOCAL_SETTINGS if here else {})}
    if workers and master.startswith("spark://"):
        settings["spark.cores.max"] = str(workers)
    elif workers and not master.startswith("local"):
        settings["spark.executor.instances"] = str(workers)
    return SparkSession.builder.master(master).config(map=settings).getOrCreate()


def _remote(url: str) -> SparkSession:
    return SparkSession.builder.remote(url).create()


# ---- the daemon


def _freeze_after_task(work: Callable[..., int]) -> Callable[..., int]:
    """Spark's worker collects garbage after each task, over all imported modules: this freezes them after the first."""

    def worker(*arguments: Any) -> int:
        code = work(*arguments)
        if not gc.get_freeze_count():
            gc.collect()
            gc.freeze()
        return code

    return worker


if __name__ == "__main__":
    daemon.worker = _freeze_after_task(daemon.worker)
    daemon.manager()
