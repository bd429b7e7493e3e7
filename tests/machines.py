"""Some machines, for tests: network namespaces that a switch connects, with cables to pull."""

import os
import secrets
import shutil
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass

from forked import Forked


def _ip(*words):
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=True)


def why_not():
    """What keeps this machine from having namespaces; nothing if it can."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return "needs root and iproute2"
    try:
        with two_machines():
            return ""
    except subprocess.CalledProcessError as error:
        return f"no network namespaces here: {error.stderr.strip()}"


@dataclass(frozen=True)
class Machine:
    """A namespace with one network interface, ``eth0``."""

    name: str
    address: str
    switch: str

    def runs(self, *words):
        """A command as this machine runs it."""
        return ["ip", "netns", "exec", self.name, *map(str, words)]

    def starts(self, *words, function="forked:run_command", **options):
        """``ssdfl WORDS`` on this machine, as a process that is forked."""
        return Forked(function, words, machine=self.name, **options)

    def pull_cable(self):
        """From now on, what is sent to and from it is lost, and nobody is told."""
        _ip("-n", self.switch, "link", "set", self.name, "nomaster")

    def lose_way_to(self, other):
        """From now on it cannot send to another machine, as behind a firewall."""
        _ip("-n", self.name, "route", "add", "unreachable", other.address)

    def plug_cable(self):
        _ip("-n", self.switch, "link", "set", self.name, "master", "switch")


def two_machines():
    return some_machines(2)


@contextmanager
def some_machines(number):
    run = secrets.token_hex(2)
    switch, *names = (f"ssdfl{run}{kind}" for kind in "sabcdefgh"[: 1 + number])
    machines = [Machine(name, f"10.77.0.{k}", switch) for k, name in enumerate(names, start=1)]
    try:
        for name in (switch, *names):
            _ip("netns", "add", name)
        _ip("-n", switch, "link", "add", "switch", "type", "bridge")
        _ip("-n", switch, "link", "set", "switch", "up")
        for machine in machines:
            _ip(
                "-n",
                switch,
                "link",
                "add",
                machine.name,
                "type",
                "veth",
                "peer",
                "eth0",
                "netns",
                machine.name,
            )
            machine.plug_cable()
            _ip("-n", switch, "link", "set", machine.name, "up")
            _ip("-n", machine.name, "address", "add", f"{machine.address}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                _ip("-n", machine.name, "link", "set", device, "up")
        yield machines
    finally:
        for name in (*names, switch):
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
