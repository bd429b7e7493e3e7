"""A rule with liars: honest devices receive an attack's messages from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ssdfl.arrays import BoolArray, IntArray
from ssdfl.methods.attacks import Attack, Hearing
from ssdfl.methods.moment import Moment, Rows
from ssdfl.methods.rules.base import Heard, Inbox, Memory, Move, Rule
from ssdfl.methods.rules.wrapped import WrappedRule
from ssdfl.rng import generator

STREAM = "lies"


@dataclass(frozen=True)
class AmongLiars(WrappedRule):
    """The inner rule, with false messages from some devices.

    All devices, liars included, train, send and keep memory as the inner rule says. Only the liars'
    messages to honest devices are replaced. This happens at the receiver, so all engines do the
    same. Liars know each other, and receive true messages.

    Attributes:
        liars: the devices that lie.
        attack: computes their messages.
    """

    liars: tuple[int, ...]
    attack: Attack

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "linear", False)  # it needs single messages

    def receive(
        self, at: Moment, theta: Rows, move: Move, memory: Memory, heard: Heard
    ) -> tuple[Rows, Memory]:
        """The inner rule's result, from true messages and lies."""
        lies = Heard(
            lambda: self._mixed(at, heard),
            lambda: heard.own,
            lambda: self._each(at, heard),
            lambda: heard.sent,
        )
        after, kept = self.rule.receive(at, theta, move, self.inner(memory), lies)
        return after, self.with_inner(memory, kept)

    def _mixed(self, at: Moment, heard: Heard) -> Rows:
        """W applied to the messages, plus what senders kept back: own + Σ_j w_ij (m̃_j − m_i)."""
        mixed = heard.own.clone()
        for inbox in self._each(at, heard):
            apart = inbox.rows - heard.sent[inbox.places]
            mixed[inbox.places] += (inbox.weights[:, :, None] * apart).sum(0)
        return mixed

    def _each(self, at: Moment, heard: Heard) -> Iterator[Inbox]:
        for inbox in heard.each():
            rows = inbox.rows.clone()
            lying = np.isin(inbox.senders, self.liars)
            for column, place in enumerate(inbox.places.tolist()):
                if lying[:, column].any() and int(at.devices[place]) not in self.liars:
                    self._lie(at, heard.sent[place], inbox, column, lying[:, column], rows)
            yield replace(inbox, rows=rows)

    def _lie(
        self, at: Moment, own: Rows, inbox: Inbox, column: int, lying: BoolArray, rows: Rows
    ) -> None:
        """Put lies to one device into its column of (m, g, k) rows."""
        liars, honest = (_places(places, inbox.weights) for places in (lying, ~lying))
        senders = inbox.senders[lying, column]
        true, weights = inbox.rows[:, column], inbox.weights[:, column, None]
        hearing = Hearing(
            own=own,
            honest=true[honest],
            honest_weights=weights[honest],
            liars=true[liars],
            liars_weights=weights[liars],
            noise=lambda: true.new_tensor(_normal(at, senders, true.shape[1])),
        )
        rows[liars, column] = self.attack(hearing)


def _places(chosen: BoolArray, like: Rows) -> Rows:
    return like.new_tensor(np.flatnonzero(chosen)).long()


def _normal(at: Moment, senders: IntArray, width: int) -> Rows:
    """(b, k) standard normal numbers of each sender, the same for all receivers."""
    drawn = [
        generator(at.seed, STREAM, at.t, sender).standard_normal(width)
        for sender in senders.tolist()
    ]
    return np.stack(drawn)


def among_liars(rule: Rule, liars: tuple[int, ...], attack: Attack) -> Rule:
    """The rule with these liars; the rule itself if there are none."""
    return AmongLiars(rule, liars, attack) if liars else rule
