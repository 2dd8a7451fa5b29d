"""Measures the cost of coding a message, beside other libraries: ``python -m kipcheck.conformance.benchmarks.codec``.

One run; the contenders take turns in every round; CPU time; medians of the rounds, also for the ratio. Ours converts
between bytes and plain dicts, through ``layout(...).decode`` and ``.encode``. kafka-python and kio decode to objects of
their own and encode such objects, built before the measurement; "building" is kafka-python including their
construction. kio reads in Rust and writes in Python; construct is our second decoder. Exit 1 if the ratios to
kafka-python are below the floor.
"""

import gc
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from io import BytesIO
from math import prod
from operator import truediv
from random import Random
from statistics import median
from time import process_time
from typing import Any

from kipcheck.conformance.wire import Layout, layout
from kipcheck.conformance.wire.constructs import build, read
from kipcheck.conformance.wire.schema import Slot

ROUNDS = 21
SLICE_S = 0.008
"""CPU seconds of a contender in a round."""
VALUES = 8
"""Different values of one size for each case, so that caching helps no contender."""

FLOOR = {"decode": (2.5, 1.5), "encode": (4.0, 3.0)}
"""Least geometric mean and least single ratio to kafka-python."""
GOAL = {"decode": 4.0, "encode": 6.0}

Work = Callable[[Any], object]


@dataclass(frozen=True, slots=True)
class Case:
    message: str
    version: int
    value: Callable[[Random], dict[str, Any]]

    def __str__(self) -> str:
        return f"{self.message.removeprefix('ConsumerProtocol')} v{self.version}"


def join_group(random: Random) -> dict[str, Any]:
    return {
        "groupId": f"orders-{random.randrange(1000):03}",
        "sessionTimeoutMs": 45_000,
        "rebalanceTimeoutMs": 300_000,
        "memberId": f"consumer-{random.getrandbits(128):032x}",
        "groupInstanceId": f"worker-{random.randrange(100):02}",
        "protocolType": "consumer",
        "protocols": [
            {"name": name, "metadata": random.randbytes(60)} for name in ("range", "roundrobin", "cooperative-sticky")
        ],
        "reason": "rebalance enforced by user",
    }


def api_versions(random: Random) -> dict[str, Any]:
    """Like a broker's answer: nearly every API from version 0."""
    return {
        "errorCode": 0,
        "apiKeys": [
            {"apiKey": key, "minVersion": int(random.random() < 0.1), "maxVersion": random.randrange(3, 18)}
            for key in range(60)
        ],
        "throttleTimeMs": 0,
        "supportedFeatures": [
            {"name": name, "minVersion": 0, "maxVersion": random.randrange(1, 30)} for name in FEATURES
        ],
        "finalizedFeaturesEpoch": random.randrange(1000),
        "finalizedFeatures": [{"name": name, "maxVersionLevel": 1, "minVersionLevel": 1} for name in FEATURES],
    }


FEATURES = ("metadata.version", "kraft.version", "group.version", "transaction.version", "share.version")


def subscription(random: Random) -> dict[str, Any]:
    topics = [f"topic-{random.randrange(1000):03}" for _ in range(5)]
    return {
        "topics": topics,
        "userData": None,
        "ownedPartitions": [{"topic": topic, "partitions": random.sample(range(64), 4)} for topic in topics],
        "generationId": random.randrange(100),
        "rackId": "rack-1",
    }


CASES = (
    *(Case("JoinGroupRequest", version, join_group) for version in (0, 5, 9)),
    *(Case("ApiVersionsResponse", version, api_versions) for version in (0, 3)),
    *(Case("ConsumerProtocolSubscription", version, subscription) for version in range(4)),
)


@dataclass(frozen=True, slots=True)
class Contender:
    """One library with one case: its prepared inputs for decoding and encoding."""

    name: str
    decode: Work
    inputs: Sequence[Any]
    encode: Work
    values: Sequence[Any]


def contenders(case: Case) -> list[Contender]:
    form, random = layout("apache", case.message, case.version), Random(case.version)
    drawn = [case.value(random) for _ in range(VALUES)]
    values = [{name: value[name] if name in value else form.defaults()[name] for name in form.names} for value in drawn]
    data = [form.encode(value) for value in values]
    assert [form.decode(each) for each in data] == values
    found = [
        Contender("ours", form.decode, data, form.encode, values),
        kafka_python(form, data, values),
        Contender("construct", lambda each: read(form, each), data, lambda each: build(form, each), values),
    ]
    return [*found, kio(form, data)]


def kafka_python(form: Layout, data: list[bytes], values: list[dict[str, Any]]) -> Contender:
    made = kafka_python_class(form)
    objects = [kafka_python_object(made, form, value) for value in values]
    assert [bytes(each.encode()) for each in objects] == data, f"kafka-python and we disagree on {form}"

    def decode(each: bytes) -> object:
        return made.decode(each, version=form.version)

    assert [bytes(decode(each).encode()) for each in data] == data  # type: ignore[attr-defined]
    return Contender("kafka-python", decode, data, lambda each: each.encode(), objects)


