"""Every page about a finding still says what is so: its reproduction is run, and prints what the page says."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any

import pytest

from kipcheck.conformance.benchmarks import finding_heads
from kipcheck.conformance.clients.java import target
from kipcheck.conformance.clients.java.programs import tool
from kipcheck.conformance.core.files.releases_table import rocksdb
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.requirement import requirements
from kipcheck.conformance.live.controller.tool import command_of
from kipcheck.conformance.live.coordinator.compatible_brokers import LIBRARIES, Process
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.target_entries import target_entries
from kipcheck.conformance.targets.toolchains import build, environments, go, maven, node
from kipcheck.conformance.tests.support import kafka_broker, seaweedfs
from kipcheck.conformance.tests.support.loops import for_each, some_by_day

FINDINGS = Path(__file__).parents[2] / "docs" / "findings"
PAGES = sorted(each for each in FINDINGS.glob("*.md") if each.name != "index.md")
SCRIPTS = FINDINGS / "repro"
HELPERS = ("broker_requests", "feature_requests", "loopback", "mock_requests", "waiting_members")
"""Modules that several scripts in Python have in common."""
LANGUAGES = {".py": "python", ".java": "java", ".go": "go", ".mjs": "js", ".json": "json"}
SHOWN_LINES = 10
REPRODUCTION = re.compile(
    r"^```(python|java|go|js|json)\n(.*?)^```\n\nIt prints\n\n^```text\n(.*?)^```\n", re.MULTILINE | re.DOTALL
)


WITHOUT = "\n### Without kipcheck\n"
"""Before a reproduction that needs no kipcheck, where the first one does (``test_findings_alone``)."""


def row(page: str, name: str) -> str:
    found = re.search(rf"^\| {name} \| (.*) \|$", page, re.MULTILINE)
    assert found is not None, f"it does not tell the {name}"
    return found[1]


BROKERS = ("kafka-group-coordinator", "kafka-metadata")
"""The targets whose reproductions are programs in Python that use a broker of their release."""
TOOL = "kafka-features"
"""The target whose reproductions are programs in Python that start it, on a broker of its release."""
QUORUM = "| quorum |"
"""The row of a page whose reproduction needs several nodes, which take long to start."""
SERVED = ("tansu-broker", seaweedfs.NAME)
"""The targets whose reproductions are programs in Python that use a broker of a library, built for it."""
SERVED_S = 2400
"""With the build of the broker."""
KFAKE = "kfake"
"""The target whose reproductions are built with the modules of kipcheck's program of it."""
LIVE = "client:"
"""Before the name of a client that a script of ``client/groups`` shows the defect of."""
MARKS = {"java": pytest.mark.jars, "go": pytest.mark.go, "js": pytest.mark.node}
LIVE_MARKS = {
    "java": pytest.mark.jars, "franz-go": pytest.mark.go, "sarama": pytest.mark.go, "kafkajs": pytest.mark.node,
    "platformatic-kafka": pytest.mark.node, "kafka-go": pytest.mark.go,
}  # fmt: skip


def marked(path: Path) -> Any:
    text = path.read_text("utf-8")
    marks = [mark for language, mark in MARKS.items() if f"\n```{language}\n" in text.partition(WITHOUT)[0]]
    name = row(text, "target").split()[0]
    if name in (*BROKERS, TOOL):
        marks.append(pytest.mark.jars)
    if name in SERVED:
        marks += [pytest.mark.long, pytest.mark.timeout(SERVED_S)]
    if name == seaweedfs.NAME:
        marks.append(pytest.mark.go)
    if QUORUM in text:
        marks.append(pytest.mark.all_jars)
    if name.startswith(LIVE) and "\n```json\n" in text and name.removeprefix(LIVE) in LIVE_MARKS:
        marks.append(LIVE_MARKS[name.removeprefix(LIVE)])
    return pytest.param(path, id=path.stem, marks=marks)


