"""Sessions for developers and nightly runs; what CI runs is in tox.ini and .ci/run."""

import hashlib
import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final, TypeAlias

import nox

nox.options.sessions = ["integration"]
nox.options.reuse_existing_virtualenvs = True

NIGHT: Final = Path("kipcheck-night")
"""The output of nightly runs: a folder for each part, with ``done.jsonl``, a line for each finished unit."""
RECORDED: Final = (
    ":!golden/ways_back.json", ":!conformance/recall/mutation.json", ":!conformance/recall/floor.toml",
)  # fmt: skip
"""Files that nightly runs write, which are no sources."""
PART_S: Final = 50 * 60
"""After so many seconds a part starts no further unit, unless ``--long`` is given. The same command continues it."""
SEEDS: Final = range(10)
CAMPAIGNED: Final = "kafka-python"
CAMPAIGN_CASES: Final = 50_000
CLIENTS: Final = ("kafka-python", "aiokafka", "kio", "franz-go", "platformatic-kafka", "java:kafka-clients:4.4.0")

BOUNCED: Final = (
    ("3.9.2", "java@3.9.2", "java@2.3.1"),
    ("3.9.2", "java@2.4.1", "java@2.3.1"),
    ("4.4.0", "java@4.4.0", "java@2.3.1"),
    ("3.9.2", "java@2.8.0", "java@2.3.1"),
    ("3.9.2", "java@3.4.0", "java@2.3.1"),
    ("3.9.2", "java@3.9.2", "kafka-python@2.3.0"),
    ("3.9.2", "java@3.9.2", "confluent-kafka@2.16.1"),
    ("3.9.2", "kafka-python@3.0.12", "kafka-python@2.3.0"),
    ("3.9.2", "confluent-kafka@2.16.1", "confluent-kafka@2.16.1"),
)
"""Broker, new client and old client of groups that are upgraded to cooperative rebalancing."""
BESIDE_MODELS: Final = ("1.1.1", "2.1.1", "2.3.1", "2.4.1", "2.6.3", "3.9.2", "4.4.0")
"""Releases of applications that meet models: one of each way in which members handle versions."""


@nox.session
def integration(session: nox.Session) -> None:
    """Tests with released jars, real clients, Go, Node, Spark and CI recipes. ``nox -s integration -- -k go``."""
    session.install("-e", ".[dev]")
    session.run("python", "-m", "pytest", "-n", "2", "-q", "--tier=integration", "--durations=40", *session.posargs)


# ---- a release

DIST: Final = Path("dist")
CONSTRAINTS: Final = Path("conformance/docs/ci/constraints.txt")
"""The versions of dependencies that gates are tested with."""
IN_GATES: Final = ".[pytest,targets,spark]"


@nox.session
def release(session: nox.Session) -> None:
    """All steps of a release but the upload: the version is in CHANGELOG.md, wheel and source distribution are built
    and checked, and the wheel is installed and run with each Python from 3.11 to 3.13 that this machine has.
    """
    version = re.search(r'^version = "(.+)"$', Path("pyproject.toml").read_text("utf-8"), re.MULTILINE)
    assert version is not None
    if f"\n## {version[1]} " not in Path("CHANGELOG.md").read_text("utf-8"):
        session.error(f"CHANGELOG.md has no section {version[1]}: write it, with its date, or change pyproject.toml")
    shutil.rmtree(DIST, ignore_errors=True)
    session.install("build", "twine")
    session.run("python", "-m", "build", "--outdir", str(DIST))
    session.run("twine", "check", "--strict", *map(str, sorted(DIST.iterdir())))
    for python in PYTHONS:
        session.notify(f"installed-{python}")


PYTHONS: Final = ("3.11", "3.12", "3.13")


@nox.session(python=PYTHONS, reuse_venv=False)
def installed(session: nox.Session) -> None:
    """The wheel in ``dist/`` as a user gets it: with the constraints, outside the checkout."""
    (wheel,) = (each.resolve() for each in DIST.glob("*.whl"))
    session.install("-c", str(CONSTRAINTS), f"{wheel}[pytest,targets]")
    session.chdir(session.create_tmp())
    session.run("kipcheck", "--version")
    session.run("kipcheck", "run", "--dry-run", silent=True)
    session.run("kipcheck", "run", "--target", "reference", "--check", "wire/*", "--cases", "5", silent=True)
    # Its defects are known: the list that comes with the wheel names all of them.
    session.run("kipcheck", "run", "--known", "default", "--check", "assign/one-round", "--least", "0", silent=True)


