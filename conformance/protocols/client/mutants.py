"""Small consumers with one planted defect each. Least cases are in shorthand."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.protocols.client.ops import CLIENT
from kipcheck.conformance.protocols.declare.mutant import mutant
from kipcheck.conformance.targets.protocol import Claims

PLAY: Final = "kipcheck.conformance.live.client.in_process"
"""What plays scripts with consumers in this process. It stands above protocols, and is imported where one is played."""


class LiveMutant:
    """An adapter that plays scripts with a consumer in this process; each step is played when it comes."""

    name = "miniature/sound-consumer"
    version = "0"
    issues = ""
    consumer = ""
    """The class of its consumer among the odd ones; empty: one that keeps all rules."""

    def __init__(self) -> None:
        self._played: Any = None
        self._case: object = None

    def claims(self) -> Claims:
        return Claims(machines=(CLIENT,))

    def configure(self, edition: str, /) -> str | None:
        return None

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        if self._played is None or op.get("case") != self._case:
            if self._played is not None:
                self._played.close()
            self._case, self._played = op.get("case"), import_module(PLAY).Played(self.consumer)
        body = {key: value for key, value in op.items() if key not in ("op", "case", "actor")}
        found: dict[str, Any] = self._played.step(Step("", op["op"], body))
        if op["op"] == "client-stop":
            self._played.close()
            self._played = None
        return found


def broken(invariant: str, least: str) -> Any:
    return mutant("client/groups", f"client/{invariant}", CLIENT, None, least)


@broken("encodes-strictly", "stop")
class BeatsWithOneByteMore(LiveMutant):
    """A heartbeat has a byte after its last field."""

    consumer = "WritesLoosely"


@broken("embeds-strictly", "stop")
class SubscribesWithoutClaims(LiveMutant):
    """A subscription has version 1 in front, and ends without the owned partitions."""

    consumer = "SubscribesShort"


@broken("embeds-strictly", "stop")
class AssignsLessThanItSays(LiveMutant):
    """The user data of assignments has fewer bytes than its length says."""

    consumer = "CutsUserData"


@broken("asks-what-is-offered", "stop")
class AsksTheUnoffered(LiveMutant):
    """LeaveGroup is sent in a version that the broker did not offer."""

    consumer = "AsksTheUnoffered"


@broken("asks-what-is-offered", "stop")
class AsksForNoVersions(LiveMutant):
    """ApiVersions is never sent, and LeaveGroup in a version that the broker does not serve."""

    consumer = "NeverAsksVersions"


@broken("correlates", "stop")
class SendsTwiceWithOneId(LiveMutant):
    """Two heartbeats are sent at once with one correlation id."""

    consumer = "RepeatsIds"


@broken("does-not-spin", "answer Heartbeat NOT_COORDINATOR; stop")
class LooksUpWithoutPause(LiveMutant):
    """A lost coordinator is looked up again and again, without a pause."""

    consumer = "Spins"


@broken("does-not-spin", "refuse JoinGroup GROUP_AUTHORIZATION_FAILED; stop")
class JoinsWithoutPause(LiveMutant):
    """A JoinGroup that is not authorized is sent again and again, without a pause."""

    consumer = "JoinsOn"


@broken("paces-itself", "refuse JoinGroup GROUP_AUTHORIZATION_FAILED; stop")
class JoinsTooOften(LiveMutant):
    """A JoinGroup that is not authorized is sent 60 times without a pause."""

    consumer = "Hurries"


@broken("names-itself", "stop")
class NamesAnotherGeneration(LiveMutant):
    """Heartbeats carry a generation that no answer had."""

    consumer = "NamesAnother"


@broken("joins-with-its-id", "rebalance; stop")
class JoinsWithoutItsId(LiveMutant):
    """A rebalance takes the member id."""

    consumer = "DropsItsId"


@broken("keeps-its-id", "answer Heartbeat ILLEGAL_GENERATION; stop")
class JoinsAsAStranger(LiveMutant):
    """An old generation takes the member id."""

    consumer = "JoinsAsAStranger"


@broken("names-its-instance", "static; stop")
class HidesItsInstance(LiveMutant):
    """Heartbeats of a static member carry no instance id."""

    consumer = "HidesItsInstance"


@broken("names-its-protocol", "stop")
class SyncsWithoutItsProtocol(LiveMutant):
    """SyncGroup names no protocol."""

    consumer = "HidesItsProtocol"


@broken("keeps-its-settings", "rebalance; stop")
class ChangesItsTimeout(LiveMutant):
    """Each JoinGroup has a longer session timeout."""

    consumer = "ChangesItsTimeout"


@broken("keeps-its-settings", "stop")
class DoublesItsTimeout(LiveMutant):
    """Each JoinGroup has twice the rebalance timeout that the program was given."""

    consumer = "DoublesItsTimeout"


@broken("keeps-its-settings", "assignors range,roundrobin; stop")
class ReversesItsAssignors(LiveMutant):
    """JoinGroup offers the assignors of the user in another order."""

    consumer = "ReversesItsAssignors"


@broken("stops-when-fenced", "answer Heartbeat UNKNOWN_MEMBER_ID; stop")
class BeatsWhenFenced(LiveMutant):
    """A member that the coordinator does not know sends heartbeats for a second and a half."""

    consumer = "BeatsOn"


@broken("beats", "pass 3200; stop")
class SendsNoHeartbeat(LiveMutant):
    """A stable member sends nothing."""

    consumer = "Silent"


@broken("beats-no-more-than-due", "pass 1400; stop")
class BeatsAtEachTurn(LiveMutant):
    """Heartbeats are 20 ms apart."""

    consumer = "Hastens"


@broken("beats-no-more-than-due", "protocol consumer; pass 1400; stop")
class BeatsAnewAtEachTurn(LiveMutant):
    """Heartbeats of a group of KIP-848 are 20 ms apart."""

    consumer = "HastensInKip848"


@broken("comes-back", "rebalance; stop")
class IgnoresRebalances(LiveMutant):
    """A heartbeat that is answered REBALANCE_IN_PROGRESS changes nothing."""

    consumer = "Stays"


@broken("comes-back-soon", "rebalance; stop")
class PausesBeforeItJoins(LiveMutant):
    """REBALANCE_IN_PROGRESS is followed by a pause of several seconds."""

    consumer = "TakesItsTime"


@broken("syncs", "answer SyncGroup COORDINATOR_NOT_AVAILABLE; stop")
class ReadsOnWithoutSync(LiveMutant):
    """A SyncGroup that fails is not sent again, and the member takes its generation for complete."""

    consumer = "GivesUpSync"


@broken("finds-its-coordinator", "answer Heartbeat NOT_COORDINATOR; stop")
class KeepsItsCoordinator(LiveMutant):
    """After NOT_COORDINATOR the client goes on with the same broker."""

    consumer = "KeepsItsCoordinator"


@broken("leaves", "stop")
class EndsWithoutLeaving(LiveMutant):
    """A dynamic member closes without LeaveGroup."""

    consumer = "Vanishes"


@broken("leaves", "static; stop")
class LeavesAsAStaticMember(LiveMutant):
    """A static member closes with LeaveGroup."""

    consumer = "LeavesForGood"


@broken("ends-when-stopped", "answer Heartbeat ILLEGAL_GENERATION; stop")
class EndsAtAnOldGeneration(LiveMutant):
    """The program ends when its generation is over."""

    consumer = "Gives"


@broken("ends-when-stopped", "stop")
class CrashesWhenItIsClosed(LiveMutant):
    """The program leaves its group, and crashes then."""

    consumer = "CrashesAtItsEnd"


@broken("reads-its-own", "pass 200; others 1 lead; rebalance; pass 1200; stop")
class FetchesOn(LiveMutant):
    """What another member was given is fetched on."""

    consumer = "ReadsOn"


@broken("commits-its-own", "pass 200; others 1 lead; rebalance; pass 1200; stop")
class CommitsOn(LiveMutant):
    """What another member was given is committed on."""

    consumer = "CommitsOn"


@broken("commits-what-it-read", "stop")
class CommitsAhead(LiveMutant):
    """The offset after the next record is committed, before that record is read."""

    consumer = "CommitsAhead"


@broken("starts-at-the-committed-offset", "others 1 follow; pass 200; stop")
class StartsAtTheBeginning(LiveMutant):
    """What the group has committed is asked for, and all partitions are read from the beginning."""

    consumer = "StartsAnew"


@broken(
    "starts-at-the-committed-offset",
    "others 1 follow; pass 200; assign 1; rebalance; assign 0; rebalance; pass 1200; stop",
)
class GoesOnWhereItWas(LiveMutant):
    """A partition that other members had meanwhile is read from the position where the member lost it."""

    consumer = "KeepsPositions"


@broken("reads-on", "pass 200; rebalance; stop")
class LosesItsPositions(LiveMutant):
    """After a rebalance all partitions are read from the beginning, before the committed offsets are known."""

    consumer = "LosesPositions"


@broken("owns-nothing-when-eager", "rebalance; stop")
class ClaimsWhenEager(LiveMutant):
    """A member with range alone claims what it had before."""

    consumer = "ClaimsWhenEager"


@broken("claims-what-it-owns", "assignors cooperative-sticky; rebalance; stop")
class ClaimsNothing(LiveMutant):
    """A cooperative member never claims what it owns."""

    consumer = "ClaimsNothing"


@broken("assigns-to-everybody", "others 1 lead; stop")
class AssignsToItselfAlone(LiveMutant):
    """The leader sends an assignment for itself alone."""

    consumer = "ForgetsAMember"


@broken("assigns-each-partition-once", "others 1 lead; rebalance; stop")
class AssignsAllToAll(LiveMutant):
    """The leader gives each member all partitions."""

    consumer = "GivesTwice"


@broken("assigns-evenly", "others 1 lead; rebalance; stop")
class KeepsAllPartitions(LiveMutant):
    """The leader keeps all partitions, and gives the others empty assignments."""

    consumer = "Hoards"


@broken("hands-over", "assignors cooperative-sticky; pass 200; others 1 lead; rebalance; stop")
class GivesAwayWhatItReads(LiveMutant):
    """A cooperative leader gives away what it still reads."""

    consumer = "HandsOverAtOnce"


@broken("leads-other-clients", "member v1; rebalance; stop")
class ReadsItsOwnVersionOnly(LiveMutant):
    """The leader joins again where another member's subscription has a later version than its own."""

    consumer = "ReadsItsOwnVersion"


