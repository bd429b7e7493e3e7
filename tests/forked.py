"""Processes forked from a server with imports done: Python and torch take seconds to start."""

import ctypes
import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest.mock import patch

from commands import PARSER
from ssdfl import files as ssdfl_files
from ssdfl.cli.main import main
from ssdfl.errors import import_object

# Also what the library imports only when it is needed: torch._dynamo alone takes two seconds.
IMPORTED = (
    *(
        "pytest",
        "torch._dynamo",
        "torch.fx.experimental.proxy_tensor",
        "torch.distributed",
        "networkx",
    ),
    *("matplotlib.figure", "cryptography.x509", "cryptography.hazmat.primitives.serialization"),
    *("grpc._channel", "grpc._server", "grpc._utilities"),
    *("ssdfl.mesh.device", "ssdfl.experiments", "ssdfl.report", "commands", "helpers"),
)


def server():
    """The server of this process, whose processes other code may fork as well."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(IMPORTED))  # has no effect once it runs
    multiprocessing.forkserver.ensure_running()
    return context


class Forked:
    """A process that looks like `subprocess.Popen`'s: ``module:function`` of tests with its words.

    Args:
        stdout: an open file, to whose name the process writes; stderr likewise. None is our own.
        machine: a network namespace that it lives in. None is our own.
    """

    def __init__(
        self, function, words, *, stdout=None, stderr=None, cwd=None, env=None, machine=None
    ):
        files = [file and str(Path(file.name).resolve()) for file in (stdout, stderr)]
        given = (
            function,
            [*map(str, words)],
            files,
            str(Path(cwd or ".").resolve()),
            dict(env or os.environ),
            machine,
        )
        nested = multiprocessing.parent_process() is not None  # it has the imports itself
        context = multiprocessing.get_context("fork") if nested else server()
        self._process = context.Process(target=_begin, args=given)
        self._process.start()
        self.pid, self.kill, self.terminate = (
            self._process.pid,
            self._process.kill,
            self._process.terminate,
        )

    @property
    def returncode(self):
        return self._process.exitcode

    def poll(self):
        return self._process.exitcode

    def wait(self, timeout=None):
        self._process.join(timeout)
        if self.poll() is None:
            raise subprocess.TimeoutExpired(self._process.name, timeout)
        return self.poll()

    def send_signal(self, number):
        os.kill(self.pid, number)


def _begin(function, words, files, cwd, environment, machine):
    """In the process: what `subprocess.Popen` would have prepared, then the function."""
    for place, name in zip((1, 2), files, strict=True):
        if name is not None:
            os.dup2(os.open(name, os.O_WRONLY | os.O_APPEND), place)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    if machine is not None:
        _enter(machine)
    ssdfl_files.os.fsync = lambda file: None  # no test cuts the power
    import_object(function, "function")(words)


def _enter(machine):
    """Live in a network namespace, as ``ip netns exec`` does, with all threads to come."""
    with Path("/var/run/netns", machine).open() as namespace:
        library = ctypes.CDLL(None, use_errno=True)
        if library.setns(namespace.fileno(), 0):
            raise OSError(ctypes.get_errno(), "setns", machine)


def run_command(words):
    """In the process: ``ssdfl WORDS``."""
    sys.argv = ["ssdfl", *words]
    with patch("ssdfl.cli.main.app", PARSER):
        main()


def command(*words, cwd=None, timeout=240, **environment):
    """What ``ssdfl WORDS`` prints and returns, in a process of its own."""
    with tempfile.NamedTemporaryFile("r") as out, tempfile.NamedTemporaryFile("r") as err:
        env = {**os.environ, **environment}
        process = Forked("forked:run_command", words, stdout=out, stderr=err, cwd=cwd, env=env)
        try:
            process.wait(timeout)
        finally:
            process.kill()
        return subprocess.CompletedProcess(words, process.returncode, out.read(), err.read())
