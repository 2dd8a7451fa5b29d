"""A broker of a test in a thread of its own, for tests that know nothing of event loops."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any, Final, TypeVar, final

from kipcheck.conformance.live.testing.arrivals import Expected, Request
from kipcheck.conformance.live.testing.stage import WITHIN_S, Setting, Stage

T = TypeVar("T")
LINES: Final = 40
"""Of the log, in the report of a failure."""


@final
class Broker:
    """A broker on loopback, whose answers a script changes. ``broker()`` starts one.

    Its methods may be called from any thread. In a coroutine, ``await asyncio.to_thread(broker.expect, "JoinGroup")``
    lets the client go on.
    """

    def __init__(self, setting: Setting) -> None:
        """Errors: LookupError for a release without groups; ValueError for a setting or a script; OSError."""
        self._is_open = True
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="kipcheck broker", daemon=True)
        self._thread.start()
        try:
            self._stage = self._run(_opened(setting))
        except BaseException:
            self._end()
            raise

    @property
    def address(self) -> str:
        """``127.0.0.1:PORT``, for ``bootstrap.servers``."""
        return self._stage.address

    def play(self, script: str) -> None:
        """Plays steps in the shorthand of ``kipcheck run --script``, after what is left of a script before.

        Returns at once: when all steps are over, or one of them waits. ``expect`` is about what arrives after it.
        Errors: ValueError, which names the step, and says what to write in its place.
        """
        __tracebackhide__ = True
        self._run(self._stage.play(script))

    def finish(self, within: float = WITHIN_S) -> None:
        """Waits until all steps of the script are over. ``within``: seconds. Errors: AssertionError with what arrived,
        and the step that waits."""
        __tracebackhide__ = True
        self._run(self._stage.end(within))

    def expect(
        self,
        name: str,
        fields: Mapping[str, Any] | None = None,
        *,
        error: str | None = None,
        version: int | None = None,
        within: float = WITHIN_S,
    ) -> Request:
        """The next request of that name, after those that were expected: it has arrived, or arrives in so many seconds.

        ``fields``: the least that has to be in it, by the names of Kafka's message definitions. ``error``: the name of
        that in the answer, ``NONE`` for none. Errors: AssertionError with what arrived, by name and time; ValueError
        for a request or an error that there is not.
        """
        __tracebackhide__ = True
        return self._run(self._stage.expect(Expected(name, version, error, fields or {}), within))

    def expect_none(
        self,
        name: str,
        fields: Mapping[str, Any] | None = None,
        *,
        error: str | None = None,
        version: int | None = None,
        within: float = 0.0,
    ) -> None:
        """That no such request has arrived after those that were expected, nor does in so many seconds. Errors: as of
        ``expect``."""
        __tracebackhide__ = True
        self._run(self._stage.expect_none(Expected(name, version, error, fields or {}), within))

    @property
    def requests(self) -> tuple[Request, ...]:
        """All requests that arrived, the last 10,000 of them at least."""
        return self._read(lambda: tuple(self._stage.arrivals.requests))

    @property
    def log(self) -> str:
        """The last 500 lines of what was exchanged: requests, answers, and steps of scripts."""
        return self._read(lambda: "\n".join(self._stage.lines))

    @property
    def report(self) -> str:
        """The log with a title, for the report of a failure."""
        lines = self.log.splitlines()
        return "\n".join((f"kipcheck broker {self.address}, the last {LINES} lines:", *lines[-LINES:]))

    def close(self) -> None:
        """Ends the broker, and closes all connections. Errors: ValueError for a step that could not be played."""
        if not self._is_open:
            return
        self._is_open = False
        self._run(self._stage.close())
        self._end()
        self._stage.script.check()

    def _read(self, read: Callable[[], T]) -> T:
        """Also after the end."""

        async def called() -> T:
            return read()

        return self._run(called()) if self._is_open else read()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        __tracebackhide__ = True
        done = asyncio.run_coroutine_threadsafe(work, self._loop)
        if (error := done.exception()) is not None:
            raise error.with_traceback(None)  # how this module came to it helps nobody
        return done.result()


async def _opened(setting: Setting) -> Stage:
    stage = Stage(setting)
    try:
        await stage.open()
    except BaseException:
        await stage.close()
        raise
    return stage


@contextmanager
def broker(
    script: str = "",
    *,
    release: str | None = None,
    topics: Mapping[str, int] | Iterable[str] = (),
    config: Mapping[str, Any] | None = None,
) -> Iterator[Broker]:
    """A broker on a free port of 127.0.0.1, until the end of the ``with``.

    ``script``: steps that are played from its start on. ``release``: of Apache Kafka; default: the newest that kipcheck
    knows. ``topics``: their names, or partitions by name; default: t with three partitions, each with ten records.
    ``config``: settings of the broker. A failure has the log of what was exchanged as a note. Errors: ValueError for
    a script, a topic or a setting; LookupError for a release.
    """
    made = Broker(Setting.of(release, topics, config, script))
    try:
        yield made
    except BaseException as failure:
        failure.add_note(made.report)
        with suppress(ValueError):  # the failure comes first
            made.close()
        raise
    made.close()
