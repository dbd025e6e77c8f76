"""Names in a user's program with a meaning to the compiler, recognised by identity.

A Python object that means something to `translate` carries it in an attribute `__relay__`: an
operator (`Op`), an `Intrinsic`, or a definition (`translate.source.definition`).
"""

from __future__ import annotations

from enum import Enum


class Intrinsic(Enum):
    """The functions of the `relay` namespace that are not operators."""

    GRAD = "grad"
    VALUE_AND_GRAD = "value_and_grad"
    VJP = "vjp"
    CUSTOM_VJP = "custom_vjp"
    CUSTOM_JVP = "custom_jvp"
    CHECKPOINT = "checkpoint"
    AUTOCAST = "autocast"
    JVP = "jvp"
    VMAP = "vmap"
    HVP = "hvp"
    HESSIAN = "hessian"
    JACFWD = "jacfwd"
    JACREV = "jacrev"
    LINEARIZE = "linearize"
    STOP_GRADIENT = "stop_gradient"
    CREATE_MODEL = "create_model"
    UPDATE_MODEL_PARAMS = "update_model_params"
    EXPORT_MODEL = "export_model"
    LOAD_MODEL = "load_model"
    WITH_PARAMS = "with_params"
    SGD = "sgd"
    LAYERS = "layers"
    PARAM = "param"
    CONST = "const"
    TENSOR = "tensor"
    TREE_MAP = "tree_map"
    REF = "ref"
