"""The command in this process, since starting Python takes longer than many tests do."""

import io
import os
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import typer.main

from ssdfl.cli.main import app, main

PARSER = typer.main.get_command(app)  # which `app()` builds anew each time, in a tenth of a second


def _forget_modules(folder):
    """Another test may have other modules of these names."""
    inside = f"{folder.absolute()}{os.sep}"
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(inside):
            del sys.modules[name]


def quick_command(*words, cwd=None, **environment):
    """What ``ssdfl WORDS`` prints and returns."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    words = ["ssdfl", *map(str, words)]
    with (
        chdir(cwd or "."),
        patch("signal.signal"),
        patch("ssdfl.cli.main.app", PARSER),
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
        finally:
            if cwd:
                _forget_modules(Path(cwd))
    return subprocess.CompletedProcess(words, code or 0, out.getvalue(), err.getvalue())
