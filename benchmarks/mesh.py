"""How fast devices of a mesh exchange parameters, and how much of that training hides.

    python benchmarks/mesh.py             # all, a few minutes
    python benchmarks/mesh.py --quick     # the exchange only
    python benchmarks/mesh.py --small     # memory and start of devices with little own data

The exchange: processes pull the paper's CNN, 2.2 MB, from each other repeatedly. The mesh's
transport and bare TLS sockets that both check certificates take turns. Compare the ratio:
machines are noisy.
"""

import argparse
import json
import multiprocessing
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ssdfl.mesh.certificates import Authority
from ssdfl.mesh.folder import init_mesh
from ssdfl.mesh.mesh_pb2 import Pull, Request, Response
from ssdfl.mesh.processes import MeshProcesses, watch_statuses
from ssdfl.mesh.transport import Credentials, GrpcTransport
from ssdfl.mesh.wire import pack, unpack
from ssdfl.methods import Message, Moment
from ssdfl.records import load_experiment

PARAMETERS = 558_474
AIM = 0.6
DEVICES = 8
LINKS = [*((k, (k + 1) % DEVICES) for k in range(DEVICES)), (0, 4), (2, 6)]


def context_of(folder: Path, name: str, purpose: ssl.Purpose) -> ssl.SSLContext:
    """A TLS context that shows a certificate and demands one."""
    context = ssl.create_default_context(purpose, cafile=str(folder / "authority.pem"))
    context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
    context.verify_mode, context.check_hostname = ssl.CERT_REQUIRED, False
    return context


def credentials_of(folder: Path, name: str) -> Credentials:
    """A device's credentials."""
    files = (folder / f"{name}.key", folder / f"{name}.pem", folder / "authority.pem")
    return Credentials(*(file.read_bytes() for file in files))


class BareSockets:
    """A thread per neighbour that answers a byte with 2.2 MB, and a socket to each to ask on."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self.data = torch.randn(PARAMETERS).numpy().tobytes()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=16)
        self.port = self.listener.getsockname()[1]
        self.ends: dict[str, tuple[ssl.SSLSocket, memoryview]] = {}
        threading.Thread(target=self._accept, daemon=True).start()

    def connect(self, ports: dict[str, int]) -> None:
        """Dial the neighbours."""
        context = context_of(self.folder, self.name, ssl.Purpose.SERVER_AUTH)
        for neighbour, port in ports.items():
            plain = socket.create_connection(("127.0.0.1", port))
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.ends[neighbour] = context.wrap_socket(plain), memoryview(bytearray(4 * PARAMETERS))

    def pull(self, neighbour: str) -> None:
        """A neighbour's parameters."""
        end, buffer = self.ends[neighbour]
        end.sendall(b"?")
        got = 0
        while got < len(buffer):
            got += end.recv_into(buffer[got:])

    def close(self) -> None:
        """Listen no more."""
        self.listener.close()

    def _accept(self) -> None:
        context = context_of(self.folder, self.name, ssl.Purpose.CLIENT_AUTH)
        while True:
            try:
                plain, _ = self.listener.accept()
            except OSError:  # closed
                return
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(
                target=self._answer,
                args=(context.wrap_socket(plain, server_side=True),),
                daemon=True,
            ).start()

    def _answer(self, end: ssl.SSLSocket) -> None:
        while end.recv(1):
            end.sendall(self.data)


class Mesh:
    """The same by the mesh's transport, with everything that a device checks."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self.at = Moment(0, np.zeros(1, dtype=np.int64), seed=0, rate=1.0)
        self.own = Message(torch.randn(1, PARAMETERS))
        message = Response(parameters=pack(self.own, self.at)).SerializeToString()
        everyone = {f"d{k}": "127.0.0.1:1" for k in range(DEVICES)}
        self.server = GrpcTransport("127.0.0.1:0", everyone, credentials_of(folder, name))
        self.server.start(lambda neighbour, request: message)
        self.port = self.server.port

    def connect(self, ports: dict[str, int]) -> None:
        """Dial the neighbours."""
        addresses = {neighbour: f"127.0.0.1:{port}" for neighbour, port in ports.items()}
        self.client = GrpcTransport("", addresses, credentials_of(self.folder, self.name))
        self.client.start(lambda neighbour, request: Response())

    def pull(self, neighbour: str) -> None:
        """A neighbour's parameters."""
        answer = self.client.ask(neighbour, Request(pull=Pull(step=0)), 60)
        unpack(answer.parameters, self.own, self.at)

    def close(self) -> None:
        """Ask and answer no more."""
        self.client.stop()
        self.server.stop()


