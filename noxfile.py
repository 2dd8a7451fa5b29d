"""What a person or the night does; what CI asserts is in tox.ini."""

import shutil
from datetime import date
from pathlib import Path

import nox

nox.options.sessions = ["jars"]
nox.options.reuse_existing_virtualenvs = True


@nox.session
def jars(session: nox.Session) -> None:
    """Everything that is compared with released jars, on every release line: needs a JDK, Maven and 400 MB of cache."""
    session.install("-e", ".[dev]")
    session.run("python", "-m", "pytest", "-q", "--all-jars", "-m", "jars or all_jars", *session.posargs,
                env={"KIPCHECK_REQUIRE": "jars"})


@nox.session
def faults(session: nox.Session) -> None:
    """The drills of campaigns that take long: what is killed, hangs, fills the disk, and comes back all the same."""
    session.install("-e", ".[dev]")
    session.run("python", "-m", "pytest", "-q", "--faults", "-m", "faults", *session.posargs,
                env={"KIPCHECK_REQUIRE": "spark"})


@nox.session
def campaign(session: nox.Session) -> None:
    """The night's campaign: the gate's checks with kafka-python, conversations of groups with Kafka's own coordinator.

    It begins with the corpus of the night before, and says what is new since. ``nox -s campaign -- --budget 10m``.
    """
    session.install("-e", ".[spark]")
    tonight, last = Path("kipcheck-night"), Path("kipcheck-night-before")
    if (tonight / "ledger.jsonl").is_file():
        shutil.rmtree(last, ignore_errors=True)
        tonight.rename(last)
    asked = ["--target", "kafka-python", "--target", "java:kafka-group-coordinator:4.4.0", "--known", "default",
             "--budget", "8h", "--seed", str(date.today().toordinal()), "--out", str(tonight)]
    if (last / "corpus").is_dir():
        asked += ["--corpus", str(last)]
    ended = {0: "conformant", 1: "failures", 5: "stale expectations"}
    session.run("kipcheck", "campaign", *asked, *session.posargs, success_codes=[*ended])
    against = ["--against", str(last)] if (last / "ledger.jsonl").is_file() else []
    session.run("kipcheck", "triage", str(tonight), *against)


@nox.session
def matrix(session: nox.Session) -> None:
    """Upgrades of Streams groups from each release to each other one, with all released jars: needs a JDK and Maven.

    ``nox -s matrix -- --full``; ``-- --predict conformance/matrix/predictions.json`` writes anew what is foretold.
    """
    session.install("-e", ".")
    session.run("kipcheck", "matrix", *(session.posargs or ["--out", "kipcheck-matrix"]))


@nox.session
def golden(session: nox.Session) -> None:
    """Make the golden vectors anew from the jars, and say what changed."""
    session.install("-e", ".")
    session.run("python", "-m", "golden.make", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """The benchmarks: ratios from one run. ``nox -s bench -- detection --seeds 3``: one of them, with its arguments."""
    session.install("-e", ".[dev]")
    name, *arguments = session.posargs or [""]
    for each in [name] if name else ("codec", "draws", "group", "explore", "detection", "campaign", "spark"):
        session.run("python", "-m", f"conformance.benchmarks.{each}", *arguments)


@nox.session
def dist(session: nox.Session) -> None:
    """Wheel and source distribution, under dist/."""
    session.install("build")
    session.run("python", "-m", "build")
