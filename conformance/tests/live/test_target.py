"""The target ``client:``: programs against a scripted broker."""

import sys

import pytest

from kipcheck.conformance.core.case import Case, Role
from kipcheck.conformance.core.foreign import is_data
from kipcheck.conformance.core.history import Replied
from kipcheck.conformance.protocols.client.ops import OPERATIONS
from kipcheck.conformance.targets.protocol import Broken, NotPlayed
from kipcheck.conformance.targets.registry import is_steady, target

OURS = f"client:{sys.executable} -m kipcheck.conformance.live.consumer {{bootstrap}} {{group}} {{topics}}"


def case(text: str) -> Case:
    return Case("client/groups", "apache", Role.CLIENT, OPERATIONS.parse_shorthand(text))


def test_a_command_is_run_once_for_each_case() -> None:
    with target(OURS).open("apache", Role.CLIENT) as session:
        found = session.run([case("rebalance; stop"), case("stop")])
    for each in found:
        last = each[-1]
        assert isinstance(last, Replied)
        assert [event["code"] for event in last["actions"] if event["what"] == "ended"] == [0]
        assert any(event.get("api") == "LeaveGroup" for event in last["actions"])


def test_a_program_that_is_no_consumer_is_shown_with_what_it_wrote() -> None:
    text = "import sys; print('no such option', file=sys.stderr); sys.exit(7)"
    name = f'client:{sys.executable} -c "{text}" {{bootstrap}} {{group}} {{topics}}'
    with target(name).open("apache", Role.CLIENT) as session, pytest.raises(Broken) as why:
        session.run([case("stop")])
    assert "code 7" in str(why.value) and "no such option" in str(why.value) and "no request" in str(why.value)


def test_a_command_needs_its_places() -> None:
    with pytest.raises(LookupError, match=r"\{group\}, \{topics\}"):
        target("client:./consume {bootstrap}")
    with pytest.raises(LookupError, match=r"nearest: kafka-python; a command contains \{bootstrap\}"):
        target("client:kafka-pyhton")
    with pytest.raises(LookupError, match="invalid release"):
        target("client:kafka-python@../here")


def test_a_file_may_name_a_client_that_comes_with_kipcheck_and_no_command() -> None:
    assert is_data("client:kafka-python") and not is_data(OURS)


def test_live_clients_play_no_other_role() -> None:
    with pytest.raises(NotPlayed), target(OURS).open("apache", Role.CODEC):
        pass
    assert not is_steady(OURS)


@pytest.mark.integration
@pytest.mark.parametrize("name", ["kafka-python", "aiokafka"])
def test_a_released_client_is_played(name: str) -> None:
    scripts = "others 2 follow; assign 1,2; rebalance; stop", "answer Heartbeat UNKNOWN_MEMBER_ID; pass 200; stop"
    with target(f"client:{name}").open("apache", Role.CLIENT) as session:
        found = session.run([case(each) for each in scripts])
    whats = [event["what"] for each in found for answer in each for event in dict(answer.payload)["actions"]]  # type: ignore[union-attr]
    assert whats.count("joined") == 2 and whats.count("settled") == 2 and whats.count("ended") == 2
