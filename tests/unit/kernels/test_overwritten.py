"""Which parameters a region writes to."""

from __future__ import annotations

from pyrelay.kernels.outlined import outlined_of, written_parameters
from tests.unit.kernels.kernels import in_regions, module

STEP = """def @step[N: Dim](
    %x: Tensor[(N, 3), float32], %w: Tensor[(3,), float32], %b: Tensor[(3,), float32]) {
    let %g = sum(%x * %w, dim=(0,));
    let %t = transpose(%x, dim0=0, dim1=1);
    let %y = matmul(%x, matmul(%t, %x));
    let %_ = overwrite(%b, %b - %g);
    %y
}"""


def test_a_region_writes_to_what_its_kernels_overwrite() -> None:
    cut = in_regions(module(STEP), "step")
    (name,) = outlined_of(cut).regions
    function = cut.functions[name]
    assert [function.params[i].name for i in written_parameters(cut, name)] == ["b"]