@pytest.mark.integration
@pytest.mark.parametrize("path", some_by_day([marked(path) for path in PAGES], 16))
def test_a_reproduction_needs_only_the_release_and_prints_what_the_page_says(path: Path, tmp_path: Path) -> None:
    page = path.read_text("utf-8")
    name, release = row(page, "target").split()
    ((_, _, printed),) = REPRODUCTION.findall(page.partition(WITHOUT)[0])
    language, _ = program(path)
    if language == "json":
        return assert_replayed(script(path), name, release, printed)
    with reached(page, name, release) as ports:
        command = [*COMMANDS[language](script(path), name, release, tmp_path), *map(str, ports)]
        try:
            done = played(command)
        except subprocess.TimeoutExpired:  # threads of kafka-python may wait for each other on a busy machine
            done = played(command)
    ends = int(row(page, "ends with")) if "| ends with |" in page else 0
    assert (done.returncode, done.stdout) == (ends, printed), done.stderr


@contextmanager
def reached(page: str, name: str, release: str) -> Iterator[Sequence[int | str]]:
    """The ports that a reproduction is given; one of the tool, its class path too."""
    if QUORUM in page:
        with kafka_broker.with_a_controller_behind(release) as ports:
            yield ports
    elif name in BROKERS:
        level = row(page, "metadata.version") if "| metadata.version |" in page else None
        with kafka_broker.running(release, level) as port:
            yield (port,)
    elif name == TOOL:
        with kafka_broker.running(release, None) as port:
            yield (port, command_of(release)[-2])
    elif name in SERVED:
        with served(name, release) as port:
            yield (port,)
    else:
        yield ()


@contextmanager
def served(name: str, release: str) -> Iterator[int]:
    """The port of a broker of a library."""
    try:
        command = seaweedfs.command if name == seaweedfs.NAME else LIBRARIES[name].command
        process = Process(name, command(release))
    except Unavailable as why:
        pytest.skip(str(why))
    try:
        yield process.start()[1]
    finally:
        process.stop()


UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
ALONE, AT_ONCE = 3, 6
"""A script whose defect is a race of threads is run so often one after another, and then side by side."""


def assert_replayed(file: Path, name: str, release: str, printed: str) -> None:
    """``kipcheck replay`` of a script prints the law that the released client breaks. ID: any uuid; N: any
    number."""
    assert json.loads(file.read_text("utf-8"))["target"] in (name, f"{name}@{release}")
    skip_a_release_for_later_nodes(name.removeprefix(LIVE), release)
    for _ in range(ALONE):
        done = replayed(file)
        if done.returncode == 1:
            break
    else:
        with ThreadPoolExecutor(AT_ONCE) as threads:
            runs = [*threads.map(lambda _: replayed(file), range(AT_ONCE))]
        done = next((each for each in runs if each.returncode == 1), done)
    found = re.sub(r"\b\d+ (ms|times|[A-Z]\w+ requests)", r"N \1", UUID.sub("ID", done.stdout))
    assert (done.returncode, found) == (1, printed), done.stderr


def replayed(file: Path) -> subprocess.CompletedProcess[str]:
    return played([sys.executable, "-m", "kipcheck", "replay", str(file)], 300)


def skip_a_release_for_later_nodes(name: str, release: str) -> None:
    entry = target_entries().get(name)
    if entry is not None and entry.kind == "node" and release == entry.default != node.default(entry):
        pytest.skip(f"{name} {release} needs a later Node than {node.node()}")


def played(command: list[str], seconds: int = 60) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)


def python(file: Path, name: str, release: str, place: Path) -> list[str]:
    imported = imports(file) - sys.stdlib_module_names - {*HELPERS}
    if name.startswith(LIVE):
        name = name.removeprefix(LIVE)
        assert imported == {{"kafka-python": "kafka"}.get(name, name.replace("-", "_"))}
        return [str(environments.interpreter(name, release)), str(file)]
    if name in (*BROKERS, *SERVED, TOOL):
        assert not imported
        return [sys.executable, str(file)]
    assert imported == {{"kafka-python": "kafka"}.get(name, name)}
    try:
        installed = version(name)
    except PackageNotFoundError:
        pytest.skip(f"{name} is not installed")
    if installed != release:
        pytest.skip(f"{name} {installed} is installed, the page is about {release}")
    return [sys.executable, str(file)]


