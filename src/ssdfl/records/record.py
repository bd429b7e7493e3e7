"""What a cycle of a run came to."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Record:
    """What a cycle came to. Costs count from the start of the run.

    Attributes:
        accuracy, accuracy_std, accuracy_worst: test accuracy over devices; NaN if not evaluated.
        average_model_accuracy: test accuracy of the mean of all parameters.
        loss: mean test loss over devices.
        consensus_distance: root mean square distance of devices' parameters from their mean.
        effective_gradient: root mean square over the cycle's training steps and devices of the effective
            gradient (θ before − θ after) / η of `eq:expand_cluster_gd`.
        transmissions, sent_bytes, time_s: directed messages, bytes, simulated seconds.
        device_accuracy: test accuracy of each device.
        training_gap: ‖Δ̂‖ of Lemma 2 at the end of training; NaN if gaps are not recorded, as the next are
            empty.
        cluster_gaps_before, cluster_gaps: ‖Δ_s‖ of Lemma 1 before and after training, for each cluster.
        cluster_gradients: Σ_q ‖∇F̃_s‖² of Theorem 1 over the cycle's training steps.
        cluster_losses: Σ_i L_i before training, on a few of each device's samples.
    """

    cycle: int
    accuracy: float
    accuracy_std: float
    accuracy_worst: float
    average_model_accuracy: float
    loss: float
    consensus_distance: float
    effective_gradient: float
    transmissions: int
    sent_bytes: int
    time_s: float
    device_accuracy: tuple[float, ...]
    training_gap: float = math.nan
    cluster_gaps_before: tuple[float, ...] = ()
    cluster_gaps: tuple[float, ...] = ()
    cluster_gradients: tuple[float, ...] = ()
    cluster_losses: tuple[float, ...] = ()

    @property
    def tested(self) -> bool:
        """Whether the cycle ended with a test."""
        return not math.isnan(self.accuracy)
