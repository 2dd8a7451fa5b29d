"""Small targets with one planted defect each: the suite's own mutation test."""

from conformance.targets.inprocess import Reference

VICES: dict[str, type[Reference]] = {}
