"""What a person or the night does; what CI asserts is in tox.ini."""

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
def golden(session: nox.Session) -> None:
    """Make the golden vectors anew from the jars, and say what changed."""
    session.install("-e", ".")
    session.run("python", "-m", "golden.make", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """The benchmarks: ratios from one run. ``nox -s bench -- detection --seeds 3``: one of them, with its arguments."""
    session.install("-e", ".[dev,targets]")
    name, *arguments = session.posargs or [""]
    for each in [name] if name else ("codec", "draws", "group", "explore", "detection"):
        session.run("python", "-m", f"conformance.benchmarks.{each}", *arguments)


@nox.session
def dist(session: nox.Session) -> None:
    """Wheel and source distribution, under dist/."""
    session.install("build")
    session.run("python", "-m", "build")
