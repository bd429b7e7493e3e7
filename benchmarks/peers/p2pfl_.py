"""p2pfl: peers that gossip models until each has the average of all that trained.

python benchmarks/peers/p2pfl_.py PROBLEM_FOLDER

p2pfl's rounds always end with everyone holding the average of the train set, whatever the links, so
W is not possible. Nearest is its own protocol on the same links with everyone in the train set. A
round takes seconds even with gossip periods of zero, so only a problem's first few are run.
"""

# mypy: allow-subclassing-any

import importlib
import os
import sys
import time
from importlib.machinery import ModuleSpec
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import lightning
import ray
import torch
from problem import Problem, accuracy, build_model, load_problem, report, since_start
from torch import Tensor, nn
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

MOST_ROUNDS = 5
NOTE = (
    "everyone gets the average of all instead of mixing by W; gossip periods shortened to 0 s for "
    "models and 10 ms for messages; evaluates on one sample every round, which cannot be turned "
    "off; own draws of batches; first {rounds} rounds only"
)


def stub_torchvision() -> None:
    """Stand in for torchvision, which p2pfl imports for data sets that are not used here.

    Lightning comes first: it uses torchvision for more where it finds it.
    """
    importlib.import_module("lightning")
    package, datasets = ModuleType("torchvision"), ModuleType("torchvision.datasets")
    package.__spec__ = ModuleSpec("torchvision", None)
    vars(package)["datasets"] = datasets
    sys.modules.update({"torchvision": package, "torchvision.datasets": datasets})


def start_ray() -> None:
    """Start Ray as p2pfl does when it is imported, but so that its workers have the stub too."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(
        namespace="p2pfl",
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"worker_process_setup_hook": stub_torchvision},
    )


stub_torchvision()
start_ray()

from p2pfl.communication.protocols.protobuff.memory import MemoryCommunicationProtocol  # noqa: E402
from p2pfl.learning.dataset.p2pfl_dataset import P2PFLDataset  # noqa: E402
from p2pfl.learning.frameworks.pytorch.lightning_model import LightningModel  # noqa: E402
from p2pfl.node import Node  # noqa: E402
from p2pfl.settings import Settings  # noqa: E402
from p2pfl.utils.utils import wait_convergence  # noqa: E402


class Net(lightning.LightningModule):
    """The problem's model as Lightning wants it."""

    def __init__(self, net: nn.Module, learning_rate: float) -> None:
        super().__init__()
        self.net = net
        self.lr_rate = learning_rate

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Plain SGD."""
        return torch.optim.SGD(self.parameters(), lr=self.lr_rate)

    def training_step(self, batch: list[Tensor], batch_idx: int) -> Tensor:
        """The loss of a mini-batch."""
        return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def test_step(self, batch: list[Tensor], batch_idx: int) -> None:
        """What p2pfl insists on: some metric of a test batch."""
        self.log("test_loss", self.training_step(batch, batch_idx))


class Shard(P2PFLDataset):
    """A device's samples; an epoch is the problem's local steps of a round."""

    def __init__(self, problem: Problem, device: int) -> None:
        super().__init__(None, batch_size=problem.settings.batch_size, dataset_name="shard")
        self.samples = TensorDataset(problem.inputs[device].clone(), problem.labels[device].clone())
        self.drawn = problem.settings.local_steps * problem.settings.batch_size

    def get_num_samples(self, train: bool = True) -> int:
        """What the device counts for in the average."""
        return len(self.samples)

    def export(self, strategy: Any, train: bool = True, **settings: Any) -> DataLoader[Any]:
        """A loader of random mini-batches, or of one sample to test on."""
        if not train:
            return DataLoader(TensorDataset(*(part[:1] for part in self.samples.tensors)))
        sampler = RandomSampler(self.samples, replacement=True, num_samples=self.drawn)
        return DataLoader(self.samples, batch_size=self.batch_size, sampler=sampler)


def connected_nodes(problem: Problem) -> list[Any]:
    """A running node per device, linked like the problem's network; nobody waits to gossip."""
    Settings.gossip.MODELS_PERIOD = 0
    Settings.gossip.PERIOD = 0.01
    Settings.training.RAY_ACTOR_POOL_SIZE = os.cpu_count() or 1
    nodes = []
    for device in range(problem.num_devices):
        net = Net(build_model(problem), problem.settings.learning_rate)
        shard = Shard(problem, device)
        protocol = MemoryCommunicationProtocol()
        nodes.append(Node(LightningModel(net), shard, addr=f"device-{device}", protocol=protocol))
        nodes[-1].start()
    for i, node in enumerate(nodes):
        for j in range(i):
            if problem.W[i, j] > 0:
                node.connect(nodes[j].addr)
    wait_convergence(nodes, problem.num_devices - 1, wait=60)
    return nodes


def wait_for_all(nodes: list[Any], stage: str, times: int) -> None:
    """Wait until every node has entered a stage so many times."""
    while any(node.learning_workflow.history.count(stage) < times for node in nodes):
        time.sleep(0.005)


def main() -> None:
    """Run one problem and report."""
    problem = load_problem(Path(sys.argv[1]))
    rounds = min(problem.settings.rounds, MOST_ROUNDS)
    nodes = connected_nodes(problem)
    nodes[0].set_start_learning(rounds=rounds, epochs=1, trainset_size=problem.num_devices)
    wait_for_all(nodes, "VoteTrainSetStage", 1)
    startup_s, start = since_start(), time.perf_counter()
    wait_for_all(nodes, "RoundFinishedStage", rounds)
    steady_s = time.perf_counter() - start
    models = [node.get_model().get_model().net for node in nodes]
    report(
        name="p2pfl",
        version=version("p2pfl"),
        startup_s=startup_s,
        steady_s=steady_s,
        device_steps=problem.device_steps(rounds),
        accuracy=accuracy(models, problem),
        note=NOTE.format(rounds=rounds),
    )
    for node in nodes:
        node.stop()
    ray.shutdown()


if __name__ == "__main__":
    main()
