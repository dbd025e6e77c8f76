"""The transformer's block: attention and a network of two layers, each added to what it was given.

After Vaswani et al., "Attention Is All You Need" (2017), with the norms in front of each part, as
Xiong et al. found to train better (2020).
"""

from __future__ import annotations

from typing import Final

from ..annotations import Dim, Float, Tensor
from ..decorators import relay, relay_model

B, T, C, H, P = Dim("B"), Dim("T"), Dim("C"), Dim("H"), Dim("P")

TORCH_NAMES: Final = {
    "self_attn.in_proj_weight": "in_proj.weight",
    "self_attn.in_proj_bias": "in_proj.bias",
    "self_attn.out_proj.weight": "out_proj.weight",
    "self_attn.out_proj.bias": "out_proj.bias",
}
"""The names in `torch.nn.TransformerEncoderLayer` of the parameters that have other names here:
`block.load_state_dict(sd, rename=TORCH_NAMES)`."""


@relay
def parts(x: Tensor[Float, (B, T, C)], *, heads: int) -> Tensor[Float, (B, H, T, P)]:
    """The features of every position in `heads` parts, parts in front of positions."""
    batch, time, width = x.shape
    return x.reshape(batch, time, heads, width // heads).transpose(1, 2)


@relay
def attention(
    q: Tensor[Float, (B, T, C)],
    k: Tensor[Float, (B, T, C)],
    v: Tensor[Float, (B, T, C)],
    *,
    heads: int,
) -> Tensor[Float, (B, T, C)]:
    """Every position's mixture of the values, in `heads` parts of C // heads features each; the
    weights are the softmax of the scaled products of queries and keys."""
    batch, time, width = q.shape
    products = parts(q, heads=heads) @ parts(k, heads=heads).transpose(-2, -1)
    weights = relay.softmax(products / (width // heads) ** 0.5, dim=-1)
    mixed = weights @ parts(v, heads=heads)
    return mixed.transpose(1, 2).reshape(batch, time, width)


@relay_model
def transformer_block(
    x: Tensor[Float, (B, T, C)], *, heads: int = 8, hidden: int = 2048
) -> Tensor[Float, (B, T, C)]:
    """A block of an encoder, as `torch.nn.TransformerEncoderLayer(C, heads, hidden, dropout=0.0,
    activation="gelu", batch_first=True, norm_first=True)`. C has to be a multiple of `heads`."""
    width = x.shape[2]
    normed = relay.layer_norm(x, (width,), name="norm1")
    in_proj = relay.linear(normed, out_features=3 * width)
    q, k, v = in_proj[:, :, :width], in_proj[:, :, width : 2 * width], in_proj[:, :, 2 * width :]
    mixed = attention(q, k, v, heads=heads)
    x = x + relay.linear(mixed, out_features=width, name="out_proj")
    normed = relay.layer_norm(x, (width,), name="norm2")
    inner = relay.gelu(relay.linear(normed, out_features=hidden, name="linear1"))
    return x + relay.linear(inner, out_features=width, name="linear2")
