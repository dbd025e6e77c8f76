"""What it costs this thread to start kernels: the Python side of a launch, where the compiled
kernel does nothing. No device is needed, and nothing here says how fast one is.

The driver, and what Triton compiles, are stand-ins that return at once; all else is what runs on a
GPU. Each figure is the best of several repeats, in microseconds of this thread's own time.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from time import thread_time
from timeit import repeat
from types import SimpleNamespace
from typing import Any, Final

os.environ["TRITON_INTERPRET"] = "1"  # then Triton asks for no driver
os.environ["PYRELAY_LOWERING"] = "triton-interpret"

import torch

from pyrelay.infer import infer
from pyrelay.ir.module import Module
from pyrelay.ir.normal_form import to_anf
from pyrelay.ir.verify import Stage
from pyrelay.kernels.fusion.segments import in_segments
from pyrelay.kernels.outlined import outlined_of
from pyrelay.kernels.pipeline import REGIONS
from pyrelay.lower_triton.backend import INTERPRETED
from pyrelay.lower_triton.launching import launch, start, tape
from pyrelay.lower_triton.launching.launch import KernelCall
from pyrelay.lower_triton.launching.region import RegionCall
from pyrelay.lower_triton.lower import lower
from pyrelay.passes.base import Context
from pyrelay.passes.manager import run_passes
from pyrelay.passes.normalise.flavours import with_flavours
from pyrelay.runtime.compile.kernels import Kernels
from pyrelay.runtime.host import compile_module
from pyrelay.text.parser import parse_module

CPU: Final = torch.device("cpu")
ROUNDS: Final = 9
CALLS: Final = 2000


class Idle:
    """A driver, a kernel's function and a compiled kernel, none of which does anything."""

    function = packed_metadata = None

    def __init__(self, names: list[str] | None = None) -> None:
        self.arg_names = names or []

    def __getitem__(self, grid: Any) -> Callable[..., Idle]:
        return lambda *args, **named: self

    def run(self, *args: Any) -> None:
        """Start nothing."""

    def get_current_device(self) -> int:
        """Return the device that is not there."""
        return 0

    def get_current_target(self) -> Any:
        """Return what it would be."""
        return SimpleNamespace(backend="cuda", arch=90)

    def get_current_stream(self, device: int) -> int:
        """Return its stream."""
        return 0


def stand_in() -> None:
    """Put the stand-ins in the place of a driver and of what Triton compiles."""

    def function_of(kernel: Any) -> Idle:
        return Idle([*kernel.names, *(name for name, _ in kernel.configs[0].constants)])

    driver = Idle()
    start.function_of = function_of
    launch.current_driver = lambda: driver
    launch.interprets = tape.interprets = lambda: False


def in_regions(text: str) -> Module:
    """Return the module of a text in kernels and regions."""
    module = with_flavours(to_anf(infer(parse_module(text))))
    return run_passes(module, Stage.FLAVOURED, REGIONS.passes, Context(entry="main"))[0]


def microseconds(call: Callable[[], Any]) -> float:
    """Return the processor time of one call on this thread, in microseconds."""
    call()
    return min(repeat(call, number=CALLS, repeat=ROUNDS, timer=thread_time)) / CALLS * 1e6


def kernel_with(operands: int) -> Callable[[], Any]:
    """Return the call of a kernel with so many operands and one result."""
    names = [f"%x{i}" for i in range(operands)]
    params = ", ".join(f"{n}: Tensor[(N, 8), float32]" for n in names)
    cut = in_regions(f"def @main[N: Dim]({params}) {{ {' + '.join(names)} }}")
    (group,) = outlined_of(cut).groups.values()
    call = KernelCall(group.function, partial(lower, group), CPU)
    given = [torch.zeros(16, 8) for _ in names]
    return lambda: call(*given)


def region_of(kernels: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Return the call of a region of so many kernels, each of which reads what the one before it
    has made: as a tape, and kernel by kernel."""
    steps = "".join(f"let %v{i + 1} = tanh(matmul(%v{i}, %w)); " for i in range(kernels - 1))
    text = (
        "def @main[N: Dim](%x: Tensor[(N, 8), float32], %w: Tensor[(8, 8), float32]) {"
        f" let %v0 = %x; {steps} matmul(%v{kernels - 1}, %w) }}"
    )
    launched = in_segments(in_regions(text))
    given = Kernels(INTERPRETED, launched, CPU)
    compile_module(launched, "main", CPU, instead=given)
    (region,) = (given.called[name] for name in outlined_of(launched).regions)
    assert isinstance(region, RegionCall)
    args = {"x": torch.zeros(16, 8), "w": torch.zeros(8, 8)}
    operands = [args[p.name] if p.name in args else args["x"] for p in region.function.params]
    return lambda: region(*operands), lambda: region.plain(*operands)


def main() -> None:
    """Print the figures."""
    stand_in()
    print(f"{'':42}us")
    print(f"{'torch.empty, for comparison':42}{microseconds(lambda: torch.empty((16, 8))):.1f}")
    for operands in (2, 8):
        name = f"a kernel of {operands} operands, alone"
        print(f"{name:42}{microseconds(kernel_with(operands)):.1f}")
    for kernels in (2, 10, 40):
        taped, plain = map(microseconds, region_of(kernels))
        print(f"{f'a region of {kernels} kernels':42}{taped:.1f}")
        print(f"{'  for each kernel':42}{taped / kernels:.1f}")
        print(f"{'  for each kernel, one by one':42}{plain / kernels:.1f}")


if __name__ == "__main__":
    main()
