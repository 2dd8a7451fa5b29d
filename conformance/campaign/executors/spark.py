"""The Spark executor: one job of one task for each shard; only the driver decides, writes and waits.

A job is ``range(0, 1, 1, 1).mapInArrow(..).toArrow()``, which also works through Spark Connect. The row of a shard
comes when the shard ends, and no slow shard keeps others waiting. A shard that crashes its worker is given up at the
third attempt, and then run once more alone.

Run as a program, the module is the daemon that starts Spark's Python workers: ``spark.python.daemon.module``.
"""

import base64
import gc
import json
import math
import os
import pickle
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any, Final, NamedTuple, Protocol

from pyspark import InheritableThread, TaskContext, daemon
from pyspark.sql import SparkSession

from kipcheck.conformance.campaign.executors import preflight, shipping, spark_logging, spark_worker
from kipcheck.conformance.campaign.executors.local import Progress, Tick
from kipcheck.conformance.campaign.executors.preflight import Unready
from kipcheck.conformance.campaign.plan import Shard
from kipcheck.conformance.campaign.process.child_outcome import RETRY_FACTOR, failed_row
from kipcheck.conformance.campaign.report.row_files import Part
from kipcheck.conformance.campaign.rows import Row
from kipcheck.conformance.campaign.summary import RoundSummary
from kipcheck.conformance.targets.toolchains.temporary import temporary_folder

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
NOTHING: Final[Mapping[str, str]] = {}
TICK_S: Final = 0.25
"""Between two ticks."""
JOBS_AHEAD: Final = 2
"""Jobs beyond one for each slot."""
CANCEL_S: Final = 15.0
"""For a cancelled job: Spark gives a task two seconds before it kills its worker."""
LEAST_FOLDED: Final = 512
"""Rows that are read on workers: of fewer, the start of a job takes longer."""
FILES_OF_A_TASK: Final = 8
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
        self._require_same_environment(self._tried(1, FIRST_EXECUTOR_S))
        self.slots = workers or self._api.slots()
        self._require_same_environment(self._tried(self.slots))

    def run(self, shards: Sequence[Shard], snapshot: bytes, tick: Tick) -> Generator[Row, None, None]:
        """Errors: ``Unready`` if Spark itself has ended."""
        if not shards:
            return
        # A second limit, for a worker that does not end its shard in time.
        longest = max(shard.bounds.wall_s for shard in shards) * (1 + RETRY_FACTOR)
        with suppress(Exception):  # a server may forbid these settings
            self._session.conf.set(IDLE, str(int(2 * longest)))
            self._session.conf.set(IDLE_ENDS, "true")
        yield from self._rows(shards, spark_worker.common(snapshot), tick)

    def _rows(self, shards: Sequence[Shard], sent: Mapping[str, Any], tick: Tick) -> Generator[Row, None, None]:
        """One job for each shard, so that its row comes when it ends; a few more than there are slots, so that no slot
        waits for this process.
        """
        waiting, apart, done = deque(shards), deque[Shard](), 0
        running: dict[_Job, Shard] = {}
        ended: SimpleQueue[_Job] = SimpleQueue()
        alone = False
        try:
            while waiting or running or apart:
                if not waiting and not running:  # those that may have been ended by another shard
                    waiting, apart, alone = apart, deque(), True
                while waiting and len(running) < (1 if alone else self.slots + JOBS_AHEAD):
                    shard = waiting.popleft()
                    running[self._begin([pickle.dumps(shard)], sent, ended)] = shard
                tick(Progress(done, min(len(running), self.slots), len(shards)))
                with suppress(Empty):
                    job = ended.get(timeout=TICK_S)
                    shard = running.pop(job)
                    row = _row_of(shard, self._answers(job)[0], alone)
                    if row is None:
                        apart.append(shard)
                    else:
                        done += 1
                        yield row
            tick(Progress(done, 0, len(shards)))
        finally:
            for job in running:
                job.cancel()
            until = time.monotonic() + CANCEL_S
            for job in running:
                job.finished.wait(max(0.0, until - time.monotonic()))

    def fold(self, campaign: str, round_: int, parts: Sequence[Part]) -> Iterator[RoundSummary | Part]:
        """In one job: each task reads some files, which its worker may lack, and returns their summary."""
        if sum(len(part.keys) for part in parts) < LEAST_FOLDED:
            yield from parts
            return
        files = [part._replace(path=part.path.resolve()) for part in parts]
        packed = [
            pickle.dumps((campaign, round_, files[at : at + FILES_OF_A_TASK]))
            for at in range(0, len(files), FILES_OF_A_TASK)
        ]
        ended: SimpleQueue[_Job] = SimpleQueue()
        job = self._begin(packed, spark_worker.common(b""), ended, spark_worker.fold)
        try:
            ended.get()
        finally:
            if not job.finished.is_set():
                job.cancel()
        for answered in self._answers(job):
            if answered.kind != "summary":
                raise Unready(f"the workers of {self._where} cannot read the ledger: {answered.said}")
            summary, unread = pickle.loads(base64.b64decode(answered.said))
            yield summary
            yield from unread

    def _begin(
        self,
        packed: Sequence[bytes],
        sent: Mapping[str, Any],
        ended: "SimpleQueue[_Job]",
        answer: Answer | None = None,
    ) -> "_Job":
        name = f"kipcheck-{next(self._names)}"
        return _Job(self._session, self._api, name, len(packed), _task(answer or self._answer, sent, packed), ended)

    def _answers(self, job: "_Job") -> list[Answered]:
        """Errors: ``Unready`` if Spark itself failed."""
        if job.error is not None:
            raise Unready(spark_logging.reason(job.error, self._where)) from job.error
        return sorted(job.answers)

    def _tried(self, number: int, start_s: float = math.inf) -> list[Answered]:
        """The answers of so many tasks at once that run no shard. Errors: ``Unready``."""
        ended: SimpleQueue[_Job] = SimpleQueue()
        job = self._begin([b""] * number, spark_worker.common(b""), ended)
        try:
            ended.get(timeout=None if start_s == math.inf else start_s)
        except Empty:
            raise Unready(
                f"{self._where} has started no task for {start_s:g} s: its workers need a free core and the "
                f"memory of an executor"
            ) from None
        finally:
            if not job.finished.is_set():
                job.cancel()
        return self._answers(job)

    def _require_same_environment(self, answers: Sequence[Answered]) -> None:
        for each in answers:
            if each.kind == "unlike":
                raise Unready(f"the workers of {self._where} differ from this machine: {each.said}")
            if each.kind != "row":
                raise Unready(f"the workers of {self._where} cannot run shards: {each.said}")


