"""Consumers and their coordinator, joined by a network: explored at a small scope, whole and with defects planted."""

from dataclasses import replace

import pytest

from kipcheck.conformance.core.values.edition import Edition, edition
from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.machines.plain_search import explore
from kipcheck.conformance.machines.product import SimpleProduct
from kipcheck.conformance.machines.search import Search
from kipcheck.conformance.protocols.assignment.model.assignment import Topic, frozen
from kipcheck.conformance.protocols.assignment.model.sticky import sticky
from kipcheck.conformance.protocols.cluster.components import Does, Node, Scope, Told
from kipcheck.conformance.protocols.cluster.kinds import COOPERATES, KINDS, OLD, READY
from kipcheck.conformance.protocols.cluster.laws import laws
from kipcheck.conformance.protocols.cluster.model import Cluster
from kipcheck.conformance.protocols.group.model.messages import Blob
from kipcheck.conformance.protocols.member.model.consumer import Consumer
from kipcheck.conformance.protocols.member.model.rules import Assignor
from kipcheck.conformance.protocols.member.model.state import State, Step
from kipcheck.conformance.protocols.upgrade.model.upgrade import config, consumers, coordinator

NEWEST, DRAFT = edition("apache"), edition("kip-429")
TOPIC = Topic("t", 2)
LAWS = laws((("t", 0), ("t", 1)))


def cluster(
    kind: str = COOPERATES,
    scope: Scope = Scope(crashes=0),  # noqa: B008
    members: int = 2,
    edition: Edition = NEWEST,
    spoiled: Consumer | None = None,
) -> Cluster:
    made = {**consumers(edition, (TOPIC,)), **({kind: spoiled} if spoiled else {})}
    names = ("a", "b", "c")[:members]
    return Cluster(coordinator(edition), made, names, scope, (kind,) * members, LAWS)


def searched(made: Cluster) -> Search[object, object, object]:
    found: Search[object, object, object] = Search(made)  # type: ignore[arg-type]
    found.run(30_000)
    return found


@pytest.mark.parametrize("kind", [OLD, READY, COOPERATES])
@pytest.mark.parametrize("where", [NEWEST, DRAFT], ids=str)
def test_a_group_that_starts_keeps_all_laws_in_every_order(where: Edition, kind: str) -> None:
    found = searched(cluster(kind, edition=where))
    assert (found.complete, found.breach) == (True, None)
    assert 100 < found.states < 500


@pytest.mark.parametrize(
    "scope", [Scope(stays_away=True), Scope(0, losses=1), Scope(0, repeats=1)], ids=["crash", "loss", "repeat"]
)  # fmt: skip
def test_with_a_failure_too(scope: Scope) -> None:
    found = searched(cluster(scope=scope))
    assert (found.complete, found.breach) == (True, None)
    assert found.states > 500


def test_the_packed_search_says_what_the_readable_one_says() -> None:
    made = cluster()
    seen = {edge.after for edge in explore(SimpleProduct(made), lambda state: True)} | {made.initial()}
    assert len(seen) == searched(made).states


def test_where_nothing_more_happens_each_member_reads_its_share() -> None:
    whole = SimpleProduct(cluster())
    ends = [edge.after for edge in explore(whole, lambda state: True) if not any(whole.enabled(edge.after))]
    nodes = [[part for part in state[1:] if isinstance(part, Node)] for state in ends]
    shares = {tuple(node.state.owned for node in each if node.state is not None) for each in nodes}
    assert shares == {((("t", 0),), (("t", 1),)), ((("t", 1),), (("t", 0),))}


def spoiled(kind: str, assignor: Assignor) -> Consumer:
    return Consumer(replace(config(NEWEST, KINDS[kind], (TOPIC,)), assignors=(assignor,)))


def test_what_is_given_too_early_is_found() -> None:
    (cooperative,) = config(NEWEST, KINDS[COOPERATES]).assignors
    found = searched(cluster(spoiled=spoiled(COOPERATES, replace(cooperative, assign=sticky))))
    assert found.breach is not None
    assert found.breach.law == "bounce/revoked-first"
    assert "belongs to" in found.breach.why


def test_what_is_given_to_nobody_is_found() -> None:
    (cooperative,) = config(NEWEST, KINDS[COOPERATES]).assignors
    nothing = replace(cooperative, assign=lambda group: frozen({each.id: () for each in group.members}))
    found = searched(cluster(spoiled=spoiled(COOPERATES, nothing)))
    assert found.breach is not None
    assert found.breach.law == "bounce/all-owned"


class _Restless(Consumer):
    def complete(self, state: State, blob: Blob) -> Step:
        after, actions = super().complete(state, blob)
        return Transition(replace(after, rejoin=True), actions)


def test_a_group_that_never_rests_is_found() -> None:
    found = searched(cluster(spoiled=_Restless(config(NEWEST, KINDS[COOPERATES], (TOPIC,)))))
    assert found.breach is not None
    assert found.breach.law == "bounce/rests"


def test_two_bounces_keep_all_laws() -> None:
    script = tuple((member, kind) for kind in (READY, COOPERATES) for member in (1, 2))
    found = searched(cluster(OLD, Scope(crashes=0, script=script), edition=DRAFT))
    assert (found.complete, found.breach) == (True, None)


def test_who_is_told_to_stop_says_good_bye_and_starts_as_told() -> None:
    made = cluster()
    node = made.act(1, made.initial()[1], Does("starts")).part
    assert isinstance(node, Node)
    reported = made.take(1, node, Told(READY))
    assert reported is not None
    assert isinstance(reported.part, Node)
    assert reported.part.then == (READY, ("t",)), "its request is still under way"
    assert made.reached(1, node._replace(out=()), Told(READY)) == Node(READY, starts=True)
