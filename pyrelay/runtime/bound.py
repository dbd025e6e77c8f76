"""A function with models bound as its implicit instances: `model.bind(loss)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

from ..diagnostics.catalogue.model import NotAModel
from ..diagnostics.diagnostic import RunError

if TYPE_CHECKING:
    from .dispatch import Dispatcher
    from .model import Model


@final
class BoundFunction:
    """A relay function together with the models whose parameters it uses."""

    def __init__(self, models: tuple[Model, ...], function: Any) -> None:
        self._models: Final = models
        self._dispatcher: Final = dispatcher_of(function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function with the bound models. Raises CheckError and RunError."""
        return self._dispatcher.call(self._models, args, kwargs)

    def check(self) -> None:
        """Check the function with the bound models. Raises CheckError."""
        self._dispatcher.check_with(self._models)


def dispatcher_of(function: Any) -> Dispatcher:
    """Give what runs a relay function. Raises RunError for anything else."""
    found = getattr(function, "dispatcher", None)
    if found is None:
        raise RunError(
            NotAModel(
                "this takes a function decorated with @relay",
                f"a {type(function).__name__}",
                "decorate the function with @relay",
            )
        )
    return found
