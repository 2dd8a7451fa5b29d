"""Small consumers with one planted defect each. Least cases are in shorthand."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.protocols.client.ops import CLIENT, SHARE_CLIENT, STREAMS_CLIENT
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
    machine = CLIENT

    def __init__(self) -> None:
        self._played: Any = None
        self._case: object = None

    def claims(self) -> Claims:
        return Claims(machines=(self.machine,))

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


CONNECTIONS: Final = (
    ("BeatsWithOneByteMore", "WritesLoosely", "encodes-strictly", "stop",
     "A heartbeat has a byte after its last field."),
    ("SubscribesWithoutClaims", "SubscribesShort", "embeds-strictly", "stop",
     "A subscription has version 1 in front, and ends without the owned partitions."),
    ("AssignsLessThanItSays", "CutsUserData", "embeds-strictly", "stop",
     "The user data of assignments has fewer bytes than its length says."),
    ("AsksTheUnoffered", "AsksTheUnoffered", "asks-what-is-offered", "stop",
     "LeaveGroup is sent in a version that the broker did not offer."),
    ("AsksForNoVersions", "NeverAsksVersions", "asks-what-is-offered", "stop",
     "ApiVersions is never sent, and LeaveGroup in a version that the broker does not serve."),
    ("SendsTwiceWithOneId", "RepeatsIds", "correlates", "stop",
     "Two heartbeats are sent at once with one correlation id."),
    ("LooksUpWithoutPause", "Spins", "does-not-spin", "answer Heartbeat NOT_COORDINATOR; stop",
     "A lost coordinator is looked up again and again, without a pause."),
    ("JoinsWithoutPause", "JoinsOn", "does-not-spin", "refuse JoinGroup GROUP_AUTHORIZATION_FAILED; stop",
     "A JoinGroup that is not authorized is sent again and again, without a pause."),
    ("JoinsTooOften", "Hurries", "paces-itself", "refuse JoinGroup GROUP_AUTHORIZATION_FAILED; stop",
     "A JoinGroup that is not authorized is sent 60 times without a pause."),
    ("KeepsItsVersions", "KeepsItsVersions", "asks-what-is-offered", "down all 400 then 3.9.2; stop",
     "The versions that a broker offered are used after it is another release."),
)  # fmt: skip
IDENTITY: Final = (
    ("NamesAnotherGeneration", "NamesAnother", "names-itself", "stop",
     "Heartbeats carry a generation that no answer had."),
    ("JoinsWithoutItsId", "DropsItsId", "joins-with-its-id", "rebalance; stop", "A rebalance takes the member id."),
    ("JoinsAsAStranger", "JoinsAsAStranger", "keeps-its-id", "answer Heartbeat ILLEGAL_GENERATION; stop",
     "An old generation takes the member id."),
    ("HidesItsInstance", "HidesItsInstance", "names-its-instance", "static; stop",
     "Heartbeats of a static member carry no instance id."),
    ("RenamesItsInstance", "RenamesItsInstance", "names-its-instance", "static; restart; stop",
     "Each start of a static member has an instance id of its own."),
    ("SyncsWithoutItsProtocol", "HidesItsProtocol", "names-its-protocol", "stop", "SyncGroup names no protocol."),
    ("ChangesItsTimeout", "ChangesItsTimeout", "keeps-its-settings", "rebalance; stop",
     "Each JoinGroup has a longer session timeout."),
    ("DoublesItsTimeout", "DoublesItsTimeout", "keeps-its-settings", "stop",
     "Each JoinGroup has twice the rebalance timeout that the program was given."),
    ("ReversesItsAssignors", "ReversesItsAssignors", "keeps-its-settings", "assignors range,roundrobin; stop",
     "JoinGroup offers the assignors of the user in another order."),
    ("BeatsNameless", "IsNameless", "names-itself", "pass 600; stop", "A heartbeat has no member id."),
    ("BeatsInAnOldVersion", "BeatsInAnOldVersion", "names-its-instance", "static; stop",
     "A static member sends heartbeats in a version that has no instance id."),
    ("ForgetsItsTopics", "ForgetsItsTopics", "names-its-topics", "topics 2; rebalance; stop",
     "A rejoin names the first topic alone."),
)  # fmt: skip
MEMBERSHIP: Final = (
    ("BeatsWhenFenced", "BeatsOn", "stops-when-fenced", "answer Heartbeat UNKNOWN_MEMBER_ID; stop",
     "A member that the coordinator does not know sends heartbeats for a second and a half."),
    ("SendsNoHeartbeat", "Silent", "beats", "pass 3200; stop", "A stable member sends nothing."),
    ("BeatsAtEachTurn", "Hastens", "beats-no-more-than-due", "pass 1400; stop", "Heartbeats are 20 ms apart."),
    ("BeatsAnewAtEachTurn", "HastensInKip848", "beats-no-more-than-due", "protocol consumer; pass 1400; stop",
     "Heartbeats of a group of KIP-848 are 20 ms apart."),
    ("IgnoresRebalances", "Stays", "comes-back", "rebalance; stop",
     "A heartbeat that is answered REBALANCE_IN_PROGRESS changes nothing."),
    ("PausesBeforeItJoins", "TakesItsTime", "comes-back-soon", "rebalance; stop",
     "REBALANCE_IN_PROGRESS is followed by a pause of several seconds."),
    ("ReadsOnWithoutSync", "GivesUpSync", "syncs", "answer SyncGroup COORDINATOR_NOT_AVAILABLE; stop",
     "A SyncGroup that fails is not sent again, and the member takes its generation for complete."),
    ("KeepsItsCoordinator", "KeepsItsCoordinator", "finds-its-coordinator", "answer Heartbeat NOT_COORDINATOR; stop",
     "After NOT_COORDINATOR the client goes on with the same broker."),
    ("EndsWithoutLeaving", "Vanishes", "leaves", "stop", "A dynamic member closes without LeaveGroup."),
    ("LeavesAsAStaticMember", "LeavesForGood", "leaves", "static; stop", "A static member closes with LeaveGroup."),
    ("EndsAtAnOldGeneration", "Gives", "ends-when-stopped", "answer Heartbeat ILLEGAL_GENERATION; stop",
     "The program ends when its generation is over."),
    ("CrashesWhenItIsClosed", "CrashesAtItsEnd", "ends-when-stopped", "stop",
     "The program leaves its group, and crashes then."),
    ("LeavesAnotherMember", "LeavesAStranger", "leaves", "stop", "LeaveGroup names a member that does not exist."),
    ("BeatsOnWhenFenced", "BeatsOnWhenFenced", "stays-fenced", "static; fence; stop",
     "A member whose instance id another process has sends heartbeats for a second and a half."),
)  # fmt: skip
PACE: Final = (
    ("BeatsHalfAsOften", "Dawdles", "beats-at-its-interval", "pass 1400; stop",
     "Heartbeats are twice their interval apart."),
    ("LooksUpBeforeEachHeartbeat", "LooksUpEachTime", "keeps-its-coordinator", "pass 600; stop",
     "FindCoordinator precedes each heartbeat."),
    ("LooksUpToJoin", "LooksUpToJoin", "keeps-its-coordinator", "rebalance; rebalance; stop",
     "FindCoordinator precedes each JoinGroup of a rebalance."),
    ("JoinsTwice", "JoinsTwice", "joins-once", "stop", "Each JoinGroup is sent twice."),
    ("JoinsForItsOffsets", "JoinsForItsOffsets", "asks-for-offsets-again",
     "answer OffsetFetch COORDINATOR_LOAD_IN_PROGRESS; stop",
     "An OffsetFetch that the coordinator cannot answer yet is followed by JoinGroup."),
    ("GivesUpItsJoin", "GivesUpItsJoin", "waits-for-the-others", "late JoinGroup 400; stop",
     "A JoinGroup that is not answered in 300 ms is given up, with its connection."),
    ("CommitsWithoutHeartbeats", "CommitsOnly", "beats-at-its-interval", "pass 3200; stop",
     "A member commits, and sends no heartbeat."),
    ("RepeatsWithoutAPause", "JoinsAtOnce", "pauses-before-it-repeats",
     "answer JoinGroup COORDINATOR_LOAD_IN_PROGRESS times 2; stop",
     "A JoinGroup of a group that is loading is sent again at once."),
    ("WaitsForASilentCoordinator", "WaitsForEver", "gives-up-a-silent-coordinator", "silent Heartbeat 4500; stop",
     "A heartbeat that is not answered is awaited as long as its connection is open."),
)  # fmt: skip
LEAVING: Final = (
    ("BeatsAfterItLeft", "BeatsOnceItLeft", "ends-with-its-leave", "stop", "A heartbeat follows LeaveGroup."),
    ("LeavesAtEachRebalance", "LeavesToJoin", "stays", "rebalance; stop",
     "A member that is asked to rejoin leaves its group first."),
    ("GivesUpItsHeartbeats", "GivesUpItsHeartbeats", "beats", "answer Heartbeat NOT_COORDINATOR times 4; stop",
     "The fourth heartbeat that fails in a row is the last one."),
    ("GivesUpItsFirstJoin", "GivesUpItsFirstJoin", "ends-when-stopped",
     "answer FindCoordinator COORDINATOR_NOT_AVAILABLE times 2 at start; stop",
     "The program ends when its coordinator is not available twice."),
    ("LeavesThoughItPolls", "LeavesSoon", "stays", "pass 600; stop", "A member leaves soon after it joined, and ends."),
)  # fmt: skip
PARTITIONS: Final = (
    ("FetchesOn", "ReadsOn", "reads-its-own", "pass 200; others 1 lead; rebalance; pass 1200; stop",
     "What another member was given is fetched on."),
    ("ReadsWhileItJoins", "ReadsWhileItJoins", "stops-reading-to-join", "rebalance; stop",
     "A partition is fetched between JoinGroup and SyncGroup."),
    ("AsksOnceForOffsets", "AsksOnce", "reads-what-it-is-assigned",
     "answer OffsetFetch NOT_COORDINATOR; pass 3600; stop",
     "An OffsetFetch that is refused is not sent again, and the partition stays unread."),
    ("ReadsTheFirstTopic", "ReadsTheFirstTopic", "reads-what-it-is-assigned", "topics 2; pass 3600; stop",
     "Partitions of the second topic are never fetched."),
    ("CommitsOn", "CommitsOn", "commits-its-own", "pass 200; others 1 lead; rebalance; pass 1200; stop",
     "What another member was given is committed on."),
    ("ClaimsWhenEager", "ClaimsWhenEager", "owns-nothing-when-eager", "rebalance; stop",
     "A member with range alone claims what it had before."),
    ("StaysWithWhatIsLeft", "StaysWithWhatIsLeft", "rejoins-after-revoking",
     "assignors cooperative-sticky; pass 200; others 1 lead; rebalance; pass 3600; stop",
     "A cooperative member that loses partitions does not join again."),
    ("ForgetsWhatItHad", "ForgetsWhatItHad", "claims-in-its-user-data", "assignors sticky; rebalance; stop",
     "A sticky member joins again without user data."),
    ("ClaimsNothing", "ClaimsNothing", "claims-what-it-owns", "assignors cooperative-sticky; rebalance; stop",
     "A cooperative member never claims what it owns."),
)  # fmt: skip
POSITIONS: Final = (
    ("CommitsAhead", "CommitsAhead", "commits-what-it-read", "stop",
     "The offset after the next record is committed, before that record is read."),
    ("StartsAtTheBeginning", "StartsAnew", "starts-at-the-committed-offset", "others 1 follow; pass 200; stop",
     "What the group has committed is asked for, and all partitions are read from the beginning."),
    ("GoesOnWhereItWas", "KeepsPositions", "starts-at-the-committed-offset",
     "others 1 follow; pass 200; assign 1; rebalance; assign 0; rebalance; pass 1200; stop",
     "A partition that other members had meanwhile is read from the position where the member lost it."),
    ("TakesRefusalsForNone", "TakesRefusalsForNone", "waits-for-offsets",
     "others 1 follow; pass 200; answer OffsetFetch NOT_COORDINATOR; pass 400; stop",
     "Partitions are read from the beginning where OffsetFetch is refused."),
    ("AsksAndReads", "AsksAndReads", "waits-for-offsets",
     "others 1 follow; pass 200; assign 1; late OffsetFetch 400; stop",
     "Partitions are read from the beginning while OffsetFetch waits for its answer."),
    ("BeginsAtTheBeginning", "BeginsAtTheBeginning", "reads-in-order", "begin latest; stop",
     "Partitions without a committed offset are read from the beginning, whatever the user wants."),
    ("TakesZeroForNone", "TakesZeroForNone", "starts-at-the-committed-offset",
     "begin latest; committed 0; pass 800; stop", "A committed offset of 0 is taken for none."),
    ("SkipsARecord", "SkipsARecord", "reads-in-order", "pass 600; stop", "A record is skipped after each one."),
    ("LosesItsPositions", "LosesPositions", "reads-on", "pass 200; rebalance; stop",
     "After a rebalance all partitions are read from the beginning, before the committed offsets are known."),
)  # fmt: skip
COMMITS: Final = (
    ("CommitsBack", "CommitsBack", "commits-its-position", "pass 1200; stop",
     "One commit in between has the offsets of the records before the last ones."),
    ("CommitsALogicalOffset", "CommitsALogicalOffset", "commits-its-position", "stop",
     "What stands for the beginning of a log is committed."),
    ("CommitsUnread", "CommitsUnread", "commits-its-position", "pass 700; stop",
     "Partitions are committed as 0 before their committed offsets are asked for."),
    ("CommitsNameless", "CommitsNameless", "commits-as-a-member", "stop", "OffsetCommit has no member id."),
    ("CommitsForNoTime", "CommitsForNoTime", "keeps-its-commits", "stop",
     "OffsetCommit 2 has the retention time 0."),
    ("CommitsTheLastRead", "CommitsTheLastRead", "commits-in-time", "pass 3000; stop",
     "The offset of the last record is committed, and not the one after it."),
    ("LeavesWithoutACommit", "LeavesWithoutACommit", "commits-before-it-leaves", "pass 2200; stop",
     "What is read after the third commit is never committed, and the member leaves."),
    ("CallsNoCallback", "CallsNoCallback", "commits-before-it-leaves", "commit revoked; pass 1500; stop",
     "The callback for revoked partitions, in which the program commits, is not called."),
)  # fmt: skip
LEADING: Final = (
    ("AssignsToItselfAlone", "ForgetsAMember", "assigns-to-everybody", "others 1 lead; stop",
     "The leader sends an assignment for itself alone."),
    ("AssignsAllToAll", "GivesTwice", "assigns-each-partition-once", "others 1 lead; rebalance; stop",
     "The leader gives each member all partitions."),
    ("KeepsAllPartitions", "Hoards", "assigns-evenly", "others 1 lead; rebalance; stop",
     "The leader keeps all partitions, and gives the others empty assignments."),
    ("GivesAwayWhatItReads", "HandsOverAtOnce", "hands-over",
     "assignors cooperative-sticky; pass 200; others 1 lead; rebalance; stop",
     "A cooperative leader gives away what it still reads."),
    ("ReadsItsOwnVersionOnly", "ReadsItsOwnVersion", "leads-other-clients", "member v1; rebalance; stop",
     "The leader joins again where another member's subscription has a later version than its own."),
    ("AssignsFromTheEnd", "SortsDownwards", "assigns-by-rule", "others 1 lead; rebalance; stop",
     "The first member by id gets the last range."),
    ("PassesOverNewPartitions", "PassesOverNewPartitions", "joins-for-new-partitions",
     "pass 200; grow 8; elect; pass 3600; stop", "A leader that learns of new partitions does not join again."),
    ("NamesItsFirstAssignor", "NamesItsFirstAssignor", "names-its-protocol",
     "assignors range,roundrobin; member takes roundrobin; rebalance; stop",
     "SyncGroup names the first assignor of the member, and not the one that the group chose."),
)  # fmt: skip
CONSUMER_GROUPS: Final = (
    ("NamesAnotherEpoch", "NamesAnotherEpoch", "names-its-epoch", "protocol consumer; stop",
     "A heartbeat carries an epoch that no answer had."),
    ("KeepsItsEpoch", "KeepsItsEpoch", "joins-anew-when-fenced",
     "protocol consumer; answer ConsumerGroupHeartbeat FENCED_MEMBER_EPOCH; stop",
     "FENCED_MEMBER_EPOCH does not change the epoch."),
    ("OwnsMore", "OwnsMore", "owns-what-it-is-assigned", "protocol consumer; pass 1200; stop",
     "A heartbeat says that the member owns one partition more."),
    ("SendsNoFurtherHeartbeat", "SilentOnceAssigned", "beats-in-time", "protocol consumer; pass 3600; stop",
     "A member of KIP-848's protocol sends no heartbeat once it has its assignment."),
    ("EndsWithItsEpoch", "Vanishes", "leaves-with-its-epoch", "protocol consumer; stop",
     "A member of KIP-848's protocol closes without a last heartbeat."),
    ("JoinsInShort", "JoinsInShort", "joins-in-full",
     "protocol consumer; answer ConsumerGroupHeartbeat FENCED_MEMBER_EPOCH; stop",
     "A fenced member joins again with a heartbeat without a rebalance timeout."),
    ("RepeatsInShort", "RepeatsInShort", "repeats-in-full", "protocol consumer; reset ConsumerGroupHeartbeat; stop",
     "A heartbeat whose connection was lost is followed by one with nothing but its epoch."),
    ("AcknowledgesAtOnce", "AcknowledgesAtOnce", "revokes-before-it-acknowledges",
     "protocol consumer; pass 200; assign 1; rebalance; pass 500; stop",
     "A member acknowledges at once that a partition is taken away, and reads it on."),
    ("CommitsWithItsOldEpoch", "CommitsWithItsOldEpoch", "commits-with-its-epoch",
     "protocol consumer; pass 200; rebalance; pass 500; stop", "Commits carry the epoch with which the member joined."),
    ("StaysWithoutPolls", "StaysWithoutPolls", "leaves-when-it-does-not-poll",
     "max-poll 3000; pause 6000; pass 5000; stop",
     "A member whose program does not poll in time sends its heartbeats on."),
    ("OmitsATopicOfItsPattern", "OmitsATopicOfItsPattern", "subscribes-by-its-pattern",
     "protocol consumer; pattern; pass 1400; stop",
     "The regular expression in heartbeats matches one of the topics of the pattern alone."),
)  # fmt: skip
FATAL_ERRORS: Final = (
    ("BeatsOnWhenRefused", "BeatsOnWhenRefused", "stops-at-an-ending",
     "protocol consumer; refuse ConsumerGroupHeartbeat GROUP_AUTHORIZATION_FAILED; stop",
     "A member of KIP-848's protocol that is not authorized any more sends its heartbeats on."),
    ("JoinsInSilence", "JoinsInSilence", "raises-fatal-errors",
     "refuse JoinGroup INCONSISTENT_GROUP_PROTOCOL; pass 200; stop",
     "A JoinGroup whose protocols do not match those of the group is sent again after a pause."),
)  # fmt: skip
CALLBACKS: Final = (
    ("CallsBackTwice", "CallsTwice", "calls-back-once", "stop",
     "Each callback is called twice."),
    ("CallsBackOnce", "CallsOnce", "calls-back-in-time", "rebalance; pass 1400; stop",
     "The callback for an assignment is called after the first rebalance alone."),
    ("ReportsLostAsRevoked", "CallsThemRevoked", "calls-them-lost", "answer Heartbeat UNKNOWN_MEMBER_ID; stop",
     "A member that was removed reports its partitions as revoked."),
    ("ClosesWithoutACall", "ClosesWithoutACall", "revokes-when-it-closes", "stop",
     "A consumer that is closed calls no callback."),
)  # fmt: skip
STREAMS_GROUPS: Final = (
    ("NamesAnotherEpochForTasks", "NamesAnotherEpoch", "names-its-epoch", "stop",
     "A heartbeat of a streams group carries an epoch that no answer had."),
    ("KeepsItsEpochAndTasks", "KeepsItsEpoch", "joins-anew-when-fenced",
     "answer StreamsGroupHeartbeat FENCED_MEMBER_EPOCH; stop",
     "FENCED_MEMBER_EPOCH does not change the epoch of a member of a streams group."),
    ("JoinsInShortForTasks", "JoinsInShort", "joins-in-full", "answer StreamsGroupHeartbeat FENCED_MEMBER_EPOCH; stop",
     "A fenced member of a streams group joins again without a rebalance timeout."),
    ("OwnsMoreTasks", "OwnsMore", "owns-what-it-is-assigned", "pass 1200; stop",
     "A heartbeat says that the member has one task more."),
    ("SendsNoHeartbeatWithItsTasks", "SilentOnceAssigned", "beats-in-time", "pass 3600; stop",
     "A member of a streams group sends no heartbeat once it has its tasks."),
    ("EndsWithItsTasks", "Vanishes", "leaves-with-its-epoch", "stop",
     "A member of a streams group closes without a last heartbeat."),
    ("CommitsTasksWithItsOldEpoch", "CommitsWithItsOldEpoch", "commits-with-its-epoch",
     "pass 200; rebalance; pass 500; stop", "Commits of tasks carry the epoch with which the member joined."),
    ("BeatsOnForItsTasks", "BeatsOnWhenRefused", "stops-at-an-ending",
     "refuse StreamsGroupHeartbeat STREAMS_INVALID_TOPOLOGY; stop",
     "A member whose topology is refused sends its heartbeats on."),
)  # fmt: skip
"""Members of streams groups: their least cases begin with ``protocol streams``."""
SHARE_GROUPS: Final = (
    ("AcknowledgesAhead", "AcknowledgesAhead", "acknowledges-what-it-acquired", "stop",
     "Acknowledgements name five records after those that were acquired."),
    ("AcknowledgesTwice", "AcknowledgesTwice", "acknowledges-once", "pass 3000; stop",
     "What was acknowledged is acknowledged again if nothing is acquired meanwhile."),
    ("SkipsAnEpoch", "SkipsAnEpoch", "numbers-its-share-sessions", "pass 1200; stop",
     "A share session goes from epoch 2 to 4."),
    ("KeepsItsShareSession", "KeepsItsShareSession", "ends-its-share-sessions", "stop",
     "A share consumer closes without a last request of its share session."),
    ("SharesOnePartition", "SharesOnePartition", "shares-what-it-is-assigned", "assign 0,1; pass 4500; stop",
     "The first of the assigned partitions alone is in the share session."),
)  # fmt: skip
"""Share consumers: their least cases begin with ``protocol share``."""
PLANTED: Final = (
    *CONNECTIONS, *IDENTITY, *MEMBERSHIP, *PACE, *LEAVING, *PARTITIONS, *POSITIONS, *COMMITS, *LEADING,
    *CONSUMER_GROUPS, *FATAL_ERRORS, *CALLBACKS,
)  # fmt: skip
"""Name, class among the defective consumers, invariant, minimal case and sentence of each mutant."""

for _name, _consumer, _invariant, _least, _sentence in PLANTED:
    _made = type(_name, (LiveMutant,), {"consumer": _consumer, "__doc__": _sentence, "__module__": __name__})
    mutant("client/groups", f"client/{_invariant}", CLIENT, None, _least)(_made)
for _planted, _machine, _protocol, _check in (
    (STREAMS_GROUPS, STREAMS_CLIENT, "streams", "client/streams-groups"),
    (SHARE_GROUPS, SHARE_CLIENT, "share", "client/share-groups"),
):
    for _name, _consumer, _invariant, _least, _sentence in _planted:
        _more = {"consumer": _consumer, "machine": _machine, "__doc__": _sentence, "__module__": __name__}
        _made = type(_name, (LiveMutant,), _more)
        _steps = f"protocol {_protocol}; {_least}"
        mutant(_check, f"client/{_invariant}", _machine, None, _steps, edition="apache")(_made)
