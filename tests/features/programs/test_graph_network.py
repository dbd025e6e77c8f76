"""A graph network: messages along edges, sums at nodes, a readout, on graphs of any size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from pyrelay import Dim, Float, Int, Tensor, relay, relay_model

V, E = Dim("V"), Dim("E")
FEATURES, HIDDEN = 4, 8


@dataclass(frozen=True)
class Graph:
    nodes: Tensor[Float, (V, FEATURES)]
    sources: Tensor[Int, (E,)]
    targets: Tensor[Int, (E,)]


@relay_model
def layer(
    h: Tensor[Float, (V, HIDDEN)], sources: Tensor[Int, (E,)], targets: Tensor[Int, (E,)]
) -> Tensor[Float, (V, HIDDEN)]:
    messages = relay.relu(relay.linear(h[sources], out_features=HIDDEN, name="message"))
    received = relay.zeros_like(h).index_add(0, targets, messages)
    both = relay.cat((h, received), dim=1)
    return h + relay.tanh(relay.linear(both, out_features=HIDDEN, name="update"))


@relay_model
def network(graph: Graph) -> Tensor[Float, (2,)]:
    h = relay.linear(graph.nodes, out_features=HIDDEN, name="embed")
    for _ in relay.layers(3):
        h = layer(h, graph.sources, graph.targets)
    return relay.linear(h.mean(0), out_features=2, name="readout")


@relay
def loss(graphs: list[Graph], labels: Tensor[Int, (Dim("B"),)]) -> Float:
    scores = relay.stack([network(graph) for graph in graphs])
    return relay.cross_entropy(scores, labels)


@relay
def received(
    h: Tensor[Float, (V, HIDDEN)], neighbours: list[Tensor[Int, (Any,)]]
) -> Tensor[Float, (Any, HIDDEN)]:
    return relay.stack([h[each].sum(0) for each in neighbours])


def graphs() -> list[Graph]:
    generator = torch.Generator().manual_seed(0)
    made: list[Graph] = []
    for nodes, edges in ((3, 4), (7, 12), (1, 0)):
        ends = torch.randint(nodes, (2, edges), generator=generator)
        made.append(Graph(torch.randn(nodes, FEATURES, generator=generator), ends[0], ends[1]))
    return made


def reference(state: dict[str, torch.Tensor], graph: Graph) -> torch.Tensor:
    def linear(x: torch.Tensor, name: str) -> torch.Tensor:
        return torch.nn.functional.linear(x, state[f"{name}.weight"], state[f"{name}.bias"])

    h = linear(graph.nodes, "embed")
    layers = sorted({n.rsplit(".", 2)[0] for n in state if "message" in n})
    for name in layers:
        messages = linear(h[graph.sources], f"{name}.message").relu()
        received = torch.zeros_like(h).index_add(0, graph.targets, messages)
        h = h + linear(torch.cat((h, received), 1), f"{name}.update").tanh()
    return linear(h.mean(0), "readout")


def test_graphs_of_all_sizes_share_a_program_and_give_the_gradients_of_torch() -> None:
    model = relay.create_model(network, seed=0)
    labels = torch.tensor([0, 1, 1])
    state = {n: p.detach().clone().requires_grad_() for n, p in model.named_parameters()}
    value, grads = relay.value_and_grad(model, loss, (graphs(), labels))
    expected = torch.nn.functional.cross_entropy(
        torch.stack([reference(state, graph) for graph in graphs()]), labels
    )
    expected.backward()
    torch.testing.assert_close(value, expected.detach())
    for name, tensor in state.items():
        torch.testing.assert_close(grads[name], tensor.grad, msg=name)


def test_neighbours_are_a_list_of_tensors_of_several_lengths() -> None:
    h = torch.randn(4, HIDDEN, generator=torch.Generator().manual_seed(0))
    neighbours = [torch.tensor([1, 2, 3]), torch.tensor([0]), torch.tensor([], dtype=torch.int64)]
    expected = torch.stack([h[each].sum(0) for each in neighbours])
    torch.testing.assert_close(received(h, neighbours), expected)