def imports(file: Path) -> set[str]:
    """The packages that a script imports, and those that its helpers import."""
    found = {*re.findall(r"^(?:import|from) (\w+)", file.read_text("utf-8"), re.MULTILINE)}
    return found.union(*(imports(SCRIPTS / f"{each}.py") for each in found & {*HELPERS}))


PARTS_OF_CLIENTS = ("clients.admin", "clients.consumer", "clients.producer", "common", "common.serialization")
CLIENTS = {f"org.apache.kafka.{each}" for each in PARTS_OF_CLIENTS}
PARTS_OF_STREAMS = ("", ".errors", ".kstream", ".processor", ".processor.api", ".state")
STREAMS = {f"org.apache.kafka.streams{each}" for each in PARTS_OF_STREAMS}
ROCKSDB = "org.rocksdb"
KAFKA = {"clients": CLIENTS, "streams": CLIENTS | STREAMS | {ROCKSDB}}
"""Of the second word of an artifact: the packages of its javadoc, and of that of its dependencies."""
TEST_UTILS = ("MockProcessorContext", "TopologyTestDriver")
"""Public classes of kafka-streams-test-utils, in packages of kafka-streams."""


def java(file: Path, name: str, release: str, place: Path) -> list[str]:
    code = file.read_text("utf-8")
    imported = re.findall(r"^import ([\w.]+?)\.(?:\*|[A-Z])", code, re.MULTILINE)
    ours = KAFKA[name.partition("-")[2].partition("-")[0]]
    assert all(each in ours for each in imported if not each.startswith("java."))
    program = place / "Reproduction.java"
    program.write_text(code, "utf-8")
    jars = maven.fetch([*target.coordinates(name, release), *further_jars(code, release)])
    return [tool("java"), "-cp", os.pathsep.join(map(str, jars.values())), str(program)]


def further_jars(code: str, release: str) -> Iterator[str]:
    """What a reproduction imports beside the target and what that runs with."""
    imported = re.findall(r"^import ([\w.]+?)\.(\*|[A-Z]\w*)", code, re.MULTILINE)
    if any(package == ROCKSDB for package, _ in imported):
        yield f"org.rocksdb:rocksdbjni:{rocksdb(release)}"
    if any(name in TEST_UTILS for _, name in imported):
        yield f"org.apache.kafka:kafka-streams-test-utils:{release}"


def in_go(script: Path, name: str, release: str, place: Path) -> list[str]:
    """Built with what the testee of that release was built with."""
    code = script.read_text("utf-8")
    imported = re.findall(r'^\t"([^"]+)"$', code, re.MULTILINE)
    module = go.MODULES["franz-go" if name == KFAKE else name]
    assert all(each.startswith(f"{module}/") for each in imported if "." in each)
    built = Path(LIBRARIES[KFAKE].command(release)[0]).parent if name == KFAKE else go.build(name, release).parent
    for file in ("go.mod", "go.sum"):
        shutil.copy(built / file, place)
    (place / "main.go").write_text(code, "utf-8")
    argv = [str(go.go()), "build", "-mod=mod", "-o", "main", "."]
    subprocess.run(argv, cwd=place, env=build.environment(go.ENVIRONMENT), check=True, timeout=300)
    return [str(place / "main")]


def in_js(file: Path, name: str, release: str, place: Path) -> list[str]:
    """Beside what npm installed for the testee of that release."""
    code = file.read_text("utf-8")
    imported = re.findall(r"from '(?:\./node_modules/)?(@?[^']+)'", code)
    assert all(each.startswith(node.PACKAGES[name]) for each in imported if not each.startswith("node:"))
    skip_a_release_for_later_nodes(name, release)
    (place / "node_modules").symlink_to(node.build(name, release) / "node_modules")
    (place / "main.mjs").write_text(code, "utf-8")
    return [str(node.node()), str(place / "main.mjs")]


COMMANDS = {"python": python, "java": java, "go": in_go, "js": in_js}


