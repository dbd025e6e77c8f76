"""What runs a case: eager torch, torch.compile, JAX and pyrelay, each as a `Candidate`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import partial
from typing import Any, TypeAlias

import torch

from benchmarks.bench import Candidate
from benchmarks.cases.case import Calling, Case, Gradient, Training
from benchmarks.libraries import TORCH, TORCH_OPTIMIZERS, UPDATES, jax_library
from pyrelay import options, relay

Maker: TypeAlias = Callable[[Case, Sequence[Any]], Candidate]
"""Makes the candidate for a case with its arguments."""


def ours(case: Case, args: Sequence[Any], lowering: str) -> Candidate:
    """Return the program of pyrelay, run by a lowering."""
    with options(lowering=lowering):
        context = copy_context()
    match case:
        case Calling():
            return Candidate(partial(context.run, case.relay, *args))
        case Gradient():
            gradient = relay.value_and_grad(case.relay, wrt=case.wrt)
            return Candidate(partial(context.run, gradient, *args))
        case Training():
            model = case.model()
            return Candidate(
                partial(context.run, case.step, model, *args),
                _restoring(list(model.parameters()), weights_of(case)),
            )


def weights_of(case: Training) -> list[torch.Tensor]:
    """Return the parameters that training begins with."""
    return [p.detach().clone() for p in case.model().parameters()]


def _restoring(weights: Sequence[torch.Tensor], starts: Sequence[torch.Tensor]) -> Any:
    def restore() -> None:
        with torch.no_grad():
            for weight, start in zip(weights, starts, strict=True):
                weight.copy_(start)

    return restore


def eager(case: Case, args: Sequence[Any]) -> Candidate:
    """Return the work in eager torch, as its users write it."""
    function = partial(case.peer, TORCH)
    match case:
        case Calling():
            return Candidate(partial(_inferred, function, args))
        case Gradient():
            return Candidate(partial(_differentiated, function, args, len(case.wrt)))
        case Training():
            starts = weights_of(case)
            weights = [w.clone().requires_grad_() for w in starts]
            optimizer = TORCH_OPTIMIZERS[case.optimizer](weights)

            def step() -> torch.Tensor:
                optimizer.zero_grad(set_to_none=True)
                loss = function(weights, *args)
                loss.backward()
                optimizer.step()
                return loss

            return Candidate(step, _restoring(weights, starts))


def _inferred(function: Callable[..., Any], args: Sequence[Any]) -> Any:
    with torch.inference_mode():
        return function(*args)


def _differentiated(function: Callable[..., Any], args: Sequence[Any], count: int) -> Any:
    leaves = [a.detach().requires_grad_() for a in args[:count]]
    value = function(*leaves, *args[count:])
    return value, torch.autograd.grad(value, leaves)


def compiled(case: Case, args: Sequence[Any]) -> Candidate:
    """Return the work by torch.compile: a step of training as one graph, update included."""
    torch._dynamo.reset()  # noqa: SLF001  one compiled graph a case
    function = partial(case.peer, TORCH)
    match case:
        case Calling():
            return Candidate(partial(_plain, torch.compile(function, dynamic=False), args))
        case Gradient():
            count = len(case.wrt)
            gradient = torch.func.grad_and_value(function, argnums=tuple(range(count)))
            whole = torch.compile(lambda *a: gradient(*a)[::-1], dynamic=False)
            return Candidate(partial(_plain, whole, args))
        case Training():
            starts = weights_of(case)
            weights, states = [w.clone() for w in starts], [_state(w) for w in starts]
            update = UPDATES[case.optimizer]

            def step(weights: Any, states: Any, *args: Any) -> Any:
                grads, loss = torch.func.grad_and_value(function)(weights, *args)
                for w, g, state in zip(weights, grads, states, strict=True):
                    made, after = update(TORCH, w, g, state)
                    w.copy_(made)
                    for old, new in zip(state, after, strict=True):
                        old.copy_(new)
                return loss

            whole = torch.compile(step, dynamic=False)
            work = partial(_plain, whole, (weights, states, *args))
            return Candidate(work, _restoring(weights, starts))


def _plain(function: Callable[..., Any], args: Sequence[Any]) -> Any:
    with torch.no_grad():
        return function(*args)


def _state(weight: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return torch.zeros_like(weight), torch.zeros_like(weight), torch.zeros(())


def by_jax(case: Case, args: Sequence[Any]) -> Candidate:
    """Return the work by `jax.jit`. Raises ImportError where JAX is not installed."""
    library = jax_library()
    import jax

    given = [_of_jax(a) for a in args]
    function = partial(case.peer, library)
    match case:
        case Calling():
            jitted = jax.jit(function)
            return Candidate(lambda: jax.block_until_ready(jitted(*given)))
        case Gradient():
            gradient = jax.jit(jax.value_and_grad(function, argnums=tuple(range(len(case.wrt)))))
            return Candidate(lambda: jax.block_until_ready(gradient(*given)))
        case Training():
            return _jax_training(case, function, given)


def _jax_training(case: Training, function: Callable[..., Any], given: Sequence[Any]) -> Candidate:
    import jax

    update = partial(UPDATES[case.optimizer], jax_library())
    starts = weights_of(case)
    kept: list[Any] = []

    def whole(weights: Any, states: Any, *args: Any) -> Any:
        loss, grads = jax.value_and_grad(function)(weights, *args)
        made = [update(w, g, s) for w, g, s in zip(weights, grads, states, strict=True)]
        return [w for w, _ in made], [s for _, s in made], loss

    jitted = jax.jit(whole, donate_argnums=(0, 1))

    def step() -> Any:
        *kept[:], loss = jitted(*kept, *given)
        return jax.block_until_ready(loss)

    def restore() -> None:
        weights = [_of_jax(w) for w in starts]
        kept[:] = weights, kept[1] if kept else [tuple(map(_of_jax, _state(w))) for w in starts]

    return Candidate(step, restore)


def _of_jax(value: Any) -> Any:
    import jax.numpy as jnp

    return jnp.array(value.numpy()) if isinstance(value, torch.Tensor) else value


PEERS: dict[str, Maker] = {"torch": eager, "torch.compile": compiled, "jax": by_jax}
"""The peers by name, the baseline first."""
