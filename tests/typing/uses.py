"""Calls from scripts, and what is done with their results."""

import numpy as np
import torch
from definitions import block, countdown, explicit, inner, loss, pairs, scalars, stack, train
from torch.utils.data import DataLoader, TensorDataset

from pyrelay import CheckError, RelayError, RunError, options, relay

x = torch.ones(4, 8)

value = scalars(torch.tensor(1.0), 2, True, e=3)
print(value.item(), float(scalars(1.0, 2, False)) + 1)
print(inner(torch.ones(3)).item(), inner(np.ones(3, np.float32)))
number: int = countdown(10)
first, second = pairs((torch.tensor(1.0), (3, torch.ones(2))))
print(first + second)

inner.check()
print(inner.type, str(inner), inner.show("anf"), inner.diff("typed", "anf"))

slope = relay.grad(inner)(torch.ones(3))
print((slope * 2).sum())
result, slopes = relay.value_and_grad(scalars, wrt=("a", "d"))(1.0, 2, True)
print(result, slopes[0])

model = relay.create_model(stack, seed=0, dims={"K": 8}, depth=2)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for batch, target in DataLoader(TensorDataset(x, x), batch_size=2):
    worth, grads = relay.value_and_grad(model, loss, (batch, target))
    relay.update_model_params(model, grads, optimizer=optimizer)
    print(float(worth), grads.norm())
model.eval()
print(model(x).argmax(1), model.state_dict().keys())
torch.save(model.state_dict(), "weights.pt")
predict = relay.export_model(model)
print(predict(x).shape)
bound = model.bind(loss)
print(bound(x, x))
print(explicit(model, model, x))
print(train(model, relay.optim.adam(lr=1e-3), x))

stack.check()
print(stack.type, block.show("typed"))

key = relay.random.key(0)
noise = relay.random.normal(key, (3,))
print(relay.tanh(noise) + relay.softmax(noise, dim=0))

with options(verify=True, logs="+passes"):
    try:
        inner(torch.ones(3, 3))
    except CheckError as error:
        print(error, error.codes)
    except RunError as error:
        print(error.diagnostics[0].title)
    except RelayError:
        raise
