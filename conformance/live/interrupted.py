"""Ends a command that runs until it is interrupted."""

import asyncio
import signal
from contextlib import suppress


def interrupted() -> asyncio.Event:
    """Set by SIGINT or SIGTERM, from now on."""
    loop, came = asyncio.get_running_loop(), asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):
            loop.add_signal_handler(each, came.set)
    return came
