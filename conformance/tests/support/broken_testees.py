"""Testees with one vice each, behind the real protocol: ``python broken_testees.py VICE``.

Their codec, of HeartbeatResponse v0, is right; where a vice has one guilty case it is error code 1. Nothing of kipcheck
is imported, so that one starts in no time.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    Message: TypeAlias = dict[str, Any]
GUILTY = 1
"""An error code."""
FOREVER = 3600


class Healthy:
    """Has no vice."""

    framing = "lines"
    claims: Any = (0, 0)

    def __init__(self) -> None:
        self.framed = False
        self.heard = sys.stdin.buffer
        self.raw = sys.stdout.buffer

    def run(self) -> None:
        while (message := self.receive()) is not None:
            self.say(self.reply(message))
            if message["type"] == "configure":
                self.framed = message.get("framing") == "frames"
            if message["type"] == "bye":
                return

    def receive(self) -> Message | None:
        size = int.from_bytes(self.heard.read(4), "big") if self.framed else None
        text = self.heard.readline() if size is None else self.heard.read(size)
        return json.loads(text) if text else None

    def say(self, message: Message) -> None:
        self.shout(self.packed(json.dumps(message).encode()))

    def packed(self, text: bytes) -> bytes:
        return len(text).to_bytes(4, "big") + text if self.framed else text + b"\n"

    def shout(self, data: bytes) -> None:
        self.raw.write(data)
        self.raw.flush()

    def reply(self, message: Message) -> Message:
        match message["type"]:
            case "hello":
                return self.hello()
            case "configure":
                return {"type": "configure", "ok": True}
            case "batch":
                return self.results(message)
        return {"type": message["type"]}

    def hello(self) -> Message:
        return {
            "type": "hello", "protocol": 1, "name": "broken", "version": "1", "language": "python", "issues": "",
            "roles": ["codec"], "capabilities": {"HeartbeatResponse": self.claims}, "framing": [self.framing],
        }  # fmt: skip

    def results(self, batch: Message) -> Message:
        results = [{"n": each["n"], **self.result(each)} for each in batch["cases"]]
        return {"type": "results", "id": batch["id"], "results": results}

    def result(self, op: Message) -> Message:
        read = op["op"] != "encode"
        code = int.from_bytes(bytes.fromhex(op["hex"]), "big", signed=True) if read else op["value"]["errorCode"]
        return self.guilty(op, code) if code == GUILTY else self.right(op, code)

    def right(self, op: Message, code: int) -> Message:
        if op["op"] == "decode":
            return {"status": "accepted", "value": {"errorCode": code}}
        return {"status": "accepted", "hex": code.to_bytes(2, "big", signed=True).hex()}

    def guilty(self, op: Message, code: int) -> Message:
        return self.right(op, code)


def is_guilty(batch: Message) -> bool:
    return any(each.get("hex") == "0001" or each.get("value") == {"errorCode": 1} for each in batch["cases"])


# ---- at the start


class CrashesAtOnce(Healthy):
    def run(self) -> None:
        sys.exit("no library")


class HangsAtHello(Healthy):
    def hello(self) -> Message:
        time.sleep(FOREVER)
        return {}


class GreetsPeople(Healthy):
    """A banner before the protocol."""

    def run(self) -> None:
        self.shout(b"Welcome!\n")
        super().run()


class SpeaksBeforeItIsAsked(Healthy):
    def run(self) -> None:
        self.say(self.hello())
        time.sleep(0.2)
        super().run()


class SaysHelloTwice(Healthy):
    def hello(self) -> Message:
        self.say(super().hello())
        return super().hello()


class SpeaksAnotherVersion(Healthy):
    def hello(self) -> Message:
        return {**super().hello(), "protocol": 2}


class LeavesOutItsVersion(Healthy):
    def hello(self) -> Message:
        hello = super().hello()
        del hello["version"]
        return hello


class PlaysTheWizard(Healthy):
    def hello(self) -> Message:
        return {**super().hello(), "roles": ["codec", "wizard"]}


class ClaimsUpsideDown(Healthy):
    claims = (4, 0)


class ClaimsInWords(Healthy):
    claims = "0-4"


class RunsAway(Healthy):
    """Goes into the background: what was started ends, and its child holds the streams."""

    def run(self) -> None:
        if os.fork():
            os._exit(0)
        time.sleep(FOREVER)


class SaysNeitherYesNorNo(Healthy):
    def reply(self, message: Message) -> Message:
        return {"type": "configure"} if message["type"] == "configure" else super().reply(message)


# ---- in one case


class Crashes(Healthy):
    def guilty(self, op: Message, code: int) -> Message:
        os.kill(os.getpid(), signal.SIGSEGV)
        return {}


class LeavesInTheMiddle(Healthy):
    def guilty(self, op: Message, code: int) -> Message:
        sys.stderr.write("the last words\n")
        sys.stderr.flush()
        os._exit(0)


class Hangs(Healthy):
    def guilty(self, op: Message, code: int) -> Message:
        time.sleep(FOREVER)
        return {}


class HangsAndTells(Hangs):
    """It writes where it hangs when it is asked to, to stdout as a JVM does."""

    def run(self) -> None:
        import faulthandler

        faulthandler.register(signal.SIGUSR1, sys.stdout)
        super().run()

    def hello(self) -> Message:
        return {**super().hello(), "dump_signal": "SIGUSR1"}


class Stops(Healthy):
    """As a debugger stops it: no signal but one reaches it."""

    def guilty(self, op: Message, code: int) -> Message:
        os.kill(os.getpid(), signal.SIGSTOP)
        return {}


class Drips(Healthy):
    """A byte now and then is no answer."""

    def results(self, batch: Message) -> Message:
        if is_guilty(batch):
            for _ in range(FOREVER):
                self.shout(b" ")
                time.sleep(0.05)
        return super().results(batch)


class ClosesItsStdout(Healthy):
    def guilty(self, op: Message, code: int) -> Message:
        os.close(1)
        time.sleep(FOREVER)
        return {}


class LeavesAGrandchild(Healthy):
    """What it started holds all its streams, in a session of its own, when it is gone."""

    def guilty(self, op: Message, code: int) -> Message:
        import subprocess

        subprocess.Popen(["/bin/sleep", "20"], start_new_session=True)
        os.abort()


class Prints(Healthy):
    """As a library does that is asked to debug."""

    def guilty(self, op: Message, code: int) -> Message:
        print("debug: 1", flush=True)
        return super().guilty(op, code)


class SaysHalf(Healthy):
    def guilty(self, op: Message, code: int) -> Message:
        self.shout(b'{"type": "resu')
        os._exit(0)


class Floods(Healthy):
    """A line without an end."""

    def guilty(self, op: Message, code: int) -> Message:
        while True:
            self.shout(b"x" * 65536)


class FloodsWithLines(Healthy):
    def guilty(self, op: Message, code: int) -> Message:
        while True:
            self.shout(b"warning\n" * 8192)


class AnswersInLatin1(Healthy):
    def results(self, batch: Message) -> Message:
        if is_guilty(batch):
            self.shout(self.packed('{"type": "grüße"}'.encode("latin-1")))
        return super().results(batch)


class AnswersWithNan(Healthy):
    def guilty(self, op: Message, code: int) -> Message:
        return {"status": "accepted", "value": {"errorCode": float("nan")}}


class AnswersPastAllNumbers(Healthy):
    def results(self, batch: Message) -> Message:
        if is_guilty(batch):
            self.shout(self.packed(b'{"type": "results", "id": 1e999, "results": []}'))
        return super().results(batch)


class AnswersWithAHugeNumber(Healthy):
    """Legal JSON, and no error code."""

    def guilty(self, op: Message, code: int) -> Message:
        return {"status": "accepted", "value": {"errorCode": 10**400}}


class AnswersWithHalfACharacter(Healthy):
    """Legal JSON, and no text that could be written anywhere."""

    def guilty(self, op: Message, code: int) -> Message:
        return {"status": "rejected", "class": "\ud800", "message": "\udfff"}


class AnswersDeeply(Healthy):
    def results(self, batch: Message) -> Message:
        if is_guilty(batch):
            self.shout(self.packed(b'{"a":' * 100_000))
        return super().results(batch)


class AnswersWithAList(Healthy):
    def results(self, batch: Message) -> Message:
        if is_guilty(batch):
            self.shout(self.packed(b"[]"))
        return super().results(batch)


class InventsAStatus(Healthy):
    def guilty(self, op: Message, code: int) -> Message:
        return {"status": "splendid"}


class ForgetsTheBytes(Healthy):
    def guilty(self, op: Message, code: int) -> Message:
        return {"status": "accepted", "hex": "0", "value": None}


class NumbersItself(Healthy):
    """Another n than was asked."""

    def guilty(self, op: Message, code: int) -> Message:
        return {**self.right(op, code), "n": 1 << 40}


class NumbersWithTruth(Healthy):
    """In Python true is 1."""

    def guilty(self, op: Message, code: int) -> Message:
        return {**self.right(op, code), "n": True}


class Repeats(Healthy):
    """Two results of one case."""

    def results(self, batch: Message) -> Message:
        found = super().results(batch)
        if is_guilty(batch):
            found["results"].append(found["results"][0])
        return found


class Omits(Healthy):
    def results(self, batch: Message) -> Message:
        found = super().results(batch)
        if is_guilty(batch):
            del found["results"][-1]
        return found


class Adds(Healthy):
    """A result of a case that nobody asked for."""

    def results(self, batch: Message) -> Message:
        found = super().results(batch)
        if is_guilty(batch):
            found["results"].append({"n": batch["cases"][-1]["n"] + 1, "status": "accepted", "hex": "0000"})
        return found


class MistakesTheBatch(Healthy):
    def results(self, batch: Message) -> Message:
        return {**super().results(batch), "id": batch["id"] + is_guilty(batch)}


# ---- in company, and from batch to batch


class CrashesInCompany(Healthy):
    def results(self, batch: Message) -> Message:
        if len({each["case"] for each in batch["cases"]}) > 2:
            os.abort()
        return super().results(batch)


class HangsInCompany(Healthy):
    def results(self, batch: Message) -> Message:
        if len({each["case"] for each in batch["cases"]}) > 1:
            time.sleep(FOREVER)
        return super().results(batch)


class CrashesOnce(Healthy):
    """By chance, or so it seems."""

    def results(self, batch: Message) -> Message:
        try:
            os.close(os.open(os.environ["BROKEN_TESTEE_FLAG"], os.O_CREAT | os.O_EXCL))
            os.abort()
        except FileExistsError:
            return super().results(batch)


class EndsAfterEachBatch(Healthy):
    def say(self, message: Message) -> None:
        super().say(message)
        if message["type"] == "results":
            os._exit(0)


class EndsALittleLater(Healthy):
    """When the next batch may be on its way already."""

    def say(self, message: Message) -> None:
        super().say(message)
        if message["type"] == "results":
            time.sleep(0.02)
            os.abort()


class SpeaksALittleLater(Healthy):
    """When the next batch may be on its way already."""

    def say(self, message: Message) -> None:
        super().say(message)
        if message["type"] == "results":
            time.sleep(0.02)
            self.shout(b"done\n")


class AnswersTwice(Healthy):
    def results(self, batch: Message) -> Message:
        self.say(super().results(batch))
        return super().results(batch)


class AnswersTwiceOnce(Healthy):
    """One batch of all, so that the next one must not be blamed."""

    def results(self, batch: Message) -> Message:
        if batch["id"] == 1:
            self.say(super().results(batch))
        return super().results(batch)


class AnswersTheBatchBefore(Healthy):
    """Always one behind, under the number of the batch that was asked."""

    before: list[Message] | None = None

    def results(self, batch: Message) -> Message:
        found = super().results(batch)
        late, self.before = self.before, found["results"]
        return found if late is None else {**found, "results": late}


class MistakesAllBatches(Healthy):
    def results(self, batch: Message) -> Message:
        return {**super().results(batch), "id": -1}


class Leaks(Healthy):
    """What it read stays for the cases after it."""

    left_by: int | None = None

    def right(self, op: Message, code: int) -> Message:
        left = code == 0 and self.left_by not in (None, op["case"])
        return super().right(op, code + left)

    def guilty(self, op: Message, code: int) -> Message:
        self.left_by = op["case"]
        return super().guilty(op, code)


class CrashesAlways(Healthy):
    def right(self, op: Message, code: int) -> Message:
        os.abort()


class ChangesWithEachLife(Healthy):
    """Another version of itself after a crash."""

    def hello(self) -> Message:
        return {**super().hello(), "version": str(os.getpid())}

    def guilty(self, op: Message, code: int) -> Message:
        os.abort()


class AnswersOtherwiseInEachLife(Healthy):
    """What a life answers depends on how many there were before it."""

    def run(self) -> None:
        with open(os.environ["BROKEN_TESTEE_FLAG"], "a+") as lives:
            lives.write("+")
            self.lives = lives.tell()
        super().run()

    def guilty(self, op: Message, code: int) -> Message:
        return super().right(op, code + (self.lives == 1))


class HasManyVices(Healthy):
    """Error codes 2 to 6 each have one of their own."""

    leaving = False

    def right(self, op: Message, code: int) -> Message:
        found = super().right(op, code)
        match code:
            case 2:
                os.abort()
            case 3:
                self.shout(b"warning\n")
            case 4:
                self.leaving = True
            case 5:
                return {**found, "n": 1 << 40}
            case 6:
                self.shout(b'{"type": ')
                os._exit(1)
        return found

    def say(self, message: Message) -> None:
        super().say(message)
        if self.leaving:
            os._exit(0)


# ---- lies


class ClaimsWhatItDoesNotDo(Healthy):
    claims = (0, 1)

    def result(self, op: Message) -> Message:
        return {"status": "unsupported", "message": "v1?"} if op["version"] else super().result(op)


class SparesItself(Healthy):
    """Turns away what it does not like, and never told that it would."""

    def guilty(self, op: Message, code: int) -> Message:
        return {"status": "unsupported", "capability": "bad days", "message": "not today"}


class ToldOfItsLimits(Healthy):
    """As it should be."""

    def hello(self) -> Message:
        return {**super().hello(), "limits": {"ones": "it cannot count to one"}}

    def guilty(self, op: Message, code: int) -> Message:
        return {"status": "unsupported", "capability": "ones"}


# ---- frames


class HealthyFrames(Healthy):
    framing = "frames"


class ForgetsToFrame(HealthyFrames):
    """It agreed to frames, and goes on with lines."""

    def packed(self, text: bytes) -> bytes:
        return text + b"\n"


class FramesShort(HealthyFrames):
    """The frame ends before its length says."""

    def guilty(self, op: Message, code: int) -> Message:
        self.shout((100).to_bytes(4, "big") + b"{}")
        os._exit(0)


class FramesTooLittle(HealthyFrames):
    """The length says less than there is."""

    def results(self, batch: Message) -> Message:
        if is_guilty(batch):
            self.shout((5).to_bytes(4, "big") + b'{"type": "results"}')
        return super().results(batch)


class FramesTooMuch(HealthyFrames):
    def guilty(self, op: Message, code: int) -> Message:
        self.shout(((16 << 20) + 1).to_bytes(4, "big"))
        time.sleep(FOREVER)
        return {}


class FramesBelowZero(HealthyFrames):
    def guilty(self, op: Message, code: int) -> Message:
        self.shout((-1).to_bytes(4, "big", signed=True))
        time.sleep(FOREVER)
        return {}


class FramesNothing(HealthyFrames):
    def guilty(self, op: Message, code: int) -> Message:
        self.shout(bytes(4))
        return super().guilty(op, code)


# ---- noise, and the end


class IsLoud(Healthy):
    """More on stderr than a pipe holds, in every case."""

    def right(self, op: Message, code: int) -> Message:
        sys.stderr.write("warning\n" * 20_000)
        return super().right(op, code)


class IgnoresBye(Healthy):
    def reply(self, message: Message) -> Message:
        if message["type"] == "bye":
            time.sleep(FOREVER)
        return super().reply(message)


class IgnoresTheEnd(Healthy):
    """Neither bye nor SIGTERM."""

    def run(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        super().run()
        time.sleep(FOREVER)


class AnswersOutOfOrder(Healthy):
    """As it may."""

    def results(self, batch: Message) -> Message:
        found = super().results(batch)
        return {**found, "results": found["results"][::-1]}


class KnowsMoreKeys(Healthy):
    """As it may: what is not known is passed over."""

    def right(self, op: Message, code: int) -> Message:
        return {**super().right(op, code), "took_ms": time.monotonic()}


# ---- for a doctor


class WellBred(Healthy):
    """Foresees what a doctor tries."""

    claims = (0, 4)

    def reply(self, message: Message) -> Message:
        if message["type"] == "configure":
            known = message["role"] == "codec" and message["edition"].startswith("apache")
            return {"type": "configure", **({"ok": True} if known else {"unsupported": "never heard of it"})}
        if message["type"] not in ("hello", "batch", "bye"):
            return {"type": "unsupported"}
        return super().reply(message)

    def hello(self) -> Message:
        reported = super().hello()
        return {**reported, "capabilities": {**reported["capabilities"], "HeartbeatRequest": [0, 0]}}

    def result(self, op: Message) -> Message:
        try:
            if op["op"] not in ("encode", "decode", "recode") or not op["message"].startswith("Heartbeat"):
                return {"status": "unsupported"}
            if op["op"] == "recode":
                return {"status": "accepted", "hex": op["hex"]}
            if op["message"] == "HeartbeatRequest":
                return self.request(op)
            return super().result(op) if op["version"] == 0 else self.response(op)
        except (LookupError, ValueError, OverflowError) as wrong:
            return {"status": "internal", "class": type(wrong).__name__}

    def response(self, op: Message) -> Message:
        """Of versions 1 to 4."""
        end = b"\0" if op["version"] == 4 else b""
        if op["op"] == "encode":
            numbers = op["value"]["throttleTimeMs"] << 16 | op["value"]["errorCode"]
            return {"status": "accepted", "hex": (numbers.to_bytes(6, "big") + end).hex()}
        data = bytes.fromhex(op["hex"])
        if len(data) != 6 + len(end):
            return {"status": "rejected", "class": "Length"}
        numbers = int.from_bytes(data[:6], "big")
        return {"status": "accepted", "value": {"throttleTimeMs": numbers >> 16, "errorCode": numbers & 0xFFFF}}

    def request(self, op: Message) -> Message:
        if op["op"] == "encode":
            value = op["value"]
            group, member = (value[name].encode() for name in ("groupId", "memberId"))
            generation = value["generationId"].to_bytes(4, "big")
            data = len(group).to_bytes(2, "big") + group + generation + len(member).to_bytes(2, "big") + member
            return {"status": "accepted", "hex": data.hex()}
        data = bytes.fromhex(op["hex"])
        at = 2 + int.from_bytes(data[:2], "big")
        generation = int.from_bytes(data[at : at + 4], "big")
        value = {"groupId": data[2:at].decode(), "generationId": generation, "memberId": data[at + 6 :].decode()}
        return {"status": "accepted", "value": value}


class OnlyReads(WellBred):
    """Reads responses and writes requests, and says so."""

    response_operations: tuple[str, ...] = ("decode",)

    def hello(self) -> Message:
        operations = {"HeartbeatResponse": [*self.response_operations], "HeartbeatRequest": ["encode"]}
        return {**super().hello(), "operations": operations}

    def result(self, op: Message) -> Message:
        wanted = "encode" if op["message"] == "HeartbeatRequest" else "decode"
        return super().result(op) if op["op"] == wanted else {"status": "unsupported"}


class ClaimsAnotherOperation(OnlyReads):
    response_operations = ("decode", "recode")


class NamesNoOperation(OnlyReads):
    response_operations = ("read",)


class WellBredFrames(WellBred):
    framing = "frames"


class AnswersAnyEdition(WellBred):
    def reply(self, message: Message) -> Message:
        return super().reply({**message, "edition": "apache"} if message["type"] == "configure" else message)


class PlaysAnyRole(WellBred):
    def reply(self, message: Message) -> Message:
        return {"type": "configure", "ok": True} if message["type"] == "configure" else super().reply(message)


class ClaimsPastTheEnd(WellBred):
    claims = (7, 9)


class Misspells(WellBred):
    def hello(self) -> Message:
        reported = super().hello()
        return {**reported, "capabilities": {"HeartBeatResponse": [0, 4], "HeartbeatRequest": [0, 0]}}


class MisnamesAField(WellBred):
    def response(self, op: Message) -> Message:
        found = super().response(op)
        if "value" in found:
            found["value"] = {"throttle_time_ms": found["value"]["throttleTimeMs"], "errorCode": 1}
        return found


class CanDoNothing(WellBred):
    """Each case falls under its limit."""

    def hello(self) -> Message:
        return {**super().hello(), "limits": {"anything": "it cannot be called"}}

    def result(self, op: Message) -> Message:
        return {"status": "unsupported", "capability": "anything"}


class ForgetsAField(WellBred):
    def response(self, op: Message) -> Message:
        found = super().response(op)
        found.get("value", {}).pop("throttleTimeMs", None)
        return found


class ReadsAnotherKey(WellBred):
    def response(self, op: Message) -> Message:
        if op["op"] == "encode":
            op = {**op, "value": {**op["value"], "throttleTimeMs": op["value"].get("throttletimems", 0)}}
        return super().response(op)


class RefusesAnotherKey(WellBred):
    def response(self, op: Message) -> Message:
        if op["op"] == "encode":
            return {"status": "rejected", "class": "KeyError", "message": "'throttletimems'"}
        return super().response(op)


class DiesAtLength(WellBred):
    def results(self, batch: Message) -> Message:
        sys.stderr.write("\n".join(["a fault of the library", *(f"  at frame {n}" for n in range(20)), "the end"]))
        os.kill(os.getpid(), signal.SIGKILL)
        return super().results(batch)


class StumblesOverNothing(WellBred):
    def results(self, batch: Message) -> Message:
        if not batch["cases"]:
            sys.exit(1)
        return super().results(batch)


class OmitsTheLast(WellBred):
    def results(self, batch: Message) -> Message:
        found = super().results(batch)
        return {**found, "results": found["results"][:63]}


class CountsItsCases(WellBred):
    count = 0

    def result(self, op: Message) -> Message:
        self.count += 1
        return {**super().result(op), "message": str(self.count)}


class StumblesOverTheUnknown(WellBred):
    def result(self, op: Message) -> Message:
        if op["op"] not in ("encode", "decode", "recode"):
            sys.exit(1)
        return super().result(op)


class TakesAnything(WellBred):
    def result(self, op: Message) -> Message:
        found = super().result(op)
        return {"status": "accepted"} if found["status"] == "unsupported" else found


class StumblesOverTypes(WellBred):
    def reply(self, message: Message) -> Message:
        if message["type"] not in ("hello", "configure", "batch", "bye"):
            sys.exit(1)
        return super().reply(message)


class EchoesTypes(WellBred):
    def reply(self, message: Message) -> Message:
        found = super().reply(message)
        return message if found["type"] == "unsupported" else found


class StumblesOverHoles(WellBred):
    def result(self, op: Message) -> Message:
        found = super().result(op)
        if found["status"] == "internal":
            sys.exit(1)
        return found


class StumblesOverNovelty(WellBred):
    def result(self, op: Message) -> Message:
        if "novelty" in op:
            return {"status": "internal", "class": "TypeError"}
        return super().result(op)


class ReadsLittle(WellBred):
    """A line of a mebibyte is too much for it."""

    def receive(self) -> Message | None:
        text = self.heard.readline(1 << 20)
        found: Message = json.loads(text) if text.endswith(b"\n") else sys.exit(1)
        return found


class SpeaksAscii(WellBred):
    def request(self, op: Message) -> Message:
        if op["op"] == "encode":
            group = op["value"]["groupId"].encode("ascii", "replace").decode()
            op = {**op, "value": {**op["value"], "groupId": group}}
        return super().request(op)


class IsVeryLoud(WellBred):
    def results(self, batch: Message) -> Message:
        sys.stderr.write("warning\n" * 20_000)
        return super().results(batch)


class IgnoresFrames(WellBredFrames):
    """It offers what it cannot do."""

    def packed(self, text: bytes) -> bytes:
        return text + b"\n"

    def hello(self) -> Message:
        return {**super().hello(), "framing": ["lines", "frames"]}


class OutlivesItsStdin(WellBred):
    ended = False

    def receive(self) -> Message | None:
        found = super().receive()
        while found is None:
            time.sleep(FOREVER)
        return found


TESTEES: dict[str, type[Healthy]] = {
    "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("-"): found
    for name, found in list(globals().items())
    if isinstance(found, type) and issubclass(found, Healthy)
}

if __name__ == "__main__":
    TESTEES[sys.argv[1]]().run()
