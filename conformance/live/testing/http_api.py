"""Brokers of tests in other languages: JSON over HTTP, on loopback. ``GET /v1`` describes it."""

import asyncio
import json
import re
import uuid
from collections.abc import Callable, Coroutine, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Final, NamedTuple

from kipcheck.conformance.core.values.nearest import hint
from kipcheck.conformance.live.testing.arrivals import Expected, Request
from kipcheck.conformance.live.testing.stage import WITHIN_S, Setting, Stage, Unexpected
from kipcheck.conformance.protocols.client import ops

VERSION: Final = 1
MOST_BROKERS: Final = 100
"""Of one process, at a time."""
MOST_BYTES: Final = 1 << 20
"""Of the body of a request."""
MOST_WITHIN_S: Final = 600.0


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


class Route(NamedTuple):
    method: str
    path: str
    """Below ``/v1``; ID is that of a broker."""
    about: str
    handle: Callable[..., Coroutine[Any, Any, Any]]
    taken: Mapping[str, type | tuple[type, ...]] = {}
    """The keys of its body, with their types."""
    needed: str = ""
    """The one that it has to have."""


class Brokers:
    """The brokers of a process, by id, in one event loop."""

    def __init__(self, host: str, first: Stage) -> None:
        """``first``: that of the command, whose id is 1."""
        self.host = host
        self.stages: dict[str, Stage] = {"1": first}
        self._last = 1
        self.routes: Final = (
            Route("GET", "", "this description", self.describe),
            Route("POST", "/brokers", "starts a broker: its id and address", self.start,
                  {"script": str, "release": str, "topics": (dict, list), "config": dict}),
            Route("GET", "/brokers/ID", "its address, its topics, and the steps that are left", self.show),
            Route("DELETE", "/brokers/ID", "ends it", self.stop),
            Route("POST", "/brokers/ID/script", "plays steps; returns when all are over, or one waits", self.play,
                  {"script": str}, "script"),
            Route("POST", "/brokers/ID/finish", "waits until all steps are over", self.finish,
                  {"within": (int, float)}),
            Route("POST", "/brokers/ID/expect", "the next request of that name, which may have arrived; none: that "
                  "there is none", self.expect,
                  {"request": str, "fields": dict, "error": str, "version": int, "within": (int, float), "none": bool},
                  "request"),
            Route("GET", "/brokers/ID/requests", "all requests that arrived", self.requests),
            Route("GET", "/brokers/ID/log", "the last lines of what was exchanged", self.log),
        )  # fmt: skip

    async def handle(self, method: str, path: str, body: Mapping[str, Any]) -> Any:
        """The JSON of the answer. Errors: ``Refused``."""
        place, of_version, below = path.partition(f"/v{VERSION}")
        if place or not of_version:
            raise Refused(HTTPStatus.NOT_FOUND, f"unknown path {path}: GET /v{VERSION} describes what there is")
        given = re.fullmatch(r"(/brokers)/([^/]+)(/[a-z]+)?", below)
        wanted = f"{given[1]}/ID{given[3] or ''}" if given else below.rstrip("/")
        suiting = [route for route in self.routes if route.path == wanted]
        if not suiting:
            raise Refused(HTTPStatus.NOT_FOUND, f"unknown path {path}: GET /v{VERSION} describes what there is")
        route = next((route for route in suiting if route.method == method), None)
        if route is None:
            methods = ", ".join(route.method for route in suiting)
            raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, f"{path} is for {methods}")
        for key, value in body.items():
            if key not in route.taken:
                why = hint(key, route.taken) or f"; known: {', '.join(route.taken) or 'none'}"
                raise Refused(HTTPStatus.BAD_REQUEST, f"unknown key {key!r}{why}")
            if not isinstance(value, route.taken[key]) or isinstance(value, bool) is not (route.taken[key] is bool):
                raise Refused(HTTPStatus.BAD_REQUEST, f"{key} is of another type: {value!r}")
        if route.needed and route.needed not in body:
            raise Refused(HTTPStatus.BAD_REQUEST, f"the body has no {route.needed}")
        of = (self._stage(given[2]),) if given else ()
        try:
            return await route.handle(*of, **body)
        except Unexpected as why:
            raise Refused(HTTPStatus.CONFLICT, str(why)) from None
        except (ValueError, LookupError, TypeError) as why:
            raise Refused(HTTPStatus.BAD_REQUEST, str(next(iter(why.args), why))) from None

    def _stage(self, id: str) -> Stage:
        if id not in self.stages:
            raise Refused(HTTPStatus.NOT_FOUND, f"no broker {id}; there are: {', '.join(self.stages)}")
        return self.stages[id]

    async def describe(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "brokers": [*self.stages],
            "paths": [
                {"method": each.method, "path": f"/v{VERSION}{each.path}", "about": each.about, "keys": [*each.taken]}
                for each in self.routes
            ],
            "steps": ops.OPERATIONS.forms,
        }

    async def start(self, **wanted: Any) -> dict[str, Any]:
        if len(self.stages) >= MOST_BROKERS:
            raise Refused(HTTPStatus.CONFLICT, f"there are {MOST_BROKERS} brokers: end one with DELETE")
        stage = Stage(Setting.of(**wanted))
        try:
            await stage.open(self.host)
        except BaseException:
            await stage.close()
            raise
        self._last += 1
        self.stages[str(self._last)] = stage
        return await self.show(stage)

    async def show(self, stage: Stage) -> dict[str, Any]:
        return {
            "id": next(id for id, each in self.stages.items() if each is stage),
            "address": stage.address,
            "release": stage.broker.edition.release,
            "topics": stage.broker.topics.sizes,
            "script": stage.script.state,
        }

    async def stop(self, stage: Stage) -> dict[str, Any]:
        """Errors: ``Unplayable``, for a step that could not be played."""
        shown = await self.show(stage)
        del self.stages[shown["id"]]
        await stage.close()
        stage.script.check()
        return shown

    async def play(self, stage: Stage, script: str) -> dict[str, Any]:
        await stage.play(script)
        return await self.show(stage)

    async def finish(self, stage: Stage, within: float = WITHIN_S) -> dict[str, Any]:
        await stage.end(min(within, MOST_WITHIN_S))
        return await self.show(stage)

    async def expect(
        self,
        stage: Stage,
        request: str,
        fields: Mapping[str, Any] | None = None,
        error: str | None = None,
        version: int | None = None,
        within: float | None = None,
        none: bool = False,
    ) -> dict[str, Any]:
        wanted = Expected(request, version, error, fields or {})
        if none:
            await stage.expect_none(wanted, min(within or 0.0, MOST_WITHIN_S))
            return {}
        return in_json(await stage.expect(wanted, min(WITHIN_S if within is None else within, MOST_WITHIN_S)))

    async def requests(self, stage: Stage) -> dict[str, Any]:
        return {"requests": [*map(in_json, stage.arrivals.requests)]}

    async def log(self, stage: Stage) -> dict[str, Any]:
        return {"lines": [*stage.lines]}

    async def close(self) -> None:
        for stage in self.stages.values():
            await stage.close()


