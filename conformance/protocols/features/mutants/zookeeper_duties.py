"""Controllers with ZooKeeper whose brokers do too much. Least cases are in shorthand."""

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.features.model.zookeeper import State
from kipcheck.conformance.protocols.features.mutants.zookeeper import Controller, zookeeper_mutant
from kipcheck.conformance.protocols.features.ops.zookeeper import Action, ZkStops

PLACE = 45


@zookeeper_mutant("lower-epoch-stops", "controller at 2.7; zk-node; read 0; zk-features 0; read 0")
class StopsAtAnEqualEpoch(Controller):
    """A broker that reads the epoch of its cache again stops."""

    def read(self, state: State, broker: int) -> Transition[State, Action]:
        cache = state.cache(broker)
        if cache is not None and state.node is not None and cache.epoch == state.node.epoch:
            return Transition(state.with_cache(broker, None), (ZkStops(broker),))
        return super().read(state, broker)
