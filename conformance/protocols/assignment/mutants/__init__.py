"""Leaders with one planted defect each, by module, in the order of lists."""

MODULES = ("leader", "sticky_leader", "mixed_leader")
