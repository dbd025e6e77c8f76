"""Which way to run a kernel is the fastest on a device: its configurations, or calls of torch.

The cost model orders the ways, and where nothing can be measured the first is taken: in Triton's
interpreter, while a graph is recorded, and where the option `measure` is off. On a GPU the ways are
timed on copies of the operands at hand, once for a kernel, sizes like these and a device: what was
found is kept in the cache folder (`measurements`).
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, final

import torch

from ...autotuning.measurements import key_on, settle, winner_of
from ...autotuning.methods import rounded
from ...autotuning.timing import DeviceWatch, Stopwatch, fastest
from ...config import current
from ...kernels.calling import Number, Read, Scratch, Written
from .build import triton_error
from .launch import on
from .prepare import Choose, Question, expected

_LOGGER: Final = logging.getLogger("pyrelay.kernels")


class Device(Protocol):
    """A device that ways are timed on."""

    @property
    def name(self) -> Sequence[Any]:
        """Its identity, as plain data."""
        ...

    def is_recording(self) -> bool:
        """Return whether what is started now is recorded instead of done."""
        ...

    def watch(self) -> Stopwatch:
        """Return the stopwatch of the device."""
        ...


@final
class Gpu:
    """A device of torch's."""

    def __init__(self, device: torch.device) -> None:
        self._device: Final = device

    @property
    def name(self) -> Sequence[Any]:
        """The name of the device, what it can do, and the libraries that run on it."""
        about: Any = torch.cuda.get_device_properties(self._device)
        versions = [torch.version.cuda, torch.version.hip]
        return [about.name, about.major, about.minor, about.multi_processor_count, *versions]

    def is_recording(self) -> bool:
        """Return whether a graph is being recorded on the current stream."""
        with on(self._device):
            return torch.cuda.is_current_stream_capturing()

    def watch(self) -> Stopwatch:
        """Return a stopwatch by the device's own clock."""
        return DeviceWatch(self._device)


def chooser(device: torch.device) -> Choose:
    """Return the chooser among ways on a device of torch's."""
    return Measured(Gpu(device)) if device.type == "cuda" else expected


@final
class Measured:
    """Chooses the fastest way on a device."""

    def __init__(self, device: Device) -> None:
        self._device: Final = device

    def __call__(self, question: Question, attempts: Sequence[Callable[[], object]]) -> int:
        """Return the number of the fastest way. Raises what the last way raises if none runs."""
        if self._device.is_recording():
            return expected(question, attempts)
        if not current().measure:
            return self._running(attempts, most=1)[0]
        key = self._key(question, len(attempts))
        known = winner_of(key, [str(number) for number in range(len(attempts))])
        return self._measure(key, question, attempts) if known is None else int(known)

    def _running(self, attempts: Sequence[Callable[[], object]], most: int) -> list[int]:
        """Return the first ways, at most so many, that the device has room for; each has then run
        once."""
        found: list[int] = []
        for number, attempt in enumerate(attempts):
            try:
                attempt()
            except triton_error() as error:
                _LOGGER.info("way %s does not run: %s", number, error)
                if not found and number == len(attempts) - 1:
                    raise
                continue
            found.append(number)
            if len(found) == most:
                break
        return found

    def _key(self, question: Question, ways: int) -> str:
        sizes = [rounded(n) for n in question.integers]
        return key_on(self._device.name, "kernels", digest(question), sizes, ways)

    def _measure(
        self, key: str, question: Question, attempts: Sequence[Callable[[], object]]
    ) -> int:
        ways = {str(n): attempts[n] for n in self._running(attempts, most=len(attempts))}
        found = fastest(ways, (), self._device.watch())
        names = " and ".join(k.name for k in question.kernels)
        settle(key, f"{names} at {question.integers}", found)
        return int(found.name)


def digest(question: Question) -> str:
    """Return the identity of kernels that are timed: their text, dtypes and
    configurations."""
    found = hashlib.sha256()
    for kernel in question.kernels:
        dtypes = [
            a.dtype.name
            for a in kernel.arguments
            if isinstance(a, Read | Written | Scratch | Number)
        ]
        configs = [(c.constants, c.num_warps, c.num_stages, c.num_ctas) for c in kernel.configs]
        found.update(repr((kernel.text, dtypes, configs)).encode())
    return found.hexdigest()
