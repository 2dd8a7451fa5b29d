"""The place in the library under test where a refusal or a death comes from."""

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from kipcheck.conformance.clients.kafka_python import KafkaPython
from kipcheck.conformance.core.values.case import Case, Role, step
from kipcheck.conformance.core.values.history import Died, Refused
from kipcheck.conformance.targets.error_mapping import innermost, place_in_dump, rejected
from kipcheck.conformance.targets.protocol import LONGEST_AT, observed
from kipcheck.conformance.targets.registry import target


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], object]:
    """A package with a function that fails in the standard library."""
    folder = tmp_path / "lib" / "under"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "test.py").write_text("import json\n\n\ndef read():\n    return json.loads('{')\n")
    monkeypatch.syspath_prepend(tmp_path / "lib")
    read: Callable[[], object] = import_module("under.test").read
    return read


def test_a_refusal_has_the_innermost_frame_of_the_library(library: Callable[[], object]) -> None:
    with pytest.raises(json.JSONDecodeError) as raised:
        library()
    assert rejected(raised.value)["at"] == "under/test.py:5"


def test_what_kipcheck_raises_itself_has_no_place() -> None:
    with pytest.raises(ValueError, match="ours") as raised:
        raise ValueError("ours")
    assert "at" not in rejected(raised.value)


def test_generated_code_has_a_name_that_is_the_same_in_all_versions(library: Callable[[], object]) -> None:
    called_by = str(Path(library.__code__.co_filename))
    ours = __file__
    assert innermost([("<decode:join_v3>", 11), (called_by, 2), (ours, 1)]) == "<decode:join>"
    assert innermost([("<decode:join_v3>", 11), (ours, 1)]) == "", "kipcheck generated it"
    assert innermost([("<frozen runpy>", 88), (called_by, 2)]) == "under/test.py:2"


def test_a_dump_is_read_of_the_thread_that_ran(library: Callable[[], object]) -> None:
    place = str(Path(library.__code__.co_filename))
    other = 'Thread 0x01 (most recent call first):\n  File "/x/site-packages/other.py", line 3 in wait\n\n'
    dump = f'{other}Current thread 0x02 (most recent call first):\n  File "{place}", line 4 in read\n'
    assert place_in_dump(dump) == {"at": "under/test.py:4"}
    assert place_in_dump("killed") == {}


def test_a_place_changes_no_observation() -> None:
    result: dict[str, Any] = {"status": "rejected", "class": "E"}
    one, other = observed({**result, "at": "a.py:1"}), observed({**result, "at": "b.py:2"})
    assert isinstance(one, Refused) and one.at == "a.py:1"
    assert one == other
    assert hash(one) == hash(other)


def test_a_place_is_one_line_of_limited_length() -> None:
    found = observed({"status": "internal", "class": "E", "at": "a\n\x1b" * 100})
    assert isinstance(found, Died)
    assert len(found.at) == LONGEST_AT and "\n" not in found.at and "\x1b" not in found.at


def test_the_adapter_of_kafka_python_gives_places() -> None:
    asked = {"op": "decode", "message": "HeartbeatResponse", "version": 4, "hex": "00"}
    assert KafkaPython().answer(asked)["at"] == "<codegen_decode:heartbeat_response>"


@pytest.mark.integration
def test_a_case_that_takes_too_long_has_a_place() -> None:
    endless = step("t", "decode", message="HeartbeatRequest", version=4, hex="ff" * 400_000)
    with target("kafka-python").open("apache", Role.CODEC) as session:
        ((observation,),) = session.run([Case("x", "apache", Role.CODEC, (endless,))])
    assert isinstance(observation, Died) and observation.cause == "timeout"
    assert observation.at == "<codegen_decode:heartbeat_request>"