def _row_of(shard: Shard, answered: Answered, alone: bool) -> Row | None:
    """None: the shard is to be run alone, because another one may have ended its worker."""
    if answered.kind == "row":
        return Row.of(json.loads(answered.said))
    return failed_row(shard, "unlike" if answered.kind == "unlike" else "infra", answered.said) if alone else None


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
    """A running job, in a thread of its own: PySpark's calls do not survive a Ctrl-C in the main thread."""

    def __init__(
        self,
        session: SparkSession,
        api: "_SessionApi",
        name: str,
        tasks: int,
        task: Callable[[Iterator[Any]], Iterator[Any]],
        ended: "SimpleQueue[_Job]",
    ) -> None:
        """``ended``: gets this job at its end."""
        self._session, self._api, self._name, self._tasks, self._task = session, api, name, tasks, task
        self._ended = ended
        self.answers: list[Answered] = []
        self.error: Exception | None = None
        self.finished = threading.Event()
        api.begin(self._run)

    def _run(self) -> None:
        try:
            self._api.tag_thread(self._name)
            numbers = self._session.range(0, self._tasks, 1, self._tasks)
            table = numbers.mapInArrow(self._task, DDL).toArrow()
            self.answers = [Answered(**each) for each in table.to_pylist()]
        except Exception as why:  # noqa: BLE001 - raised by the waiting thread
            self.error = why
        finally:
            self.finished.set()
            self._ended.put(self)

    def cancel(self) -> None:
        """Cancels the job, without waiting for its end."""
        threading.Thread(target=self._cancel, daemon=True).start()

    def _cancel(self) -> None:
        with suppress(Exception):  # the job has ended
            self._api.cancel(self._name)


