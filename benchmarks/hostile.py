"""How much memory and log a hostile neighbour costs an honest device.

    python benchmarks/hostile.py                # about two minutes
    python benchmarks/hostile.py --seconds 60   # attack longer

Three devices in a row train the paper's CNN on digits. First all are honest. Then this script plays
the last one with its key: it stays at step 0, answers pulls with 60 MB or rubbish, opens calls and
sends nothing, asks for messages and does not fetch them, sends 60 MB requests, pings without pause,
and opens 1,500 TCP connections.
"""

import argparse
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import grpc

from ssdfl.mesh.folder import init_mesh, read_device
from ssdfl.mesh.mesh_pb2 import Gossip, Ping, Pull, Refusal, Request, Response, Status
from ssdfl.mesh.names import certificate_name
from ssdfl.mesh.processes import MeshProcesses
from ssdfl.mesh.transport import Credentials, GrpcTransport, UnreachableError
from ssdfl.records import load_experiment

MOST = 1.5
LARGE = 60 << 20
SETTINGS = [
    "network.spec=path:n=3",
    "clusters.number=1",
    "model.name=cnn",
    "data.labels_per_device=3",
    "cycles=100000",
    "evaluate.every=1000",
    "training.local_steps=1",
]
VICTIM, ATTACKER = "1", "2"


def peak_mb(pid: int) -> float:
    """The most memory that a process has had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1e3 for line in lines if line.startswith("VmHWM"))


class Attacker:
    """A device whose key is in the wrong hands."""

    def __init__(self, folder: Path) -> None:
        config = read_device(folder)
        self.address = config.neighbours[VICTIM]
        files = (folder / name for name in ("key.pem", "certificate.pem", "authority.pem"))
        self.credentials = Credentials(*(file.read_bytes() for file in files))
        self.transport = GrpcTransport(config.listen, config.neighbours, self.credentials)
        self.status, self.asked, self.over = Status(), 0, threading.Event()
        self.large = Response(refusal=Refusal(reason="x" * LARGE)).SerializeToString()

    def start(self) -> None:
        """Answer and attack until it is over."""
        self.transport.start(self._answer)
        for attack in (
            self._ping,
            self._send_much,
            self._ask_and_wait,
            self._fetch_nothing,
            self._connect,
        ):
            threading.Thread(target=self._repeat, args=(attack,), daemon=True).start()

    def _answer(self, name: str, request: Request) -> Response | bytes:
        if request.HasField("ping"):
            return Response(status=self.status)
        self.asked += 1
        return self.large if self.asked % 2 else b"\xff\xff\xff"

    def _repeat(self, attack: Callable[[], None]) -> None:
        while not self.over.is_set():
            with suppress(grpc.RpcError, UnreachableError, OSError, ValueError):
                attack()

    def _ping(self) -> None:
        """Learn the plan, claim step 0 for ever, and ask again at once."""
        answer = self.transport.ask(VICTIM, Request(ping=Ping()), 5)
        self.status = Status(plan_digest=answer.status.plan_digest)

    def _send_much(self) -> None:
        """Eight large requests at a time."""
        huge = Request(gossip=Gossip(known=["x" * LARGE])).SerializeToString()
        self._all(lambda channel: [_call(channel, iter([huge])) for _ in range(8)], 5)

    def _ask_and_wait(self) -> None:
        """Forty calls whose message never comes."""
        self._all(lambda channel: [_call(channel, self._silence()) for _ in range(40)], 12)

    def _fetch_nothing(self) -> None:
        """Twenty answers that nobody reads."""
        pull = Request(pull=Pull(step=0)).SerializeToString()
        self._all(lambda channel: [_call(channel, iter([pull])) for _ in range(20)], 5)

    def _connect(self) -> None:
        """1,500 connections that say nothing."""
        host, port = self.address.rsplit(":", 1)
        with ExitStack() as stack:
            for _ in range(1500):
                stack.enter_context(socket.create_connection((host, int(port)), timeout=2))
            self.over.wait(10)

    def _silence(self) -> Iterator[bytes]:
        self.over.wait(15)
        yield from ()

    def _all(self, begin: Callable[[Any], list[Any]], seconds: float) -> None:
        own = self.credentials
        credentials = grpc.ssl_channel_credentials(own.authority, own.key, own.certificate)
        options: list[tuple[str, str | int]] = [
            ("grpc.ssl_target_name_override", certificate_name(VICTIM)),
            ("grpc.max_receive_message_length", -1),
        ]
        with grpc.secure_channel(self.address, credentials, options) as channel:
            calls = begin(channel)
            self.over.wait(seconds)
            for call in calls:
                call.cancel()


def _call(channel: Any, requests: Iterator[bytes]) -> Any:
    return channel.stream_stream("/ssdfl.mesh.v1.Device/Ask")(requests, timeout=60)


def measured(seconds: float, hostile: bool) -> dict[str, float]:
    """Peak memory, log and steps of the device in the middle."""
    with tempfile.TemporaryDirectory() as scratch:
        mesh = Path(scratch) / "mesh"
        init_mesh(load_experiment(None, SETTINGS), mesh, method="sdfl", seed=0, patience_s=2)
        processes, attacker = MeshProcesses(mesh), Attacker(mesh / ATTACKER)
        folders = [folder for folder in processes.folders if not hostile or folder.name != ATTACKER]
        for folder in folders:
            processes.start_device(folder)
        if hostile:
            attacker.start()
        victim = mesh / VICTIM
        while _step(processes) < 3:
            time.sleep(0.5)
        time.sleep(seconds)
        found = {
            "peak_MB": peak_mb(processes.process(victim).pid),
            "log_kB": (victim / "device.log").stat().st_size / 1e3,
            "steps": float(_step(processes)),
            "checkpoint_age_s": time.time() - (victim / "checkpoint.safetensors").stat().st_mtime,
        }
        attacker.over.set()
        for folder in folders:
            processes.process(folder).kill()
        attacker.transport.stop()
    return found


def _step(processes: MeshProcesses) -> int:
    places = [
        status.get("step", 0) for status in processes.statuses() if status.get("device") == VICTIM
    ]
    return max(places, default=0)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What a hostile neighbour costs.")
    parser.add_argument(
        "--seconds", type=float, default=30.0, help="how long to watch each of the two"
    )
    seconds = parser.parse_args().seconds
    honest, hostile = measured(seconds, hostile=False), measured(seconds, hostile=True)
    print("| neighbour | peak MB | kB of log | steps | seconds since the last checkpoint |")
    print("|---|---|---|---|---|")
    for name, one in (("honest", honest), ("hostile", hostile)):
        print(f"| {name} | {' | '.join(f'{value:.0f}' for value in one.values())} |")
    ratio = hostile["peak_MB"] / honest["peak_MB"]
    print(f"\n{ratio:.2f} × the memory; wanted: at most {MOST:g}.")


if __name__ == "__main__":
    main()
