"""``python -m ssdfl`` and the ``ssdfl`` command, with exit codes for early interrupts."""

import sys


def main() -> None:
    """Run the command; Ctrl-C ends it without a traceback, even while modules are loading."""
    try:
        from ssdfl.cli.main import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
