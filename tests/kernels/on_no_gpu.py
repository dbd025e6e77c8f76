"""Starts kernels through Triton's own compiler on a driver that loads and starts nothing: run by
`test_starting.py` in a process of its own, in which Triton does not interpret. Exits with status 1
where a start is not what it should be."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

os.environ["TRITON_INTERPRET"] = "0"
os.environ["PYRELAY_LOWERING"] = "auto"

import torch

from pyrelay.lower_triton.launching import launch
from pyrelay.lower_triton.launching.build import triton_module
from pyrelay.lower_triton.launching.launch import KernelCall
from tests.kernels.running import CPU
from tests.kernels.test_launch import SCALE, function_of, scaled

STREAM: Final = 17


class Driver:
    """An NVIDIA GPU that is not there."""

    def __init__(self) -> None:
        self.starts: Final[list[tuple[Any, ...]]] = []
        self.binaries: Final[list[str]] = []
        self.utils: Final = SimpleNamespace(
            load_binary=self._load,
            unload_module=lambda module: None,
            get_device_properties=lambda device: {"max_shared_mem": 1 << 17},
        )

    def _load(self, name: str, *about: Any) -> tuple[int, ...]:
        self.binaries.append(name)
        return 1, 2, 0, 0, 1024

    def launcher_cls(self, source: Any, metadata: Any) -> Any:
        return lambda *told: self.starts.append(told)

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return STREAM


def main() -> int:
    """Start a kernel in all ways. Gives the exit status."""
    triton = triton_module()
    driver = Driver()
    triton.runtime.driver.set_active(driver)
    call = KernelCall(function_of(SCALE), scaled, CPU)
    whole = torch.zeros(40)
    aligned, odd = whole[4:10].reshape(2, 3), whole[1:7].reshape(2, 3)
    given = [(aligned, 5), (aligned, 1), (odd, 16), (aligned, 2**40), (odd, 7)]
    with patch.object(launch, "interprets", lambda: False):
        outs = [call(*operands) for operands in given]
    assert driver.binaries == ["scale"] * 2, driver.binaries  # for each alignment, not each number
    assert len(driver.starts) == len(given)
    for start, (x, k), out in zip(driver.starts, given, outs, strict=True):
        assert start[:4] == (1, 1, 1, STREAM), start
        pointer, *rest = start[9:]
        # Triton's own start is given what has an address, later ones the address.
        found = pointer if isinstance(pointer, int) else pointer.data_ptr()
        target = rest[3] if isinstance(rest[3], int) else rest[3].data_ptr()
        assert (found, target) == (x.data_ptr(), out.data_ptr())
        assert [*rest[:3], *rest[4:]] == [3, 1, k, 6, 8], start
    functions = {start[4] for start in driver.starts}
    assert functions == {2}
    return 0


if __name__ == "__main__":
    sys.exit(main())