@nox.session(reuse_venv=False)
def constraints(session: nox.Session) -> None:
    """Writes the versions that pip chooses today for a gate: ``conformance/docs/ci/constraints.txt``."""
    session.install(IN_GATES)
    frozen = str(session.run("python", "-m", "pip", "freeze", "--exclude", "kipcheck", silent=True))
    lines = [each for each in frozen.splitlines() if "==" in each]
    head = "# For pip install -c: the dependencies that this version is tested with (nox -s constraints).\n"
    CONSTRAINTS.write_text(head + "".join(f"{each}\n" for each in sorted(lines, key=str.lower)), "utf-8")


# ---- nightly runs


@dataclass(frozen=True)
class Unit:
    """A command of a part. A part that was interrupted continues with its first unfinished unit."""

    name: str
    command: tuple[str, ...]
    codes: tuple[int, ...] = (0,)
    """Exit codes that count as success."""
    requires: str = ""
    """The value of KIPCHECK_REQUIRE: requirements without which tests fail instead of being skipped."""
    every_time: bool = False
    """Whether it runs even if it succeeded before, as a command that resumes by itself must."""


Part: TypeAlias = Callable[[nox.Session, bool], Iterator[Unit]]
"""Returns the units of a part, for a session and whether the time limits are lifted."""


@nox.session
def nightly(session: nox.Session) -> None:
    """Runs all long tests, in parts: ``nox -s nightly -- jars seeds``; without names all parts, one after the other.

    A part that was interrupted continues where it stopped, as long as the sources are the same: ``-- --anew`` starts
    again. Each part ends within an hour, the campaign after 30 minutes; ``-- --long`` lifts these limits.
    """
    wanted = [each for each in session.posargs if not each.startswith("--")] or [*PARTS]
    options = {each for each in session.posargs if each.startswith("--")}
    if unknown := [*(set(wanted) - set(PARTS)), *(options - {"--long", "--anew"})]:
        session.error(f"unknown part or option {', '.join(unknown)}: parts are {', '.join(PARTS)}")
    session.install("-e", ".[dev]")
    failed = []
    for part in wanted:
        if "--anew" in options:
            shutil.rmtree(NIGHT / part, ignore_errors=True)
        units = list(PARTS[part](session, "--long" in options))
        failed += _play(session, part, units, None if "--long" in options else time.monotonic() + PART_S)
    if failed:
        session.error(f"failed: {', '.join(failed)}")


def _play(session: nox.Session, part: str, units: list[Unit], until: float | None) -> list[str]:
    """The names of units that failed or were not started. Units that succeeded with the same sources are not run
    again.
    """
    folder = NIGHT / part
    folder.mkdir(parents=True, exist_ok=True)
    record, sources = folder / "done.jsonl", _sources(session)
    before = [json.loads(line) for line in record.read_text("utf-8").splitlines()] if record.is_file() else []
    done = {each["unit"] for each in before if each["sources"] == sources}
    failed: list[str] = []
    for number, unit in enumerate(units, 1):
        about = f"{part} {number}/{len(units)} {unit.name}"
        if unit.name in done and not unit.every_time:
            session.log(f"{about}: succeeded before; --anew runs it again")
            continue
        begun = time.monotonic()
        if until is not None and begun > until:
            return [*failed, f"{part} stopped at {number}/{len(units)}, the same command continues it"]
        ended = _run(session, unit, folder / f"{re.sub(r'[^A-Za-z0-9.-]+', '_', unit.name)}.log")
        seconds = round(time.monotonic() - begun)
        session.log(f"{about}: {'succeeded' if ended else 'FAILED'} after {seconds} s")
        if not ended:
            failed.append(f"{part} {unit.name}")
            continue
        with record.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"unit": unit.name, "seconds": seconds, "sources": sources}) + "\n")
    return failed


def _run(session: nox.Session, unit: Unit, log: Path) -> bool:
    """Writes the output to ``log`` and prints its last lines. An interrupted unit is not recorded."""
    session.log(f"{' '.join(unit.command)} > {log}")
    with log.open("w", encoding="utf-8") as file:
        try:
            session.run(
                *unit.command,
                stdout=file,
                stderr=file,
                success_codes=unit.codes,
                log=False,
                env={"KIPCHECK_REQUIRE": unit.requires},
            )
            ended = True
        except nox.command.CommandFailed:
            ended = False
    lines = log.read_text("utf-8", errors="replace").splitlines()
    for line in lines[-3 if ended else -40 :]:
        session.log(f"  {line}")
    return ended


