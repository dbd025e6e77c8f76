"""The tests by another lowering: `PYRELAY_LOWERING=triton-interpret pytest tests/models`.

Every program of every test then runs so, but for the tests marked `host`. By `triton-interpret`
each call of a kernel is compared with the same call in torch. To interpret takes a thousand times
as long, so a rule says which calls run as kernels, and the others run in torch: in each test the
first REPEATS calls of a kernel at the same sizes, MOST_CALLS in all, where no launch takes more
than MOST_PROGRAMS programs.

`SHARE=8` runs one test of eight, always the same ones; `TURN=1` to `TURN=7` run the others in turn.
"""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from math import prod
from typing import Any, Final, final

import pytest
import torch

from pyrelay.config import current, options
from pyrelay.runtime.compile.kernels import Kernels
from tests.tolerances import assert_kernel

REPEATS: Final = 2
"""The second call uses what the first has prepared."""
MOST_CALLS: Final = 100
MOST_PROGRAMS: Final = 64


class TooManyError(Exception):
    """A launch takes more programs than are interpreted in a test."""


@final
@dataclass(slots=True)
class Tally:
    """What ran in a process, or in all of them."""

    tests: int = 0
    """Those in which something ran as kernels."""
    calls: int = 0
    launches: int = 0
    programs: int = 0
    in_torch: int = 0
    """Calls of kernel functions for which there is no kernel, or that the rule leaves to torch."""


TALLY: Final = Tally()
_CALLED: Final[Counter[Any]] = Counter()
"""How often each kernel function was called at the same sizes in the test that runs."""


@final
class Compared:
    """A kernel function whose kernels are compared with its code in torch."""

    def __init__(self, kernels: Callable[..., Any], in_torch: Callable[..., Any]) -> None:
        self._kernels: Final = kernels
        self._in_torch: Final = in_torch

    def __call__(self, *operands: Any) -> Any:
        """Return the results of the function."""
        key = (id(self), *[tuple(o.shape) for o in operands if isinstance(o, torch.Tensor)])
        if _CALLED[key] < REPEATS and _CALLED.total() < MOST_CALLS:
            _CALLED[key] += 1
            return self._compared(operands)
        TALLY.in_torch += 1
        return self._in_torch(*operands)

    def _compared(self, operands: tuple[Any, ...]) -> Any:
        copies = [o.clone() if isinstance(o, torch.Tensor) else o for o in operands]
        expected = self._in_torch(*copies)
        launches = TALLY.launches
        try:
            with poisoned():
                found = self._kernels(*operands)
        except TooManyError:
            found = self._in_torch(*operands)
        if TALLY.launches == launches:
            TALLY.in_torch += 1
            return found
        TALLY.calls += 1
        assert_kernel(found, expected)
        assert_kernel(operands, tuple(copies))  # what it overwrites, and what it leaves alone
        return found


@contextmanager
def poisoned() -> Generator[None]:
    """New storage is NaN, or the largest integer, until it is written."""
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


def interpret_by_rule() -> None:
    """Have kernels compared, and their launches counted, from now on."""
    from pyrelay.lower_triton.launching.build import triton_module

    triton_module()
    from triton.runtime.interpreter import InterpretedFunction

    give, run = Kernels.__call__, InterpretedFunction.run

    def given(self: Kernels, name: str, code: Callable[..., Any]) -> Callable[..., Any]:
        made = give(self, name, code)
        return made if made is code else Compared(made, code)

    def launched(self: Any, *args: Any, grid: Any, **named: Any) -> Any:
        if prod(grid) > MOST_PROGRAMS:
            raise TooManyError
        TALLY.launches += 1
        TALLY.programs += prod(grid)
        return run(self, *args, grid=grid, **named)

    Kernels.__call__ = given
    InterpretedFunction.run = launched


def pytest_configure() -> None:
    """Take in hand what runs kernels."""
    if current().lowering == "triton-interpret":
        interpret_by_rule()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the share of the tests that SHARE and TURN ask for."""
    share, turn = (int(os.environ.get(name, other)) for name, other in (("SHARE", 1), ("TURN", 0)))
    kept = [item for item in items if zlib.crc32(item.nodeid.encode()) % share == turn]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
    items[:] = kept


@pytest.fixture(autouse=True)
def _by_the_lowering(request: pytest.FixtureRequest) -> Generator[None]:
    """Begin to count calls anew; leave a test of the host to torch."""
    _CALLED.clear()
    launches = TALLY.launches
    if request.node.get_closest_marker("host") is None:
        yield
    else:
        with options(lowering="torch"):
            yield
    TALLY.tests += TALLY.launches > launches


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand what was counted to the process that reports."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["lowerings"] = asdict(TALLY)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add what another process counted."""
    for name, count in getattr(node, "workeroutput", {}).get("lowerings", {}).items():
        setattr(TALLY, name, getattr(TALLY, name) + count)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print what ran as kernels."""
    if TALLY.launches:
        terminalreporter.write_line(
            f"{TALLY.tests} tests ran kernels in {TALLY.calls} calls, each as torch does it: "
            f"{TALLY.launches} launches, {TALLY.programs} programs; "
            f"{TALLY.in_torch} calls ran in torch"
        )
