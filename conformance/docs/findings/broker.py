#!/usr/bin/env python3
"""A broker for one consumer that disturbs it once it is a member of its group, and prints what it sends.

python3 broker.py [OPTION]... COMMAND...    starts the command with the address of the broker as its last argument; ends
                                            it with SIGTERM. It subscribes to topic t (4 partitions).
--answer API=CODE[*N]   the next request of that kind (the next N) is answered with an error
--refuse API=CODE       all further requests of that kind are answered with an error
--cut API=WHEN          the connection is reset before, amid or after the answer to the next request of that kind
--late API=MS           requests of that kind are answered MS after the consumer was assigned its partitions
--slow API=MS           each request of that kind is answered so much later, once the consumer is a member
--member HEX            another member of the group, with this subscription
--follow                another member leads, and assigns t-0 and t-1 to the consumer
--take                  the same, but only after the first rebalance: until then the consumer leads, and has t-0 to t-3
--consumer              the group has the protocol of KIP-848, of which there is ConsumerGroupHeartbeat alone
--down MS               the broker closes all connections, and refuses others for so long; another node is down anyway
--fence                 another process takes the instance id of the consumer
--count API=N           says at the end whether there were more than N requests of that kind in a second
--silence API=MS        says at the end whether the member sent none of these requests for so long
--show API,...          the requests that are printed, and Connection; equal lines that follow each other once
--seconds N             SIGTERM is sent so long after the consumer was assigned its partitions (4), or 8 s
                        after it joined

It needs Python 3.9 or later and nothing else. Group and log are the least that a consumer needs.
"""

import argparse
import asyncio
import itertools
import re
import struct
import time
from collections import deque
from typing import Any

MESSAGES = """
0 Produce 3 7
>
<
1 Fetch 4 11
> replica:i4 wait:i4 min:i4 max:i4 isolation:i1 session:i4@7 number:i4@7
  topics[name:s partitions[index:i4 epoch:i4@9 offset:i8 start:i8@5 max:i4]]
< throttle:i4 error:i2@7 session:i4@7 topics[name:s partitions[index:i4 error:i2 high:i8 stable:i8 start:i8@5
  aborted:i4 replica:i4@11 records:d]]
2 ListOffsets 1 5
> replica:i4 isolation:i1@2 topics[name:s partitions[index:i4 epoch:i4@4 at:i8]]
< throttle:i4@2 topics[name:s partitions[index:i4 error:i2 at:i8 offset:i8 epoch:i4@4]]
3 Metadata 1 8
> topics[name:s]
< throttle:i4@3 brokers[node:i4 host:s port:i4 rack:s] cluster:s@2 controller:i4 topics[error:i2 name:s internal:i1
  partitions[error:i2 index:i4 leader:i4 epoch:i4@7 replicas[node:i4] isr[node:i4] offline[node:i4]@5] ops:i4@8]
  ops:i4@8
8 OffsetCommit 2 7
> group:s generation:i4 member:s instance:s@7 retention:i8@2-4
  topics[name:s partitions[index:i4 offset:i8 epoch:i4@6 about:s]]
< throttle:i4@3 topics[name:s partitions[index:i4 error:i2]]
9 OffsetFetch 1 5
> group:s topics[name:s partitions[index:i4]]
< throttle:i4@3 topics[name:s partitions[index:i4 offset:i8 epoch:i4@5 about:s error:i2]] error:i2@2
10 FindCoordinator 0 2
> key:s
< throttle:i4@1 error:i2 why:s@1 node:i4 host:s port:i4
11 JoinGroup 0 5
> group:s session:i4 rebalance:i4@1 member:s instance:s@5 type:s protocols[name:s metadata:d]
< throttle:i4@2 error:i2 generation:i4 protocol:s leader:s member:s members[member:s instance:s@5 metadata:d]
12 Heartbeat 0 3
> group:s generation:i4 member:s instance:s@3
< throttle:i4@1 error:i2
13 LeaveGroup 0 2
> group:s member:s
< throttle:i4@1 error:i2
14 SyncGroup 0 3
> group:s generation:i4 member:s instance:s@3 assignments[member:s assignment:d]
< throttle:i4@1 error:i2 assignment:d
18 ApiVersions 0 3
>
<
"""
"""Key, name, lowest and highest version, and the fields of a request and its answer: i: integer of so many bytes,
s: string, d: bytes, []: array, @: the versions that have it."""
CONSUMER_GROUPS = """
3 Metadata 12 12
> topics[id:u name:s]
< throttle:i4 brokers[node:i4 host:s port:i4 rack:s] cluster:s controller:i4 topics[error:i2 name:s id:u internal:i1
  partitions[error:i2 index:i4 leader:i4 epoch:i4 replicas:n isr:n offline:n] ops:i4]
68 ConsumerGroupHeartbeat 1 1
> group:s member:s epoch:i4 instance:s
< throttle:i4 error:i2 why:s member:s epoch:i4 interval:i4 assignment:b
"""
"""What consumer groups have in place of that, all in flexible versions: u: uuid, n: array of int32, b: the bytes of a
field. The fields of a request that follow are not read."""