WAYS: dict[str, Callable[[Path, str], BareSockets | Mesh]] = {"sockets": BareSockets, "mesh": Mesh}


def member(folder: Path, name: str, neighbours: list[str], pipe: Connection) -> None:
    """One process: for each order ``(way, rounds)``, pull from all neighbours at once."""
    ends = {way: make(folder, name) for way, make in WAYS.items()}
    pipe.send({way: end.port for way, end in ends.items()})
    for way, ports in pipe.recv().items():
        ends[way].connect({neighbour: ports[neighbour] for neighbour in neighbours})
    pipe.send("ready")
    with ThreadPoolExecutor(len(neighbours)) as pool:
        while order := pipe.recv():
            way, rounds = order
            for _ in range(rounds):
                list(pool.map(ends[way].pull, neighbours))
            pipe.send("done")
    for end in ends.values():
        end.close()


def exchange(links: list[tuple[int, int]], turns: int, rounds: int) -> dict[str, float]:
    """The best MB/s of all processes together, both ways taking turns."""
    spawn = multiprocessing.get_context("spawn")
    names = [f"d{k}" for k in sorted({k for link in links for k in link})]
    linked = {
        name: [
            f"d{b}" if f"d{a}" == name else f"d{a}" for a, b in links if name in (f"d{a}", f"d{b}")
        ]
        for name in names
    }
    with tempfile.TemporaryDirectory() as scratch:
        folder, authority = Path(scratch), Authority()
        (folder / "authority.pem").write_bytes(authority.certificate)
        pipes, processes = {}, []
        for name in names:
            key, certificate = authority.issue(name)
            (folder / f"{name}.key").write_bytes(key)
            (folder / f"{name}.pem").write_bytes(certificate)
            pipes[name], pipe = spawn.Pipe()
            processes.append(
                spawn.Process(target=member, args=(folder, name, linked[name], pipe), daemon=True)
            )
            processes[-1].start()
        told = {name: pipe.recv() for name, pipe in pipes.items()}
        ports = {way: {name: told[name][way] for name in names} for way in WAYS}
        for pipe in pipes.values():
            pipe.send(ports)
        for pipe in pipes.values():
            pipe.recv()
        best = dict.fromkeys(WAYS, 0.0)
        for turn in range(turns + 1):
            for way in WAYS:
                start = time.perf_counter()
                for pipe in pipes.values():
                    pipe.send((way, rounds))
                for pipe in pipes.values():
                    pipe.recv()
                found = (
                    2 * len(links) * rounds * 4 * PARAMETERS / (time.perf_counter() - start) / 1e6
                )
                best[way] = max(best[way], found) if turn else 0.0
        for pipe in pipes.values():
            pipe.send(None)
        for process in processes:
            process.join(10)
            process.kill()
    return best


SMALL_DEVICES, SMALL_ROWS, SMALL_COLUMNS = 5, 1000, 64
MOST_MB, MOST_START_S = 300, 6


