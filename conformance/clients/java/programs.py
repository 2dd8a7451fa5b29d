"""Compiles kipcheck's Java program with the user's JDK, and runs released jars in it to check kipcheck's codec.

The program speaks the testee protocol and does not link to Kafka: each release has a class loader of its own, so one
process runs several. (``target`` makes a release a target of a run.)
"""

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any, Final

from kipcheck.conformance.core.files.releases_table import jar, jars, span
from kipcheck.conformance.core.values.release import Release, releases
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.toolchains import build, maven
from kipcheck.conformance.targets.transport import process_tree
from kipcheck.conformance.targets.transport.pipe import Command, Ended, Pipe

BATCH: Final = 256
"""Orders in one exchange."""
START_SECONDS: Final = 60.0
CASE_MILLISECONDS: Final = 10_000
"""Processor time for one order; past it the program gives the order up, with its stack as evidence."""
HEAP: Final = "-Xmx512m"
QUICK: Final = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC")
"""Options for javac: a compiler that runs for a second starts sooner without its optimizing compiler."""

PARTS: Final = jars()
"""The jars that contain codecs, and the releases that have them; ``core`` has the coordinators' records up to 3.8.1."""


@dataclass(frozen=True, slots=True)
class Order:
    """One request: encode a value, decode bytes, or recode bytes (decode, then encode)."""

    op: str
    """encode, decode, recode; or versions, which takes no version."""
    message: str
    version: int = 0
    value: Mapping[str, Any] | None = None
    """As JSON (``codec.to_json``)."""
    hex: str | None = None
    release: str | None = None
    """One of the releases that the judge was opened with; None for the first."""
    public: bool = False
    """Use the classes that applications use, even where a generated class would keep the order of elements."""
    body: Mapping[str, Any] | None = None
    """Other keys of the order."""

    def line(self, n: int) -> dict[str, Any]:
        line: dict[str, Any] = {"n": n, "op": self.op, "message": self.message, "version": self.version}
        for key in ("value", "hex", "release"):
            if (given := getattr(self, key)) is not None:
                line[key] = given
        return line | ({"through": "public"} if self.public else {}) | {**(self.body or {})}


@dataclass(frozen=True, slots=True)
class Answer:
    """What the jar returned."""

    status: str
    """accepted, rejected, unsupported, internal."""
    hex: str | None = None
    value: Any = None
    versions: tuple[int, int] | None = None
    left: int = 0
    """Bytes that decoding left unread, where the jar reports them."""
    thrown: str | None = None
    """The class of the exception."""
    message: str = ""
    loaded: bool | None = None
    """Of ``read-record``: false for a record that the release skips."""

    @classmethod
    def of(cls, result: Mapping[str, Any]) -> "Answer":
        versions = result.get("versions")
        return cls(
            result["status"], result.get("hex"), result.get("value"), versions and (versions[0], versions[1]),
            result.get("left", 0), result.get("thrown", result.get("class")), result.get("message", ""),
            result.get("loaded"),
        )  # fmt: skip


class JavaCodec:
    """The codecs of some releases in one JVM."""

    def __init__(self, pipe: Pipe, usual: str, case_milliseconds: int) -> None:
        self._pipe = pipe
        self.usual = usual
        """The release used where an order names none."""
        self._case_milliseconds = case_milliseconds

    def answers(self, orders: Iterable[Order]) -> Iterator[Answer]:
        """One answer for each order, in the same order. Errors: ``Ended`` where the JVM died or hung."""
        waiting = iter(orders)
        batch = 0
        while asked := tuple(islice(waiting, BATCH)):
            batch += 1
            cases = [order.line(n) for n, order in enumerate(asked)]
            seconds = START_SECONDS + self._case_milliseconds / 1000
            info = self._pipe.exchange(
                {
                    "type": "batch", "id": batch, "deadline_ms": int(seconds * 1000), "cpu_ms": self._case_milliseconds,
                    "cases": cases,
                },
                seconds,
            )  # fmt: skip
            results = info.get("results")
            if info.get("type") != "results" or not isinstance(results, list) or len(results) != len(asked):
                raise self._pipe.garbled(f"no results: {str(info)[:100]}")
            for result in results:
                if result["status"] == "died":
                    self._pipe.kill()
                    raise Ended(result["cause"], result["message"], result["evidence"])
                yield Answer.of(result)

    def one(self, order: Order) -> Answer:
        """The answer to a single order."""
        return next(self.answers([order]))


