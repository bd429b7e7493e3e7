"""Flower's simulation: one virtual client per device, mixed by the server app between rounds.

python benchmarks/peers/flower.py PROBLEM_FOLDER

Flower has a server, so its server app keeps all models: each round it sends every client its own
model, gets it back trained, and mixes all of them by W.
"""

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from problem import (
    accuracy_of_vectors,
    build_model,
    load_problem,
    report,
    since_start,
    take_steps,
    warm_up,
)
from torch import Tensor

os.environ["FLWR_TELEMETRY_ENABLED"] = "0"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import flwr
from flwr.app import ArrayRecord, ConfigRecord, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.simulation import run_simulation

NOTE = (
    "server app holds all models and mixes W X in one product; one CPU per Ray actor; "
    "own draws of batches"
)


def client_of(folder: Path) -> Any:
    """A client that trains the model it is sent on the shard that the message names."""

    def prepare(message: Any, context: Any) -> Any:
        warm_up(load_problem(folder))
        return Message(RecordDict(), reply_to=message)

    def train(message: Any, context: Any) -> Any:
        problem = load_problem(folder)
        config = message.content["config"]
        model = build_model(problem)
        model.load_state_dict(message.content["model"].to_torch_state_dict())
        optimizer = torch.optim.SGD(model.parameters(), lr=problem.settings.learning_rate)
        generator = torch.Generator().manual_seed(config["seed"])
        take_steps(model, optimizer, problem, config["device"], generator)
        return Message(RecordDict({"model": ArrayRecord(model.state_dict())}), reply_to=message)

    app = ClientApp()
    app.query()(prepare)
    app.train()(train)
    return app


def exchange(grid: Any, nodes: Sequence[int], kind: str, contents: Sequence[Any]) -> list[Any]:
    """Send every node its content and return what they answer, in the order of the nodes."""
    messages = [Message(content, node, kind) for content, node in zip(contents, nodes, strict=True)]
    answers = {answer.metadata.src_node_id: answer for answer in grid.send_and_receive(messages)}
    return [answers[node].content for node in nodes]


def nodes_of(grid: Any, num_devices: int) -> list[int]:
    """The simulated nodes, once all are there."""
    while len(nodes := sorted(grid.get_node_ids())) < num_devices:
        time.sleep(0.01)
    return nodes


def server_of(folder: Path, done: Callable[[float, float, Tensor], None]) -> Any:
    """A server that runs all rounds; hands over start-up and steady seconds, (N, d) parameters."""
    problem = load_problem(folder)
    N, rounds = problem.num_devices, problem.settings.rounds
    W = torch.from_numpy(problem.W).float()
    layout = {name: value.shape for name, value in build_model(problem).state_dict().items()}

    def content_of(theta: Tensor, device: int, t: int) -> Any:
        parts = theta.split([shape.numel() for shape in layout.values()])
        state = {
            name: part.view(shape)
            for (name, shape), part in zip(layout.items(), parts, strict=True)
        }
        config = ConfigRecord({"device": device, "seed": t * N + device})
        return RecordDict({"model": ArrayRecord(state), "config": config})

    def vector_of(content: Any) -> Tensor:
        return torch.cat(
            [value.flatten() for value in content["model"].to_torch_state_dict().values()]
        )

    def main(grid: Any, context: Any) -> None:
        nodes = nodes_of(grid, N)
        exchange(grid, nodes, "query", [RecordDict() for _ in nodes])
        X = problem.initial.repeat(N, 1)
        startup_s, start = since_start(), time.perf_counter()
        for t in range(rounds):
            contents = [content_of(theta, device, t) for device, theta in enumerate(X)]
            X = W @ torch.stack([vector_of(c) for c in exchange(grid, nodes, "train", contents)])
        done(startup_s, time.perf_counter() - start, X)

    app = ServerApp()
    app.main()(main)
    return app


def main() -> None:
    """Run one problem and report."""
    folder = Path(sys.argv[1]).resolve()
    problem = load_problem(folder)

    def done(startup_s: float, steady_s: float, X: Tensor) -> None:
        report(
            name="Flower",
            version=flwr.__version__,
            startup_s=startup_s,
            steady_s=steady_s,
            device_steps=problem.device_steps(problem.settings.rounds),
            accuracy=accuracy_of_vectors(list(X), problem),
            note=NOTE,
        )

    run_simulation(
        server_app=server_of(folder, done),
        client_app=client_of(folder),
        num_supernodes=problem.num_devices,
        backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0.0}},
    )


if __name__ == "__main__":
    main()
