"""pyrelay: annotated Python, compiled through Relay's functional typed IR."""

from typing import Any as Any  # in annotations, one size that nothing is known of

from .garbage import uncollected

with uncollected():
    from . import dispatch as dispatch
    from .annotations import NHWC as NHWC
    from .annotations import Batch as Batch
    from .annotations import Bool as Bool
    from .annotations import Dim as Dim
    from .annotations import Float as Float
    from .annotations import Fn as Fn
    from .annotations import Int as Int
    from .annotations import Model as Model
    from .annotations import Optimizer as Optimizer
    from .annotations import Params as Params
    from .annotations import Ref as Ref
    from .annotations import Tensor as Tensor
    from .annotations import bfloat16 as bfloat16
    from .annotations import bool_ as bool_
    from .annotations import float16 as float16
    from .annotations import float32 as float32
    from .annotations import float64 as float64
    from .annotations import int8 as int8
    from .annotations import int16 as int16
    from .annotations import int32 as int32
    from .annotations import int64 as int64
    from .annotations import uint8 as uint8
    from .annotations import uint16 as uint16
    from .annotations import uint32 as uint32
    from .annotations import uint64 as uint64
    from .config import no_compile as no_compile
    from .config import options as options
    from .decorators import relay as relay
    from .decorators import relay_model as relay_model
    from .diagnostics.diagnostic import CheckError as CheckError
    from .diagnostics.diagnostic import RelayError as RelayError
    from .diagnostics.diagnostic import RelayWarning as RelayWarning
    from .diagnostics.diagnostic import RunError as RunError
    from .diagnostics.uncaught import hide_own_frames
    from .version import __version__ as __version__

# Without it `from pyrelay import *` would bring submodules, such as `dataclass`, in the place of
# the user's names.
__all__ = [
    "NHWC",
    "Any",
    "Bool",
    "CheckError",
    "Dim",
    "Float",
    "Fn",
    "Int",
    "Model",
    "Optimizer",
    "Params",
    "Ref",
    "RelayError",
    "RelayWarning",
    "RunError",
    "Tensor",
    "__version__",
    "bfloat16",
    "bool_",
    "dispatch",
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "no_compile",
    "options",
    "relay",
    "relay_model",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

hide_own_frames()
del hide_own_frames
