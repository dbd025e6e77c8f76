from __future__ import annotations

from pyrelay import Dim, Int, Model, Tensor, relay, relay_model

B, T = Dim("B"), Dim("T")


@relay_model
def scores(tokens: Tensor[Int, (B, T)]):
    return relay.linear(relay.embedding(tokens, num_embeddings=9, embedding_dim=4), out_features=9)


@relay
def generate(model: Model[scores], start: Tensor[Int, (1, T)], n: int):
    tokens = start
    for _ in range(n):
        following = relay.argmax(model(tokens)[:, -1], dim=1)
        tokens = relay.cat((tokens, following.unsqueeze(1)), dim=1)
    return tokens
