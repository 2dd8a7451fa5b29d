"""Says how two lists differ, in words for the shape of a violation: another difference shows another defect."""

from collections import Counter
from collections.abc import Hashable, Sequence


def list_difference(expected: Sequence[Hashable], observed: Sequence[Hashable], names: str) -> str:
    """How different lists differ: ``members in another order``, ``members missing``, ``members repeated``, ``more
    members``, ``other members`` if some are missing and others are there. ``names``: of their elements, a plural.
    """
    missing, more = Counter(expected) - Counter(observed), Counter(observed) - Counter(expected)
    if missing and more:
        return f"other {names}"
    if missing:
        return f"{names} missing"
    if more:
        return f"{names} repeated" if more.keys() <= {*expected} else f"more {names}"
    return f"{names} in another order"
