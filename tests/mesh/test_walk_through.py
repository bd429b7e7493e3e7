"""The walk-through of docs/deploy.md, from nothing to three hosts, on network namespaces."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from commands import quick_command
from machines import some_machines, why_not
from ssdfl.records import RunFolder

pytestmark = pytest.mark.mesh

PAGE = Path(__file__).parents[2] / "docs" / "deploy.md"
SECTION = re.search(
    r"## From nothing to three hosts\n(.*?)\n## ", PAGE.read_text(encoding="utf-8"), re.S
)[1]
BLOCK = re.compile(r"(?:as `([\w./-]+)`:\n+)?^```(\w+)\n(.*?)^```$", re.M | re.S)


class Hosts:
    """The reader's computer, and hosts with a home each, by their addresses."""

    def __init__(self, folder, machines):
        self.computer = folder / "computer"
        self.computer.mkdir()
        self.machines = {machine.address: machine for machine in machines}
        self.homes = {address: folder / address for address in self.machines}
        for home in self.homes.values():
            home.mkdir()

    def place(self, name):
        """Where a file is that scp names: on a host, or on the computer."""
        host, colon, path = name.partition(":")
        return self.homes[host] / path if colon else self.computer / name

    def copy(self, *names):
        """What scp -r does."""
        *sources, target = map(self.place, names)
        for source in sources:
            shutil.copytree(source, target / source.name, dirs_exist_ok=True)

    def start(self, device):
        """Run a device on the host to which its folder was copied."""
        (address,) = (address for address, home in self.homes.items() if (home / device).exists())
        machine, home = self.machines[address], self.homes[address]
        with (home / "output.txt").open("w") as log:
            return machine.starts("device", device, cwd=home, stdout=log, stderr=log)

    def run(self, *words):
        done = quick_command(*words, cwd=self.computer)
        assert done.returncode == 0, done.stderr


def test_the_page_leads_from_nothing_to_three_hosts(tmp_path):
    if reason := why_not():
        pytest.skip(reason)
    running = []
    with some_machines(3) as machines:
        hosts = Hosts(tmp_path, machines)
        try:
            for file, _, text in BLOCK.findall(SECTION):
                if file:
                    (hosts.computer / file).write_text(text, encoding="utf-8")
                    continue
                for line in text.splitlines():
                    follow(hosts, shlex.split(line, comments=True), running)
        finally:
            for process in running:
                process.kill()
    devices = [
        row.split(",")[0] for row in (hosts.computer / "offices-hosts.csv").read_text().split()[1:]
    ]
    assert len(RunFolder(hosts.computer / "offices" / "run").all_rows()) == 10
    for home, device in zip(hosts.homes.values(), devices, strict=True):
        assert (home / device / "model.safetensors").exists()
        assert not (home / "ca").exists()


def follow(hosts, words, running):
    """Do what a line of the page says."""
    if words[:2] == ["ssdfl", "device"]:
        running.append(hosts.start(words[2]))
        return
    for process in running:  # the page says: when they have finished
        assert process.wait(timeout=240) == 0
    if words[0] == "scp":
        assert words[1] == "-r"
        hosts.copy(*words[2:])
    elif words[0] == "ssdfl":
        hosts.run(*words[1:])
    else:
        assert words[0] == "pip", words
