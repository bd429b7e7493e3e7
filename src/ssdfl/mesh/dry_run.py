"""Everything that a device would tell others, without telling it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from ssdfl.clusters import Device
from ssdfl.engine.job import first_message
from ssdfl.learning import parse_optimizer
from ssdfl.mesh.flood import FACTS, describe
from ssdfl.mesh.member import Member
from ssdfl.mesh.membership import Membership, network_at_entry
from ssdfl.mesh.mesh_pb2 import Holding
from ssdfl.methods import find_method

ALONE = "this device's data alone, as others have told nothing yet: classes and means may change"


def facts_to_tell(folder: Path, data: Path | None = None) -> dict[str, Any]:
    """What the device of a folder would tell, and to whom.

    Raises:
        InputError: something in the folder cannot be used.
    """
    member = _placed(Member.of_folder(folder, data))
    holding = member.holding()
    facts, samples, compared = _facts_of_formation(member)
    return {
        "device": member.config.name,
        "encoded_by": _encoded_by(member, holding),
        "to_all": {
            "data": None if holding is None else _shown_holding(holding),
            "facts": facts,
            "distances_of_data_to": compared,
        },
        "to_neighbours": {
            "neighbours": list(member.config.neighbours),
            "samples": samples,
            "in_every_step": _message(member),
            "in_every_ping": [
                "step",
                "first step",
                "whether it is done",
                "a digest of plan and settings",
            ],
        },
    }


def _placed(member: Member) -> Member:
    """A device in the network in which it begins."""
    if not member.config.joins:
        member.draw()
        return member
    authority = (member.folder / "authority.pem").read_bytes()
    text = (member.folder / "network.json").read_text(encoding="utf-8")
    network = network_at_entry(
        member.config, member.network, Membership(member.folder, authority, text)
    )
    return member.moved(network, [parse_optimizer("sgd")] * network.num_devices)


def _facts_of_formation(
    member: Member,
) -> tuple[dict[str, Any] | None, list[list[float]] | None, list[str]]:
    """Facts for all, samples for neighbours, and who compares data; nothing for given plans."""
    forms = member.known_plan() is None or (member.folder / FACTS).exists()
    if not forms or member.config.joins:  # of a device that joins, the change says what others know
        return None, None, []
    described = member.described()
    return _shown_facts(member, described), _shown_samples(described), _compared(member)


def _encoded_by(member: Member, holding: Holding | None) -> str:
    """Where it comes from how data are encoded."""
    if holding is None or not holding.summary:
        return member.experiment.data.encoding or "what the data set says"
    return "summaries of all devices" if member.knows_all else ALONE


def _fields(message: Message) -> dict[str, Any]:
    """A message's fields by name, zeros left out."""
    found: dict[str, Any] = MessageToDict(message, preserving_proto_field_name=True)
    return found


def _shown_holding(holding: Holding) -> dict[str, Any]:
    """The summary as the JSON that it is."""
    summary = json.loads(holding.summary) if holding.summary else None
    return {"summary": summary, "samples": holding.samples}


def _shown_facts(member: Member, described: Device) -> dict[str, Any]:
    return _fields(describe(member.config.name, described, member.measured()))


def _compared(member: Member) -> list[str]:
    """The neighbours whose data it compares with its own: the result, one number each, goes to all.

    Of the two ends of a link, the one that comes first in the network does it.
    """
    index = member.config.index
    return [member.config.names[j] for j in member.network.neighbours(index) if j > index]


def _shown_samples(described: Device) -> list[list[float]] | None:
    return None if described.samples is None else np.asarray(described.samples).tolist()


def _message(member: Member) -> dict[str, Any]:
    """What messages of the method's rule are, whenever the schedule has two neighbours mix."""
    method = find_method(member.config.method)
    size = first_message(method.rule, member.task).size_bytes
    return {"method": member.config.method, "bytes": size}
