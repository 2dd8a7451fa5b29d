"""Counts in how many default cases each branch of an invariant could have failed."""
