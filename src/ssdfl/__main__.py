"""``python -m ssdfl``."""

from ssdfl.cli.main import main

main()
