"""A device's way through the editions of its mesh: which one it is in, and when the next begins."""

from __future__ import annotations

import logging
import threading
from functools import partial
from pathlib import Path

from ssdfl.clusters import Plan
from ssdfl.errors import InputError
from ssdfl.mesh.editions import Edition, first_edition, next_edition
from ssdfl.mesh.member import Member
from ssdfl.mesh.membership import Membership
from ssdfl.mesh.node import Node

log = logging.getLogger(__name__)


class Course:
    """The editions that follow from the changes that are known.

    Args:
        member: the device, in the network as it was at the start.
        steps_per_cycle: of the schedule.
    """

    def __init__(
        self, folder: Path, member: Member, membership: Membership, node: Node, steps_per_cycle: int
    ) -> None:
        self._folder, self._member, self._membership, self._node = folder, member, membership, node
        self._steps_per_cycle = steps_per_cycle
        self._editions: list[Edition] = []
        self._broken = False
        self._following = threading.Lock()
        self._meeting = threading.Lock()  # held only briefly: training needs it, too
        self._ended = node.runtime.event()
        node.membership = membership.version
        node.answers["changes"] = membership.answer

    def watch(self) -> None:
        """Look for changes while the device runs."""
        task = partial(self._membership.watch, self._node, self.news, self._ended.wait)
        self._node.runtime.start(task, "membership")

    def close(self) -> None:
        """Stop looking for changes."""
        self._ended.set()

    def begin(self, plan: Plan) -> None:
        """Follow the known changes from the first plan on."""
        with self._following:
            first = first_edition(self._member, plan, self._folder)
            self._node.fitting_digests.clear()
            self._node.fit(first.digest)  # a newcomer's neighbours may not have changed yet
            self._editions = [first]
        self.news()

    def news(self) -> None:
        """Follow changes that have become known, and meet newcomers that are to be neighbours."""
        self._node.membership = self._membership.version
        with self._following:
            while self._editions and not self._broken and self._follow():
                pass

    def _follow(self) -> bool:
        """Find the next edition; whether there was one to find."""
        before, changes = self._editions[-1], self._membership.changes
        if before.version >= len(changes):
            return False
        try:
            edition = next_edition(before, changes[before.version], self._member, self._folder)
        except InputError as error:
            log.error("change %d cannot be followed: %s", before.version + 1, error)
            self._broken = True
            return False
        with self._meeting:
            self._node.fit(edition.digest)
            own = self._node.name
            self._node.meet(edition.neighbours_of(own), edition.routes_of(own))
            self._editions.append(edition)
        return True

    def at(self, step: int) -> Edition:
        """The edition that a step belongs to, by what is known."""
        begun = [one for one in self._editions if one.cycle * self._steps_per_cycle <= step]
        return begun[-1]

    def first_with(self, name: str) -> Edition:
        """The edition in which a device joins."""
        return next(one for one in self._editions[1:] if one.has(name))

    def following(self, edition: Edition, step: int) -> Edition | None:
        """The edition after another, if it begins at a step; a late change begins at once."""
        later = self._editions[edition.version + 1 :][:1]
        due = [one for one in later if one.cycle * self._steps_per_cycle <= step]
        return due[0] if due else None

    def part(self, edition: Edition) -> None:
        """Disconnect from devices that are neighbours neither in an edition nor later."""
        with self._meeting:
            own = self._node.name
            staying = {
                name for one in self._editions[edition.version :] for name in one.neighbours_of(own)
            }
            gone = set(self._node.neighbours.names) - staying
            if gone:
                log.info("no neighbours any more: %s", ", ".join(sorted(gone)))
                self._node.part(gone)
