"""Reports an exception of a library under test as a result."""

from typing import Any


def rejected(raised: Exception) -> dict[str, Any]:
    kind = type(raised)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return {"status": "rejected", "class": name, "message": str(raised)[:300]}