def listed_apis(text: str) -> Any:
    return {
        int(key): (name, int(low), int(high), asked, answered)
        for key, name, low, high, asked, answered in re.findall(
            r"^(\d+) (\w+) (\d+) (\d+)\n>([^<]*)<(.*(?:\n  .*)*)", text, re.MULTILINE
        )
    }


APIS, FLEXIBLE = listed_apis(MESSAGES), listed_apis(CONSUMER_GROUPS)
FIELD = re.compile(r"(\w+)(?::(\w+)|\[)(?:@(\d+)(?:-(\d+))?)?|\](?:@(\d+))?")
CODES = {"i1": ">b", "i2": ">h", "i4": ">i", "i8": ">q", "s": ">h", "d": ">i"}
LONGEST_START_S, LONGEST_SYNC_S = 60, 8
UNKNOWN_TOPIC, NOT_MEMBER, OLD_GENERATION, REBALANCE, ID_REQUIRED, FENCED = 3, 25, 22, 27, 79, 82
TOPIC_ID, INTERVAL_MS = b"t" * 16, 300
T0_AND_T1 = struct.pack(">hih1siiii", 0, 1, 1, b"t", 2, 0, 1, -1)
NO_ASSIGNMENT = b"\xff"
ALL_OF_T = b"\1\2" + TOPIC_ID + struct.pack(">biiii", 5, 0, 1, 2, 3) + bytes(2)


def fields(text: str, version: int) -> Any:
    """Name, type or fields of an array."""
    stack: Any = [[]]
    for name, kind, since, until, since_array in FIELD.findall(text):
        if not name:
            found = stack.pop()
            stack[-1][-1] = (stack[-1][-1], found, int(since_array or 0))
        elif kind:
            if int(since or 0) <= version <= int(until or 99):
                stack[-1].append((name, kind, 0))
        else:
            stack[-1].append(name)
            stack.append([])
    return stack[0]


def known(found: Any, version: int) -> Any:
    return [each for each in found if each[2] <= version]


def write(found: Any, version: int, value: Any) -> bytes:
    """The bytes of a message; what the value lacks is 0 or null."""
    out = b""
    for name, kind, _ in known(found, version):
        given = value.get(name)
        if isinstance(kind, list):
            out += struct.pack(">i", len(given or ())) + b"".join(write(kind, version, each) for each in given or ())
        elif kind in ("s", "d"):
            data = given.encode() if isinstance(given, str) else given
            out += struct.pack(CODES[kind], -1 if data is None else len(data)) + (data or b"")
        else:
            out += struct.pack(CODES[kind], given or 0)
    return out


def flexible(found: Any, value: Any) -> bytes:
    """The same in a flexible version. All lengths are below 127."""
    out = b""
    for name, kind, _ in found:
        given = value.get(name)
        if isinstance(kind, list):
            out += bytes([len(given or ()) + 1]) + b"".join(flexible(kind, each) for each in given or ())
        elif kind == "n":
            out += bytes([len(given or ()) + 1]) + b"".join(struct.pack(">i", each["node"]) for each in given or ())
        elif kind == "s":
            out += b"\0" if given is None else bytes([len(given) + 1]) + given.encode()
        elif kind in "ub":
            out += given
        else:
            out += struct.pack(CODES[kind], given or 0)
    return out + b"\0"