def process_of(code: str) -> dict[str, float]:
    """The memory of a process that runs some code, and its CPU seconds."""
    shown = "import time; print(open('/proc/self/status').read(), time.process_time())"
    command = [sys.executable, "-c", f"{code}\n{shown}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    status, cpu_s = done.stdout.rsplit(maxsplit=1)
    return {**memory_in(status), "cpu_s": float(cpu_s)}


def memory_in(status: str) -> dict[str, float]:
    """The memory in a process's status: its peak, and what is not in files that others share."""
    lines = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    kinds = {"peak_MB": "VmHWM", "own_MB": "RssAnon"}
    return {
        kind: int(lines[name].split()[0]) / 1e3 for kind, name in kinds.items() if name in lines
    }


def mean_cpu_s(processes: MeshProcesses) -> float:
    """CPU seconds that a running device has taken so far, on average."""
    ticks = []
    for folder in processes.running():
        stat = Path(f"/proc/{processes.process(folder).pid}/stat").read_text()
        ticks.append(sum(map(int, stat.rpartition(")")[2].split()[11:13])))
    return float(np.mean(ticks)) / os.sysconf("SC_CLK_TCK")


def write_rows(folder: Path, form: str) -> None:
    """A device's own rows: random numbers, and which of the first ten is the largest."""
    x = (
        np.random.default_rng(len(folder.name))
        .normal(size=(SMALL_ROWS, SMALL_COLUMNS))
        .astype(np.float32)
    )
    y = x[:, :10].argmax(axis=1)
    if form == "npz":
        np.savez(folder / "train.npz", x=x, y=y)
        return
    import pyarrow as pa
    import pyarrow.parquet as parquet

    columns = {f"x{k}": x[:, k] for k in range(SMALL_COLUMNS)}
    parquet.write_table(pa.table({**columns, "y": y}), folder / "train.parquet")


def small_mesh(form: str) -> dict[str, float]:
    """Five devices with a model of 4,810 parameters: when all have taken a step, and their peak."""
    settings = [
        f"network.spec=ring:n={SMALL_DEVICES}",
        "clusters.number=1",
        "model.name=mlp",
        "cycles=5",
    ]
    with tempfile.TemporaryDirectory() as scratch:
        mesh = Path(scratch) / "mesh"
        experiment = load_experiment(None, [*settings, f"data.train=train.{form}"])
        for folder in init_mesh(experiment, mesh, method="ssdfl", seed=0):
            write_rows(folder, form)
        processes, begun_s, first_s = MeshProcesses(mesh), time.perf_counter(), 0.0
        cpu_s = 0.0
        processes.start()
        peaks: dict[str, dict[str, float]] = {}
        for statuses in watch_statuses(processes):
            note_peaks(processes, peaks)
            if not first_s and all(status.get("step", 0) for status in statuses):
                first_s, cpu_s = time.perf_counter() - begun_s, mean_cpu_s(processes)
    return {"start_s": first_s, "cpu_s": cpu_s, **largest(peaks)}


ONE_STEP = f"""
import torch
torch.set_num_threads(1)
x = torch.randn({SMALL_ROWS}, {SMALL_COLUMNS})
y = x[:, :10].argmax(1)
layers = torch.nn.Linear({SMALL_COLUMNS}, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)
model = torch.nn.Sequential(*layers)
torch.nn.functional.cross_entropy(model(x[:16]), y[:16]).backward()
with torch.no_grad():
    for parameter in model.parameters():
        parameter -= 0.1 * parameter.grad
    (model(x).argmax(1) == y).float().mean()
"""


def small_devices() -> dict[str, Any]:
    """What PyTorch takes by itself, our imports, and whole devices."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # installed packages are compiled, too
    process_of("import ssdfl.mesh.device")  # compiles what is not
    return {
        "import torch": process_of("import torch"),
        "a step of PyTorch": process_of(ONE_STEP),
        "import ssdfl.mesh.device": process_of("import ssdfl.mesh.device"),
        "npz": small_mesh("npz"),
        "parquet": small_mesh("parquet"),
    }


def print_small(found: dict[str, Any]) -> None:
    """As a table."""
    columns = "peak MB of a process | its own | its CPU seconds to the first step | seconds for all"
    print(f"| | {columns} |\n|---|---|---|---|---|")
    for name in ("import torch", "a step of PyTorch", "import ssdfl.mesh.device"):
        one = found[name]
        print(f"| {name} alone | {shown_memory(one)} | {one['cpu_s']:.1f} | |")
    for form in ("npz", "parquet"):
        one = found[form]
        start = f"{shown_memory(one)} | {one['cpu_s']:.1f} | {one['start_s']:.1f}"
        print(f"| 5 devices, 1,000 rows each, `.{form}` | {start} |")
    print(f"\nWanted: at most {MOST_MB} MB, and {MOST_START_S} s on a quiet machine.")


def shown_memory(found: dict[str, float]) -> str:
    """Two cells of a table."""
    return f"{found['peak_MB']:.0f} | {found['own_MB']:.0f}"


def note_peaks(processes: MeshProcesses, peaks: dict[str, dict[str, float]]) -> None:
    """Keep the most memory that each running device has had."""
    for folder in processes.running():
        status = Path(f"/proc/{processes.process(folder).pid}/status")
        try:
            found = memory_in(status.read_text())
        except OSError:
            continue
        before = peaks.setdefault(folder.name, {})
        before |= {kind: max(mb, before.get(kind, 0.0)) for kind, mb in found.items()}


def largest(peaks: dict[str, dict[str, float]]) -> dict[str, float]:
    """Of all devices, of each kind of memory."""
    return {
        kind: max(one.get(kind, 0.0) for one in peaks.values()) for kind in ("peak_MB", "own_MB")
    }


def whole_mesh(method: str, num_devices: int, cycles: int = 4) -> dict[str, float]:
    """A ring of devices with the paper's CNN on digits: seconds a step, and memory of a process."""
    settings = [
        f"network.spec=ring:n={num_devices}" if num_devices > 2 else "network.spec=path:n=2",
        f"clusters.number={min(2, num_devices // 2)}",
        "model.name=cnn",
        "data.labels_per_device=3",
        f"cycles={cycles}",
        f"evaluate.every={cycles}",
        "training.batch_size=32",
        "training.local_steps=1",
    ]
    with tempfile.TemporaryDirectory() as scratch:
        mesh = Path(scratch) / "mesh"
        init_mesh(load_experiment(None, settings), mesh, method=method, seed=0)
        processes = MeshProcesses(mesh)
        processes.start()
        peaks: dict[str, dict[str, float]] = {}
        for _ in watch_statuses(processes):
            note_peaks(processes, peaks)
        statuses = processes.statuses()
    steps = max(status["step"] for status in statuses)
    sent = sum(status["received"] * status["message_bytes"] for status in statuses)
    seconds = max(status["real_s"] for status in statuses)
    return {"step_s": seconds / steps, "sent_MB": sent / 1e6, **largest(peaks)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Speed of a mesh.")
    parser.add_argument("--quick", action="store_true", help="the exchange only")
    parser.add_argument("--small", action="store_true", help="small devices' memory and start only")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    arguments = parser.parse_args()
    if arguments.small:
        small = small_devices()
        print(json.dumps(small, indent=1)) if arguments.json else print_small(small)
        return
    found = {
        "8 devices, 10 links, all at once": exchange(LINKS, 4, 6),
        "2 devices, both at once": exchange([(0, 1)], 4, 20),
    }
    result: dict[str, Any] = {
        "exchange": {
            name: best | {"ratio": best["mesh"] / best["sockets"]} for name, best in found.items()
        }
    }
    if not arguments.quick:
        cases = [(8, "pdfl"), (8, "ssdfl"), (8, "sdfl"), (2, "pdfl"), (2, "sdfl")]
        result["whole"] = {f"{n} devices, {method}": whole_mesh(method, n) for n, method in cases}
    if arguments.json:
        print(json.dumps(result, indent=1))
        return
    print("| | bare TLS sockets | the mesh's transport | ratio | wanted |")
    print("|---|---|---|---|---|")
    for name, best in result["exchange"].items():
        verdict = f"≥ {AIM}: {'met' if best['ratio'] >= AIM else 'missed'}"
        rates = f"{best['sockets']:.0f} MB/s | {best['mesh']:.0f} MB/s"
        print(f"| {name} | {rates} | {best['ratio']:.2f} | {verdict} |")
    if "whole" in result:
        print("\n| | seconds a step | MB sent in all | peak MB of a process |")
        print("|---|---|---|---|")
        for method, found in result["whole"].items():
            costs = f"{found['sent_MB']:.0f} | {found['peak_MB']:.0f}"
            print(f"| {method} | {found['step_s']:.3f} | {costs} |")


if __name__ == "__main__":
    main()
