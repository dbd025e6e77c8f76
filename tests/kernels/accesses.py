"""What kernels do to memory in Triton's interpreter: each element that is loaded, stored or added.

Every access is looked at before it happens: it must reach an element of a tensor that the kernel
was given, a store one that it may write to, a load one that something has been written to. After a
launch no two programs may have touched one element if one of them wrote to it, unless both added to
it atomically: the order of programs is open on a device, and so is that of the threads of one
program, so nothing may be loaded again that the program has stored.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, final
from unittest.mock import patch

import numpy as np
import torch

from pyrelay.kernels.calling import Read, Scratch, Written
from pyrelay.lower_triton.kernel import Kernel
from pyrelay.lower_triton.launching.start import Launch


@final
@dataclass(frozen=True, slots=True)
class Traffic:
    """What one launch moved, in bytes, for each argument that is an address."""

    kernel: Kernel
    programs: int
    issued: dict[str, int]
    """All elements of all loads, stores and additions."""
    needed: dict[str, int]
    """Each element once for being loaded, and once for being stored."""
    moved: dict[str, int]
    """Without loads of an element that another program has loaded too, or that one load asks for
    several times: caches and the joining of neighbouring requests serve these. An element that
    several loads of one program ask for, or one in a loop, counts each time."""


@dataclass(slots=True)
class _Touched:
    """Accesses of one sort during a launch: address, program, and which access it was."""

    parts: list[np.ndarray] = field(default_factory=list)

    def add(self, addresses: np.ndarray, program: int, number: int) -> None:
        """Note the addresses of one access."""
        whole = np.empty((3, len(addresses)), np.int64)
        whole[0], whole[1], whole[2] = addresses, program, number
        self.parts.append(whole)

    def all(self) -> np.ndarray:
        """Return the rows of addresses, programs and numbers."""
        return np.concatenate([np.zeros((3, 0), np.int64), *self.parts], axis=1)


@final
class _Fresh:
    """The tensors that were made in which some elements have not been stored."""

    def __init__(self) -> None:
        self._made: Final[list[tuple[int, int, np.ndarray]]] = []

    def add(self, tensor: torch.Tensor) -> None:
        """Note a tensor whose elements lie row by row; what was noted of its place is over."""
        start, end = tensor.data_ptr(), tensor.data_ptr() + tensor.nbytes
        for other, size, missing in self._made:
            missing[max(0, (start - other) // size) : max(0, -((other - end) // size))] = False
        missing = np.ones(tensor.numel(), bool)
        self._made.append((tensor.data_ptr(), tensor.element_size(), missing))

    def clear(self) -> None:
        """Forget all of them."""
        self._made.clear()

    def store(self, addresses: np.ndarray) -> None:
        """Note that elements were stored."""
        for _, _, missing, places in self._inside(addresses):
            missing[places] = False

    def among(self, addresses: np.ndarray) -> int | None:
        """Return an address at which nothing has been stored."""
        for start, size, missing, places in self._inside(addresses):
            wrong = places[missing[places]]
            if len(wrong):
                return int(wrong[0]) * size + start
        return None

    def _inside(self, addresses: np.ndarray) -> Iterator[tuple[int, int, np.ndarray, np.ndarray]]:
        for start, size, missing in self._made:
            places = (addresses - start) // size
            yield start, size, missing, places[(places >= 0) & (places < len(missing))]


def _addresses(tensor: torch.Tensor) -> np.ndarray:
    """Return the address of each element of a tensor, in order and each one once."""
    offsets = np.zeros(1, np.int64)
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        offsets = np.add.outer(offsets, np.arange(size) * stride).reshape(-1)
    return _distinct(offsets) * tensor.element_size() + tensor.data_ptr()


@final
class _Launch:
    """One launch while it runs."""

    def __init__(self, kernel: Kernel, args: Sequence[Any], fresh: _Fresh) -> None:
        self.kernel: Final = kernel
        self._fresh: Final = fresh
        self._tensors: Final[dict[str, np.ndarray]] = {}
        self._sizes: Final[dict[str, int]] = {}
        written: list[np.ndarray] = []
        for name, argument, value in zip(kernel.names, kernel.arguments, args, strict=False):
            if not isinstance(argument, Read | Written | Scratch):
                continue
            if not isinstance(value, torch.Tensor):  # a number where a tensor may come
                continue
            self._tensors[name] = _addresses(value)
            self._sizes[name] = value.element_size()
            if not isinstance(argument, Read):
                written.append(self._tensors[name])
        self._readable: Final = _union(list(self._tensors.values()))
        self._writable: Final = _union(written)
        self._loads, self._stores, self._adds = _Touched(), _Touched(), _Touched()
        self._count = 0

    def load(self, pointers: Any, mask: Any, program: int) -> None:
        """Look at a load."""
        at = self._taken(pointers, mask, self._readable, "loads", program)
        unwritten = self._fresh.among(at)
        assert unwritten is None, self._says("loads what nothing has stored", unwritten, program)
        self._loads.add(at, program, self._count)

    def store(self, pointers: Any, mask: Any, program: int) -> None:
        """Look at a store."""
        at = self._taken(pointers, mask, self._writable, "stores", program)
        self._stores.add(at, program, self._count)
        self._fresh.store(at)

    def add(self, pointers: Any, mask: Any, program: int) -> None:
        """Look at an atomic operation."""
        at = self._taken(pointers, mask, self._writable, "adds", program)
        unwritten = self._fresh.among(at)
        assert unwritten is None, self._says("adds to what nothing has stored", unwritten, program)
        self._adds.add(at, program, self._count)

    def end(self, programs: int) -> Traffic:
        """Return what was moved. Fails where the order of programs would matter."""
        loads, stores, adds = self._loads.all(), self._stores.all(), self._adds.all()
        stores = stores[:, np.argsort(stores[0], kind="stable")]
        twice = np.flatnonzero(stores[0][1:] == stores[0][:-1])
        if len(twice):
            address, program, _ = stores[:, twice[0]]
            raise AssertionError(self._says("is not the only one to store", address, program))
        self._apart(loads, stores)
        self._apart(adds, stores)
        self._apart(loads, adds[:, np.argsort(adds[0], kind="stable")])
        most = _most(loads)
        every = np.concatenate([loads[0], stores[0], adds[0], adds[0]])  # to add is to load too
        once = np.concatenate([most, stores[0], adds[0], adds[0]])
        least = np.concatenate([*map(_distinct, (loads[0], stores[0], adds[0], adds[0]))])
        found = (self._bytes(addresses) for addresses in (every, least, once))
        return Traffic(self.kernel, programs, *found)

    def _apart(self, some: np.ndarray, written: np.ndarray) -> None:
        """Fail if an element that the first touches was written by another program, or by the
        same one before."""
        if not written.size or not some.size:
            return
        places = np.minimum(np.searchsorted(written[0], some[0]), len(written[0]) - 1)
        other = written[:, places]
        same = other[0] == some[0]
        apart = np.flatnonzero(same & (other[1] != some[1]))
        if len(apart):
            address, program, _ = some[:, apart[0]]
            what = "touches what another program stores"
            raise AssertionError(self._says(what, address, program))
        after = np.flatnonzero(same & (other[2] < some[2]))
        if len(after):
            address, program, _ = some[:, after[0]]
            raise AssertionError(self._says("loads what it has stored itself", address, program))

    def _bytes(self, addresses: np.ndarray) -> dict[str, int]:
        found: dict[str, int] = {}
        for name, own in self._tensors.items():
            inside = np.isin(addresses, own)
            addresses = addresses[~inside]  # what is overwritten has two names
            found[name] = int(inside.sum()) * self._sizes[name]
        return {name: count for name, count in found.items() if count}

    def _taken(
        self, pointers: Any, mask: Any, allowed: np.ndarray, what: str, program: int
    ) -> np.ndarray:
        at = np.asarray(pointers.data)[np.asarray(mask.data, bool)].astype(np.int64).reshape(-1)
        self._count += 1
        if not len(at):
            return at
        beside = at if not len(allowed) else at[~_inside(at, allowed)]
        assert not len(beside), self._says(f"{what} out of bounds", beside[0], program)
        return at

    def _says(self, what: str, address: Any, program: Any) -> str:
        where = "; ".join(
            f"{name} is {len(own)} elements, this is {(int(address) - int(own[0])) // size} of it"
            for (name, own), size in zip(self._tensors.items(), self._sizes.values(), strict=True)
            if len(own) and abs(int(address) - int(own[0])) < 2 * own[-1] - 2 * own[0] + 4096
        )
        return f"{self.kernel.name}: program {program} {what} ({where})\n{self.kernel.text}"


def _union(parts: list[np.ndarray]) -> np.ndarray:
    return _distinct(np.concatenate(parts)) if parts else np.zeros(0, np.int64)


def _distinct(numbers: np.ndarray) -> np.ndarray:
    """Return numbers in order, each once: numpy hashes them, which is slow for addresses."""
    ordered = np.sort(numbers)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]


def _inside(at: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    places = np.minimum(np.searchsorted(allowed, at), len(allowed) - 1)
    return allowed[places] == at


def _most(loads: np.ndarray) -> np.ndarray:
    """Return each address as often as the program does that loads it most often."""
    loads = np.unique(loads, axis=1)  # once for each load
    order = np.lexsort((loads[1], loads[0]))
    addresses, programs = loads[0][order], loads[1][order]
    changes = (addresses[1:] != addresses[:-1]) | (programs[1:] != programs[:-1])
    starts = np.flatnonzero(np.append(True, changes))[: len(addresses)]
    counts = np.diff(np.append(starts, len(addresses)))
    own = addresses[starts]
    order = np.lexsort((counts, own))
    own, counts = own[order], counts[order]
    last = np.append(own[1:] != own[:-1], True)[: len(own)]
    return np.repeat(own[last], counts[last])


@final
class Accesses:
    """Looks at every launch; keeps what each moved."""

    def __init__(self) -> None:
        self.launches: Final[list[Traffic]] = []
        self._fresh: Final = _Fresh()
        self._open: _Launch | None = None

    def fresh(self, tensor: torch.Tensor) -> None:
        """Note that nothing has been stored in a tensor yet, which lives as long as this."""
        self._fresh.add(tensor)

    def forget(self) -> None:
        """Forget the tensors in which nothing had been stored."""
        self._fresh.clear()

    def clear(self) -> None:
        """Forget all launches and tensors."""
        self.launches.clear()
        self.forget()

    @contextmanager
    def watching(self) -> Generator[None]:
        """Look at the launches in the block."""
        from triton.runtime import interpreter

        builder = interpreter.interpreter_builder
        touch = {
            "create_masked_load": (builder.create_masked_load, 0, 1, "load"),
            "create_masked_store": (builder.create_masked_store, 0, 2, "store"),
            "create_atomic_rmw": (builder.create_atomic_rmw, 1, 3, "add"),
        }

        def seen(name: str) -> Any:
            original, pointers, mask, what = touch[name]

            def access(*args: Any) -> Any:
                if self._open is not None:
                    look = getattr(self._open, what)
                    look(args[pointers], args[mask], _program(builder))
                return original(*args)

            return access

        interpret = Launch.interpret

        def launched(launch: Launch, tensors: Sequence[Any]) -> None:
            args = launch._started.arguments(tensors)
            self._open = _Launch(launch.kernel, args, self._fresh)
            try:
                interpret(launch, tensors)
                self.launches.append(self._open.end(int(np.prod(launch.grid))))
            finally:
                self._open = None

        accesses = patch.multiple(builder, **{name: seen(name) for name in touch})
        with patch.object(Launch, "interpret", launched), accesses:
            yield


def _program(builder: Any) -> int:
    (x, y, z), (_, ny, nz) = builder.grid_idx, builder.grid_dim
    return (x * ny + y) * nz + z