def building(case: Case) -> tuple[Work, Sequence[Any]]:
    """kafka-python's encode, from plain dicts."""
    form = layout("apache", case.message, case.version)
    made, values = kafka_python_class(form), contenders(case)[0].values
    return lambda each: kafka_python_object(made, form, each).encode(), values


def kafka_python_class(form: Layout) -> Any:
    where = {
        "JoinGroupRequest": "consumer.group",
        "ApiVersionsResponse": "metadata.api_versions",
        "ConsumerProtocolSubscription": "consumer.metadata",
    }
    return getattr(import_module(f"kafka.protocol.{where[form.message]}"), form.message)


def kafka_python_object(made: Any, form: Layout, value: dict[str, Any]) -> Any:
    """An object of ``made``, with its parts."""
    fields = {snake(slot.name): _part(made, slot, value[slot.name], form.version) for slot in form.slots}
    return made(version=form.version, **fields)


def _part(made: Any, slot: Slot, value: Any, version: int) -> Any:
    if slot.item is None or value is None:
        return value
    inner = getattr(made, slot.type)
    names = [(each.name, snake(each.name)) for each in slot.item.slots]
    return [inner(version=version, **{name: each[key] for key, name in names}) for each in value]


def snake(name: str) -> str:
    return _HUMP.sub(lambda hump: "_" + hump[0].lower(), name)


_HUMP = re.compile("[A-Z]")


def kio(form: Layout, data: list[bytes]) -> Contender:
    """Its schema leaves out the version prefix of a subscription, so it gets the bytes without."""
    from kio.serial import entity_reader, entity_writer

    api, _, kind = snake(form.message)[1:].rpartition("_")
    if kind not in ("request", "response"):
        api, kind = f"{api}_{kind}", "data"
    made = getattr(import_module(f"kio.schema.{api}.v{form.version}.{kind}"), form.message)
    reader, writer = entity_reader(made), entity_writer(made)
    skip = 2 if form.prefix else 0
    bodies = [each[skip:] for each in data]
    objects = [reader(each, 0)[0] for each in bodies]

    def encode(each: Any) -> bytes:
        out = BytesIO()
        writer(out, each)
        return out.getvalue()

    assert [encode(each) for each in objects] == bodies, f"kio and we disagree on {form}"
    return Contender("kio", lambda each: reader(each, 0), bodies, encode, objects)


def seconds(work: Work, inputs: Sequence[Any], times: int) -> float:
    """CPU time of one call."""
    start = process_time()
    for _ in range(times):
        for each in inputs:
            work(each)
    return (process_time() - start) / (times * len(inputs))


def measured(jobs: dict[str, tuple[Work, Sequence[Any]]]) -> dict[str, list[float]]:
    """CPU seconds of each job in each round; all jobs run in every round."""
    times = {}
    for name, (work, inputs) in jobs.items():
        once = min(seconds(work, inputs, 1) for _ in range(3))
        times[name] = max(1, round(SLICE_S / (once * len(inputs))))
    taken: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(ROUNDS):
        for name, (work, inputs) in jobs.items():
            taken[name].append(seconds(work, inputs, times[name]))
    return taken


def table(direction: str) -> list[float]:
    """Prints one table; returns the ratios of ours to kafka-python."""
    names = ["ours", "kafka-python", "kio", "construct"] + ["building"] * (direction == "encode")
    print(f"{direction}, thousands a second".ljust(30) + "".join(f"{name:>14}" for name in names) + f"{'ratio':>10}")
    ratios = []
    for case in CASES:
        jobs = {
            each.name: (each.decode, each.inputs) if direction == "decode" else (each.encode, each.values)
            for each in contenders(case)
        }
        if direction == "encode":
            jobs["building"] = building(case)
        taken = measured(jobs)
        ratios.append(median(map(truediv, taken["kafka-python"], taken["ours"])))
        cells = "".join(f"{1e-3 / median(taken[name]):14.1f}" for name in names)
        print(f"{case!s:<30}{cells}{ratios[-1]:10.2f}", flush=True)
    return ratios


def main() -> int:
    gc.collect()
    gc.freeze()
    failures = []
    for direction, (mean_floor, floor) in FLOOR.items():
        ratios = table(direction)
        mean = prod(ratios) ** (1 / len(ratios))
        print(
            f"{direction}: geometric mean {mean:.2f} times kafka-python, least {min(ratios):.2f} "
            f"(floor {mean_floor} and {floor}, goal {GOAL[direction]})\n"
        )
        if mean < mean_floor or min(ratios) < floor:
            failures.append(f"{direction} is below the floor: mean {mean:.2f}, least {min(ratios):.2f}")
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
