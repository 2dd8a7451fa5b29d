"""A made-up KIP: a broker leases a partition to one client at a time."""

from typing import Final

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.declare.package import ProtocolPackage, released

# The number: after ``group``, which has 60, and before ``member``, which has 70; an example may stand between others. A
# package of ``protocols`` takes a number above all others: random numbers index the lists, so that a package put in the
# middle would change the cases of those after it.
PROTOCOL: Final = ProtocolPackage(65, Role.BROKER, {"leases": released})