class _SessionApi(Protocol):
    """The operations that differ between a session in this process and a remote one."""

    def begin(self, run: Callable[[], None], /) -> None: ...
    def tag_thread(self, name: str, /) -> None:
        """Tags the jobs of this thread."""

    def cancel(self, name: str, /) -> None: ...
    def slots(self) -> int: ...


class _ClassicSession:
    def __init__(self, session: SparkSession) -> None:
        self._context = session.sparkContext

    def begin(self, run: Callable[[], None], /) -> None:
        InheritableThread(target=run, daemon=True).start()

    def tag_thread(self, name: str, /) -> None:
        self._context.setJobGroup(name, name, interruptOnCancel=True)

    def cancel(self, name: str, /) -> None:
        self._context.cancelJobGroup(name)

    def slots(self) -> int:
        return self._context.defaultParallelism


class _ConnectSession:
    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def begin(self, run: Callable[[], None], /) -> None:
        threading.Thread(target=run, daemon=True).start()

    def tag_thread(self, name: str, /) -> None:
        self._session.addTag(name)

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
    master: str | None,
    remote: str | None,
    workers: int,
    answer: Answer = spark_worker.answer,
    *,
    ship: bool = False,
) -> Iterator[Spark]:
    """Starts Spark at ``master``, or at ``remote`` through Spark Connect; with neither, on this machine. ``workers``:
    the number of concurrent shards; 0: as many as there are cores. ``ship``: sends kipcheck, its libraries and its
    cache to the workers of ``master``. Errors: ``Unready``; OSError if the archive cannot be written.
    """
    with ExitStack() as stack:
        shipped: Mapping[str, str] = {}
        if ship:
            shipped = shipping.settings(shipping.pack(stack.enter_context(temporary_folder("ship"))))
        made, where = stack.enter_context(session(master, remote, workers, shipped))
        executor = Spark(made, remote is not None, where, answer)
        executor.ready(workers)
        yield executor


@contextmanager
def session(
    master: str | None, remote: str | None, workers: int, shipped: Mapping[str, str] = NOTHING
) -> Iterator[tuple[SparkSession, str]]:
    """The session, and the URL at which it runs. It writes nothing to the terminal. ``shipped``: the settings that send
    the workers what they need. Errors: ``Unready``.
    """
    url = preflight.master(master, workers) if remote is None else preflight.server(remote)
    preflight.libraries(remote is not None)
    preflight.require_reachable(url)
    here = preflight.on_this_machine(url)
    environment = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable} if here else {}
    if shipped:
        environment["PYSPARK_PYTHON"] = os.environ.get("PYSPARK_PYTHON", shipping.PYTHON)
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
                made = _remote(url) if remote else _classic(url, workers, here, shipped)
        except Exception as why:
            raise Unready(spark_logging.reason(why, url, capture.output)) from why
        try:
            yield made, url
        finally:
            with suppress(Exception):  # Spark may have ended
                _forget(made, shipped)
            with suppress(Exception):
                made.stop()
            capture.close()


def _classic(master: str, workers: int, here: bool, shipped: Mapping[str, str]) -> SparkSession:
    settings: dict[str, bool | float | int | str | None] = {**SESSION, **(LOCAL_SETTINGS if here else {}), **shipped}
    if workers and master.startswith("spark://"):
        settings["spark.cores.max"] = str(workers)
    elif workers and not master.startswith("local"):
        settings["spark.executor.instances"] = str(workers)
    return SparkSession.builder.master(master).config(map=settings).getOrCreate()


def _forget(made: SparkSession, shipped: Mapping[str, str]) -> None:
    """The JVM keeps the settings of its first session, and outlives it: the next one would look for the archive."""
    for name in shipped:  # a session of Spark Connect, which has no JVM here, ships nothing
        jvm: Any = made.sparkContext._jvm
        jvm.java.lang.System.clearProperty(name)


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