@contextmanager
def java_judge(wanted: Mapping[str, Sequence[str]]) -> Iterator[JavaCodec]:
    """A JVM with the given parts (keys of ``PARTS``) of each release; the first release is the default.

    Errors: ``Unavailable`` without a JDK or the jars.
    """
    program()  # before any download: the jars need a JDK
    needed = {release: coordinates(release, some) for release, some in wanted.items()}
    found = maven.fetch({each: None for group in needed.values() for each in group})
    with judge_of({release: [found[each] for each in group] for release, group in needed.items()}) as judge:
        yield judge


@contextmanager
def judge_of(jars: Mapping[str, Sequence[Path]], case_milliseconds: int = CASE_MILLISECONDS) -> Iterator[JavaCodec]:
    """A JVM with these jars, or folders of classes, by name of the release. Errors: ``Unavailable``."""
    pipe = Pipe(command(jars))
    usual = next(iter(jars))
    try:
        pipe.exchange({"type": "hello", "protocol": 1, "run": "judge"}, START_SECONDS)
        yield JavaCodec(pipe, usual, case_milliseconds)
    except Ended:
        raise  # the process has ended already
    except BaseException:
        pipe.kill()
        raise
    else:
        pipe.close({"type": "bye"})


def command(
    jars: Mapping[str, Sequence[Path]],
    name: str = "kafka-jars",
    names: Mapping[str, Any] | None = None,
    shared: Sequence[Path] = (),
    preview: bool = False,
) -> Command:
    """The command that starts a JVM with these jars, by name of the release; the first jar of the first is the target.

    ``names``: names of fields, for releases whose requests and responses have none; ``shared``: jars in the class path
    of the JVM itself; ``preview``: whether groups that are a preview in the release are played. Errors:
    ``Unavailable``.
    """
    options = [] if names is None else [f"-Dkipcheck.names={_filed(names)}"]
    options += ["-Dkipcheck.preview=true"] if preview else []
    given = (f"{release}={os.pathsep.join(map(str, paths))}" for release, paths in jars.items())
    return Command(
        (
            tool("java"), HEAP, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xshare:auto",
            # The JVM's own output, thread dumps among it, must not mix with the protocol.
            "-XX:+DisplayVMOutputToStderr", "-Dfile.encoding=UTF-8", f"-Dkipcheck.name={name}", *options,
            "-cp", os.pathsep.join(map(str, (program(), *shared))), "kipcheck.Testee", *given,
        )
    )  # fmt: skip


def flush_watch(release: str, jars: Sequence[Path]) -> Path:
    """The folder with the class that reports flushes of RocksDB, compiled for a release. Errors: ``Unavailable``."""
    return _with_rocksdb("store-java", "FlushWatch.java", f"the listener of stores of {release}", release, jars)


def table_verifier(rocksdb: str, jar: Path) -> Path:
    """The folder with the program that verifies tables, compiled for a RocksDB. Errors: ``Unavailable``."""
    wanted = f"the verifier of tables of RocksDB {rocksdb}"
    return _with_rocksdb("tables-java", "VerifyTables.java", wanted, rocksdb, [jar])


def _with_rocksdb(name: str, file: str, wanted: str, release: str, jars: Sequence[Path]) -> Path:
    source = files("kipcheck.conformance.clients") / "programs" / "rocksdb" / file
    compiler = tool("javac")
    path = os.pathsep.join(map(str, jars))
    recipe = build.Recipe(
        wanted,
        tools=[build.version_text((compiler, "--version"))],
        texts={file: source.read_text("utf-8")},
        steps=[(lambda: [compiler], [*QUICK, "-proc:none", "-encoding", "UTF-8", "-cp", path, "-d", ".", file])],
    )
    return build.built(name, release, recipe)


def _filed(names: Mapping[str, Any]) -> Path:
    """Writes the names to a file whose name is a hash of its content."""
    text = json.dumps(names, separators=(",", ":"))
    path = maven.cache() / "java" / f"names-{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
    if not path.is_file():
        with maven.placing(path) as staged:
            staged.write_text(text, "utf-8")
    return path


