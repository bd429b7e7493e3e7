"""Machines of one host with shaped links between them, for `predicted.py`: namespaces and a router.

Each machine is a network namespace whose only interface is a TUN device. A thread of this process
routes packets between them, with the latency and bandwidth of each link and the uplink and downlink
of each machine, which packets to or from different machines share in turns. It does what `tc` with
`netem` and `fq` would, even if the kernel has no `netem`.
"""

import fcntl
import os
import secrets
import select
import shutil
import struct
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from heapq import heappop, heappush
from itertools import count

import numpy as np

from ssdfl.graph import Network

MTU = 4500
HEADERS = 72
"""Bytes of a packet that are IP's and TCP's with its options; the rest is what bandwidth counts."""
_TUN, _SET, _PLAIN = "/dev/net/tun", 0x400454CA, 0x1001
_SOURCE, _TARGET = 15, 19
"""Where an IPv4 packet has the last byte of its addresses."""


def why_not() -> str:
    """What keeps this machine from having such machines; nothing if it can."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return "needs root and iproute2"
    try:
        with machines(1):
            return ""
    except (OSError, subprocess.CalledProcessError) as error:
        return f"no network namespaces or TUN devices here: {error}"


class Port:
    """A rate that packets of several queues share in turns."""

    def __init__(
        self, router: "Router", rate_Bps: float, onwards: Callable[[float, int, bytes], None]
    ) -> None:
        self.router, self.rate_Bps, self.onwards = router, rate_Bps, onwards
        self.queues: dict[int, deque[bytes]] = {}
        self.busy = False

    def take(self, now_s: float, queue: int, packet: bytes) -> None:
        """A packet for a queue."""
        self.queues.setdefault(queue, deque()).append(packet)
        if not self.busy:
            self._next(now_s)

    def _next(self, now_s: float) -> None:
        self.busy = bool(self.queues)
        if not self.busy:
            return
        queue = next(iter(self.queues))
        waiting = self.queues.pop(queue)
        packet = waiting.popleft()
        if waiting:
            self.queues[queue] = waiting  # at the end: the others come first
        done_s = now_s + max(len(packet) - HEADERS, 0) / self.rate_Bps

        def done() -> None:
            self.onwards(done_s, queue, packet)
            self._next(done_s)

        self.router.at(done_s, done)


class Router(threading.Thread):
    """Carries packets between TUN devices as a network's links would."""

    def __init__(self, ends: list[int]) -> None:
        super().__init__(daemon=True)
        self.ends, self.numbers = ends, count()
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.uplinks: list[Port] = []
        self.lock = threading.Lock()
        self.stopping = False

    def shape(self, network: Network | None) -> None:
        """Route by a network's links; without one, everyone reaches everyone at once."""
        with self.lock:
            self.events.clear()
            n = len(self.ends)
            latency, bandwidth = np.zeros((n, n)), np.full((n, n), np.inf)
            limits = np.full((2, n), np.inf)
            if network is not None:
                i, j = network.links.T
                latency[i, j] = latency[j, i] = network.latency_s
                bandwidth[i, j] = bandwidth[j, i] = network.bandwidth_Bps
                limits = np.array([network.uplink_Bps, network.downlink_Bps])
            self.downlinks = [Port(self, limits[1, j], self._deliver_to(j)) for j in range(n)]
            links = {
                (i, j): Port(self, bandwidth[i, j], self._travel(i, j, latency[i, j]))
                for i in range(n)
                for j in range(n)
            }
            self.uplinks = [Port(self, limits[0, i], self._leave(i, links)) for i in range(n)]

    def _leave(
        self, i: int, links: dict[tuple[int, int], Port]
    ) -> Callable[[float, int, bytes], None]:
        return lambda now_s, j, packet: links[i, j].take(now_s, 0, packet)

    def _travel(self, i: int, j: int, latency_s: float) -> Callable[[float, int, bytes], None]:
        def onwards(now_s: float, _: int, packet: bytes) -> None:
            arrival_s = now_s + latency_s
            self.at(arrival_s, lambda: self.downlinks[j].take(arrival_s, i, packet))

        return onwards

    def _deliver_to(self, j: int) -> Callable[[float, int, bytes], None]:
        def onwards(_: float, i: int, packet: bytes) -> None:
            os.write(self.ends[j], packet)

        return onwards

    def at(self, time_s: float, event: Callable[[], None]) -> None:
        """Do something at a time."""
        heappush(self.events, (time_s, next(self.numbers), event))

    def run(self) -> None:
        """Route until it is stopped."""
        poll = select.epoll()
        for end in self.ends:
            poll.register(end, select.EPOLLIN)
        while not self.stopping:
            with self.lock:
                left_s = self.events[0][0] - time.monotonic() if self.events else 0.2
            for end, _ in poll.poll(max(left_s, 0)):
                self._read(end)
            with self.lock:
                while self.events and self.events[0][0] <= time.monotonic():
                    heappop(self.events)[2]()

    def _read(self, end: int) -> None:
        """Take all packets that wait at a machine."""
        while True:
            try:
                packet = os.read(end, MTU + 100)
            except BlockingIOError:
                return
            if packet[0] >> 4 != 4 or not 1 <= packet[_TARGET] <= len(self.ends):
                continue  # IPv6, or a broadcast
            with self.lock:
                self.uplinks[packet[_SOURCE] - 1].take(
                    time.monotonic(), packet[_TARGET] - 1, packet
                )


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], capture_output=True, text=True, check=True)


def _tun(name: str) -> int:
    end = os.open(_TUN, os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(end, _SET, struct.pack("16sH", name.encode(), _PLAIN))
    return end


def address(machine: int) -> str:
    """Where a machine is."""
    return f"10.78.0.{machine + 1}"


@contextmanager
def machines(number: int) -> Iterator[tuple[list[str], Router]]:
    """Names of namespaces that reach each other, and the router between them."""
    run = secrets.token_hex(2)
    names = [f"ssdfl{run}n{k}" for k in range(number)]
    ends: list[int] = []
    try:
        for machine, name in enumerate(names):
            tun = f"t{run}n{machine}"
            _ip("netns", "add", name)
            ends.append(_tun(tun))
            _ip("link", "set", tun, "netns", name)
            _ip("-n", name, "link", "set", "lo", "up")
            _ip("-n", name, "address", "add", f"{address(machine)}/24", "dev", tun)
            _ip("-n", name, "link", "set", tun, "mtu", str(MTU), "txqueuelen", "10000", "up")
            for setting in ("tcp_slow_start_after_idle=0", "tcp_congestion_control=reno"):
                _ip("netns", "exec", name, "sysctl", "-qw", f"net.ipv4.{setting}")
        router = Router(ends)
        router.shape(None)
        router.start()
        yield names, router
        router.stopping = True
        router.join()
    finally:
        for end in ends:
            os.close(end)
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
