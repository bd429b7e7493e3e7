"""Rules with compressed messages, with or without error compensation."""

from __future__ import annotations

from dataclasses import dataclass, field

from ssdfl.errors import check_range
from ssdfl.methods.compressors import Compressor, TopK
from ssdfl.methods.moment import Moment, Rows
from ssdfl.methods.rules.base import Heard, Memory, Message, Move, Rule
from ssdfl.methods.rules.wrapped import WrappedRule

_KEPT = ("public", "sum")
"""The memory of CHOCO for each matrix: x̂ and s."""


@dataclass(frozen=True)
class Choco(Rule):
    """CHOCO: devices send compressed changes of a public copy of themselves, and mix the copies.

        x½ = x − η g,  q = Q(x½ − x̂),  x̂ ← x̂ + q,  s ← s + W q,  x⁺ = x½ + γ (s − x̂)

    s = W x̂ holds only while W stays the same, so there is a pair (x̂, s) for each matrix of the
    schedule. For `ssdfl` these are one for the clusters and one for the whole network. Copies start
    from the initial model.

    Source: Koloskova, Stich and Jaggi, CHOCO-SGD, ICML 2019; Koloskova, Lin, Stich and Jaggi, ICLR
    2020.
    """

    compressor: Compressor = field(default=TopK())
    gamma: float = 0.0
    early = False
    steady = True

    def __post_init__(self) -> None:
        check_range("gamma", self.gamma, 0, 1, "1 mixes in full; 0 suits the compressor.")

    def init(self, theta: Rows) -> Memory:
        """All public copies are the initial model."""
        return {f"{name}{k}": theta.clone() for k in range(self.matrices) for name in _KEPT}

    def send(
        self, at: Moment, theta: Rows, move: Move | None, memory: Memory
    ) -> tuple[Message, Memory]:
        """The compressed change of the public copy."""
        assert move is not None
        public = memory[f"public{at.matrix}"]
        change = move.applied_to(theta) - public
        seen = self.compressor(change, at)
        public.add_(seen)
        return Message(seen, compressor=self.compressor, exact=change), memory

    def receive(
        self, at: Moment, theta: Rows, move: Move, memory: Memory, heard: Heard
    ) -> tuple[Rows, Memory]:
        """Move part of the way to the mean of the public copies."""
        mixed = memory[f"sum{at.matrix}"].add_(heard.mixed)
        apart = mixed - memory[f"public{at.matrix}"]
        gamma = self.gamma or self.compressor.gamma
        return move.added_to(theta.add(apart, alpha=gamma)), memory


@dataclass(frozen=True)
class Compressed(WrappedRule):
    """Another rule with compressed messages; the sender keeps the compression error.

        x⁺ = x + (W Q(x) − Q(x)) in place of W x

    So the mean of all devices is preserved for any Q. It needs no memory and runs on any schedule,
    but devices agree only up to the resolution of Q: with strong compression, `choco` does better.

    Source: Carli, Fagnani, Frasca and Zampieri, Gossip consensus via quantized communication, 2010.
    """

    compressor: Compressor = field(default=TopK())

    def __post_init__(self) -> None:
        compressor = self.compressor
        super().__post_init__()
        object.__setattr__(self, "compressor", compressor)

    def send(
        self, at: Moment, theta: Rows, move: Move | None, memory: Memory
    ) -> tuple[Message, Memory]:
        """The inner rule's messages, compressed."""
        message, memory = super().send(at, theta, move, memory)
        assert self.compressor is not None
        exact = message.rows
        seen = self.compressor(exact, at)
        return Message(seen, compressor=self.compressor, exact=exact, kept=exact - seen), memory

    def receive(
        self, at: Moment, theta: Rows, move: Move, memory: Memory, heard: Heard
    ) -> tuple[Rows, Memory]:
        """The inner rule's result."""
        after, kept = self.rule.receive(at, theta, move, self.inner(memory), heard)
        return after, self.with_inner(memory, kept)
