"""Calls of Relay's operators of networks, and what they mean in torch."""

from __future__ import annotations

import torch
from torch.nn import functional

from tests.relay.operator_cases import IMAGE, NHWC, VOLUME, Case, X, draw

KERNEL, SCALE = draw(5, 4, 3, 3), draw(4, low=0.5, high=2.0)
NETWORKS: list[Case] = [
    ("nn.dense(%x, %y, units=5)", (draw(2, 3), draw(5, 3)), functional.linear),
    ("nn.matmul(%x, %y, transpose_b=True)", (draw(2, 3), draw(5, 3)), functional.linear),
    (
        "nn.batch_matmul(%x, %y, transpose_b=True)",
        (draw(2, 3, 4), draw(2, 5, 4)),
        lambda x, y: x @ y.mT,
    ),
    ("nn.batch_matmul(%x, %y)", (draw(2, 3, 4), draw(1, 4, 5)), torch.matmul),
    ("nn.matmul(%x, %y)", (draw(2, 3, 4), draw(4, 5)), torch.matmul),
    (
        "nn.matmul(%x, %y, transpose_a=True, units=5)",
        (draw(4, 3), draw(4, 5)),
        lambda x, y: x.T @ y,
    ),
    ("nn.conv2d(%x, %y, channels=5)", (IMAGE, KERNEL), functional.conv2d),
    (
        'nn.conv2d(%x, %y, kernel_size=[3, 3], out_layout="NHWC")',
        (IMAGE, KERNEL),
        lambda x, w: functional.conv2d(x, w).permute(0, 2, 3, 1),
    ),
    (
        'nn.dense(%x, %y, out_dtype="float32")',
        (draw(2, 3).half(), draw(5, 3).half()),
        lambda x, w: functional.linear(x.float(), w.float()),
    ),
    ("nn.bias_add(%x, %y)", (IMAGE, SCALE), lambda x, b: x + b[:, None, None]),
    ("nn.bias_add(%x, %y, axis=-1)", (NHWC, SCALE), lambda x, b: x + b),
    ("nn.leaky_relu(%x, alpha=0.2f)", (X,), lambda x: functional.leaky_relu(x, 0.2)),
    ("nn.prelu(%x, %y)", (IMAGE, SCALE), functional.prelu),
    (
        "nn.conv2d(%x, %y, padding=[1, 1, 1, 1])",
        (IMAGE, KERNEL),
        lambda x, w: functional.conv2d(x, w, padding=1),
    ),
    (
        "nn.conv2d(%x, %y, strides=[2, 2], padding=[0, 1, 2, 1], dilation=[2, 1], "
        "channels=5, kernel_size=[3, 3])",
        (IMAGE, KERNEL),
        lambda x, w: functional.conv2d(
            functional.pad(x, (1, 1, 0, 2)), w, stride=2, dilation=(2, 1)
        ),
    ),
    (
        'nn.conv2d(%x, %y, data_layout="NHWC", kernel_layout="HWIO", channels=5, '
        "kernel_size=[3, 3])",
        (NHWC, KERNEL.permute(2, 3, 1, 0).contiguous()),
        lambda x, w: functional.conv2d(x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1)).permute(
            0, 2, 3, 1
        ),
    ),
    (
        "nn.conv2d(%x, %y, groups=4)",
        (IMAGE, draw(4, 1, 3, 3)),
        lambda x, w: functional.conv2d(x, w, groups=4),
    ),
    (
        "nn.conv1d(%x, %y, padding=[1, 2])",
        (draw(2, 3, 8), draw(4, 3, 3)),
        lambda x, w: functional.conv1d(functional.pad(x, (1, 2)), w),
    ),
    (
        "nn.conv2d_transpose(%x, %y, strides=[2, 2], padding=[1, 1, 1, 1], output_padding=[1, 1])",
        (IMAGE, draw(4, 5, 3, 3)),
        lambda x, w: functional.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1),
    ),
    (
        "nn.max_pool2d(%x, pool_size=[2, 2], strides=[2, 2])",
        (IMAGE,),
        lambda x: functional.max_pool2d(x, 2),
    ),
    (
        "nn.max_pool2d(%x, pool_size=[2, 2], padding=[0, 0, 1, 1])",
        (IMAGE,),
        lambda x: functional.max_pool2d(functional.pad(x, (0, 1, 0, 1), value=float("-inf")), 2, 1),
    ),
    (
        'nn.max_pool2d(%x, pool_size=[3, 3], padding=[1, 1, 1, 1], layout="NHWC")',
        (NHWC,),
        lambda x: functional.max_pool2d(x.permute(0, 3, 1, 2), 3, 1, 1).permute(0, 2, 3, 1),
    ),
    (
        "nn.avg_pool2d(%x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1])",
        (IMAGE,),
        lambda x: functional.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    ),
    (
        "nn.avg_pool2d(%x, pool_size=[3, 3], padding=[1, 1, 1, 1], count_include_pad=True)",
        (IMAGE,),
        lambda x: functional.avg_pool2d(x, 3, 1, 1),
    ),
    (
        "nn.max_pool1d(%x, pool_size=[2], strides=[2])",
        (draw(2, 3, 8),),
        lambda x: functional.max_pool1d(x, 2),
    ),
    (
        "nn.avg_pool1d(%x, pool_size=[2], strides=[2])",
        (draw(2, 3, 8),),
        lambda x: functional.avg_pool1d(x, 2),
    ),
    (
        "nn.conv3d(%x, %y, strides=[1, 2, 1], padding=[1, 0, 1])",
        (VOLUME, draw(4, 3, 2, 3, 2)),
        lambda x, w: functional.conv3d(x, w, stride=(1, 2, 1), padding=(1, 0, 1)),
    ),
    (
        'nn.conv3d(%x, %y, data_layout="NDHWC", kernel_layout="DHWIO")',
        (VOLUME.permute(0, 2, 3, 4, 1).contiguous(), draw(2, 3, 2, 3, 4)),
        lambda x, w: functional.conv3d(x.permute(0, 4, 1, 2, 3), w.permute(4, 3, 0, 1, 2)).permute(
            0, 2, 3, 4, 1
        ),
    ),
    (
        "nn.max_pool3d(%x, pool_size=[2, 2, 2], strides=[2, 2, 1])",
        (VOLUME,),
        lambda x: functional.max_pool3d(x, 2, (2, 2, 1)),
    ),
    (
        'nn.avg_pool3d(%x, pool_size=[2, 3, 2], padding=[1, 1, 1], layout="NDHWC")',
        (VOLUME.permute(0, 2, 3, 4, 1).contiguous(),),
        lambda x: functional.avg_pool3d(
            x.permute(0, 4, 1, 2, 3), (2, 3, 2), 1, 1, count_include_pad=False
        ).permute(0, 2, 3, 4, 1),
    ),
    (
        "nn.upsampling(%x, scale_h=2, scale_w=1.5f)",
        (draw(1, 2, 4, 6),),
        lambda x: functional.interpolate(x, (8, 9)),
    ),
    (
        'nn.upsampling(%x, scale_h=2, scale_w=3, method="bilinear", align_corners=True)',
        (draw(1, 2, 4, 6),),
        lambda x: functional.interpolate(x, (8, 18), mode="bilinear", align_corners=True),
    ),
    (
        "sparse_to_dense(%x, %y, output_shape=[3, 4])",
        (torch.tensor([[0, 0], [1, 2]]), draw(2)),
        lambda places, values: torch.zeros(3, 4).index_put(tuple(places.T), values),
    ),
    (
        "sparse_to_dense(%x, %y, 1f, output_shape=[5])",
        (torch.tensor(3), torch.tensor(2.0)),
        lambda place, value: torch.ones(5).index_put((place,), value),
    ),
    (
        "image.resize2d(%x, size=[5, 9])",
        (IMAGE,),
        lambda x: functional.interpolate(x, (5, 9), mode="bilinear"),
    ),
    (
        'image.resize2d(%x, size=[14, 14], layout="NHWC", '
        'coordinate_transformation_mode="align_corners")',
        (NHWC,),
        lambda x: functional.interpolate(
            x.permute(0, 3, 1, 2), (14, 14), mode="bilinear", align_corners=True
        ).permute(0, 2, 3, 1),
    ),
    (
        'image.resize2d(%x, size=[5, 9], method="nearest_neighbor", '
        'coordinate_transformation_mode="asymmetric", rounding_method="floor")',
        (IMAGE,),
        lambda x: functional.interpolate(x, (5, 9), mode="nearest"),
    ),
    ("nn.global_avg_pool2d(%x)", (IMAGE,), lambda x: x.mean((2, 3), keepdim=True)),
    ('nn.global_max_pool2d(%x, layout="NHWC")', (NHWC,), lambda x: x.amax((1, 2), keepdim=True)),
    (
        "nn.adaptive_avg_pool2d(%x, output_size=[2, 3])",
        (IMAGE,),
        lambda x: functional.adaptive_avg_pool2d(x, (2, 3)),
    ),
    (
        "nn.batch_norm(%x, %y, %z, %u, %v, epsilon=0.001f).0",
        (IMAGE, SCALE, draw(4), draw(4), SCALE),
        lambda x, g, b, m, v: functional.batch_norm(x, m, v, g, b, eps=1e-3),
    ),
    (
        "nn.batch_norm(%x, %y, %z, %u, %v, axis=3, scale=False).0",
        (NHWC, SCALE, draw(4), draw(4), SCALE),
        lambda x, g, b, m, v: (x - m) / (v + 1e-5).sqrt() + b,
    ),
    (
        "nn.batch_norm(%x, %y, %z, %u, %v).1",
        (IMAGE, SCALE, draw(4), draw(4), SCALE),
        lambda x, g, b, m, v: m,
    ),
    (
        "nn.layer_norm(%x, %y, %z)",
        (X, draw(4), SCALE),
        lambda x, g, b: functional.layer_norm(x, (4,), g, b),
    ),
    (
        "nn.layer_norm(%x, %y, %z, axis=1)",
        (X, draw(3), draw(3)),
        lambda x, g, b: functional.layer_norm(x.mT, (3,), g, b).mT,
    ),
    (
        "nn.instance_norm(%x, %y, %z)",
        (X, draw(3), draw(3)),
        lambda x, g, b: functional.instance_norm(x, weight=g, bias=b),
    ),
    (
        "nn.instance_norm(%x, %y, %z, axis=2)",
        (X, draw(4), draw(4)),
        lambda x, g, b: functional.instance_norm(x.mT, weight=g, bias=b).mT,
    ),
    ("nn.dropout(%x, rate=0.5f).0", (X,), torch.clone),
    (
        "nn.cross_entropy(%x, %y)",
        (draw(3, 4, low=0.1, high=0.9), draw(3, 4)),
        lambda p, t: -(t * p.log()).sum() / 3,
    ),
    (
        "nn.cross_entropy_with_logits(%x, %y)",
        (draw(3, 4), draw(3, 4)),
        lambda p, t: -(t * p).sum() / 3,
    ),
]