def _sources(session: nox.Session) -> str:
    """A digest of the commit and of uncommitted changes: results count for these sources only.

    Rows that the parts ways-back and mutate write are no sources.
    """
    state = [session.run("git", *asked, external=True, silent=True, log=False)
             for asked in (("rev-parse", "HEAD"), ("diff", "HEAD", "--", *RECORDED))]  # fmt: skip
    return hashlib.sha256("".join(map(str, state)).encode()).hexdigest()[:16]


def _of_tier(tier: str, requires: str = "") -> Part:
    """The test files of a tier, one unit for each."""

    def units(session: nox.Session, long: bool) -> Iterator[Unit]:
        asked = ["python", "-m", "pytest", "-q", "-n", "0", f"--tier={tier}"]
        listed = str(session.run(*asked, "--collect-only", silent=True, log=False))
        for file in dict.fromkeys(re.findall(r"^(\S+?\.py)::", listed, re.MULTILINE)):
            yield Unit(Path(file).stem, (*asked, "-n", "2", file), requires=requires)

    return units


def _seeds(session: nox.Session, long: bool) -> Iterator[Unit]:
    """Each client with each seed, and campaigns: the known list names all failures, with every seed."""
    for client in CLIENTS:
        name = client.removesuffix(":4.4.0").replace(":", "-")
        for seed in SEEDS:
            options = ("--target", client, "--known", "default", "--seed", str(seed))
            out = str(NIGHT / "seeds" / f"{name}-{seed}")
            yield Unit(f"{client} seed {seed}", ("kipcheck", "run", *options, "--out", out))
    for seed in SEEDS:
        options = ("--target", CAMPAIGNED, "--known", "default", "--seed", str(seed), "--cases", str(CAMPAIGN_CASES))
        out = NIGHT / "seeds" / f"campaign-{seed}"
        begin = ("--resume", str(out)) if _is_unfinished(out) else (*options, "--executor", "pool", "--out", str(out))
        yield Unit(f"campaign with {CAMPAIGNED} seed {seed}", ("kipcheck", "campaign", *begin))


def _is_unfinished(out: Path) -> bool:
    """Whether the folder contains a campaign that was interrupted."""
    manifest = out / "manifest.json"
    return manifest.is_file() and not json.loads(manifest.read_text("utf-8"))["complete"]


def _mutants(session: nox.Session, long: bool) -> Iterator[Unit]:
    """The mutation tests, and every mutant with all checks of its family."""
    yield from _of_tier("mutants")(session, long)
    checks = str(session.run("kipcheck", "checks", silent=True, log=False))
    for family in dict.fromkeys(re.findall(r"^([a-z-]+)/", checks, re.MULTILINE)):
        yield Unit(f"{family} with all checks", ("kipcheck", "mutants", "--check", f"{family}/*"))
    counting = ("python", "-m", "kipcheck.conformance.benchmarks.thin", "--record")
    for family in dict.fromkeys(re.findall(r"^([a-z-]+)/", checks, re.MULTILINE)):
        yield Unit(f"{family} counted with ten seeds", (*counting, "--check", f"{family}/*"))


def _matrix(session: nox.Session, long: bool) -> Iterator[Unit]:
    """Upgrades of Streams groups, stores and records between all releases; cells of groups that were run are cached."""
    yield Unit("matrix", ("kipcheck", "matrix", "--out", str(NIGHT / "matrix" / "out"), *(["--full"] if long else [])))
    for scenario in ("store-upgrade", "records"):
        out = str(NIGHT / "matrix" / scenario)
        yield Unit(scenario, ("kipcheck", "matrix", "--scenario", scenario, "--out", out))


def _ways_back(session: nox.Session, long: bool) -> Iterator[Unit]:
    """Runs of released nodes that go back to an old release: first those without a row in golden/ways_back.json, which
    they add, then the others, which must be as recorded.
    """
    listed = str(session.run("python", "-m", "kipcheck.golden.ways_back", "--list", silent=True, log=False))
    names = re.findall(r"^(not run|recorded) +(.+)$", listed, re.MULTILINE)
    for _, name in sorted(names, key=lambda each: each[0]):
        yield Unit(name, ("python", "-m", "kipcheck.golden.ways_back", name))


