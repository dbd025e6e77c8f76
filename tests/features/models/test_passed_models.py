"""Models that are arguments of functions which are differentiated, as a critic is of a loss."""

import torch
from torch.nn import functional

from pyrelay import Dim, Float, Model, Tensor, relay, relay_model

N, S = Dim("N"), Dim("S")


@relay_model
def generator(z: Tensor[Float, (N, 2)]) -> Tensor[Float, (N, 2)]:
    return relay.linear(z, out_features=2)


@relay_model
def critic(x: Tensor[Float, (N, 2)], *, hidden: int = 4) -> Tensor[Float, (N, 1)]:
    return relay.linear(relay.tanh(relay.linear(x, out_features=hidden)), out_features=1)


@relay
def fooled(z: Tensor[Float, (N, 2)], d: Model[critic]) -> Float:
    return relay.softplus(-d(generator(z))).mean()


@relay
def told(real: Tensor[Float, (N, 2)], fake: Tensor[Float, (N, 2)]) -> Float:
    return relay.softplus(-critic(real)).mean() + relay.softplus(critic(fake)).mean()


@relay
def train(g: Model[generator], d: Model[critic], data: Tensor[Float, (S, N, 2)]):
    of_generator = relay.optim.adam(lr=0.01)
    of_critic = relay.optim.sgd(lr=0.1)
    losses = relay.zeros((len(data), 2))
    for i, real in enumerate(data):
        loss, grads = relay.value_and_grad(d, told, (real, relay.stop_gradient(g(real))))
        relay.update_model_params(d, grads, optimizer=of_critic)
        losses[i, 0] = loss
        loss, grads = relay.value_and_grad(g, fooled, (real, d))
        relay.update_model_params(g, grads, optimizer=of_generator)
        losses[i, 1] = loss
    return losses


def _networks() -> tuple[torch.nn.Module, torch.nn.Module]:
    layers = torch.nn.Linear(2, 9), torch.nn.Tanh(), torch.nn.Linear(9, 1)
    return torch.nn.Linear(2, 2), torch.nn.Sequential(*layers)


def _train_in_torch(g: torch.nn.Module, d: torch.nn.Module, data: torch.Tensor) -> torch.Tensor:
    of_generator = torch.optim.Adam(g.parameters(), lr=0.01)
    of_critic = torch.optim.SGD(d.parameters(), lr=0.1)
    losses: list[list[float]] = []
    for real in data:
        first = functional.softplus(-d(real)).mean() + functional.softplus(d(g(real))).mean()
        of_critic.zero_grad()
        first.backward()
        of_critic.step()
        second = functional.softplus(-d(g(real))).mean()
        of_generator.zero_grad()
        second.backward()
        of_generator.step()
        losses.append([first.item(), second.item()])
    return torch.tensor(losses)


def test_a_loss_takes_a_model_that_another_optimiser_updates() -> None:
    torch.manual_seed(0)
    g, d = relay.create_model(generator, seed=0), relay.create_model(critic, seed=1, hidden=9)
    there_g, there_d = _networks()
    for ours, theirs in ((g, there_g), (d, there_d)):
        state = zip(theirs.state_dict(), ours.state_dict().values(), strict=True)
        theirs.load_state_dict(dict(state))
    data = torch.randn(6, 16, 2)
    torch.testing.assert_close(train(g, d, data), _train_in_torch(there_g, there_d, data))


@relay
def score(x: Tensor[Float, (N, 2)], d: Model[critic]) -> Float:
    return d(x).sum()


slope = relay.grad(score, wrt="x")


@relay
def penalty(d: Model[critic], x: Tensor[Float, (N, 2)]) -> tuple[Float, Float]:
    here = relay.grad(score, wrt="x")(x, d)
    there = slope(x, d)
    return (here.norm() - 1.0) ** 2, (there.norm() - 1.0) ** 2


@relay
def descended(d: Model[critic], x: Tensor[Float, (N, 2)]) -> tuple[Float, Float]:
    optimizer = relay.optim.sgd(lr=0.1)
    both = penalty(d, x)
    relay.update_model_params(d, relay.grad(d, told, (x, x)), optimizer=optimizer)
    return both


def test_a_function_of_a_model_is_differentiated_in_the_other_argument() -> None:
    torch.manual_seed(0)
    model, x = relay.create_model(critic, seed=1, hidden=7), torch.randn(5, 2, requires_grad=True)
    (grad,) = torch.autograd.grad(model(x).sum(), x)
    expected = (grad.norm() - 1.0) ** 2
    for found in (*penalty(model, x.detach()), *descended(model, x.detach())):
        torch.testing.assert_close(found, expected)