@broken("stays-fenced", "static; fence; stop")
class BeatsOnWhenFenced(LiveMutant):
    """A member whose instance id another process has sends heartbeats for a second and a half."""

    consumer = "BeatsOnWhenFenced"


@broken("names-its-epoch", "protocol consumer; rebalance; stop")
class NamesAnotherEpoch(LiveMutant):
    """A heartbeat carries an epoch that no answer had."""

    consumer = "NamesAnotherEpoch"


@broken("joins-anew-when-fenced", "protocol consumer; answer ConsumerGroupHeartbeat FENCED_MEMBER_EPOCH; stop")
class KeepsItsEpoch(LiveMutant):
    """FENCED_MEMBER_EPOCH does not change the epoch."""

    consumer = "KeepsItsEpoch"


@broken("owns-what-it-is-assigned", "protocol consumer; pass 1200; stop")
class OwnsMore(LiveMutant):
    """A heartbeat says that the member owns one partition more."""

    consumer = "OwnsMore"


@broken("beats-in-time", "protocol consumer; pass 3600; stop")
class SendsNoFurtherHeartbeat(LiveMutant):
    """A member of KIP-848's protocol sends no heartbeat once it has its assignment."""

    consumer = "SilentOnceAssigned"


@broken("leaves-with-its-epoch", "protocol consumer; stop")
class EndsWithItsEpoch(LiveMutant):
    """A member of KIP-848's protocol closes without a last heartbeat."""

    consumer = "Vanishes"


@broken("names-itself", "pass 600; stop")
class BeatsNameless(LiveMutant):
    """A heartbeat has no member id."""

    consumer = "IsNameless"


@broken("names-its-instance", "static; stop")
class BeatsInAnOldVersion(LiveMutant):
    """A static member sends heartbeats in a version that has no instance id."""

    consumer = "BeatsInAnOldVersion"


@broken("names-its-topics", "topics 2; rebalance; stop")
class ForgetsItsTopics(LiveMutant):
    """A rejoin names the first topic alone."""

    consumer = "ForgetsItsTopics"
