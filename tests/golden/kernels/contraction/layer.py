import triton
import triton.language as tl
from pyrelay.lower_triton.math import maximum, tanh


@triton.jit
def layer(
    x_ptr,
    w_ptr,
    b_ptr,
    r_ptr,
    h_out,
    multiply_out,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
):
    # Tiles that share operands run at the same time: GROUP rows of tiles at once.
    tile = tl.program_id(0)
    tiles_n = tl.cdiv(20, BLOCK_N)
    width = GROUP * tiles_n
    first = tile // width * GROUP
    height = tl.minimum(tl.cdiv(N, BLOCK_M) - first, GROUP)
    m = (first + tile % width % height) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tile % width // height * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + (m[:, None] * K + k[None, :]), mask=(m[:, None] < N) & (k[None, :] < K))
        # <text>:5  let %scores = matmul(relu(%x), %t);
        relu = maximum(x, 0)
        block = tl.where(k[None, :] < K, relu, 0.0)
        w = tl.load(w_ptr + (n[None, :] * K + k[:, None]), mask=(n[None, :] < 20) & (k[:, None] < K), other=0)
        total = tl.dot(block, w, total, input_precision="ieee", out_dtype=tl.float32)
    b = tl.load(b_ptr + n[None, :], mask=(n[None, :] < 20))
    # <text>:6  let %h = tanh(%scores + %b);
    add = total + b
    h = tanh(add)
    tl.store(h_out + (m[:, None] * 20 + n[None, :]), h, mask=(m[:, None] < N) & (n[None, :] < 20))
    r = tl.load(r_ptr + (m[:, None] * 20 + n[None, :]), mask=(m[:, None] < N) & (n[None, :] < 20))
    # <text>:7  (%h, %h * %r)
    multiply = h * r
    tl.store(multiply_out + (m[:, None] * 20 + n[None, :]), multiply, mask=(m[:, None] < N) & (n[None, :] < 20))
