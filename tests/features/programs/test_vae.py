"""A variational autoencoder: sampling by the reparametrisation trick, two terms in the loss."""

from __future__ import annotations

import torch

from pyrelay import Dim, Float, Int, Tensor, relay, relay_model

N = Dim("N")
PIXELS, LATENT = 12, 2


@relay_model
def encoder(
    x: Tensor[Float, (N, PIXELS)],
) -> tuple[Tensor[Float, (N, LATENT)], Tensor[Float, (N, LATENT)]]:
    h = relay.tanh(relay.linear(x, out_features=16))
    mean = relay.linear(h, out_features=LATENT)
    log_variance = relay.linear(h, out_features=LATENT)
    return mean, log_variance


@relay_model
def decoder(z: Tensor[Float, (N, LATENT)]) -> Tensor[Float, (N, PIXELS)]:
    return relay.linear(relay.tanh(relay.linear(z, out_features=16)), out_features=PIXELS)


@relay_model
def vae(x: Tensor[Float, (N, PIXELS)], key: Tensor[Int, (2,)]):
    mean, log_variance = encoder(x)
    noise = relay.normal(key, mean.shape)
    z = mean + relay.exp(0.5 * log_variance) * noise
    return decoder(z), mean, log_variance


@relay
def loss(x: Tensor[Float, (N, PIXELS)], key: Tensor[Int, (2,)], beta: float = 1.0) -> Float:
    logits, mean, log_variance = vae(x, key)
    reconstruction = relay.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    divergence = -0.5 * (1 + log_variance - mean**2 - relay.exp(log_variance)).sum()
    return (reconstruction + beta * divergence) / len(x)


def data() -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    kinds = torch.randint(2, (32, 1), generator=generator)
    ramp = torch.arange(PIXELS) < PIXELS // 2
    return torch.where(kinds == 0, ramp, ~ramp).float()


def test_loss_and_gradient_equal_those_of_torch_with_the_same_noise() -> None:
    x, key = data(), relay.random_key(0)
    model = relay.create_model(vae, seed=0)
    value, grads = relay.value_and_grad(model, loss, (x, key))
    state = [p.detach().clone().requires_grad_() for p in model.parameters()]
    w1, b1, wm, bm, wv, bv, w2, b2, w3, b3 = state
    h = torch.tanh(x @ w1.T + b1)
    mean, log_variance = h @ wm.T + bm, h @ wv.T + bv
    noise = relay.normal(key, (len(x), LATENT))
    z = mean + torch.exp(0.5 * log_variance) * noise
    logits = torch.tanh(z @ w2.T + b2) @ w3.T + b3
    expected = torch.nn.functional.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    expected = expected - 0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum()
    expected = expected / len(x)
    expected.backward()
    torch.testing.assert_close(value, expected.detach())
    for name, tensor in zip(grads, state, strict=True):
        torch.testing.assert_close(grads[name], tensor.grad, msg=name)


def test_training_lowers_the_loss() -> None:
    model = relay.create_model(vae, seed=1)
    adam = relay.optim.adam(lr=0.02)
    x, key = data(), relay.random_key(1)
    losses: list[float] = []
    for i in range(150):
        value, grads = relay.value_and_grad(model, loss, (x, relay.fold_in(key, i)))
        relay.update_model_params(model, grads, optimizer=adam)
        losses.append(float(value))
    assert sum(losses[-10:]) < 0.6 * sum(losses[:10])