def read_flexible(found: Any, data: bytes, at: int) -> Any:
    """The first fields of a request, and the place after them. All lengths are below 127."""
    value: Any = {}
    for name, kind, _ in found:
        if isinstance(kind, list):
            size, value[name], at = data[at] - 1, [], at + 1
            for _ in range(size):
                each, at = read_flexible(kind, data, at)
                value[name].append(each)
                at += 1  # no tags
        elif kind == "s":
            size, at = data[at] - 1, at + 1
            value[name] = data[at : at + size].decode() if size >= 0 else None
            at += max(size, 0)
        elif kind == "u":
            value[name], at = data[at : at + 16], at + 16
        else:
            (value[name],) = struct.unpack_from(CODES[kind], data, at)
            at += struct.calcsize(CODES[kind])
    return value, at


def read(found: Any, version: int, data: bytes, at: int = 0) -> Any:
    """The message at that place of the bytes, and the place after it."""
    value: Any = {}
    for name, kind, _ in known(found, version):
        code = ">i" if isinstance(kind, list) else CODES[kind]
        (size,) = struct.unpack_from(code, data, at)
        at += struct.calcsize(code)
        if isinstance(kind, list):
            value[name] = []
            for _ in range(size):
                each, at = read(kind, version, data, at)
                value[name].append(each)
        elif kind in ("s", "d"):
            found = data[at : at + max(size, 0)] if size >= 0 else None
            value[name] = found.decode() if kind == "s" and found is not None else found
            at += max(size, 0)
        else:
            value[name] = size
    return value, at


def api_versions(version: int, apis: Any) -> bytes:
    rows = [struct.pack(">hhh", key, *row[1:3]) for key, row in apis.items()]
    if version >= 3:
        return bytes([0, 0, len(rows) + 1]) + b"".join(each + b"\0" for each in rows) + bytes(5)
    return struct.pack(">hi", 0, len(rows)) + b"".join(rows) + bytes(4 if version else 0)


def record(offset: int) -> bytes:
    """A record batch with one record."""
    body = struct.pack(">hiqqqhii", 0, 0, 0, 0, -1, -1, -1, 1) + bytes([14, 0, 0, 0, 1, 2, 118, 0])
    crc = 0xFFFFFFFF
    for byte in body:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return struct.pack(">qiibI", offset, len(body) + 9, 0, 2, crc ^ 0xFFFFFFFF) + body


