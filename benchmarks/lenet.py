"""LeNet's training step and inference: pyrelay against torch eager, torch.compile and JAX.

The step is the same everywhere: forward, softmax cross entropy, backward, SGD with rate 0.05, in
float32, from the same weights; the losses of the first steps are compared before anything is timed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PROGRAM = HERE.parent / "examples" / "lenet" / "lenet.py"
RATE = 0.05

SHAPES = {
    "conv1.weight": (20, 1, 5, 5),
    "conv1.bias": (20,),
    "conv2.weight": (50, 20, 5, 5),
    "conv2.bias": (50,),
    "fc1.weight": (500, 800),
    "fc1.bias": (500,),
    "fc2.weight": (10, 500),
    "fc2.bias": (10,),
}


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="", help="candidates whose names hold one of: a,b")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "lenet.json")
    return parser.parse_args()


ARGS = arguments()
os.environ.setdefault("OMP_NUM_THREADS", str(ARGS.threads))  # before torch is loaded

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402, N812

from benchmarks import bench  # noqa: E402
from benchmarks.bench import Candidate  # noqa: E402

Weights = list[torch.Tensor]


def weights() -> Weights:
    """Return the same starting weights every time: N(0, 1/sqrt(fan in)), biases zero."""
    random = np.random.default_rng(0)
    found: Weights = []
    for shape in SHAPES.values():
        fan_in = np.prod(shape[1:])
        values = random.normal(0, fan_in**-0.5, shape) if len(shape) > 1 else np.zeros(shape)
        found.append(torch.tensor(values, dtype=torch.float32))
    return found


STARTS = weights()


def restore(w: Weights) -> None:
    """Set weights to where they started."""
    with torch.no_grad():
        for v, start in zip(w, STARTS, strict=True):
            v.copy_(start)


def batch(size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a batch of images and labels."""
    random = np.random.default_rng(1)
    images = torch.tensor(random.random((size, 1, 28, 28)), dtype=torch.float32)
    return images, torch.tensor(random.integers(0, 10, size))


# torch


def scores(w: Weights, x: torch.Tensor) -> torch.Tensor:
    """Return LeNet's scores in torch."""
    h = F.max_pool2d(torch.tanh(F.conv2d(x, w[0], w[1])), 2)
    h = F.max_pool2d(torch.tanh(F.conv2d(h, w[2], w[3])), 2)
    h = torch.tanh(F.linear(h.flatten(1), w[4], w[5]))
    return F.linear(h, w[6], w[7])