@for_each(PAGES)
def test_a_page_names_what_is_broken_and_stands_in_the_index(path: Path) -> None:
    page = path.read_text("utf-8")
    named = [requirements()[id] for id in re.findall(r"\b(?:grp|\d{3})-\d{2,3}\b", row(page, "requirement"))]
    invariants = {each.id: each for role in Role for each in all_invariants(role)}
    found_by = re.findall(r"`([\w/-]+)`", row(page, "found by"))
    assert {*found_by} <= {*CHECKS, *invariants}
    broken = [invariants[id] for id in found_by if id in invariants]
    assert {each.id for each in named} & {id for each in broken for id in each.requirements} or "survives" in found_by
    assert row(page, "status").startswith(("new", "known before"))
    index = (FINDINGS / "index.md").read_text("utf-8")
    assert f"[{page.splitlines()[0].removeprefix('# ')}]({path.name})" in index


def test_heads_and_the_index_are_what_is_derived() -> None:
    """If not: ``python -m kipcheck.conformance.benchmarks.pages``."""
    assert [name for name, page in finding_heads.pages() if finding_heads.derived(page) != page] == []
    index = (FINDINGS / finding_heads.INDEX).read_text("utf-8")
    shown = index.partition(finding_heads.BEGIN)[2].partition(finding_heads.END)[0]
    assert shown.splitlines() == [*finding_heads.index()]


LINK = re.compile(
    r"\[([\w/.-]+):(\d+)\]\(https://(?:github\.com/[\w-]+/[\w-]+/blob/(?:[0-9a-f]{40}|[0-9a-f]{16}|[0-9a-f]{12})"
    r"|unpkg\.com/@[\w-]+/[\w-]+@[\d.]+)/([\w/.-]+)#L(\d+)\)"
)
"""A line at a commit or of a published package. Kafka's jars name the first 16 digits of their commit, and
pseudo-versions of Go modules the first 12."""
SOURCE = re.compile(rf"{LINK.pattern} `([^`]+)`")
RANGE = re.compile(r"\d+(\.\d+)+ - \d+(\.\d+)+")
SEVERITIES = {"double processing", "stuck group", "crash or hang", "wrong data", "refused peer", "trivia"}
ADJACENT = 10
"""Lines by which a file of the release may differ from the linked commit."""


def program(path: Path) -> tuple[str, str]:
    """The language and the text of the reproduction."""
    file = script(path)
    return LANGUAGES[file.suffix], file.read_text("utf-8")


def script(path: Path) -> Path:
    """The file of the reproduction."""
    found = re.fullmatch(r"\[(repro/[\w.-]+)\]\(\1\)", row(path.read_text("utf-8"), "reproduction"))
    assert found is not None
    return FINDINGS / found[1]


def is_part(shown: str, code: str) -> bool:
    """Whether these lines stand in the program in a row, whatever their indentation is."""
    lines, wanted = ([each.strip() for each in text.strip("\n").splitlines()] for text in (code, shown))
    return any(lines[at : at + len(wanted)] == wanted for at in range(len(lines)))


def numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.partition("-")[0].split(".")))


PYTHON = tuple(each for each in PAGES if program(each)[0] == "python")


@for_each(PAGES)
def test_a_page_that_can_be_filed_states_effect_range_source_and_mend(path: Path) -> None:
    page = path.read_text("utf-8")
    assert row(page, "severity") in SEVERITIES
    assert len(row(page, "effect")) < 120
    assert RANGE.fullmatch(row(page, "affected")) is not None
    first, last = map(numbers, row(page, "affected").split(" - "))
    assert first <= numbers(row(page, "target").split()[1]) <= last
    assert "https://" in row(page, "source")
    assert SOURCE.sub("", row(page, "source")).replace(";", "").strip() == ""
    assert all((shown, number) == (linked, line) for shown, number, linked, line, _ in SOURCE.findall(page))
    assert len(row(page, "Kafka's own clients")) > 1
    sections = re.findall(r"^## (.+)$", page, re.MULTILINE)
    assert sections == [
        "Effect",
        "Minimal case",
        "Reproduction",
        "Where it comes from",
        "Suggested mend",
        "What Kafka does",
    ]


