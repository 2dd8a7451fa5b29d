"""Reports an exception of a library under test as a result."""

from typing import Any


def class_name(raised: BaseException) -> str:
    """The class of an exception, with its module unless that is ``builtins``."""
    kind = type(raised)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def rejected(raised: Exception) -> dict[str, Any]:
    return {"status": "rejected", "class": class_name(raised), "message": str(raised)[:300]}
