"""Small consumers with one defect each, which mutants play (``protocols.client.mutants``).

They stand in the modules of ``defective``, by the laws that they break. As a program:
``python -m kipcheck.conformance.live.client.defective_consumers CLASS BOOTSTRAP GROUP TOPIC``.
"""

import asyncio
import sys

from kipcheck.conformance.live.client.consumer import Consumer, main
from kipcheck.conformance.live.client.defective import (
    callbacks,
    commits,
    connections,
    consumer_groups,
    fatal_errors,
    identity,
    leading,
    leaving,
    membership,
    pace,
    partitions,
    positions,
    share_groups,
)

MODULES = (
    connections, identity, membership, pace, leaving, partitions, positions, commits, leading, consumer_groups,
    fatal_errors, callbacks, share_groups,
)  # fmt: skip


def defective(name: str) -> type[Consumer]:
    """Errors: LookupError."""
    classes = (vars(module).get(name) for module in MODULES)
    found: type[Consumer] | None = next((made for made in classes if made is not None), None)
    if found is None:
        raise LookupError(f"there is no defective consumer {name!r}")
    return found


if __name__ == "__main__":
    sys.exit(asyncio.run(main(defective(sys.argv[1]), *sys.argv[2:])))
