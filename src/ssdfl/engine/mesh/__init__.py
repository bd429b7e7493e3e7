"""Real devices: one process each, talking to their neighbours only (needs ``ssdfl[mesh]``)."""
