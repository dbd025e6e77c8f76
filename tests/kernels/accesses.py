"""What kernels do to memory in Triton's interpreter: each element that is loaded, stored or added.

Every access is looked at before it happens: it must reach an element of a tensor that the kernel
was given, a store one that it may write to, a load one that something has been written to. After a
launch no two programs may have touched one element if one of them wrote to it, unless both added to
it atomically: the order of programs is open on a device, and so is that of the threads of one
program, so nothing may be loaded again that the program has stored.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, final
from unittest.mock import patch

import numpy as np
import torch

from pyrelay.lower_triton.kernel import Kernel, Read, Scratch, Written
from pyrelay.lower_triton.start import Launch


@final
@dataclass(frozen=True, slots=True)
class Traffic:
    """What one launch moved, in bytes, for each argument that is an address."""

    kernel: Kernel
    programs: int
    issued: dict[str, int]
    """All elements of all loads, stores and additions."""
    moved: dict[str, int]
    """Without loads of an element that another program has loaded too: caches serve these. A load
    that is repeated in one program counts each time."""


@dataclass(slots=True)
class _Touched:
    """Accesses of one sort during a launch: their addresses, and in which program each was."""

    addresses: list[np.ndarray] = field(default_factory=list)
    programs: list[np.ndarray] = field(default_factory=list)

    def add(self, addresses: np.ndarray, program: int) -> None:
        """Note the addresses of one access."""
        self.addresses.append(addresses)
        self.programs.append(np.full(len(addresses), program))

    def all(self) -> tuple[np.ndarray, np.ndarray]:
        """Give all addresses and programs."""
        if not self.addresses:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        return np.concatenate(self.addresses), np.concatenate(self.programs)


def _addresses(tensor: torch.Tensor) -> np.ndarray:
    """Give the address of each element of a tensor, in order and each one once."""
    offsets = np.zeros(1, np.int64)
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        offsets = np.add.outer(offsets, np.arange(size) * stride).reshape(-1)
    return np.unique(offsets) * tensor.element_size() + tensor.data_ptr()


@final
class _Launch:
    """One launch while it runs."""

    def __init__(self, kernel: Kernel, args: Sequence[Any], fresh: set[int]) -> None:
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
        self._stored_by: Final[dict[int, set[int]]] = {}

    def load(self, pointers: Any, mask: Any, program: int) -> None:
        """Look at a load."""
        at = self._taken(pointers, mask, self._readable, "loads", program)
        unwritten = self._fresh.intersection(at.tolist()) if self._fresh else ()
        assert not unwritten, self._says("loads what nothing has stored", min(unwritten), program)
        stored = self._stored_by.get(program, set()).intersection(at.tolist())
        assert not stored, self._says("loads what it has stored itself", min(stored), program)
        self._loads.add(at, program)

    def store(self, pointers: Any, mask: Any, program: int) -> None:
        """Look at a store."""
        at = self._taken(pointers, mask, self._writable, "stores", program)
        self._stores.add(at, program)
        self._stored_by.setdefault(program, set()).update(at.tolist())
        self._fresh.difference_update(at.tolist())

    def add(self, pointers: Any, mask: Any, program: int) -> None:
        """Look at an atomic operation."""
        at = self._taken(pointers, mask, self._writable, "adds", program)
        unwritten = self._fresh.intersection(at.tolist())
        assert not unwritten, self._says("adds to what nothing has stored", min(at), program)
        self._adds.add(at, program)

    def end(self, programs: int) -> Traffic:
        """Give what was moved. Fails where the order of programs would matter."""
        (loaded, load_by), (stored, store_by) = self._loads.all(), self._stores.all()
        added, add_by = self._adds.all()
        _, counts = np.unique(stored, return_counts=True)
        if (counts > 1).any():
            order = np.argsort(stored, kind="stable")
            twice = order[1:][stored[order][1:] == stored[order][:-1]][0]
            place = self._says("is not the only one to store", stored[twice], store_by[twice])
            raise AssertionError(place)
        others = np.concatenate([loaded, added]), np.concatenate([load_by, add_by])
        self._apart(others, (stored, store_by), "touches what another program stores")
        self._apart((loaded, load_by), (added, add_by), "loads what another program adds to")
        both = np.unique(np.stack([loaded, load_by]), axis=1, return_counts=True)
        most = _most(both[0][0], both[1])
        every = np.concatenate([loaded, stored, added, added])  # an addition loads and stores
        once = np.concatenate([most, stored, added, added])
        return Traffic(self.kernel, programs, self._bytes(every), self._bytes(once))

    def _apart(
        self, some: tuple[np.ndarray, np.ndarray], written: tuple[np.ndarray, np.ndarray], why: str
    ) -> None:
        """Fail if an element of the first was written by another program."""
        by = dict(zip(written[0].tolist(), written[1].tolist(), strict=True))
        if not by:
            return
        for address, program in zip(some[0].tolist(), some[1].tolist(), strict=True):
            assert by.get(address, program) == program, self._says(why, address, program)

    def _bytes(self, addresses: np.ndarray) -> dict[str, int]:
        found = {
            name: int(np.isin(addresses, own).sum()) * self._sizes[name]
            for name, own in self._tensors.items()
        }
        return {name: count for name, count in found.items() if count}

    def _taken(
        self, pointers: Any, mask: Any, allowed: np.ndarray, what: str, program: int
    ) -> np.ndarray:
        at = np.asarray(pointers.data)[np.asarray(mask.data, bool)].astype(np.int64).reshape(-1)
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
    return np.unique(np.concatenate(parts)) if parts else np.zeros(0, np.int64)


def _inside(at: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    places = np.minimum(np.searchsorted(allowed, at), len(allowed) - 1)
    return allowed[places] == at


def _most(addresses: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Give each address as often as the program does that loads it most often."""
    order = np.lexsort((counts, addresses))
    addresses, counts = addresses[order], counts[order]
    last = np.append(addresses[1:] != addresses[:-1], True)[: len(addresses)]
    return np.repeat(addresses[last], counts[last])


@final
class Accesses:
    """Looks at every launch; keeps what each moved."""

    def __init__(self) -> None:
        self.launches: Final[list[Traffic]] = []
        self._fresh: Final[set[int]] = set()
        self._open: _Launch | None = None

    def fresh(self, tensor: torch.Tensor) -> None:
        """Note that nothing has been stored in a tensor yet, which lives as long as this."""
        self._fresh.update(_addresses(tensor).tolist())

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