def coordinates(release: str, wanted: Iterable[str] = ("clients",)) -> tuple[str, ...]:
    """The jars that the codecs in these parts of a release need on the class path; ``clients`` is always among them.

    Errors: LookupError for a part that the release has no jar for.
    """
    at = Release.parse(release)
    names = dict.fromkeys(("clients", *wanted))
    for part in names:
        if part not in PARTS or at not in releases(PARTS[part]):
            raise LookupError(f"kafka-{part} has no release {release}")
    jars = [f"org.apache.kafka:{jar(part)}:{release}" for part in names]
    jars.append("org.slf4j:slf4j-api:1.7.36")
    if at in releases(span("needs-jackson")):
        # The generated classes of this patch alone refer to Jackson in their methods.
        jars += [f"com.fasterxml.jackson.core:jackson-{part}:2.16.2" for part in ("databind", "core", "annotations")]
    if at in releases(span("needs-zstd")) and "streams" in names:
        # In this patch alone the configuration of clients loads the levels of compression.
        jars.append("com.github.luben:zstd-jni:1.5.6-4")
    if "streams" in names and at in releases("0.10.0.0-0.10.1.1"):
        # The code that creates topics uses ZooKeeper there, and cannot be loaded without its client.
        jars += ["com.101tec:zkclient:0.8", "com.fasterxml.jackson.core:jackson-core:2.16.2"]
    return tuple(jars)


def parts(release: str) -> tuple[str, ...]:
    """All parts that the release has."""
    return tuple(part for part, span in PARTS.items() if Release.parse(release) in releases(span))


def sources() -> dict[str, str]:
    """kipcheck's Java files, by name."""
    folder = files("kipcheck.conformance.clients") / "programs" / "java"
    return {each.name: each.read_text("utf-8") for each in folder.iterdir() if each.name.endswith(".java")}


def program() -> Path:
    """The directory with the compiled classes, built if needed. Errors: ``Unavailable``."""
    texts = sources()
    javac = tool("javac")
    info = hashlib.sha256(_version(javac).encode())
    for name, text in sorted(texts.items()):
        info.update(f"\0{name}\0{text}".encode())
    home = maven.cache() / "java" / info.hexdigest()[:16]
    if not home.is_dir():
        _compile(javac, texts, home)
    return home


def _compile(javac: str, texts: Mapping[str, str], home: Path) -> None:
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        folder = tempfile.TemporaryDirectory(prefix=".compile-", dir=home.parent)
    except OSError as wrong:
        raise Unavailable(f"{home.parent} cannot be written ({wrong}): set {maven.CACHE}") from None
    with folder as name:
        root = Path(name)
        for file, text in texts.items():
            (root / file).write_text(text, "utf-8")
        done = process_tree.run(
            [
                javac,
                *QUICK,
                "-proc:none",
                "-encoding",
                "UTF-8",
                "-d",
                str(root / "classes"),
                *(str(root / file) for file in sorted(texts)),
            ],
            300,
        )
        if done.returncode:
            raise Unavailable(f"{javac} cannot compile the testee: {(done.stderr.strip() or 'no reason')[:300]}")
        try:
            (root / "classes").rename(home)
        except OSError:
            # Another process was faster; its result is the same.
            if not home.is_dir():
                raise


def tool(name: str) -> str:
    """The path of a program of the JDK. Errors: ``Unavailable``."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(name, path=str(Path(home) / "bin")) if home else None
    found = found or shutil.which(name)
    if not found:
        raise Unavailable(f"{name} was not found in JAVA_HOME or on the PATH: install a JDK, 17 or later")
    return found


@cache
def _version(javac: str) -> str:
    done = process_tree.run([javac, "-version"], 60)
    info = (done.stdout + done.stderr).strip()
    number = re.search(r"javac (\d+)", info)
    if done.returncode or not number or int(number[1]) < 17:
        # Newer clients and streams are compiled for 11 and 17.
        raise Unavailable(f"{javac} is not of a JDK 17 or later ({info.splitlines()[-1] if info else 'no version'})")
    return info
