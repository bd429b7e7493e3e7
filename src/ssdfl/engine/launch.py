"""Start ranks on one machine with torch's launcher."""

from __future__ import annotations

import os
import secrets
import socket
import sys
from collections.abc import Mapping, Sequence

from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

RESTARTS = 3


def launch(arguments: Sequence[str], ranks: int, variables: Mapping[str, str]) -> int:
    """Run ``python -m ssdfl ARGUMENTS`` in ranks, like ``torchrun --max-restarts 3``.

    By default, each rank computes with one thread, and they communicate over loopback.
    Environment variables can change that.

    Returns:
        The exit code: that of the first rank that failed for good, 130 if interrupted, else 0.
    """
    os.environ.update(variables)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if any(name == "lo" for _, name in socket.if_nameindex()):
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=ranks,
        run_id=secrets.token_hex(4),
        rdzv_backend="c10d",
        rdzv_endpoint="127.0.0.1:0",
        local_addr="127.0.0.1",
        max_restarts=RESTARTS,
        monitor_interval=0.1,
    )
    try:
        elastic_launch(config, sys.executable)("-m", "ssdfl", *arguments)
    except ChildFailedError as error:
        return max(1, error.get_first_failure()[1].exitcode)
    except (SignalException, KeyboardInterrupt):
        return 130
    return 0
