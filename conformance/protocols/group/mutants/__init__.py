"""Coordinators of classic groups with one planted defect each, by module, in the order of lists."""
