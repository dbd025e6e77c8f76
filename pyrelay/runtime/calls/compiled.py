"""A compiled entry of a relay function, with what a call does around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, final

from ...dataclass import dataclass
from ...translate.program.guards import Check
from ...translate.source.definition import Definition
from ...translate.translator import Translation
from ...translate.types.number_places import Numbers
from ..border.fast_flatten import Reader
from ..entries.entry import Entry
from ..models.model_io import Arguments, ParameterSource
from ..models.recorded import Homes, recorded
from .direct import Around, Directs, Uses
from .implicit import implicit_values
from .made import note_made
from .parameters import Arrange


@final
@dataclass(frozen=True, slots=True)
class CacheInfo:
    """The compiled entries of a function with their plans, and how calls used them."""

    entries: int
    hits: int
    misses: int


@final
class Compiled:
    """An entry with what a call must do around it."""

    def __init__(
        self,
        translation: Translation,
        entry: Entry,
        records: Numbers,
        parts: Reader | None,
        maker: Definition | None,
    ) -> None:
        self.translation: Final = translation
        self.entry: Final = entry
        self.guards_hold: Final = Check(translation.guards)
        self._records: Final = records
        """Where the result has records of parameters."""
        self.rates: Final = tuple(translation.rates.items())
        self._implicit: Final = translation.signature.implicit
        names = [p.name for p in translation.signature.values]
        self.updated: Final = {names.index(n): use for n, use in translation.optimizers.items()}
        """The optimisers of explicit models, by the index of the model among the values."""
        self.parts: Final = parts
        """The reader of the leaves of a model's gradient, some of which may be pairs of factors;
        None where the result is anything else."""
        self._maker: Final = maker
        """The definition, where it returns functions that may be made again."""
        self._direct: Final = Directs(entry)

    def recorded(self, result: Any, models: tuple[ParameterSource, ...], args: Arguments) -> Any:
        """Return a result with its parameters and gradients as records."""
        if self._records is None:
            return result
        names = (p.name for p in self.translation.signature.values)
        named = dict(zip(names, args.values, strict=False))
        return recorded(result, self._records, Homes(named, (*models, *args.values)))

    def finished(self, result: Any, models: tuple[ParameterSource, ...], args: Arguments) -> Any:
        """Return the result of a call as the caller gets it."""
        if self._maker is not None:
            names = [p.name for p in self.translation.signature.values]
            note_made(result, self._maker, names, args)
        return self.recorded(result, models, args)

    def direct_call(
        self,
        models: tuple[ParameterSource, ...],
        args: Arguments,
        arrange: Arrange,
        uses: Uses,
        general: Callable[..., Any],
        made: Callable[[Any, tuple[ParameterSource, ...]], Any] | None = None,
    ) -> Callable[..., Any] | None:
        """Return the function that runs calls like one that has just been made, whose first
        parameter is the implicit models, if there are any; None where only `general` can. `made`
        makes of a result, and of the implicit models, what the caller gets."""
        is_more = args.statics or args.types or args.optimizers or args.implicit or self._implicit
        if is_more or self._records is not None or self._maker is not None:
            return None
        around = Around(arrange, self.guards_hold, uses, general, self.updated, made)
        return self._direct.call_like((*models, *args.values), around)

    def completed(self, args: Arguments) -> Arguments:
        """Return the arguments of a call with the implicit values at the end. Raises RunError."""
        if not self._implicit and not args.implicit:
            return args
        values = implicit_values(self.translation, self.entry.name, args.implicit)
        return args._replace(values=(*args.values, *values))

    def is_valid(self, args: Arguments) -> bool:
        """Return whether all captured names, and learning rates that are part of the program, still
        have the values that were compiled in."""
        if not self.guards_hold():
            return False
        return all(args.optimizers[name].lr == lr for name, lr in self.rates)