def _bounces(session: nox.Session, long: bool) -> Iterator[Unit]:
    """Rolling upgrades of processes on a real broker: applications of Streams line by line, then consumers."""
    begin = ("kipcheck", "run", "--known", "default", "--workers", "1")
    where = NIGHT / "bounces"
    applications = ("--target", "kafka-streams:3.9.2", "--check", "streams/rolling", "--out", str(where / "streams"))
    yield Unit("Streams line by line", (*begin, *applications))
    groups = ("--target", "kafka-streams:4.4.0?protocol=streams", "--check", "streams/heartbeats")
    yield Unit("streams groups line by line", (*begin, *groups, "--out", str(where / "streams-groups")))
    for release in BESIDE_MODELS:
        edition = f"apache@{release}"
        chosen = ("--target", f"client:streams@{release}", "--edition", edition, "--check", "streams/beside")
        yield Unit(f"Streams {release} beside models", (*begin, *chosen, "--out", str(where / f"beside-{release}")))
    for broker, new, old in BOUNCED:
        chosen = ("--target", f"consumers:{new},{old}", "--edition", f"apache@{broker}", "--check", "bounce/orders")
        name = f"{new} after {old} on {broker}"
        yield Unit(name, (*begin, *chosen, "--out", str(where / name.replace(" ", "-"))))


def _campaign(session: nox.Session, long: bool) -> Iterator[Unit]:
    """The gate's checks with kafka-python, and conversations of groups with Kafka's own coordinator.

    It starts with the corpus of the previous night and reports what is new since. An interrupted campaign is resumed.
    """
    tonight, last = NIGHT / "campaign" / "out", NIGHT / "campaign" / "before"
    budget = ("--budget", "8h" if long else "30m")
    manifest = tonight / "manifest.json"
    if _is_unfinished(tonight):
        yield Unit("campaign", ("kipcheck", "campaign", "--resume", str(tonight), *budget), (0, 1, 5), every_time=True)
    else:
        if manifest.is_file():
            shutil.rmtree(last, ignore_errors=True)
            tonight.rename(last)
        begin = ("--corpus", str(last)) if (last / "corpus").is_dir() else ()
        targets = ("--target", "kafka-python", "--target", "java:kafka-group-coordinator:4.4.0", "--known", "default")
        settings = (*budget, "--seed", str(date.today().toordinal()), "--out", str(tonight), *begin)
        yield Unit("campaign", ("kipcheck", "campaign", *targets, *settings), (0, 1, 5), every_time=True)
    against = ("--against", str(last)) if (last / "ledger.jsonl").is_file() else ()
    yield Unit("triage", ("kipcheck", "triage", str(tonight), *against), (0, 1), every_time=True)


ZOOKEEPER_CASES: Final = 8
"""Conversations with brokers and ZooKeeper: each starts three to six brokers."""
WITH_ZOOKEEPER: Final = """
from kipcheck.conformance.core.files.releases_table import table
from kipcheck.conformance.live.controller.started_controllers import has_zookeeper
print(*(each for each in (line["patches"][-1] for line in table()["line"]) if has_zookeeper(each)))
"""


def _zookeeper(session: nox.Session, long: bool) -> Iterator[Unit]:
    """Controllers of feature versions with ZooKeeper: the classes of each release, and its brokers."""
    for release in str(session.run("python", "-c", WITH_ZOOKEEPER, silent=True, log=False)).split():
        given = ("--edition", f"apache@{release}", "--known", "default", "--workers", "1")
        for target, check, cases in (
            (f"java:kafka_2.13:{release}", "nodes/*", ()),
            (f"java:kafka_2.13:{release}", "zookeeper-features/*", () if long else ("--cases", "60")),
            (f"kafka:{release}", "zookeeper-features/life", ("--cases", str(ZOOKEEPER_CASES))),
        ):
            out = str(NIGHT / "zookeeper" / f"{target}-{check}".replace(":", "-").replace("/*", "").replace("/", "-"))
            run = ("kipcheck", "run", "--target", target, "--check", check, *given, *cases, "--out", out)
            yield Unit(f"{target} {check}", run)


def _kraft(session: nox.Session, long: bool) -> Iterator[Unit]:
    """kafka-features of each line on a cluster of its release, and quorums of three controllers that are killed."""
    wanted = {"kafka-features": ("feature-tools", "feature-commands/*"), "kafka": ("quorums", "kraft-quorum/*")}
    for target, (name, check) in wanted.items():
        code = f"from kipcheck.conformance.core.files.releases_table import listed; print(*listed({name!r}))"
        releases = str(session.run("python", "-c", code, silent=True, log=False)).split()
        for release in releases:
            asked = ("--target", f"{target}:{release}", "--edition", f"apache@{release}", "--check", check)
            settings = ("--known", "default", "--cases", "3", "--workers", "1", "--least", "0")
            out = str(NIGHT / "kraft" / f"{target}-{release}")
            yield Unit(f"{target} {release}", ("kipcheck", "run", *asked, *settings, "--out", out), requires="jars")


CLUSTERS: Final = ("4.4.0", "4.4.0&from=4.0.2", "3.9.2", "3.9.2&from=3.7.2")
"""The newer and the older release of clusters whose nodes fail."""


