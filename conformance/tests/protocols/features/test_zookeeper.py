"""Controllers with ZooKeeper, 2.7 to 3.9: what was observed on brokers of 2.7.2 and 2.8.2, and the life of the node."""

from typing import Any

import pytest

from kipcheck.conformance.protocols.features.model.ranges import Range
from kipcheck.conformance.protocols.features.model.zookeeper import ZooKeeperController
from kipcheck.conformance.protocols.features.ops.zookeeper import OPERATIONS

RELEASES = ("2.7.0", "2.7.2", "2.8.2", "3.2.3", "3.3.2", "3.9.2")
LEFT = (("left", Range(1, 2)),)
"""A feature that another program wrote into the node."""


def answers(release: str, text: str, **given: Any) -> list[dict[str, Any]]:
    machine = ZooKeeperController(release, **given)
    state, found = machine.initial(), []
    for each in OPERATIONS.parse_shorthand(text):
        state, actions = machine.step(state, OPERATIONS.event_of(each))
        found.append(OPERATIONS.answer_of(actions))
    return found


def node(release: str, text: str, **given: Any) -> tuple[int, bool, int]:
    """Version of the JSON, status and epoch."""
    found = answers(release, f"{text}; zk-node", **given)[-1]
    return found["version"], found["enabled"], found["epoch"]


@pytest.mark.parametrize("release", RELEASES)
def test_the_node_follows_the_inter_broker_version(release: str) -> None:
    """As observed: created disabled, enabled with epoch 1, then 2 and 3; or created enabled with epoch 0."""
    assert node(release, "controller at 2.6") == (1, False, 0)
    assert node(release, "controller at 2.6; controller at 2.7") == (1, True, 1)
    assert node(release, "controller at 2.6; controller at 2.7; controller at 2.6") == (1, False, 2)
    assert node(release, "controller at 2.6; controller at 2.7; controller at 2.6; controller at 2.7") == (1, True, 3)
    assert node(release, "controller at 2.7") == (1, True, 0)
    assert node(release, "controller at 2.7; controller at 2.7") == (1, True, 0)
    assert node(release, "delete node") == (0, False, -1)


def test_the_second_form_of_the_node_comes_with_3_3() -> None:
    assert node("3.3.2", "controller at 3.3") == (2, True, 0)
    assert node("3.3.2", "controller at 2.7; controller at 3.3") == (2, True, 1)  # the version is compared, too
    assert node("3.3.2", "controller at 3.3; controller at 2.7") == (1, True, 1)
    assert node("3.2.3", "controller at 3.3") == (1, True, 0)
    supported = "declare 0 left:1-2; controller at 3.3; "
    assert node("3.9.2", supported + "zk-update v1 left:0!", finalized=LEFT) == (2, True, 2)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("version", [0, 1])
def test_every_update_is_refused_with_one_error(release: str, version: int) -> None:
    updates = "a:1,b:1!,c:0,d:0!,e:-1!,f:0!!,:1"
    (_, done, after) = answers(release, f"controller at 2.7; zk-update v{version} {updates}; zk-node")
    assert [each["feature"] for each in done["results"]] == ["", "a", "b", "c", "d", "e", "f"]
    assert {each["error"] for each in done["results"]} == {"INVALID_REQUEST"}
    assert after["epoch"] == 0


@pytest.mark.parametrize("release", RELEASES)
def test_below_the_migration_version_the_whole_request_is_refused(release: str) -> None:
    (_, done) = answers(release, "controller at 2.6; zk-update v0 a:1")
    assert done == {"status": "rejected", "class": "INVALID_REQUEST"}
    (done,) = answers(release, "zk-update v0 a:1")
    assert done == {"status": "rejected", "class": "NOT_CONTROLLER"}


@pytest.mark.parametrize(
    ("update", "deleted"),
    [("v0 left:0!", True), ("v0 left:0", False), ("v0 left:2!", False), ("v0 left:3", False), ("v1 left:-1!!", True),
     ("v1 left:0~4", False), ("v1 left:0! validate", True), ("v0 left:0!,other:1", True)],
)  # fmt: skip
def test_a_deletion_is_all_that_can_succeed(update: str, deleted: bool) -> None:
    """Also with validate-only, which these controllers do not read (584-34)."""
    supported = "declare 0 left:1-2; controller at 2.7; "
    *_, after = answers("3.9.2", f"{supported}zk-update {update}; zk-node", finalized=LEFT)
    assert (after["finalized"] == [], after["epoch"]) == (deleted, int(deleted))


def test_caches_of_brokers() -> None:
    begun = "controller at 2.6; controller at 2.7; "
    *_, empty = answers("2.8.2", "controller at 2.6; read 0; zk-features 0")
    *_, known = answers("2.8.2", begun + "read 0; zk-features 0")
    assert (empty["epoch"], known["epoch"]) == (-1, 1)
    # A node that was deleted and created again begins at 0, which a broker that missed the deletion does not survive.
    *_, stopped = answers("2.8.2", begun + "read 0; delete node; controller at 2.7; read 0")
    assert stopped == {"status": "rejected", "class": "FEATURE_CACHE_UPDATE", "message": "broker 0 has to stop"}
    *_, reported = answers("2.8.2", begun + "read 0; delete node; read 0; controller at 2.7; read 0; zk-features 0")
    assert reported["epoch"] == 0
    *_, same = answers("2.8.2", begun + "read 0; read 0; zk-features 0")
    assert same["epoch"] == 1
    *_, gone = answers("2.8.2", begun + "read 0; controller at 2.6; read 0; zk-features 0")
    assert gone["epoch"] == -1


def test_a_broker_exits_where_a_feature_is_finalized_that_it_does_not_know() -> None:
    *_, stopped = answers("2.7.2", "controller at 2.7; read 1", finalized=LEFT)
    assert stopped["class"] == "FEATURE_CACHE_UPDATE"
    stopped, _, refused = answers("2.7.2", "controller at 2.7; zk-node; zk-update v0 left:0!", finalized=LEFT)
    assert (stopped["class"], refused["class"]) == ("FEATURE_CACHE_UPDATE", "NOT_CONTROLLER")
    supported = "declare 0 left:1-2; controller at 2.7; "
    *_, well = answers("2.7.2", supported + "zk-update v0 left:0!; read 1; zk-features 1", finalized=LEFT)
    assert well["epoch"] == 1
    # An inter-broker version below the migration version is the way out: it empties the node.
    *_, after = answers("2.7.2", "controller at 2.6; controller at 2.7; zk-node", finalized=LEFT)
    assert (after["epoch"], after["finalized"]) == (2, [])


@pytest.mark.parametrize("release", ["2.6.3", "4.0.0"])
def test_other_releases_have_no_such_controller(release: str) -> None:
    with pytest.raises(ValueError, match="has no feature versions in ZooKeeper"):
        ZooKeeperController(release)


def test_shorthand_comes_back() -> None:
    text = "controller at 2.7; zk-update v1 a:1!,b:0~9 validate; delete node; read 0; zk-features 1; zk-node"
    assert OPERATIONS.shorthand(OPERATIONS.parse_shorthand(text)) == text
