"""Groups that a coordinator reconciles by the heartbeats of their members, as KIP-848 introduced them.

Members, epochs, target assignments, revocation, sessions and static members are those of consumer groups (KIP-848) and
of streams groups (KIP-1071); what is assigned differs: partitions, or tasks with roles.
"""
