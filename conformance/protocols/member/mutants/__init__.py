"""Consumers with one planted defect each, by module, in the order of lists."""