class Broker:
    def __init__(self, options: Any) -> None:
        self.options = options
        self.apis = {**APIS, **FLEXIBLE} if options.consumer else APIS
        self.shown = options.show.split(",")
        self.faults = [api for text in options.answer for api in parsed(text)]
        self.refusals = dict(each for text in options.refuse for each in parsed(text))
        self.late = {api: int(ms) / 1000 for api, _, ms in (text.partition("=") for text in options.late)}
        self.slow = {api: int(ms) / 1000 for api, _, ms in (text.partition("=") for text in options.slow)}
        self.cuts = [text.partition("=")[::2] for text in options.cut]
        self.member: Any = None
        self.instance: Any = None
        self.replaced: Any = None
        self.generation, self.protocol, self.assignment, self.port, self.last = 0, "", b"", 0, ""
        self.rebalancing = self.armed = False
        self.assigned_s = 0.0
        self.names, self.sent = dict[str, str](), dict[str, float]()
        self.ids = itertools.count(1)
        self.joined = asyncio.Event()
        self.limits = {api: int(most) for api, _, most in (each.partition("=") for each in options.count)}
        self.times: Any = {api: deque(maxlen=most + 1) for api, most in self.limits.items()}
        self.exceeded, self.was_silent = set[str](), set[str]()
        self.silences = {api: int(ms) / 1000 for api, _, ms in (each.partition("=") for each in options.silence)}
        self.server: Any = None
        self.task: Any = None
        self.writers: set[Any] = set()

    async def serve(self, reader: Any, writer: Any) -> None:
        self.print("Connection", "Connection opened")
        self.writers.add(writer)
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                await self.answer(await reader.readexactly(size), writer)
        except (OSError, EOFError, asyncio.CancelledError):
            self.print("Connection", "Connection closed by the consumer")
            self.writers.discard(writer)
            writer.close()

    async def listen(self) -> None:
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", self.port)
        self.port = self.server.sockets[0].getsockname()[1]

    async def go_down(self) -> None:
        self.server.close()
        for writer in self.writers:
            writer.transport.abort()
        await asyncio.sleep(int(self.options.down[0]) / 1000)
        await self.listen()

    async def answer(self, request: bytes, writer: Any) -> None:
        key, version, id, skipped = struct.unpack_from(">hhih", request)
        name, _, _, asked, answered = self.apis[key]
        if key == 18:
            send(writer, id, api_versions(version, self.apis))
            return
        self.count(name)
        is_flexible, begin = self.options.consumer and key in FLEXIBLE, 10 + max(skipped, 0)
        if is_flexible:
            value, _ = read_flexible(fields(asked, version), request, begin + 1)
        else:
            value, _ = read(fields(asked, version), version, request, begin)
        cut = next((each for each in self.cuts if each[0] == name and self.armed), None)
        fault = next((each for each in self.faults if each[0] == name and self.armed), None)
        error = fault[1] if fault else self.refusal(name, value)
        error = error or (self.refusals.get(name, 0) if self.armed else 0)
        if fault:
            self.faults.remove(fault)
            self.forget(error)
        if name in self.late and self.assigned_s:
            await asyncio.sleep(self.assigned_s + self.late[name] - time.monotonic())
        if self.armed:
            await asyncio.sleep(self.slow.get(name, 0))
        body = await getattr(self, name)(value, error)
        self.show(f"{name} v{version}", value, error, cut)
        layout = fields(answered, version)
        data = b"\0" + flexible(layout, body) if is_flexible else write(layout, version, body)
        if cut:
            self.cuts.remove(cut)
            send(writer, id, data, {"before": -8, "amid": len(data) // 2, "after": len(data)}[cut[1]])
            await writer.drain()
            await asyncio.sleep(0.05)
            writer.transport.abort()
            return
        send(writer, id, data)

    def hear(self) -> None:
        """Between the assignment and the end."""
        for name, longest_s in self.silences.items():
            if self.assigned_s and time.monotonic() > self.sent.get(name, self.assigned_s) + longest_s:
                self.was_silent.add(name)

    def count(self, name: str) -> None:
        self.hear()
        self.sent[name] = time.monotonic()
        times = self.times.get(name, ())
        if name in self.times:
            times.append(time.monotonic())
        if len(times) > self.limits.get(name, 0) and times[-1] - times[0] <= 1:
            self.exceeded.add(name)

    def show(self, title: str, value: Any, error: int, cut: Any) -> None:
        name = title.partition(" ")[0]
        shown = ("member", "instance", "generation", "epoch")
        about = {each: value[each] for each in shown if value.get(each) not in (None, -1)}
        if "member" in about:
            about["member"] = about["member"] and self.names.setdefault(about["member"], f"m{len(self.names) + 1}")
        if name == "JoinGroup":
            about["protocols"] = ",".join(each["name"] for each in value["protocols"])
            about["owned"] = owned(value["protocols"][0]["metadata"])
        if name == "SyncGroup" and value["assignments"]:
            members = (each["member"] for each in value["assignments"])
            about["assigns to"] = ", ".join(self.names.get(each, each) for each in members)
        if name == "Metadata":
            about = {"topics": ",".join(each["name"] for each in value["topics"])}
        if name == "OffsetCommit":
            offsets = [part["offset"] for each in value["topics"] for part in each["partitions"] if part["offset"] < 0]
            about |= {"offset": min(offsets)} if offsets else {}
        if name == "Fetch":
            about = {"reads": ",".join(sorted(listed(value)))}
        line = " ".join([title, *(f"{key}={shown!r}" for key, shown in about.items() if shown is not None)])
        line += f" -> error {error}" if error else " -> reset" if cut else ""
        self.print(name, line)

    def print(self, name: str, line: str) -> None:
        if name in self.shown and line != self.last:
            print(line, flush=True)
            self.last = line

    def forget(self, error: int) -> None:
        if error == NOT_MEMBER:
            self.member = None
        self.generation += error == OLD_GENERATION
        self.rebalancing = self.rebalancing or error == REBALANCE

    def refusal(self, name: str, value: Any) -> int:
        if name not in ("JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit"):
            return 0
        if self.replaced and value["member"] == self.replaced:
            return FENCED if value.get("instance") else NOT_MEMBER
        if name == "JoinGroup":
            return 0
        if value["member"] != self.member:
            return NOT_MEMBER
        if value["generation"] != self.generation:
            return OLD_GENERATION
        return REBALANCE if self.rebalancing and name != "OffsetCommit" else 0

    @property
    def follows(self) -> bool:
        return bool(self.options.follow or (self.options.take and self.generation > 1))

    async def JoinGroup(self, value: Any, error: int) -> Any:
        id, none = value["member"], {"generation": -1, "protocol": "", "leader": "", "member": value["member"]}
        if error or (id and id != self.member):
            return {**none, "error": error or NOT_MEMBER}
        if not id:
            self.member = f"{value.get('instance') or 'c'}-{next(self.ids)}"
            if not value.get("instance") and "instance" in value:
                return {**none, "error": ID_REQUIRED, "member": self.member}
        self.generation += 1
        asyncio.get_running_loop().call_later(LONGEST_SYNC_S, self.joined.set)
        self.rebalancing, self.instance, self.protocol = False, value.get("instance"), value["protocols"][0]["name"]
        leader = "other" if self.follows else self.member
        others = [
            {"member": f"other-{at}", "metadata": bytes.fromhex(each)} for at, each in enumerate(self.options.member)
        ]
        own = {"member": self.member, "instance": self.instance, "metadata": value["protocols"][0]["metadata"]}
        return {"generation": self.generation, "protocol": self.protocol, "leader": leader, "member": self.member,
                "members": [] if self.follows else [own, *others]}  # fmt: skip

    async def SyncGroup(self, value: Any, error: int) -> Any:
        if error:
            return {"error": error, "assignment": b""}
        found = {each["member"]: each["assignment"] for each in value["assignments"]}
        self.assignment = T0_AND_T1 if self.follows else found.get(self.member, self.assignment)
        self.begin()
        return {"assignment": self.assignment}

    def begin(self) -> None:
        """The consumer is a member; it is disturbed a second later."""
        if not self.assigned_s:
            self.assigned_s = time.monotonic()
            self.joined.set()
            asyncio.get_running_loop().call_later(1, self.disturb)

    def disturb(self) -> None:
        self.armed = True
        pending = {each[0] for each in (*self.faults, *self.cuts)} | self.refusals.keys()
        self.rebalancing = self.rebalancing or bool(pending & {"JoinGroup", "SyncGroup"})
        if self.options.down:
            print("the broker goes down", flush=True)
            self.task = asyncio.ensure_future(self.go_down())
        if self.options.fence and not self.replaced:
            self.replaced, self.member = self.member, "another process"

    async def Heartbeat(self, value: Any, error: int) -> Any:
        return {"error": error}

    async def ConsumerGroupHeartbeat(self, value: Any, error: int) -> Any:
        """The consumer has all partitions."""
        id, epoch = value["member"], value["epoch"]
        if error or (epoch > 0 and id != self.member):
            return {"error": error or NOT_MEMBER, "member": id, "assignment": NO_ASSIGNMENT}
        if epoch == 0:
            self.member, self.generation = id, self.generation + 1
            self.begin()
        given = ALL_OF_T if epoch == 0 else NO_ASSIGNMENT
        epoch = epoch if epoch < 0 else self.generation
        return {"member": id, "epoch": epoch, "interval": INTERVAL_MS, "assignment": given}

    async def LeaveGroup(self, value: Any, error: int) -> Any:
        return {"error": error}

    async def OffsetCommit(self, value: Any, error: int) -> Any:
        return {"topics": parts(value, lambda part: {"error": error})}

    async def OffsetFetch(self, value: Any, error: int) -> Any:
        return {"error": error, "topics": parts(value, lambda part: {"offset": -1, "epoch": -1, "about": ""})}

    async def Metadata(self, value: Any, error: int) -> Any:
        nodes = [{"node": 1}]
        partitions = [{"index": each, "leader": 1, "replicas": nodes, "isr": nodes} for each in range(4)]
        names = [each["name"] or "t" for each in value["topics"] or [{"name": "t"}]]
        topics = [
            {"name": name, "id": TOPIC_ID, "error": error or UNKNOWN_TOPIC * (name != "t"),
             "partitions": [] if error or name != "t" else partitions}
            for name in names
        ]  # fmt: skip
        ports = (self.port, 1)[: 2 if self.options.down else 1]  # nobody listens on port 1
        brokers = [{"node": 1 + at, "host": "127.0.0.1", "port": port} for at, port in enumerate(ports)]
        return {"brokers": brokers, "cluster": "c", "controller": 1, "topics": topics}

    async def FindCoordinator(self, value: Any, error: int) -> Any:
        return {"error": error, "node": 1, "host": "127.0.0.1", "port": self.port}

    async def ListOffsets(self, value: Any, error: int) -> Any:
        return {"topics": parts(value, lambda part: {"error": error, "at": -1, "offset": 0, "epoch": 0})}

    async def Fetch(self, value: Any, error: int) -> Any:
        """One more record at each request."""
        await asyncio.sleep(0.1)

        def answered(part: Any) -> Any:
            end = part["offset"] + 1
            ends = {"high": end, "stable": end, "aborted": -1, "replica": -1}
            return {"error": error, "records": record(end - 1), **ends}

        return {"topics": parts(value, answered)}


def parts(value: Any, answered: Any) -> Any:
    """The topics of a request, with what is answered for each partition."""
    return [
        {
            "name": each["name"],
            "partitions": [{"index": part["index"], **answered(part)} for part in each["partitions"]],
        }
        for each in value["topics"]
    ]


def listed(value: Any) -> Any:
    """The partitions of topics."""
    return [f"{each['name']}-{part['index']}" for each in value["topics"] for part in each["partitions"]]


def parsed(text: str) -> Any:
    """``Heartbeat=25*2``: twice the API and the error code."""
    api, _, rest = text.partition("=")
    code, _, times = rest.partition("*")
    return [(api, int(code))] * int(times or 1)


def owned(metadata: bytes) -> Any:
    """The partitions that a subscription claims; None where its version has none."""
    value, at = read(fields("version:i2 topics[name:s] data:d", 0), 0, metadata)
    if value["version"] < 1:
        return None
    found, _ = read(fields("topics[name:s partitions[index:i4]]", 0), 0, metadata, at)
    return ",".join(listed(found))


def send(writer: Any, id: int, data: bytes, size: Any = None) -> None:
    """``size``: only so many bytes of the message."""
    writer.write((struct.pack(">ii", len(data) + 4, id) + data)[: None if size is None else 8 + size])


async def main(options: Any) -> None:
    broker = Broker(options)
    await broker.listen()
    program = await asyncio.create_subprocess_exec(*options.command, f"127.0.0.1:{broker.port}")
    ended, joined = asyncio.ensure_future(program.wait()), asyncio.ensure_future(broker.joined.wait())
    await asyncio.wait([ended, joined], timeout=LONGEST_START_S, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.wait([ended], timeout=options.seconds)
    broker.hear()
    if not ended.done():
        print("SIGTERM", flush=True)
        program.terminate()
        await asyncio.wait([ended], timeout=10)
    if ended.done():
        print("the program ended with", program.returncode)
    else:
        print("10 s later the program still runs")
        program.kill()
    for name, most in broker.limits.items():
        print("more than" if name in broker.exceeded else "at most", most, f"{name} in a second")
    for name, longest_s in broker.silences.items():
        print("no" if name in broker.was_silent else "always a", name, f"within {longest_s:g} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(usage=__doc__)
    for option in ("--answer", "--refuse", "--cut", "--late", "--member", "--count", "--silence", "--slow", "--down"):
        parser.add_argument(option, action="append", default=[])
    for option in ("--follow", "--take", "--fence", "--consumer"):
        parser.add_argument(option, action="store_true")
    parser.add_argument("--show", default="JoinGroup,SyncGroup,Heartbeat,OffsetCommit,LeaveGroup,FindCoordinator")
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    if not given.command:
        parser.error("the command of a consumer is missing")
    asyncio.run(main(given))
