"""Which operator each piece of Python syntax, builtin, `math` function and method means."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any, Final

from ...ir.op import Op
from ...ir.types import DTYPES, DType
from ...operators.composite import einsum, elementwise, measure, softmax
from ...operators.host import conversions, loop, sizes
from ...operators.matrices import determinant, inverse, trace
from ...operators.matrices import named_products as products
from ...operators.matrices import products as linalg
from ...operators.primitive import (
    activation,
    arithmetic,
    bitwise,
    compare,
    create,
    extrema,
    gathering,
    join,
    parts,
    reduce,
    scan,
    sort,
    view,
)
from ...operators.primitive import math as math_ops

BINARY: Final[dict[type[ast.operator], Op]] = {
    ast.Add: arithmetic.add,
    ast.Sub: arithmetic.subtract,
    ast.Mult: arithmetic.multiply,
    ast.Div: arithmetic.divide,
    ast.FloorDiv: arithmetic.floor_divide,
    ast.Mod: arithmetic.mod,
    ast.Pow: arithmetic.power,
    ast.MatMult: linalg.matmul,
    ast.BitAnd: bitwise.bitwise_and,
    ast.BitOr: bitwise.bitwise_or,
    ast.BitXor: bitwise.bitwise_xor,
}
COMPARISON: Final[dict[type[ast.cmpop], Op]] = {
    ast.Eq: compare.equal,
    ast.NotEq: compare.not_equal,
    ast.Lt: compare.less,
    ast.LtE: compare.less_equal,
    ast.Gt: compare.greater,
    ast.GtE: compare.greater_equal,
    ast.In: loop.contains,
}
UNARY: Final[dict[type[ast.unaryop], Op]] = {
    ast.USub: arithmetic.negative,
    ast.Not: compare.logical_not,
    ast.Invert: bitwise.bitwise_not,
}

BUILTINS: Final[dict[Callable[..., Any], Op]] = {
    abs: arithmetic.abs_,
    bool: conversions.to_bool,
    float: conversions.to_float,
    int: conversions.to_int,
    pow: arithmetic.power,
    math.acos: math_ops.acos,
    math.acosh: math_ops.acosh,
    math.asin: math_ops.asin,
    math.asinh: math_ops.asinh,
    math.atan: math_ops.atan,
    math.atanh: math_ops.atanh,
    math.cos: math_ops.cos,
    math.cosh: math_ops.cosh,
    math.erf: math_ops.erf,
    math.exp: math_ops.exp,
    math.expm1: math_ops.expm1,
    math.fabs: arithmetic.abs_,
    math.isfinite: compare.isfinite,
    math.isinf: compare.isinf,
    math.isnan: compare.isnan,
    math.log1p: math_ops.log1p,
    math.pow: arithmetic.power,
    math.sin: math_ops.sin,
    math.sinh: math_ops.sinh,
    math.sqrt: math_ops.sqrt,
    math.tan: math_ops.tan,
    math.tanh: math_ops.tanh,
}
"""Python's own functions that are one operator; those that need more are in `builtin_calls`."""

LIST_SEARCHES: Final[dict[str, Op]] = {"count": loop.count_of, "index": loop.index_of}
"""The methods of lists that search one."""

LIST_METHODS: Final = frozenset({*LIST_SEARCHES, "copy"})
"""The methods of lists that change nothing."""

