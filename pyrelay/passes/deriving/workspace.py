"""The state that the derivers of one module share, so that each type and function is generated
once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from ...dataclass import dataclass
from ...ir.expr import Transform
from .callgraph import CallGraph
from .cotangents.adt_cotangents import Border
from .cotangents.cells import CellUse, Shadows
from .cotangents.cotangents import Cotangents
from .deriver import Wanted
from .leaves import Leaves
from .store import Store


@final
@dataclass(frozen=True, slots=True)
class Makers:
    """Makes functions that rules of mapped functions are written of."""

    mapped: Callable[[Wanted], str]
    """Returns the function that a `vmap` stands for."""
    pulled: Callable[[str, tuple[int, ...]], str]
    """Returns the function from the parameters of one and a cotangent of its result to the
    cotangents of some of the parameters."""


@final
class Workspace:
    """The store of a module, with the facts about its types and functions, and the code generated
    for them."""

    def __init__(self, store: Store) -> None:
        self.store: Final = store
        self.leaves: Final = Leaves(store)
        self.cotangents: Final = Cotangents(store, self.leaves)
        self.border: Final = Border(store, self.leaves, self.cotangents)
        self.graph: Final = CallGraph(store, self.leaves)
        self.cell_use: Final = CellUse(store)
        self.shadows: Final = Shadows(store, self.leaves)
        self.makers: Makers | None = None
        """The maker of the derivatives of mapped functions, where these are to be maps."""
        self.mapped: Final[dict[str, Wanted]] = {}
        """The ruled functions of such mapped functions, and the transform of each."""
        self.unruled: Final[dict[str, Transform]] = {}
        """The functions for a batch that follow the body of a function, by its rule."""

    def finish(self) -> None:
        """Remove from the store what was defined for the work alone."""
        self.shadows.forget()
