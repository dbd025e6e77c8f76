"""Triton code under one indentation: the expressions of terms, stores and additions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Final, final

from ..ir.dims import Dim
from ..ir.types import DType, bool_, float32
from ..kernels.calling import Number, Read
from ..kernels.plans.code import Axis, CodeBlock
from ..kernels.plans.supplier import Store
from ..kernels.plans.terms import Access, Term
from ..kernels.plans.text import Text, behind, call, infix, negative
from .emit import KernelText
from .expressions import INFIX, TRITON, literal, type_text


@final
class Block(CodeBlock):
    """Code under one indentation, for blocks of elements along some axes."""

    def __init__(
        self,
        kernel: KernelText,
        axes: Sequence[Axis],
        shape: Sequence[str],
        outer: Block | None = None,
        loop: str | None = None,
    ) -> None:
        """`shape` are the sizes of the blocks, as text."""
        super().__init__(kernel, axes, outer, loop)
        self.kernel: Final = kernel
        self.shape: Final = tuple(shape)

    def assigned(self, name: str, text: Text, term: Term) -> str:
        """Return the line that names the value of a term."""
        return f"{name} = {text}"

    def store(self, store: Store, also: str | None = None) -> None:
        """Write a store, done if `also` holds, which is one bool."""
        pointer = self.kernel.argument(store.target, store.name)
        value = store.term
        text = self.text(value)
        if value.op == "const":
            assert value.dtype is not None
            text = call("tl.full", "[]", text, type_text(value.dtype))
        address = behind(pointer, self.kernel.dims.whole(store.at, self.coordinate))
        mask = " & ".join(self.inside(store.at.names()))
        if also is not None:  # as in `mask`
            mask = f"tl.where({also}, {mask}, False)" if mask else also
        masks = [f"mask={mask}"] if mask else []
        self.line(str(call("tl.store", address, text, *masks)))

    def scatter(self, store: Store, *, adds: bool) -> None:
        """Write an addition to what is stored at a computed place, whoever else adds to it, or a
        store there."""
        pointer = self.kernel.argument(store.target, store.name)
        for name in self.kernel.terms.found(store.at):
            self.text(self.kernel.terms.coordinates[name][0])
        text = self.text(store.term)
        axes = [a.coordinate for a in self.axes if not a.is_one]
        mask = self.mask(axes, store.at)
        if mask is not None and not self.axes_of(store.term):
            text = call("tl.where", mask, text, "0")  # so that it is a block like the mask
        address = self.address(pointer, store.at, mask)
        masks = [] if mask is None else [f"mask={mask}"]
        if adds:
            self.line(str(call("tl.atomic_add", address, text, *masks, 'sem="relaxed"')))
        else:
            self.line(str(call("tl.store", address, text, *masks)))

    def expression(self, term: Term) -> Text:
        """Return the text of a term."""
        match term.op:
            case "const":
                return literal(term.detail)
            case "size":
                return self._size(term)
            case "load":
                return self._load(term)
            case "value":
                return self._value(term)
            case "cast":
                return self._cast(term)
            case "checked":
                return self._typed(term.operands[0])  # there is nothing to report it to
            case "neg":
                return negative(self.text(term.operands[0]))
            case "&" | "|" | "^" if term.dtype == bool_:
                return self._logic(term)
            case op if op in INFIX:
                a, b = term.operands
                return infix(self._beside(a, b), INFIX[op], self._beside(b, a))
            case _:
                return self._call(term)

    def _call(self, term: Term) -> Text:
        op = term.op
        name = f"tl.{TRITON[op]}" if op in TRITON else self.kernel.function(op)
        if op == "where":
            condition, a, b = term.operands
            return call(name, self.text(condition), self._beside(a, b), self._beside(b, a))
        if op in ("least", "most", "minimum", "maximum"):
            a, b = term.operands
            return call(name, self._beside(a, b), self._beside(b, a))
        return call(name, *(self._typed(t) for t in term.operands))

    def _logic(self, term: Term) -> Text:
        """Return two bools combined. Triton's interpreter makes numbers of the bool of a comparison
        of single elements when it meets those of a block, but not if it chooses among them."""
        a, b = term.operands
        left, right = self._beside(a, b), self._beside(b, a)
        if self._is_single(b) and not self._is_single(a):
            a, left, right = b, right, left
        if not self._is_single(a) or self._is_single(term):
            return infix(left, term.op, right)
        match term.op:
            case "&":
                return call("tl.where", left, right, "False")
            case "|":
                return call("tl.where", left, "True", right)
            case _:
                return call("tl.where", left, infix(right, "==", Text("0")), right)

    def _is_single(self, term: Term) -> bool:
        return not self.axes_of(term)

    def _beside(self, term: Term, other: Term) -> Text:
        """Return an operand; a number takes the dtype of the other operand if that is its own."""
        if term.op == "size" and self._is_single(term) and other.op not in ("const", "size"):
            return self.kernel.dims.whole(term.detail, self.coordinate)
        is_weak = term.dtype is None or term.dtype == other.dtype
        return self.text(term) if is_weak and other.op != "const" else self._typed(term)

    def _typed(self, term: Term) -> Text:
        if term.op != "const" or term.dtype is None:
            return self.text(term)
        return call("tl.full", "[]", literal(term.detail), type_text(term.dtype))

    def _size(self, term: Term) -> Text:
        dim = term.detail
        assert isinstance(dim, Dim)
        text = self.kernel.dims.whole(dim, self.coordinate)
        if self._is_block(term):
            return Text(f"{text.atom}.to(tl.int64)")
        return call("tl.full", "[]", text, "tl.int64")

    def _is_block(self, place: Term) -> bool:
        """Return whether a place is one of a block, or computed: not a number of the program."""
        dim = place.detail
        return bool(dim.names() & self.axes_of(place)) or any(self.kernel.terms.found(dim))

    def _load(self, term: Term) -> Text:
        access = term.detail
        assert isinstance(access, Access)
        if isinstance(access.operand, str):
            pointer = access.operand
        else:
            wish = f"{self.kernel.operand_name(access.operand)}_ptr"
            pointer = self.kernel.argument(Read(access.operand, access.dtype), wish)
        axes = self.axes_of(term)
        mask = self.mask(axes, access.offset, term.operands)
        address = self.address(pointer, access.offset, mask if axes else None)
        masks = [] if mask is None else [f"mask={mask}"]
        other = ["other=0"] if masks and term in self.kernel.filled else []
        text = call("tl.load", address, *masks, *other)
        if access.dtype == bool_:
            return text
        if term.dtype != access.dtype:
            assert term.dtype is not None
            return Text(f"{text}.to({type_text(term.dtype)})")
        return text

    def address(self, pointer: str, offset: Dim, mask: Text | None) -> Text:
        """Return the address of a place, as a block where the mask is one."""
        at = self.kernel.dims.whole(offset, self.coordinate)
        if mask is not None and not self._moves(offset):
            at = call("tl.where", mask, at, "0")
        return behind(pointer, at)

    def mask(self, axes: Iterable[str], offset: Dim, asked: Iterable[Term] = ()) -> Text | None:
        """Return the condition on the place of an element along axes: it is wanted, and it
        exists."""
        block = self.inside(axes)
        single: list[Text] = []
        parts: list[Text] = [Text(b) for b in block]
        for name in self.kernel.terms.found(offset):
            place, size = self.kernel.terms.coordinates[name]
            text = self.text(place)
            bounds = [infix(text, ">=", Text("0")), infix(text, "<", self.kernel.dims.size(size))]
            (single if self._is_single(place) else parts).extend(bounds)
        for mask in asked:
            (single if self._is_single(mask) else parts).append(self.text(mask))
        # As in `_logic`.
        whole = reduce(lambda a, b: infix(a, "&", b), parts) if parts else None
        alone = reduce(lambda a, b: call("tl.where", a, b, "False"), single) if single else None
        if whole is None or alone is None:
            return whole or alone
        return call("tl.where", alone, whole, "False")

    def _moves(self, offset: Dim) -> bool:
        """Return whether a place is a block, or one element for all."""
        found = [self.kernel.terms.coordinates[n][0] for n in self.kernel.terms.found(offset)]
        names = offset.names()
        return any(map(self.is_axis, names)) or not all(map(self._is_single, found))

    def _value(self, term: Term) -> Text:
        assert term.dtype is not None
        operand = term.detail
        wish = f"{self.kernel.operand_name(operand)}_value"
        name = self.kernel.argument(Number(operand, term.dtype), wish)
        return call("tl.full", "[]", name, type_text(term.dtype))

    def _cast(self, term: Term) -> Text:
        assert term.dtype is not None
        (value,) = term.operands
        text = self._typed(value).atom
        if value.op == "size" and self.kernel.uses[value] == 1 and self._is_block(value):
            text = self.kernel.dims.whole(value.detail, self.coordinate).atom
        if isinstance(term.detail, DType):
            if value.dtype not in (None, float32):
                text = f"{text}.to(tl.float32)"  # torch rounds what becomes a half in two steps
            text = f"{text}.to({type_text(term.detail)})"
        return Text(f"{text}.to({type_text(term.dtype)})")
