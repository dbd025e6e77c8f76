"""What the compiler makes of kernels for sm_90: contiguous elements move 16 bytes at a time, and
rows that are read once stay in registers."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest

from pyrelay import Float, bfloat16
from pyrelay.ir.expr import Function
from pyrelay.kernels.calling import Form, Layout
from pyrelay.lower_triton.kernel import Kernel, Target
from pyrelay.lower_triton.launching.versions import MOST_PROCESSORS
from tests.kernels.machine_code import accesses, compiling, most_processors, ptx, resources
from tests.kernels.row_functions import functions_of
from tests.kernels.test_traffic import reductions_of_rows
from tests.unit.kernels.kernels import kernel, lower

WIDEST = 128
"""The most bits that one instruction moves."""

ADD = """def @plus[N: Dim](%x: Tensor[(N, 64), DTYPE], %y: Tensor[(N, 64), DTYPE]) { %x + %y }"""
BIAS = """def @layer[N: Dim](%x: Tensor[(N, 512), DTYPE], %b: Tensor[(512,), DTYPE]) {
    relu(%x + %b)
}"""
SOFTMAX = """def @softmax[N: Dim](%x: Tensor[(N, SIZE), DTYPE]) {
    let %wide = cast(%x, dtype=float32);
    let %e = exp(%wide - amax(%wide, dim=(1,), keepdim=True));
    cast(%e / sum(%e, dim=(1,), keepdim=True), dtype=DTYPE)
}"""
NORM = """def @norm[N: Dim](%x: Tensor[(N, SIZE), DTYPE], %w: Tensor[(SIZE,), DTYPE],
    %b: Tensor[(SIZE,), DTYPE]) {
    let %wide = cast(%x, dtype=float32);
    let %centred = %wide - mean(%wide, dim=(1,), keepdim=True);
    let %variance = mean(%centred * %centred, dim=(1,), keepdim=True);
    let %normal = %centred * rsqrt(%variance + 0.00001f32);
    cast(%normal * cast(%w, dtype=float32) + cast(%b, dtype=float32), dtype=DTYPE)
}"""
COLUMNS = """def @columns[N: Dim](%x: Tensor[(N, SIZE), DTYPE]) { sum(%x, dim=(0,)) }"""

TURNED = """def @columns_turned[N: Dim](%x: Tensor[(SIZE, N, 64), DTYPE]) {
    sum(permute(%x, dims=(1, 2, 0)), dim=(2,))
}"""
BOTH = """def @columns_both[N: Dim](
    %x: Tensor[(SIZE, 64), DTYPE], %y: Tensor[(64, SIZE), DTYPE]) {
    sum(%x + transpose(%y, dim0=0, dim1=1), dim=(1,))
}"""

ACROSS = """def @across[N: Dim](
    %x: Tensor[(N, SIZE, 64), DTYPE], %y: Tensor[(N, 64, SIZE), DTYPE]) {
    %x + transpose(%y, dim0=1, dim1=2)
}"""

NORM_BACKWARD = """def @back[N: Dim](
    %g: Tensor[(N, SIZE), DTYPE], %x: Tensor[(N, SIZE), DTYPE], %w: Tensor[(SIZE,), DTYPE],
    %mean: Tensor[(N, 1), float32], %factor: Tensor[(N, 1), float32]) {
    let %s = (cast(%x, dtype=float32) - %mean) * %factor;
    let %h = cast(%g, dtype=float32) * cast(%w, dtype=float32);
    let %t = %h - mean(%h, dim=(1,), keepdim=True) - %s * mean(%h * %s, dim=(1,), keepdim=True);
    cast(%factor * %t, dtype=DTYPE)
}"""


def alternatives(source: str | Function, processors: int = 1) -> Iterator[Kernel]:
    """Return all kernels of a function."""
    function = kernel(source) if isinstance(source, str) else source
    forms = (Form.CONTIGUOUS,) * len(function.params)
    lowered = lower(function)(Layout(forms), Target(processors=processors))
    while True:
        yield from lowered.kernels
        if lowered.otherwise is None:
            return
        lowered = lowered.otherwise


@pytest.fixture(scope="module")
def pool() -> Generator[ProcessPoolExecutor]:
    with compiling() as found:
        yield found


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("source", "size"),
    [
        (ADD, 0),
        (BIAS, 0),
        (SOFTMAX, 1024),
        (SOFTMAX, 1000),
        (SOFTMAX, 128),
        (SOFTMAX, 50304),
        (NORM, 768),
        (NORM, 4096),
        (NORM, 32768),
        (COLUMNS, 1024),
        (TURNED, 96),
        (TURNED, 1024),
        (BOTH, 1024),
        (ACROSS, 128),
    ],
    ids=lambda value: (
        value.split("[")[0].removeprefix("def @") if isinstance(value, str) else value
    ),
)
def test_rows_move_in_the_widest_accesses(
    pool: ProcessPoolExecutor, source: str, size: int, dtype: str
) -> None:
    source = source.replace("SIZE", str(size)).replace("DTYPE", dtype)
    for made in alternatives(source):
        found = pool.submit(accesses, made).result()
        # What pieces found is little, and lies as it comes; sums of columns are few.
        is_few = "_of_pieces" in made.text or made.name.startswith("columns")
        narrow = {kind for kind, bits in found if bits < WIDEST}
        assert "ld" not in narrow or "_of_pieces" in made.text, made.text
        assert "st" not in narrow or is_few, made.text
        assert {kind for kind, _ in found} == {"ld", "st"}


@pytest.mark.parametrize("size", [16384, 40960])
@pytest.mark.parametrize("source", [SOFTMAX, NORM, NORM_BACKWARD], ids=["softmax", "norm", "back"])
def test_the_longest_rows_fit_into_registers(
    pool: ProcessPoolExecutor, source: str, size: int
) -> None:
    for made in alternatives(source.replace("SIZE", str(size)).replace("DTYPE", "float32")):
        found = pool.submit(resources, made).result()
        assert found["REG"] > 0
        assert found["LOCAL"] == found["STACK"] == 0, made.text


SLICED = """def @sliced[N: Dim, M: Dim](%x: Tensor[(N, M), DTYPE], %y: Tensor[(N, M), DTYPE]) {
    %x + %y
}"""


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("source", "units"),
    [(SLICED, (1, None)), (SLICED, (0, None)), (SOFTMAX, (1,)), (SOFTMAX, (0,))],
    ids=["slice", "transposed", "rows of a slice", "rows of a transposed one"],
)
def test_views_from_outside_move_in_the_widest_accesses(
    pool: ProcessPoolExecutor, source: str, units: tuple[int | None, ...], dtype: str
) -> None:
    function = kernel(source.replace("SIZE", "128").replace("DTYPE", dtype))
    forms = tuple(Form.CONTIGUOUS if unit is None else Form.STRIDED for unit in units)
    (made,) = lower(function)(Layout(forms, units=units)).kernels
    found = pool.submit(accesses, made).result()
    assert {bits for _, bits in found} == {WIDEST}, made.text


FLOATS = {"float32": functions_of(Float), "bfloat16": functions_of(bfloat16)}


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((name, "float32") for name in ("softmax", "layer_norm", "softmax_backward")),
        *((name, "float32") for name in ("layer_norm_backward", "cross_entropy_backward")),
        *(pytest.param(name, "bfloat16", marks=pytest.mark.slow) for name in FLOATS["bfloat16"]),
        *(
            pytest.param(name, "float32", marks=pytest.mark.slow)
            for name in ("log_softmax", "log_softmax_backward", "rms_norm", "rms_norm_backward")
        ),
    ],
)
@pytest.mark.parametrize("processors", [1, MOST_PROCESSORS])
def test_the_longest_rows_of_any_length_fit_into_registers(
    pool: ProcessPoolExecutor, name: str, dtype: str, processors: int
) -> None:
    if processors > pool.submit(most_processors).result():
        pytest.skip("this Triton's reductions reach no other processor of a cluster")
    for _, function in reductions_of_rows(FLOATS[dtype][name]):
        blocks = [k for k in alternatives(function, processors) if _is_block(k)]
        longest = max(blocks, key=lambda k: dict(k.configs[0].constants)["ALONG"])
        found = pool.submit(resources, longest).result()
        assert found["LOCAL"] == found["STACK"] == 0, (longest.configs, found, longest.text)
        code = pool.submit(ptx, longest).result()
        assert ("ld.shared::cluster" in code) is (longest.configs[0].num_ctas > 1)


def _is_block(kernel: Kernel) -> bool:
    return "for " not in kernel.text and "_of_pieces" not in kernel.text
