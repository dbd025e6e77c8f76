"""Type and shape inference: from a translated module to a typed one."""

from .infer import infer as infer