def torch_loss(w: Weights, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the loss in torch."""
    return F.cross_entropy(scores(w, x), y)


def eager_step(x: torch.Tensor, y: torch.Tensor) -> Candidate:
    """Return the step as torch's users write it."""
    w = [v.requires_grad_() for v in weights()]
    optimizer = torch.optim.SGD(w, lr=RATE)

    def step() -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss = torch_loss(w, x, y)
        loss.backward()
        optimizer.step()
        return loss

    return Candidate(step, lambda: restore(w))


def compiled_step(x: torch.Tensor, y: torch.Tensor) -> Candidate:
    """Return the whole step, gradient and update included, as one torch.compile graph."""
    w = weights()

    def whole(w: Weights, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        grads, loss = torch.func.grad_and_value(torch_loss)(w, x, y)
        for v, g in zip(w, grads, strict=True):
            v.sub_(g, alpha=RATE)
        return loss

    compiled = torch.compile(whole, dynamic=False, fullgraph=True)

    def step() -> torch.Tensor:
        with torch.no_grad():
            return compiled(w, x, y)

    return Candidate(step, lambda: restore(w))


def eager_scores(x: torch.Tensor) -> Candidate:
    """Return inference in eager torch."""
    w = weights()

    def infer() -> torch.Tensor:
        with torch.inference_mode():
            return scores(w, x)

    return Candidate(infer)


def compiled_scores(x: torch.Tensor) -> Candidate:
    """Return inference through torch.compile."""
    w = weights()
    compiled = torch.compile(scores, dynamic=False, fullgraph=True)

    def infer() -> torch.Tensor:
        with torch.no_grad():
            return compiled(w, x)

    return Candidate(infer)


# pyrelay


def program() -> Any:
    """Import the example's program; this file has the same name."""
    spec = importlib.util.spec_from_file_location("lenet_program", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def relay_model(lenet: Any) -> Any:
    """Return an instance with the common weights, which are in the order of its parameters."""
    from pyrelay import relay

    model = relay.create_model(lenet, seed=0)
    restore(list(model.parameters()))
    return model


def relay_script_step(x: torch.Tensor, y: torch.Tensor) -> Candidate:
    """Return the step with its two calls in the script."""
    from pyrelay import relay

    lenet = program()
    model = relay_model(lenet.lenet)

    def step() -> torch.Tensor:
        value, grads = relay.value_and_grad(model, lenet.loss, (x, y))
        relay.update_model_params(model, grads, lr=RATE)
        return value

    return Candidate(step, lambda: restore(list(model.parameters())))


def relay_program_step(x: torch.Tensor, y: torch.Tensor) -> Candidate:
    """Return the step inside the program: its training loop over one batch."""
    lenet = program()
    model = relay_model(lenet.lenet)
    images, labels = x.unsqueeze(0), y.unsqueeze(0)
    return Candidate(
        lambda: lenet.train(model, images, labels), lambda: restore(list(model.parameters()))
    )


def relay_scores(x: torch.Tensor) -> Candidate:
    """Return inference by the exported callable."""
    from pyrelay import relay

    predict = relay.export_model(relay_model(program().lenet).eval())
    return Candidate(lambda: predict(x))


# JAX, where it is installed


def jax_scores(w: Any, x: Any) -> Any:
    """Return LeNet's scores in JAX."""
    import jax.numpy as jnp
    from jax import lax

    def convolved(h: Any, weight: Any, bias: Any) -> Any:
        h = lax.conv(h, weight, (1, 1), "VALID") + bias[:, None, None]
        window = (1, 1, 2, 2)
        return lax.reduce_window(jnp.tanh(h), -jnp.inf, lax.max, window, window, "VALID")

    h = convolved(convolved(x, w[0], w[1]), w[2], w[3])
    h = jnp.tanh(h.reshape(len(h), -1) @ w[4].T + w[5])
    return h @ w[6].T + w[7]


def jax_step(x: torch.Tensor, y: torch.Tensor) -> Candidate:
    """Return the whole step under jax.jit, the old weights donated."""
    import jax
    import jax.numpy as jnp

    images, labels = jnp.asarray(x.numpy()), jnp.asarray(y.numpy())
    w: Any = []

    def loss(w: Any, x: Any, y: Any) -> Any:
        logs = jax.nn.log_softmax(jax_scores(w, x))
        return -jnp.take_along_axis(logs, y[:, None], 1).mean()

    def whole(w: Any, x: Any, y: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(w, x, y)
        return [v - RATE * g for v, g in zip(w, grads, strict=True)], value

    compiled = jax.jit(whole, donate_argnums=0)

    def step() -> Any:
        nonlocal w
        w, value = compiled(w, images, labels)
        jax.block_until_ready(w)
        return value

    def reset() -> None:
        nonlocal w
        w = [jnp.asarray(v.numpy()) for v in weights()]

    return Candidate(step, reset)


def jax_inference(x: torch.Tensor) -> Candidate:
    """Return inference under jax.jit."""
    import jax
    import jax.numpy as jnp

    images = jnp.asarray(x.numpy())
    w = [jnp.asarray(v.numpy()) for v in weights()]
    compiled = jax.jit(jax_scores)
    return Candidate(lambda: compiled(w, images).block_until_ready())


# the comparison


def main() -> None:
    """Measure every case and print one table."""
    torch.set_num_threads(ARGS.threads)
    report = bench.Report(
        "LeNet",
        "torch eager",
        ("pyrelay", "torch", "jax", "numpy"),
        threads=ARGS.threads,
        quick=ARGS.quick,
    )
    effort = bench.Effort(rounds=7, block=0.01, warmup=0.1) if ARGS.quick else bench.Effort()
    training = {
        "torch eager": eager_step,
        "torch.compile": compiled_step,
        "jax.jit": jax_step,
        "pyrelay, script": relay_script_step,
        "pyrelay, program": relay_program_step,
    }
    inference = {
        "torch eager": eager_scores,
        "torch.compile": compiled_scores,
        "jax.jit": jax_inference,
        "pyrelay": relay_scores,
    }
    for size in (1, 32) if ARGS.quick else (1, 32, 256):
        x, y = batch(size)
        made = {name: make(x, y) for name, make in training.items() if wanted(name)}
        first = agreed(f"training, batch {size}", made, steps=3)
        report.add(f"training, batch {size}", bench.compare(made, effort, first))
    for size in (1, 32):
        x, _ = batch(size)
        made = {name: make(x) for name, make in inference.items() if wanted(name)}
        first = agreed(f"inference, batch {size}", made, steps=1)
        report.add(f"inference, batch {size}", bench.compare(made, effort, first))
    report.print()
    report.save(ARGS.out)


def wanted(name: str) -> bool:
    """Return whether a candidate takes part; the baseline always does."""
    if name.startswith("jax") and importlib.util.find_spec("jax") is None:
        return False
    if name == "torch.compile" and ARGS.quick:
        return False  # compiling takes longer than all the rest
    chosen = [part for part in ARGS.only.split(",") if part]
    return name == "torch eager" or not chosen or any(part in name for part in chosen)


def agreed(case: str, candidates: dict[str, Candidate], steps: int) -> dict[str, float]:
    """Return the seconds of each candidate's first call, compiling included.

    Stops unless all compute the same values in their first steps.
    """
    torch._dynamo.reset()  # noqa: SLF001  one compiled graph a case
    first: dict[str, float] = {}
    values: dict[str, list[Any]] = {}
    for name, candidate in candidates.items():
        candidate.reset()
        start = time.perf_counter()
        values[name] = [_numpy(candidate.work())]
        first[name] = time.perf_counter() - start
        values[name] += [_numpy(candidate.work()) for _ in range(steps - 1)]
    for name, found in values.items():
        for mine, theirs in zip(found, values["torch eager"], strict=True):
            if not np.allclose(mine, theirs, rtol=1e-3, atol=1e-4):
                raise SystemExit(f"{case}: {name} gives {mine}, torch eager {theirs}")
    return first


def _numpy(value: Any) -> Any:
    return value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)


if __name__ == "__main__":
    main()
