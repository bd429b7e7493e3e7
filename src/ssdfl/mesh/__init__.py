"""Real devices: one process each, talking to their neighbours only (needs ``ssdfl[mesh]``)."""

from ssdfl.errors import require

for _module in ("cryptography", "google.protobuf", "grpc"):
    require(_module, "mesh")