@for_each(tuple(each for each in PAGES if each.name.startswith(("aiokafka-", "kafka-python-"))))
def test_a_linked_line_is_the_code_of_the_release(path: Path) -> None:
    page = path.read_text("utf-8")
    name, release = row(page, "target").removeprefix(LIVE).split()
    try:
        installed = version(name)
    except PackageNotFoundError:
        pytest.skip(f"{name} is not installed")
    if installed != release:
        pytest.skip(f"{name} {installed} is installed, the page is about {release}")
    for _, _, linked, line, code in SOURCE.findall(row(page, "source")):
        lines = Path(str(distribution(name).locate_file(linked))).read_text("utf-8").splitlines()
        assert code in "\n".join(lines[max(0, int(line) - 1 - ADJACENT) : int(line) + ADJACENT])


@for_each(PYTHON)
def test_a_reproduction_in_python_uses_public_interfaces_only(path: Path) -> None:
    assert private_names(program(path)[1]) == []


PRIVATE = {
    "java": r"internals?\b|setAccessible|getDeclared|java\.lang\.reflect|\bsun\.",
    "go": r"/internal/|\breflect\b|\bunsafe\b|go:linkname",
    "json": r"$^",
    "js": r"\b_\w|@platformatic/kafka/|dist/|Symbol\.for|\[\w*[kK][A-Z]\w+\]",
}
"""Signs of an interface that is not public, by language."""


@for_each(tuple(each for each in PAGES if each not in PYTHON))
def test_a_reproduction_in_another_language_uses_public_interfaces_only(path: Path) -> None:
    language, code = program(path)
    assert re.findall(PRIVATE[language], code) == []


def test_private_names_are_found_in_every_language() -> None:
    assert private_names("from kafka.net import manager") == ["kafka.net"]
    assert private_names("import kafka\nkafka.consumer._fetcher") == ["_fetcher"]
    for language, code in {
        "java": "field.setAccessible(true);",
        "go": '"x/pkg/kgo/internal/sticky"',
        "js": "a._b",
    }.items():
        assert re.findall(PRIVATE[language], code)


def private_names(code: str) -> list[str]:
    tree = ast.parse(code)
    modules = [each.module or "" for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)]
    names = [
        alias.name for each in ast.walk(tree) if isinstance(each, ast.Import | ast.ImportFrom) for alias in each.names
    ]
    attributes = [each.attr for each in ast.walk(tree) if isinstance(each, ast.Attribute)]
    return [
        *(each for each in attributes if each.startswith("_") and not each.startswith("__")),
        *(each for each in modules + names if any(part.startswith("_") for part in each.split("."))),
        *(each for each in modules if each.startswith(("kafka.net", "kafka.future", "unittest"))),
    ]


@for_each(PAGES)
def test_a_page_shows_a_few_lines_of_its_script(path: Path) -> None:
    language, code = program(path)
    ((shown_in, shown, _),) = REPRODUCTION.findall(path.read_text("utf-8").partition(WITHOUT)[0])
    assert shown_in == language and is_part(shown, code)
    assert len(shown.splitlines()) <= SHOWN_LINES
    assert len(code.splitlines()) <= 120


def test_each_script_is_that_of_a_page() -> None:
    named = {script(path).name for path in PAGES} | {f"{each}.py" for each in HELPERS} | {"seaweedfs_gateway.go"}
    assert {each.name for each in SCRIPTS.iterdir() if each.is_file() and "-alone." not in each.name} == named


def test_no_script_repeats_what_a_helper_has() -> None:
    shared = {each for name in HELPERS for each in defined(SCRIPTS / f"{name}.py")}
    repeated = {file.name: found for file in SCRIPTS.glob("*.py") if (found := shared & defined(file))}
    assert len(shared) > 8 and repeated.keys() == {f"{name}.py" for name in HELPERS}


def defined(file: Path) -> set[str]:
    """The text of each class and function, but for those that are a line or two."""
    found = (
        each for each in ast.parse(file.read_text("utf-8")).body if isinstance(each, ast.ClassDef | ast.FunctionDef)
    )
    return {text for each in found if len((text := ast.unparse(each)).splitlines()) > 2}
