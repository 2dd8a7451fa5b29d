"""The clock of the running event loop."""

import asyncio


def now() -> float:
    """Seconds, from any moment on. Errors: RuntimeError outside of a loop."""
    return asyncio.get_running_loop().time()
