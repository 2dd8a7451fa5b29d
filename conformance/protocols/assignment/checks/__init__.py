"""Checks of assignors."""

from kipcheck.conformance.protocols.assignment.checks.assignors import ASSIGNMENT
from kipcheck.conformance.protocols.assignment.checks.mixed import MIXED_CHECKS

CHECKS = (*ASSIGNMENT, *MIXED_CHECKS)
