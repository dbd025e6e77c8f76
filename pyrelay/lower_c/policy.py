"""When C is built.

**At once**, for the option `lowering="c"`: at the first call of a region, a kernel or a function.

**When it repeats**, for `lowering="auto"`. A region, and a kernel outside of regions, runs over
torch when it is first called, and is built when it is called again; so the body of a loop is built
at its second iteration, and code that runs once never is. A function that C runs whole loops or
recurses: it repeats by itself, and is built when it is first called.

The call that builds waits for the compiler. Which calls run in C follows from the program and from
the order of its calls alone, not from the clock, from how busy the machine is or from what a cache
on disk has; so a program gives the same bits each time it runs. Inside of `no_compile()` nothing is
built: torch runs what has not been built before.
"""

from __future__ import annotations

from enum import Enum


class Policy(Enum):
    """Which call of a region or function in C builds it."""

    AT_ONCE = "the first call"
    REPEATED = "the second call; the first where the code loops"
