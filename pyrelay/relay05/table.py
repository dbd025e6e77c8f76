"""The one table of Relay's operators: those that are read, and those known but not supported."""

from __future__ import annotations

from typing import Final

from .dynamic import DYNAMIC
from .elementwise import ELEMENTWISE
from .lookups import LOOKUPS
from .networks import NETWORKS
from .pools import POOLS
from .reductions import REDUCTIONS
from .resizing import RESIZING
from .shapes import SHAPES

SUPPORTED: Final = {
    op.name: op
    for op in (*ELEMENTWISE, *REDUCTIONS, *SHAPES, *DYNAMIC, *LOOKUPS, *NETWORKS, *POOLS, *RESIZING)
}
"""Every operator of Relay that is read, by its name there."""

_OTHERS: Final = """
adv_index annotation.cast_hint annotation.compiler_begin annotation.compiler_end
argwhere auto_scheduler_layout_transform call_lowered call_tir
contrib.adaptive_avg_pool2d
debug device_copy dft fast_erf fast_exp
fast_softmax fast_tanh fixed_point_multiply hamming_window
image.affine_grid image.crop_and_resize image.dilation2d image.grid_sample image.resize1d
image.resize3d invert_permutation layout_transform left_shift logsumexp
matrix_set_diag memory.alloc_storage memory.alloc_tensor memory.kill meshgrid
multinomial nll_loss nn.adaptive_avg_pool1d nn.adaptive_avg_pool3d
nn.adaptive_max_pool1d nn.adaptive_max_pool2d nn.adaptive_max_pool3d
nn.batch_to_space_nd nn.bitpack nn.bitserial_conv2d nn.bitserial_dense nn.conv1d_transpose
nn.conv3d_transpose nn.correlation nn.cross_entropy nn.deformable_conv2d
nn.depth_to_space nn.fast_softmax nn.fifo_buffer nn.group_norm
nn.l2_normalize nn.lrn nn.mirror_pad nn.nll_loss nn.space_to_batch_nd
nn.space_to_depth nn.sparse_add nn.sparse_dense nn.sparse_transpose
nn.upsampling3d on_device qnn.add qnn.batch_matmul qnn.concatenate qnn.conv2d
qnn.conv2d_transpose qnn.dense qnn.dequantize qnn.mul qnn.quantize qnn.requantize
qnn.simulated_dequantize qnn.simulated_quantize qnn.subtract random.multinomial random.normal
random.threefry_generate random.threefry_split random.uniform reinterpret reverse_sequence
right_shift scatter_add scatter_elements scatter_nd sequence_mask
shape_func slice_like sliding_window sparse_fill_empty_rows sparse_reshape
stft tensor_array_read tensor_array_write threefry_generate topk unique unravel_index
vision.all_class_non_max_suppression vision.get_valid_counts vision.multibox_prior
vision.multibox_transform_loc vision.non_max_suppression vision.proposal vision.roi_align
vision.roi_pool vision.yolo_reorg vm.shape_of
"""

UNSUPPORTED: Final = frozenset(_OTHERS.split()).difference(SUPPORTED)
"""Names of Relay's operators of which there is nothing here; a message can then say so."""
