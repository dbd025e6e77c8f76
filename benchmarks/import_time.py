"""How long pyrelay takes to start: its import, and the first training step of LeNet.

    python -m benchmarks.import_time

The step is that of `examples/lenet`, called twice, since the second call builds what repeats. It is
run in processes with an empty cache, and in processes that find what others have built; counted is
what it takes beyond `import torch`, by the clock and of the processor. Kinds of processes take
turns; medians are shown, and the least.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
ROUNDS = 10
TIMED = """
import time
clocks = time.perf_counter, time.process_time
{before}
began = [clock() for clock in clocks]
{work}
print(*(clock() - start for clock, start in zip(clocks, began)))
"""
IMPORT = TIMED.format(before="", work="import pyrelay")
STEP = TIMED.format(
    before="import sys, torch; sys.path.insert(0, {folder!r})",
    work="""
from lenet import lenet, train
from pyrelay import relay
model = relay.create_model(lenet, seed=0)
images, labels = torch.zeros(1, 32, 1, 28, 28), torch.zeros(1, 32, dtype=torch.int64)
for _ in range(2):
    train(model, images, labels)
""",
).format(folder=str(HERE.parent / "examples" / "lenet"))


def seconds(code: str, cache: str) -> tuple[float, float]:
    """Return the seconds of a process, by the clock and of the processor."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    env["PYRELAY_CACHE_DIR"] = cache
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, cwd=HERE.parent, env=env
    )
    wall, own = map(float, done.stdout.split())
    return wall, own


def main() -> None:
    """Measure and print."""
    found: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as kept:
        for number in range(ROUNDS):
            found.setdefault("import pyrelay", []).append(seconds(IMPORT, kept))
            if number < ROUNDS // 3:
                with tempfile.TemporaryDirectory() as empty:
                    found.setdefault("LeNet from nothing", []).append(seconds(STEP, empty))
            if number == 0:
                seconds(STEP, kept)
            found.setdefault("LeNet in a second process", []).append(seconds(STEP, kept))
    print(f"{'ms':28}{'clock':>8}{'least':>8}{'processor':>11}{'least':>8}")
    for name, times in found.items():
        walls, own = ([1e3 * t[i] for t in times] for i in (0, 1))
        print(f"{name:28}{median(walls):8.0f}{min(walls):8.0f}{median(own):11.0f}{min(own):8.0f}")


if __name__ == "__main__":
    main()
