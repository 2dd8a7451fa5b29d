"""The guides: each fits on a screen, begins with a command, and each of its commands is run.

``TRIALS`` has an entry for each command of each page, in the order of the page: how it is run, and its exit code. A
command that takes minutes, needs a cluster or does not end by itself is only read by the parser; its entry has the
reason.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from kipcheck.conformance.cli.main import parser
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.tests.support.loops import for_each

DOCS: Final = Path(__file__).resolve().parents[2] / "docs"
GUIDES: Final = DOCS / "guides"
LINES, COLUMNS = 48, 110
"""A screen. A long row of a table wraps, so a line counts as often as its text, without targets of links, is wide."""

BYTES: Final = "000000000000010001"
SMALL: Final = ("--check", "wire/prefixes", "--message", "HeartbeatRe*", "--cases", "4")
FEW: Final = ("--check", "assign/one-round", "--cases", "40", "--rounds", "1", "--executor", "inline")


@dataclass(frozen=True)
class Trial:
    """How a command of a page is run."""

    code: int = 0
    more: tuple[str, ...] = ()
    """Further arguments, so that it takes seconds."""
    read: str = ""
    """Why the parser alone reads it."""
    put: dict[str, str] = field(default_factory=dict)
    """Words of the page, and those that are run in their place."""
    stdin: str = ""
    out: str = ""
    """A text in its output."""
    serves: bool = False
    """It runs until SIGTERM, which it gets after its first line of output."""


ENDLESS: Final = Trial(read="it listens until it is stopped")
MINE: Final = "client:./my-consumer --brokers {bootstrap} --group {group} --topics {topics}"
SERVES: Final = Trial(serves=True, out="listening 127.0.0.1:")
TRIALS: Final[dict[str, dict[str, Trial]]] = {
    "test-your-client": {
        "kipcheck run --target aiokafka": Trial(0, SMALL, out="exit 0"),
        'kipcheck run --target "cmd:./my-testee"': Trial(1, SMALL, out="wrong data"),
        "kipcheck run --target \"cmd:./my-testee\" --check 'wire/*' --message 'JoinGroup*'": Trial(
            1, put={"wire/*": "wire/pre*", "JoinGroup*": "JoinGroupResp*"}, more=("--cases", "1")
        ),
        "kipcheck targets": Trial(out="aiokafka"),
        "kipcheck checks": Trial(out="wire/prefixes"),
        "kipcheck show ID": Trial(out="FAIL"),
        "kipcheck run --target aiokafka --profile consumer-client": Trial(1, SMALL),
        'kipcheck run --target "cmd:./old" --target "cmd:./new" --name old --name new': Trial(1, SMALL, out="old"),
    },
    "five-minutes": {
        f'kipcheck doctor --target "{MINE}"': Trial(3, out="no LeaveGroup"),
        f'kipcheck run --target "{MINE}"': Trial(1, ("--cases", "2"), out="stuck group"),
        "kipcheck show ID": Trial(out="without LeaveGroup"),
        "kipcheck replay ID --trust": Trial(1, out="fails again"),
        "kipcheck run --target client:kafka-python": Trial(read="it takes minutes"),
        "kipcheck run --target client:franz-go": Trial(read="it needs Go"),
        "kipcheck run --target client:java@3.9.2": Trial(read="it needs a JDK"),
        "kipcheck run --target client:kafkajs": Trial(read="it needs Node"),
    },
    "gate-your-ci": {
        "kipcheck run": Trial(0, SMALL),
        "kipcheck known update": Trial(),
        "kipcheck known check": Trial(),
        "kipcheck run --require 'wire/*' --profile consumer-client": (Trial(0, SMALL, put={"wire/*": "wire/prefixes"})),
        "kipcheck config": Trial(out="cmd:./my-testee  (line 1)"),
        "kipcheck run --part 1/4 --out parts/1": Trial(0, SMALL, put={"1/4": "1/1"}),
        "kipcheck merge parts/1 parts/2 parts/3 parts/4 --out kipcheck-out": Trial(
            put={"parts/2": "", "parts/3": "", "parts/4": ""}
        ),
    },
    "plan-an-upgrade-of-streams": {
        "kipcheck matrix --from 2.3 --to 3.9 --scenario bounce": Trial(
            out="one rolling bounce works if no member fails meanwhile"
        ),
        "kipcheck matrix --from 2.3 --to 3.9": Trial(read="all scenarios take minutes"),
        "kipcheck matrix --from 2.3 --to 3.9 --require works": Trial(read="all scenarios take minutes"),
        "kipcheck matrix --case kipcheck-out/histories/CASE.json": Trial(out="at most 2 rebalances"),
    },
    "run-a-night": {
        'kipcheck campaign --target "cmd:./my-testee" --budget 8h --seed 1 --out tonight': Trial(1, FEW),
        "kipcheck triage tonight": Trial(out="known"),
        'kipcheck campaign --target "cmd:./my-testee" --budget 8h --seed 2 --corpus last-night --out tonight': (
            Trial(1, FEW)
        ),
        "kipcheck triage tonight --against last-night": Trial(out=" new, "),
        "kipcheck show ID --out tonight": Trial(out="FAIL"),
        "kipcheck campaign --resume tonight": Trial(1),
        "kipcheck campaign --known known.toml --budget 8h": Trial(0, ("--target", "cmd:./my-testee", *FEW)),
        "kipcheck corpus info tonight": Trial(),
        "kipcheck corpus promote ID --out tonight --to tests/regressions": Trial(
            out="kipcheck replay tests/regressions"
        ),
        "kipcheck campaign --master spark://HOST:7077 --workers 64 --budget 8h": Trial(read="it needs a cluster"),
    },
    "write-a-testee": {
        "cp conformance/docs/testee/skeletons/testee.mjs .": Trial(),
        'kipcheck doctor --target "cmd:node testee.mjs"': Trial(out="1 encoded and 1 decoded"),
        'kipcheck run --target "cmd:node testee.mjs"': Trial(0, ("--cases", "4")),
        "kipcheck doctor": Trial(more=("--target", "cmd:./my-testee"), out="hello"),
        "kipcheck show HeartbeatResponse --version 0": Trial(out="errorCode"),
    },
    "serve-a-broker": {
        "kipcheck serve --topic orders:3 --log": SERVES,
        "kipcheck serve --release 2.3.1": SERVES,
        "kipcheck serve --edition kip-429": SERVES,
        "kipcheck serve --topic orders:3 --topic users:1": SERVES,
        "kipcheck serve --config group.min.session.timeout.ms=100": SERVES,
        "kipcheck serve --port 9092": Trial(serves=True, put={"9092": "0"}, out="listening 127.0.0.1:"),
        "kipcheck serve --pcap traffic.pcap": SERVES,
        'kipcheck serve --script "pass 500; rebalance"': SERVES,
        "kipcheck serve --host 0.0.0.0 --allow-remote": Trial(serves=True, out="listening 0.0.0.0:"),
    },
    "read-a-failure": {
        "kipcheck show ID": Trial(out="expected"),
        "kipcheck replay ID": Trial(1, out="fails again"),
        "kipcheck requirements grp-05": Trial(out="How to fix"),
        "kipcheck export ID --as pytest --to tests/": Trial(),
        "kipcheck export ID --as script --to .": Trial(),
        "kipcheck export ID --as pcap --to .": Trial(),
        f"kipcheck explain --message HeartbeatResponse --version 4 {BYTES}": Trial(1, out="_unknownTaggedFields[0]"),
        "kipcheck testee kafka-python --listen 9000": ENDLESS,
    },
    "report-a-false-alarm": {
        "kipcheck replay ID": Trial(1),
        "kipcheck requirements grp-05": Trial(out="generated message classes, ConsumerProtocol"),
        "kipcheck export ID --as script --to .": Trial(),
        "kipcheck editions": Trial(out="apache"),
        "kipcheck show ID": Trial(out="step 1"),
        "kipcheck explain --message M --version N HEX": Trial(1),
        'kipcheck doctor --target "cmd:./my-testee"': Trial(),
        'kipcheck run --target java:kafka-clients:4.4.0 --target "cmd:./my-testee" --check wire/prefixes': Trial(
            1, ("--message", "HeartbeatRe*", "--cases", "4"), out="java:kafka-clients:4.4.0"
        ),
        "kipcheck --version": Trial(out="kipcheck 0"),
    },
    "troubleshooting": {
        "kipcheck targets": Trial(out="available"),
        'kipcheck doctor --target "cmd:./my-testee"': Trial(out="cases/s"),
        "kipcheck checks": Trial(),
        "kipcheck run --dry-run": Trial(out="wire/prefixes"),
        "kipcheck testee --schema": Trial(out="$defs"),
        "kipcheck replay ID --trust": Trial(1),
        "kipcheck known update known.toml": Trial(),
        "kipcheck show ID": Trial(),
        "kipcheck run --target reference --check wire/prefixes": Trial(0, ("--cases", "1")),
        'kipcheck run --target "cmd:./my-testee" --message HeartbeatRequest': Trial(
            1, ("--check", "wire/prefixes", "--cases", "4")
        ),
        "kipcheck testee kafka-python": Trial(
            stdin='{"type": "hello", "protocol": 1, "run": "kipcheck"}\n{"type": "bye"}\n', out="capabilities"
        ),
    },
}
TOOLS: Final = {"plan-an-upgrade-of-streams": ("java", "mvn"), "report-a-false-alarm": ("java", "mvn"),
                "write-a-testee": ("node",)}  # fmt: skip
MARKS: Final = {"java": pytest.mark.jars, "node": pytest.mark.node}


def text(page: str) -> str:
    return (GUIDES / f"{page}.md").read_text("utf-8")


def commands(page: str) -> list[str]:
    """The commands of a page, without comments: the lines of its shell blocks, then those in the prose."""
    fenced = re.findall(r"^```sh\n(.*?)^```$", text(page), re.MULTILINE | re.DOTALL)
    blocks = [re.sub(r"\s+# .*", "", line) for block in fenced for line in block.splitlines() if line]
    inline = re.findall(r"`(kipcheck [^`]+)`", re.sub(r"^```.*?^```$", "", text(page), flags=re.MULTILINE | re.DOTALL))
    return list(dict.fromkeys([*blocks, *inline]))


def test_each_page_has_trials_and_each_trial_a_page() -> None:
    assert {path.stem for path in GUIDES.glob("*.md")} == TRIALS.keys()


@for_each([*TRIALS])
def test_each_command_has_a_trial(page: str) -> None:
    assert set(commands(page)) == TRIALS[page].keys()


@for_each([*TRIALS])
def test_a_page_is_one_screen_and_begins_with_a_command(page: str) -> None:
    shown = re.sub(r"\]\([^)]*\)", "]", text(page))
    assert sum(max(1, -(-len(line) // COLUMNS)) for line in shown.splitlines()) <= LINES
    assert re.match(r"# [^\n]+\n\n```sh\n", shown)
    assert max(len(line) for line in text(page).splitlines() if not line.startswith("|")) <= 120


@for_each([(page, command) for page in TRIALS for command in TRIALS[page] if command.startswith("kipcheck")])
def test_the_parser_reads_each_command(page: str, command: str) -> None:
    words = arguments(command, TRIALS[page][command], "7b0fadd99f37")[1:]
    if words == ["--version"]:
        return
    parser().parse_args(words)


def arguments(command: str, trial: Trial, id: str, case: str = "CASE.json") -> list[str]:
    put = {"ID": id, "M": "HeartbeatResponse", "N": "4", "HEX": BYTES, **trial.put}
    words = [each for word in shlex.split(command) for each in (shlex.split(put[word]) if word in put else [word])]
    return [word.replace("CASE.json", case) for word in (*words, *trial.more)]


# ---- the commands are run


def player(place: Path, tools: Path) -> None:
    """Fills a folder with what a reader has: the repository, testees, ``kipcheck`` on the PATH."""
    (place / "conformance").symlink_to(DOCS.parent)
    for name, run in {"kipcheck": "", "my-testee": "testee kafka-python", "old": "testee kafka-python",
                      "new": "testee kafka-python"}.items():  # fmt: skip
        script = (tools if name == "kipcheck" else place) / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kipcheck {run} "$@"\n')
        script.chmod(0o755)
    consumer = place / "my-consumer"  # it does not leave its group
    odd = "kipcheck.conformance.live.client.defective_consumers"
    consumer.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {odd} Vanishes "$2" "$4" "$6"\n')
    consumer.chmod(0o755)


def environment_of(tools: Path) -> dict[str, str]:
    return {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "COLUMNS": "200", "NO_COLOR": "1"}


def serve(words: list[str], place: Path, tools: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command until its first line, and ends it."""
    with subprocess.Popen(words, cwd=place, env=environment_of(tools), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:  # fmt: skip
        assert process.stdout is not None
        line = process.stdout.readline()
        process.terminate()
        out, err = process.communicate(timeout=60)
        return subprocess.CompletedProcess(words, process.returncode, line + out, err)


def play(words: list[str], place: Path, tools: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    environment = environment_of(tools)
    return subprocess.run(words, cwd=place, env=environment, input=stdin, capture_output=True, text=True,
                          timeout=300, check=False)  # fmt: skip


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A folder after a run, a campaign, and a list of known deviations, and the folder of the tools."""
    place, tools = tmp_path_factory.mktemp("place"), tmp_path_factory.mktemp("tools")
    player(place, tools)
    target = ("--target", "cmd:./my-testee")
    assert play(["kipcheck", "run", *SMALL], place, tools).returncode == 1
    assert play(["kipcheck", "campaign", *target, *FEW, "--out", "last-night"], place, tools).returncode == 1
    for out in ("kipcheck-out", "last-night"):
        play(["kipcheck", "known", "update", "known.toml", "--from", out], place, tools)
    listed = (place / "known.toml").read_text("utf-8")
    listed = re.sub(r"^reason = .*$", 'reason = "Bytes are sliced past the end."', listed, flags=re.MULTILINE)
    listed = re.sub(r"^link = .*$", 'link = "https://github.com/some/client/issues/13"', listed, flags=re.MULTILINE)
    (place / "known.toml").write_text(listed, "utf-8")
    return place, tools


def marked(page: str) -> object:
    return pytest.param(page, marks=[MARKS[tool] for tool in TOOLS.get(page, ()) if tool in MARKS])


@pytest.mark.integration
@pytest.mark.parametrize("page", [marked(page) for page in TRIALS])
def test_the_commands_of_a_page_do_what_it_says(page: str, reader: tuple[Path, Path], tmp_path: Path) -> None:
    for tool in TOOLS.get(page, ()):
        if shutil.which(tool) is None:
            raise Unavailable(f"there is no {tool} on the PATH")
    place = tmp_path / "place"
    shutil.copytree(reader[0], place, symlinks=True)
    for block in re.findall(r"^```toml\n(.*?)^```$", text(page), re.MULTILINE | re.DOTALL):
        # The folder of that name is the package here. The list is that of a project after its first run.
        (place / "kipcheck.toml").write_text(block.replace("conformance/known.toml", "known.toml"), "utf-8")
    for command, trial in TRIALS[page].items():
        if trial.read:
            continue
        words = arguments(command, trial, failure(command, place), case(place))
        done = serve(words, place, reader[1]) if trial.serves else play(words, place, reader[1], trial.stdin)
        assert done.returncode == trial.code, f"{command}\n{done.stdout}\n{done.stderr}"
        assert trial.out in done.stdout, f"{command}\n{done.stdout}\n{done.stderr}"


def failure(command: str, place: Path) -> str:
    """The id of a failure in the folder that the command reads."""
    out = place / ("tonight" if "--out tonight" in command else "kipcheck-out")
    return next((path.stem for path in sorted(out.glob("failures/*.json"))), "")


def case(place: Path) -> str:
    """The name of a history of the matrix."""
    return next((path.name for path in sorted(place.glob("kipcheck-out/histories/*.json"))), "")
