"""Scenarios of ``kipcheck matrix`` that are no upgrades of groups: they are played alone, with fewer options."""

import argparse


def unsuitable(options: argparse.Namespace, scenario: str) -> str | None:
    """Why the options do not suit the scenario."""
    if {*options.scenario} != {scenario}:
        return f"{scenario} is played alone: omit the other scenarios"
    given = (name for name in ("case", "predict", "budget") if getattr(options, name) is not None)
    return next((f"--{name} does not apply to {scenario}: omit it" for name in given), None)
