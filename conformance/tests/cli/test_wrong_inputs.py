"""Wrong inputs of each kind, to all commands: the documented exit code, and a line that names what is wrong."""

import argparse
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from kipcheck.conformance.cli.main import parser, run
from kipcheck.conformance.tests.cli.test_usage import verbs

FILES: Final = {
    "empty": b"", "binary": b"\xff\xfe\x00bad", "text": b"hello world\n", "list.json": b"[1, 2]",
    "object.json": b'{"format": 9}', "run/ledger.jsonl": b"x\n", "headless.jsonl": b'{"type": "header"}\n',
}  # fmt: skip
"""Beside an empty ``folder``."""
WRONG: Final = """
rnu | 2 | unknown command 'rnu'; the nearest: run
run --tagret x | 2 | unknown option --tagret; the nearest: --target
run --seed one | 2 | --seed: must be an integer, got 'one'
run --cases 0 | 2 | --cases: must be a positive integer, got '0'
run --workers -1 | 2 | --workers: must be a positive integer
run --budget soon | 2 | use 90s, 5m or 8h
run --part 3/2 | 2 | use I/N with 1 <= I <= N
run --target | 2 | --target: expected one argument
run --target nobody | 2 | unknown target 'nobody'; known: aiokafka
run --target kafka-python@x | 2 | use a form like kafka-python@2.3.0
run --target java:nothing:1.0.2 | 2 | for released jars use java:kafka-clients:RELEASE
run --target cmd: | 2 | use cmd:COMMAND
run --target "cmd:'open" | 2 | No closing quotation
run --target cmd:./absent --check wire/repeat | 3 | there is no program './absent'
run --target client:./x | 2 | a command contains {bootstrap}, {group}, {topics}
run --target "client:./x {bootstrap} {group} {topics} {more}" | 2 | has {more}, which kipcheck does not know
run --target "client:./absent {bootstrap} {group} {topics}" --script stop | 3 | there is no program './absent'
run --target broker:localhost | 2 | use broker:HOST:PORT
run --target tcp:127.0.0.1:1 --check wire/repeat | 3 | tcp:127.0.0.1:1 cannot be started: nothing listens there
run --target kafka:9.9.9 | 2 | unknown release 9.9.9
run --check wire/round-tirp | 2 | the nearest: wire/round-trip
run --message Nothing | 2 | --message 'Nothing' matches no message
run --edition apache@9.9.9 | 2 | use one from 0.10.0.0 to 4.4.0
run --edition jar:absent.jar | 2 | the jar absent.jar cannot be read: no such file in
run --edition jar:folder | 2 | the jar folder cannot be read: it is a folder
run --edition kip-999 | 2 | known editions: apache
run --known absent.toml | 2 | absent.toml cannot be read: no such file in
run --known binary | 2 | binary:1: is not UTF-8
run --known folder | 2 | folder cannot be read: it is a folder
run --known text | 2 | text:1: not valid TOML
run --profile absent | 2 | profile absent cannot be read: no such file in
run --profile binary | 2 | profile binary: byte 0 is not UTF-8
run --profile folder | 2 | it is a folder: use consumer-client
run --name mine | 2 | --name 'mine' is for no target
run --script absent.txt | 2 | absent.txt cannot be read: no such file in
run --out text | 2 | text cannot be written: a file is in the place of a folder
run --events none/x --out o | 2 | none/x cannot be written: there is no folder none
run --require none/* | 2 | no check matches 'none/*'
run --trace some | 2 | unknown value 'some': use failed, all
replay absent | 2 | no failure absent in kipcheck-out/failures
replay text | 2 | text does not contain a failure: not JSON at line 1, column 1
replay binary | 2 | binary does not contain a failure: byte 0 is not UTF-8
replay folder | 2 | no stored failures (ID.json) in folder
replay list.json | 2 | list.json does not contain a failure: it is not a JSON object
replay object.json | 2 | "target" must be a text
show | 2 | the following arguments are required: ID|MESSAGE
show JoinGroupRequest --version 99 | 2 | it has 0-9
report absent | 2 | absent contains no ledger.jsonl
report empty | 2 | empty is not a ledger
report binary | 2 | binary is not a ledger
report run | 2 | line 1 is not JSON
report --form pdf | 2 | unknown value 'pdf': use brief
report headless.jsonl --form history | 2 | headless.jsonl is not a ledger
report run --master local | 2 | --master needs --spark
merge absent --out m | 2 | absent contains no ledger.jsonl
triage absent | 2 | absent contains no ledger.jsonl
known update | 2 | name the list to update
known update x.toml --from absent | 2 | absent cannot be read: no such file in
known check binary | 1 | binary:1: is not UTF-8
known list folder | 2 | folder cannot be read: it is a folder
known list --target nobody | 2 | --target 'nobody' fits nothing
config extra | 2 | unknown argument extra
export text | 2 | text does not contain a failure: not JSON at line 1, column 1
export list.json --as pcap | 2 | it is not a JSON object
encode absent --message HeartbeatRequest --version 0 | 2 | absent cannot be read: no such file in
encode text --message HeartbeatRequest --version 0 | 2 | not JSON at line 1, column 1
encode folder --message HeartbeatRequest --version 0 | 2 | folder cannot be read: it is a folder
encode list.json --message Heartbeet --version 0 | 2 | the nearest: HeartbeatRequest
decode zz --message HeartbeatRequest --version 0 | 2 | not hex: character 1 is 'z'
decode 00 | 2 | --message and --version are required
explain "[0, 999]" | 2 | 999 is no byte
explain 00 --version x | 2 | --version: must be an integer, got 'x'
assign text --assignor range | 2 | not JSON at line 1, column 1
assign text --assignor best | 2 | unknown value 'best': use range
subscribe list.json | 2 | must be a JSON object, got list
play nothing | 2 | unknown model 'nothing': use one of
play group absent | 2 | absent cannot be read: no such file in
play group folder | 2 | folder cannot be read: it is a folder
play group text | 2 | line 1: invalid event 'hello world': it must begin with one of join
explore nothing | 2 | unknown model 'nothing': use one of
explore group --scope members=x | 2 | unknown bound 'members' of model group
golden | 2 | the following arguments are required: verify|make
checks --reach | 2 | --reach needs --lint
checks --family nothing | 2 | --family 'nothing' fits nothing; there are assign
requirements 268-99 | 2 | similar ids: 268-09
requirements --out absent | 2 | absent contains no ledger.jsonl
editions diff apache@3.9.2 apache@9.9.9 | 2 | unknown release 9.9.9
targets extra | 2 | unknown argument extra
mutants --nothing | 2 | unknown option --nothing
doctor --target cmd:./absent | 3 | there is no program './absent'
doctor --target reference --seconds x | 2 | --seconds: must be a number, got 'x'
testee nobody | 2 | unknown target 'nobody'
serve --port 99999 | 2 | must be a port from 0 to 65535
serve --release 9.9.9 | 2 | unknown release 9.9.9
serve --script "leave me" | 2 | step 1, 'leave me', cannot be read
serve --pcap none/x.pcap | 1 | none/x.pcap cannot be written: there is no folder none
serve --host nowhere.invalid | 2 | add --allow-remote
watch | 2 | name a broker with --upstream HOST:PORT, or a capture
watch --pcap text | 2 | text is no packet capture
watch --pcap folder | 2 | Is a directory
watch --upstream localhost | 2 | use HOST:PORT, such as localhost:9092
watch --upstream localhost:1 | 3 | nothing listens there
inspect localhost | 2 | use HOST:PORT, such as localhost:9092
inspect localhost:1 --timeout 1s | 3 | nothing listens there
inspect localhost:1 --config absent | 2 | --config absent cannot be read
features describe --state absent | 2 | absent cannot be read: no such file in
features describe --state text | 2 | text: not JSON at line 1, column 1
features upgrade --bootstrap-server x | 2 | invalid address 'x': use HOST:PORT
roll --from 3.9 --to 3.0 | 2 | 3.9.2 is newer than 3.0.2
logdir absent | 2 | absent is no directory
storedir folder | 2 | folder is no directory of a store
corpus info folder | 2 | folder has neither a corpus nor a ledger
corpus merge absent --out c | 2 | absent has neither a corpus
campaign --resume absent | 2 | absent contains no manifest.json
campaign --out text | 2 | text cannot be written: a file is in the place of a folder
campaign --executor cloud | 2 | use auto, inline, pool, spark
matrix --from 9.9 | 2 | unknown release of Kafka Streams '9.9'
matrix --case text | 2 | text contains no history of a matrix
recall --id nothing | 2 | no bug matches 'nothing'
mutate --target nobody | 2 | unknown target 'nobody'
completion fish | 2 | use bash, zsh, tcsh
"""
"""Command line | exit code | part of the text."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, data in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows() -> Iterator[tuple[str, int, str]]:
    for line in WRONG.strip().splitlines():
        words, code, text = line.split(" | ")
        yield words, int(code), text


@pytest.mark.parametrize(("words", "code", "text"), [*rows()], ids=[words for words, *_ in rows()])
def test_what_is_wrong_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str], words: str, code: int, text: str
) -> None:
    try:
        ended = run(shlex.split(words))
    except SystemExit as usage:
        assert isinstance(usage.code, int)
        ended = usage.code
    error = capsys.readouterr().err
    assert "Traceback" not in error and "Errno" not in error
    assert ended == code
    (*_, last) = [line for line in error.splitlines() if not line.startswith("try: ")]
    assert last.startswith("kipcheck") and text in last


def test_there_is_one_for_each_command() -> None:
    assert len([*rows()]) >= 80
    commands = {path.split()[0] for path, _ in verbs(_without_aliases(parser()))}
    assert len(commands) > 30
    assert commands - {words.split()[0] for words, *_ in rows()} == set()


def _without_aliases(made: argparse.ArgumentParser) -> argparse.ArgumentParser:
    for action in made._actions:
        if isinstance(action, argparse._SubParsersAction):
            listed = {each.dest.partition(" ")[0] for each in action._choices_actions}
            for name in [each for each in action.choices if each not in listed]:
                del action.choices[name]
    return made
