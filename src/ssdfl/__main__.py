"""``python -m ssdfl`` and the ``ssdfl`` command, with exit codes for early interrupts."""

import sys


def main() -> None:
    """Run the command; Ctrl-C while modules are still loading ends it without a traceback, too."""
    try:
        from ssdfl.cli.main import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