def in_json(request: Request) -> dict[str, Any]:
    return {
        "number": request.number, "request": request.name, "version": request.version,
        "at": round(request.at_s, 3), "client": request.client_id, "connection": request.connection,
        "error": request.error, "fields": request.fields, "answer": request.answer,
    }  # fmt: skip


def _plain(value: object) -> object:
    """Bytes in hexadecimal, and ids of topics. Errors: TypeError for another value, which no message has."""
    if isinstance(value, bytes | bytearray):
        return value.hex()
    if isinstance(value, uuid.UUID):
        return str(value)
    raise TypeError(f"no JSON for {value!r}")


class HttpServer:
    """Answers in threads of its own; the brokers run in the event loop that is running now."""

    def __init__(self, brokers: Brokers, host: str, port: int) -> None:
        """Errors: OSError."""
        loop = asyncio.get_running_loop()

        class Handler(_Handler):
            def ask(self, method: str, path: str, body: Mapping[str, Any]) -> Any:
                return asyncio.run_coroutine_threadsafe(brokers.handle(method, path, body), loop).result()

        self._server = ThreadingHTTPServer((host, port), Handler)
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://{host}:{port}/v{VERSION}"  # type: ignore[str-bytes-safe]

    async def close(self) -> None:
        await asyncio.to_thread(self._server.shutdown)
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def ask(self, method: str, path: str, body: Mapping[str, Any]) -> Any:
        raise NotImplementedError

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def do_DELETE(self) -> None:
        self._answer("DELETE")

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _answer(self, method: str) -> None:
        try:
            status, found = HTTPStatus.OK, self.ask(method, self.path.partition("?")[0], self._body())
        except Refused as why:
            status, found = why.status, {"error": why.why}
        data = json.dumps(found, default=_plain).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _body(self) -> dict[str, Any]:
        """Errors: ``Refused``."""
        size = self.headers.get("Content-Length", "0")
        if not size.isdigit() or int(size) > MOST_BYTES:
            self.close_connection = True
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body has 0 to {MOST_BYTES} bytes")
        data = self.rfile.read(int(size))
        if "Origin" in self.headers:  # a page of a browser, whose user did not ask for it
            raise Refused(HTTPStatus.FORBIDDEN, "pages of browsers start no brokers")
        try:
            found = json.loads(data or b"{}")
        except ValueError as why:
            raise Refused(HTTPStatus.BAD_REQUEST, f"the body is not JSON: {why}") from None
        if not isinstance(found, dict):
            raise Refused(HTTPStatus.BAD_REQUEST, "the body is a JSON object")
        return found