def _cluster(session: nox.Session, long: bool) -> Iterator[Unit]:
    """Groups on clusters of three brokers that are killed, paused and rolled."""
    for each in CLUSTERS:
        newer, _, older = each.partition("&")
        asked = ("--target", f"kafka:{newer}?nodes=3{older and '&' + older}", "--edition", f"apache@{newer}")
        for seed in SEEDS if long else range(3):
            out = str(NIGHT / "cluster" / f"{each.replace('&from=', '-from-')}-{seed}")
            run = ("kipcheck", "run", *asked, "--known", "default", "--seed", str(seed), "--out", out)
            yield Unit(f"kafka:{each} seed {seed}", run, requires="jars")


MUTATED: Final = """
from kipcheck.conformance.recall.copies import TARGETS
print(*(f"{target}/{part}" for target, parts in TARGETS.items() for part in parts))
"""
"""Prints the clients whose sources are changed, each with a part."""
MUTATION_S: Final = 10 * 60
"""The limit of a unit: one that begins after ``PART_S`` has nearly passed ends within the hour."""
RECALL_BUDGET: Final = "15m"
"""The time of each bug for what goes beyond the default cases."""


def _recall(session: nox.Session, long: bool) -> Iterator[Unit]:
    """Each released bug. A total below conformance/recall/floor.toml and a false alarm fail the unit of the bug."""
    listed = json.loads(str(session.run("kipcheck", "recall", "--list", "--json", silent=True, log=False)))
    budget = () if long else ("--budget", RECALL_BUDGET)
    for bug in listed["bugs"]:
        run = ("kipcheck", "recall", "--id", bug["id"], *budget, "--out", str(NIGHT / "recall" / "runs"))
        # 3: it was skipped, and no other bug is in the unit.
        yield Unit(bug["id"], run, (0, 3))


def _mutate(session: nox.Session, long: bool) -> Iterator[Unit]:
    """Random changes to real clients, and mistakes that people make in them; then their totals are compared.

    A unit that takes longer than its limit is interrupted, and continues with what is missing at the next start.
    """
    limit = () if long else ("timeout", "--preserve-status", "--signal=INT", str(MUTATION_S))
    for each in str(session.run("python", "-c", MUTATED, silent=True, log=False)).split():
        target, part = each.split("/")
        out = str(NIGHT / "mutate" / target.replace(":", "-"))
        run = (*limit, "kipcheck", "mutate", "--target", target, "--part", part, "--record", "--out", out)
        yield Unit(f"{target} {part}", run)
        yield Unit(f"{target} {part} mistakes", (*run, "--mistakes"))
    yield Unit("floor", ("python", "-m", "kipcheck.conformance.recall.floor"), every_time=True)


PARTS: Final[dict[str, Part]] = {
    "jars": _of_tier("jars", "jars"),
    "seeds": _seeds,
    "mutants": _mutants,
    "matrix": _matrix,
    "cluster": _cluster,
    "ways-back": _ways_back,
    "faults": _of_tier("faults", "spark"),
    "hostile": _of_tier("hostile"),
    "long": _of_tier("long", "jars,index"),
    "campaign": _campaign,
    "bounces": _bounces,
    "zookeeper": _zookeeper,
    "kraft": _kraft,
    "recall": _recall,
    "mutate": _mutate,
}


# ---- on demand


@nox.session
def docs(session: nox.Session) -> None:
    """Builds the site of the pages in build/docs, and fails at a link or an anchor that leads nowhere."""
    session.install(*nox.project.load_toml("pyproject.toml")["project"]["optional-dependencies"]["docs"])
    config = "conformance/docs/site/mkdocs.yml"
    session.run("mkdocs", "build", "--strict", "-f", config, env={"NO_MKDOCS_2_WARNING": "1"})
    session.log("python -m http.server -d build/docs  # serves it, with the search, at http://localhost:8000")


@nox.session
def golden(session: nox.Session) -> None:
    """Regenerates the golden vectors from the jars, and shows what changed."""
    session.install("-e", ".")
    session.run("python", "-m", "kipcheck.golden.make", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """The benchmarks. ``nox -s bench -- detection --seeds 3`` runs one of them, with its arguments."""
    session.install("-e", ".[dev]")
    name, *arguments = session.posargs or [""]
    for each in [name] if name else ("codec", "draws", "group", "explore", "detection", "campaign", "spark"):
        session.run("python", "-m", f"kipcheck.conformance.benchmarks.{each}", *arguments)


@nox.session
def dist(session: nox.Session) -> None:
    """Builds wheel and source distribution in dist/."""
    session.install("build")
    session.run("python", "-m", "build")
