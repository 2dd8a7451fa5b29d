"""Makes the lock files of a release of a client, with the package managers:

    python -m kipcheck.golden.package_locks python NAME VERSION     with uv
    python -m kipcheck.golden.package_locks node NAME VERSION       with npm
    python -m kipcheck.golden.package_locks go                      of the default releases

The digests are those that the registries state; ``sum.golang.org`` confirms those of Go.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from kipcheck.conformance.live.client.built_in import BUILT_IN, command
from kipcheck.conformance.live.coordinator import compatible_brokers
from kipcheck.conformance.targets.target_entries import target_entries
from kipcheck.conformance.targets.toolchains import go, lock_files, node

OLDEST_PYTHON: Final = "3.11"
IN_GO: Final = ("franz-go", "sarama", "kafka-go")


def of_python(distribution: str, version: str) -> str:
    """Requirements for every platform and Python from ``OLDEST_PYTHON`` on, with the hashes of all files."""
    options = ["--universal", "--generate-hashes", "--no-annotate", "--no-header", "--only-binary", ":all:"]
    command = ["uv", "pip", "compile", "--quiet", *options, "--python-version", OLDEST_PYTHON, "-"]
    done = subprocess.run(command, input=f"{distribution}=={version}\n", capture_output=True, text=True, check=True)
    return done.stdout


def of_node(package: str, version: str) -> str:
    """Without the addresses of packages: each user has a registry."""
    command = [*node.npm(node.node()), "install", "--package-lock-only", "--omit-lockfile-registry-resolved", *node.NPM]
    with TemporaryDirectory() as folder:
        about = {"private": True, "type": "module", "dependencies": {package: version}}
        Path(folder, "package.json").write_text(json.dumps(about), "utf-8")
        subprocess.run(command, cwd=folder, check=True)
        found = json.loads(Path(folder, node.LOCK).read_text("utf-8"))
    found.pop("name", None)
    return json.dumps(found, indent=1) + "\n"


def of_go() -> str:
    """What is locked, and the modules of the default releases, which are built. Errors: ``Unavailable``."""
    lines = {*(lock_files.lock(go.SUMS) or "").splitlines()}
    for program in _built():
        lines |= {*(program.parent / go.SUMS).read_text("utf-8").splitlines()}
    return "".join(f"{line}\n" for line in sorted(lines))


def _built() -> Iterator[Path]:
    entries = target_entries()
    for name in go.MODULES:
        yield go.build(name, entries[name].default)
    for name in (each for each in IN_GO if each in BUILT_IN):
        yield Path(command(name)[0])
    yield Path(compatible_brokers.LIBRARIES["kfake"].command(entries["kfake"].default)[0])


def main(argv: Sequence[str]) -> int:
    match argv:
        case ["python", name, version]:
            path, text = lock_files.of_python(name, version), of_python(name, version)
        case ["node", name, version]:
            path, text = lock_files.of_node(name, version), of_node(name, version)
        case ["go"]:
            path, text = go.SUMS, of_go()
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    with as_file(files("kipcheck.conformance.targets.toolchains") / "locks" / path) as file:
        file.write_text(text, "utf-8")
    print(f"{path}: {len(text.splitlines()):,} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
