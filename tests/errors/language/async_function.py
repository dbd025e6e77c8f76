"""A coroutine."""

from pyrelay import Float, relay


@relay
async def later(x: Float) -> Float:
    return x
