"""Simulate learning by a model so small that a hundred cycles take milliseconds.

`disagreement` is exact for a linear model. If devices drift far, the softmax matters: a bias stops
growing once its label is predicted, and a device that favours its own labels still learns to tell
classes apart. The pilot keeps just that. Device i has a bias ``b_c`` for every class and a signal
``m_k``, by which it favours class k on samples of class k. So the logits of a sample of class k are
``b + m_k e_k``, and cross-entropy on label frequencies p trains both:

    q(k) = softmax(b + m_k e_k),   m_k += a p_k (1 − q_k(k)),   b += c (p − Σ_k p_k q(k)).

Signals and biases mix as parameters do. With a rule that corrects drift they also get EXTRA's
correction, as parameters would. A device's accuracy on class k is the chance that its logit is
largest under Gumbel noise of scale σ, which is ``softmax((b + m_k e_k) / σ)_k``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ssdfl.arrays import FloatArray
from ssdfl.graph import MixingMatrix

SIGNAL, BIAS, NOISE = 0.77, 6.9, 0.18
"""a, c and σ, fitted to the cycles of 13 networks: see `docs/studies/formation`."""
STEP_LENGTH = 0.2
"""η E of these networks; with shorter steps, signals and biases learn in proportion."""
_CYCLES = 30
_SHARE = 0.9
_PATIENCE = 3
_LARGEST = 50.0


@dataclass(frozen=True, eq=False)
class Pilot:
    """A simulation of learning on a network.

    Attributes:
        A: (N, N) the mixing matrix of the whole network.
        frequencies: (N, C) the share of each label in each device's data.
        corrects: devices learn to undo their drift, as with EXTRA.
        step_length: η E.
        signal: a, how fast a device learns to tell a class from others.
        bias: c, how fast it learns to favour its own labels.
        noise: σ, how much samples of a class differ.
    """

    A: FloatArray
    frequencies: FloatArray
    tau_a: int
    tau_r: int
    corrects: bool = False
    step_length: float = STEP_LENGTH
    signal: float = SIGNAL
    bias: float = BIAS
    noise: float = NOISE

    def cycles(self, A_intra: MixingMatrix) -> float:
        """The cycles to nine tenths of the accuracy that one cluster has after 30 cycles.

        Beyond 90 cycles they are extrapolated, as if accuracy rose in proportion to them.
        """
        chance = before = self._chance
        most = _PATIENCE * _CYCLES
        for cycle, accuracy in enumerate(self.accuracies(A_intra.toarray(), most)):
            if accuracy >= self.target:
                return cycle + (self.target - before) / max(accuracy - before, 1e-12)
            before = accuracy
        return most * (self.target - chance) / max(before - chance, 1e-3)

    @cached_property
    def target(self) -> float:
        """The accuracy to reach."""
        *_, last = self.accuracies(self.A, _CYCLES)
        return max(_SHARE * last, self._chance)

    @property
    def _chance(self) -> float:
        return 1.0 / int(self.frequencies.shape[1])

    def accuracies(self, A_intra: FloatArray, cycles: int) -> Iterator[float]:
        """Devices' mean accuracy after each cycle, over all classes that some device has."""
        p = self.frequencies
        classes = p.any(axis=0)
        x = np.zeros((2, *p.shape))  # signals and biases
        correction = np.zeros_like(x)
        for _ in range(cycles):
            for _ in range(self.tau_a):
                pulls = self._moves(x) - correction
                x = self._mixed(A_intra, x, correction, share=0.5) + pulls
            for _ in range(self.tau_r):
                x = self._mixed(self.A, x, correction, share=0.5 / self.tau_a)
            _, raised, total = _exponentials(*x / self.noise)
            yield float((raised / total)[:, classes].mean())

    def _moves(self, x: FloatArray) -> FloatArray:
        """What training adds to signals and biases."""
        signal, bias = x
        signal_pull, bias_pull = _pulls(signal, bias, self.frequencies)
        share = min(1.0, self.step_length / STEP_LENGTH)
        return share * np.stack([self.signal * signal_pull, self.bias * bias_pull])

    def _mixed(
        self, W: FloatArray, x: FloatArray, correction: FloatArray, share: float
    ) -> FloatArray:
        """``W x``; the correction gets a share of what mixing changes."""
        mixed: FloatArray = W @ x
        if self.corrects:
            correction += share * (x - mixed)
        return mixed


def _pulls(signal: FloatArray, bias: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The negative gradients of cross-entropy by signals and by biases."""
    alone, raised, total = _exponentials(signal, bias)
    right = raised / total
    share = p / total
    others = share.sum(axis=1, keepdims=True) - share
    predicted = alone * others + p * right
    return p * (1 - right), p - predicted


def _exponentials(
    signal: FloatArray, bias: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """``exp(b_k)``, ``exp(b_k + m_k)`` and the softmax's denominator on class k, up to a factor."""
    alone = np.exp(bias - bias.max(axis=1, keepdims=True))
    raised = alone * np.exp(np.minimum(signal, _LARGEST))
    total = alone.sum(axis=1, keepdims=True) - alone + raised
    return alone, raised, total
