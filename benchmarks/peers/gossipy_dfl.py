"""gossipy's simulator, with nodes that hear all their neighbours before they mix.

python benchmarks/peers/gossipy_dfl.py PROBLEM_FOLDER

The release on PyPI gossips with one random neighbour at a time and has no synchronous simulator.
But its nodes can be subclassed: ours train once a round, send to one neighbour per time step as
gossipy's do, and mix by W in the round's last time step. Training, messages, copies and the clock
are gossipy's.
"""

# mypy: allow-subclassing-any

import sys
import time
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from problem import Problem, accuracy, build_model, load_problem, report, since_start, warm_up
from torch import Tensor, nn

# gossipy imports torchvision for data sets that are not used here.
sys.modules["torchvision"] = ModuleType("torchvision")

from gossipy import CACHE, set_seed  # noqa: E402
from gossipy.core import AntiEntropyProtocol, StaticP2PNetwork  # noqa: E402
from gossipy.data import DataDispatcher  # noqa: E402
from gossipy.data.handler import ClassificationDataHandler  # noqa: E402
from gossipy.model import TorchModel  # noqa: E402
from gossipy.model.handler import TorchModelHandler  # noqa: E402
from gossipy.node import GossipNode  # noqa: E402
from gossipy.simul import GossipSimulator  # noqa: E402

NOTE = (
    "synchronous node written for this benchmark, the release has none; trains, then mixes; "
    "batches are drawn without replacement"
)


class Net(TorchModel):
    """The problem's model as gossipy wants it."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def init_weights(self) -> None:
        """Keep the problem's first parameters."""

    def forward(self, inputs: Tensor) -> Tensor:
        """Class scores."""
        scores: Tensor = self.net(inputs)
        return scores


class MixingNode(GossipNode):
    """A node that trains, sends to all neighbours, and mixes by its row of W, once a round."""

    def __init__(self, weights: list[float], local_steps: int, **settings: Any) -> None:
        super().__init__(**settings)
        self.weights = weights
        self.local_steps = local_steps
        self.heard: dict[int, Any] = {}
        self.turn = 0

    def init_model(self, local_train: bool = False) -> None:
        """Start from the problem's parameters, without gossipy's initial training."""
        super().init_model(local_train=False)

    def timed_out(self, t: int) -> bool:
        """Whether to send to a neighbour; trains in a round's first step, mixes in its last."""
        self.turn = t % self.round_len
        if self.turn == 0:
            for _ in range(self.local_steps):
                self.model_handler._update(self.data[0])
        elif self.turn == self.round_len - 1:
            self.mix()
        return self.turn < len(self.p2p_net.get_peers(self.idx))

    def get_peer(self) -> int:
        """The neighbour whose turn it is."""
        return int(self.p2p_net.get_peers(self.idx)[self.turn])

    def receive(self, t: int, msg: Any) -> None:
        """Keep a neighbour's model until all are there."""
        self.heard[msg.sender] = CACHE.pop(msg.value[0]).model

    def mix(self) -> None:
        """Replace the model by the weighted sum of the neighbours' and its own."""
        states = {sender: model.state_dict() for sender, model in self.heard.items()}
        own = self.model_handler.model.state_dict()
        for name, value in own.items():
            mixed = self.weights[self.idx] * value
            for sender, state in states.items():
                mixed += self.weights[sender] * state[name]
            own[name] = mixed
        self.model_handler.model.load_state_dict(own)
        self.heard.clear()


def simulator_of(problem: Problem) -> Any:
    """gossipy's simulator with a node per device."""
    settings = problem.settings
    links = (problem.W > 0) & (torch.eye(problem.num_devices).numpy() == 0)
    network = StaticP2PNetwork(problem.num_devices, links.astype(int))
    round_len = int(links.sum(axis=1).max()) + 1

    def node_of(device: int) -> MixingNode:
        handler = TorchModelHandler(
            net=Net(build_model(problem)),
            optimizer=torch.optim.SGD,
            optimizer_params={"lr": settings.learning_rate},
            criterion=nn.functional.cross_entropy,
            local_epochs=0,
            batch_size=settings.batch_size,
        )
        return MixingNode(
            weights=problem.W[device].tolist(),
            local_steps=settings.local_steps,
            idx=device,
            data=((problem.inputs[device], problem.labels[device]), None),
            round_len=round_len,
            model_handler=handler,
            p2p_net=network,
        )

    data = ClassificationDataHandler(
        problem.inputs.flatten(0, 1), problem.labels.flatten(), test_size=0
    )
    return GossipSimulator(
        nodes={device: node_of(device) for device in range(problem.num_devices)},
        data_dispatcher=DataDispatcher(data, n=problem.num_devices, auto_assign=False),
        delta=round_len,
        protocol=AntiEntropyProtocol.PUSH,
    )


def main() -> None:
    """Run one problem and report."""
    problem = load_problem(Path(sys.argv[1]))
    rounds = problem.settings.rounds
    warm_up(problem)
    set_seed(problem.settings.seed)
    simulator = simulator_of(problem)
    simulator.init_nodes()
    startup_s, start = since_start(), time.perf_counter()
    simulator.start(n_rounds=rounds)
    steady_s = time.perf_counter() - start
    report(
        name="gossipy",
        version=version("gossipy-dfl"),
        startup_s=startup_s,
        steady_s=steady_s,
        device_steps=problem.device_steps(rounds),
        accuracy=accuracy([node.model_handler.model for node in simulator.nodes.values()], problem),
        note=NOTE,
    )


if __name__ == "__main__":
    main()