METHODS: Final[dict[str, Op]] = {
    "abs": arithmetic.abs_,
    "absolute": arithmetic.abs_,
    "acos": math_ops.acos,
    "acosh": math_ops.acosh,
    "add": arithmetic.add,
    "all": reduce.all_,
    "amax": extrema.amax,
    "amin": extrema.amin,
    "any": reduce.any_,
    "argmax": extrema.argmax,
    "argmin": extrema.argmin,
    "argsort": sort.argsort,
    "asin": math_ops.asin,
    "asinh": math_ops.asinh,
    "atan": math_ops.atan,
    "atanh": math_ops.atanh,
    "bitwise_and": bitwise.bitwise_and,
    "bitwise_not": bitwise.bitwise_not,
    "bitwise_or": bitwise.bitwise_or,
    "bitwise_xor": bitwise.bitwise_xor,
    "bmm": products.bmm,
    "broadcast_to": view.expand,
    "ceil": math_ops.ceil,
    "chunk": parts.chunk,
    "clamp": activation.clip,
    "clip": activation.clip,
    "cos": math_ops.cos,
    "cosh": math_ops.cosh,
    "cumprod": scan.cumprod,
    "cumsum": scan.cumsum,
    "det": determinant.det,
    "detach": activation.stop_gradient,
    "diagonal": linalg.diagonal,
    "div": arithmetic.divide,
    "divide": arithmetic.divide,
    "dot": products.dot,
    "eq": compare.equal,
    "erf": math_ops.erf,
    "exp": math_ops.exp,
    "exp2": math_ops.exp2,
    "expand": view.expand,
    "expm1": math_ops.expm1,
    "flatten": view.flatten,
    "flip": view.flip,
    "floor": math_ops.floor,
    "floor_divide": arithmetic.floor_divide,
    "gather": gathering.gather,
    "ge": compare.greater_equal,
    "greater": compare.greater,
    "greater_equal": compare.greater_equal,
    "gt": compare.greater,
    "index_add": parts.index_add,
    "index_select": gathering.index_select,
    "inverse": inverse.inv,
    "isfinite": compare.isfinite,
    "isinf": compare.isinf,
    "isnan": compare.isnan,
    "le": compare.less_equal,
    "lerp": elementwise.lerp,
    "less": compare.less,
    "less_equal": compare.less_equal,
    "log": math_ops.log,
    "log10": math_ops.log10,
    "log1p": math_ops.log1p,
    "log2": math_ops.log2,
    "log_softmax": softmax.log_softmax,
    "logaddexp": arithmetic.logaddexp,
    "logdet": determinant.logdet,
    "logical_and": compare.logical_and,
    "logical_not": compare.logical_not,
    "logical_or": compare.logical_or,
    "logical_xor": compare.logical_xor,
    "logsumexp": measure.logsumexp,
    "lt": compare.less,
    "masked_fill": elementwise.masked_fill,
    "matmul": linalg.matmul,
    "max": extrema.max_,
    "maximum": arithmetic.maximum,
    "mean": reduce.mean,
    "min": extrema.min_,
    "minimum": arithmetic.minimum,
    "mm": products.mm,
    "moveaxis": view.movedim,
    "movedim": view.movedim,
    "mul": arithmetic.multiply,
    "multiply": arithmetic.multiply,
    "mv": products.mv,
    "narrow": parts.narrow,
    "ne": compare.not_equal,
    "neg": arithmetic.negative,
    "negative": arithmetic.negative,
    "nelement": sizes.numel,
    "nonzero": gathering.nonzero,
    "norm": measure.norm,
    "not_equal": compare.not_equal,
    "numel": sizes.numel,
    "outer": linalg.outer,
    "permute": view.permute,
    "pow": arithmetic.power,
    "prod": reduce.prod,
    "reciprocal": math_ops.reciprocal,
    "relu": activation.relu,
    "remainder": arithmetic.mod,
    "repeat": join.repeat,
    "reshape": view.reshape,
    "roll": view.roll,
    "round": math_ops.round_,
    "rsqrt": math_ops.rsqrt,
    "scatter_add": gathering.scatter_add,
    "select": parts.select,
    "sigmoid": math_ops.sigmoid,
    "sign": arithmetic.sign,
    "sin": math_ops.sin,
    "sinh": math_ops.sinh,
    "slogdet": determinant.slogdet,
    "softmax": softmax.softmax,
    "sort": sort.sort,
    "split": parts.split,
    "sqrt": math_ops.sqrt,
    "square": arithmetic.square,
    "squeeze": view.squeeze,
    "std": measure.std,
    "sub": arithmetic.subtract,
    "subtract": arithmetic.subtract,
    "sum": reduce.sum_,
    "swapaxes": view.swapaxes,
    "swapdims": view.transpose,
    "take": gathering.take,
    "tan": math_ops.tan,
    "tanh": math_ops.tanh,
    "tile": join.tile,
    "to": compare.cast,
    "topk": sort.topk,
    "trace": trace.trace,
    "transpose": view.transpose,
    "tril": create.tril,
    "triu": create.triu,
    "true_divide": arithmetic.divide,
    "trunc": math_ops.trunc,
    "unbind": parts.unbind,
    "unsqueeze": view.unsqueeze,
    "var": measure.var,
    "view": view.reshape,
    "where": compare.where,
}
"""Methods of tensors, as torch has them; the tensor is the first operand."""

CASTS: Final[dict[str, DType]] = {
    "bfloat16": DTYPES["bfloat16"],
    "bool": DTYPES["bool"],
    "double": DTYPES["float64"],
    "float": DTYPES["float32"],
    "half": DTYPES["float16"],
    "int": DTYPES["int32"],
    "long": DTYPES["int64"],
    "short": DTYPES["int16"],
}
"""Methods of tensors that name the dtype they cast to."""

LIKE: Final[dict[str, tuple[Op, str]]] = {
    "expand_as": (view.expand, "size"),
    "reshape_as": (view.reshape, "shape"),
    "view_as": (view.reshape, "shape"),
}
"""Methods of tensors that take the shape of another, and what takes that shape."""

SAME: Final = frozenset({"clone", "contiguous"})
"""Methods that give the tensor itself: values never change, and layout is the compiler's."""

COPIES: Final = frozenset({"clone"})
"""Methods whose result Python keeps apart from the tensor: writing to it changes nothing else."""

TOGETHER: Final = "tensors"
"""The first parameter of operators that take any number of tensors as one tuple."""

VARIADIC: Final[dict[Op, str]] = {
    create.ones: "size",
    create.zeros: "size",
    einsum.einsum: "operands",
    join.repeat: "repeats",
    join.tile: "dims",
    view.expand: "size",
    view.flip: "dims",
    view.permute: "dims",
    view.reshape: "shape",
}
"""The parameter that takes all arguments from its place on, where torch allows that."""
