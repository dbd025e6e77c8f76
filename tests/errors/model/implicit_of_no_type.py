"""An implicit value of no type of the language."""

from pyrelay import Float, relay

table = relay.implicit("table", dict)


@relay
def main(x: Float) -> Float:
    return x * table
