"""Make an environment for each tool that ssdfl is compared with.

    python benchmarks/peers/install.py                  # all of them, several gigabytes
    python benchmarks/peers/install.py flower decent    # some

Each goes to ``build/peers/NAME``, or into the folder that ``SSDFL_PEERS`` names.
"""

import argparse
import os
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).parent
REQUIREMENTS = HERE / "requirements"
NAMES = tuple(sorted(path.stem for path in REQUIREMENTS.glob("*.txt")))


def peers_folder() -> Path:
    """Where the environments are."""
    return Path(os.environ.get("SSDFL_PEERS") or HERE.parents[1] / "build" / "peers").resolve()


def python_of(name: str) -> Path:
    """The interpreter of a tool's environment, whether it is there or not."""
    folder = peers_folder() / name
    return folder / "Scripts" / "python.exe" if os.name == "nt" else folder / "bin" / "python"


def install(name: str) -> str:
    """Make a tool's environment anew; returns why that failed, or nothing."""
    venv.create(peers_folder() / name, clear=True, with_pip=True)
    command = [
        str(python_of(name)),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]
    command += ["--requirement", str(REQUIREMENTS / f"{name}.txt")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
    return (
        "" if done.returncode == 0 else (errors or [f"ERROR: pip ended with {done.returncode}"])[0]
    )


def main() -> None:
    """Install all tools or those named."""
    parser = argparse.ArgumentParser(
        description="Make an environment for each tool to compare with."
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; default all"
    )
    names = parser.parse_args().names or NAMES
    if unknown := sorted(set(names) - set(NAMES)):
        parser.error(f"unknown: {', '.join(unknown)}; choose from {', '.join(NAMES)}")
    failed = 0
    for name in names:
        reason = install(name)
        failed += bool(reason)
        print(f"{name}: {f'not installed: {reason}' if reason else 'installed'}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
