"""Operations of controllers of feature versions, one module for each machine."""

from typing import Final

MODULES: Final = ("controller", "cluster", "kraft", "zookeeper")
"""In the order in which they are published."""
