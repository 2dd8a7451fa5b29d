"""The draft's commands on a controller in KRaft, as a release has it: a feature has one level, and 0 is none."""

from collections.abc import Sequence

from kipcheck.conformance.protocols.features.model.cluster import Node
from kipcheck.conformance.protocols.features.model.draft_rules import NONE
from kipcheck.conformance.protocols.features.model.kraft import KraftController, State as KraftState
from kipcheck.conformance.protocols.features.model.kraft_rules import METADATA, Rules
from kipcheck.conformance.protocols.features.model.ranges import ranges
from kipcheck.conformance.protocols.features.model.tool import FeatureTool, State
from kipcheck.conformance.protocols.features.ops import kraft
from kipcheck.conformance.protocols.features.ops.cluster import Requested


class ReleasedTool(FeatureTool):
    """The tool, on a new cluster of one node of a release."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules

    def initial(self) -> State:
        levels = ranges({METADATA: (self.rules.newest, self.rules.newest)})
        return State((ranges(dict(self.rules.declares())),), Node(1, True, levels))

    def applied(self, state: State, requests: Sequence[Requested]) -> tuple[State, list[str]]:
        """From 4.0 on one refused update fails all of a request."""
        if not requests:
            return state, []
        kinds = [(each, kraft.SAFE_DOWNGRADE if each.allow_downgrade else kraft.UPGRADE) for each in requests]
        updates = tuple(kraft.TypedUpdate(each.feature, each.level, kind) for each, kind in kinds)
        levels = tuple((name, span.high) for name, span in sorted(state.finalized().items()))
        epoch = state.node.epoch if state.node is not None else 0
        before = KraftState(levels, epoch, brokers=tuple(enumerate(state.brokers)))
        after, (answer,) = KraftController(self.rules).step(before, kraft.KraftUpdate(1, updates))
        if isinstance(answer, kraft.Failed):
            errors = dict.fromkeys((each.feature for each in requests), answer.error)
        else:
            assert isinstance(answer, kraft.Results)
            errors = {each.feature: each.error for each in answer.results}
        found = ranges({name: (level, level) for name, level in after.levels})
        node = Node(after.epoch, True, found)
        return State(state.brokers, node, state.known), [errors.get(each.feature, NONE) for each in requests]
