"""The command in this very process: for mistakes, where to start Python takes longer than to find them."""

import io
import os
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from unittest.mock import patch

from ssdfl.cli.main import main


def quick_command(*words, cwd=".", **environment):
    """What ``ssdfl WORDS`` prints and returns."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    words = ["ssdfl", *map(str, words)]
    with (
        chdir(cwd),
        patch("signal.signal"),
        patch.object(sys, "argv", words),
        patch.object(sys, "path", list(sys.path)),
        patch.dict(os.environ, environment),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code
    return subprocess.CompletedProcess(words, code or 0, out.getvalue(), err.getvalue())
