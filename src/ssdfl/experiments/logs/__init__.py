"""Write records to other tools: TensorBoard, MLflow, Weights & Biases."""

from ssdfl.experiments.logs.base import scalars
from ssdfl.experiments.logs.opening import LOGS, logging_to

__all__ = ["LOGS", "logging_to", "scalars"]
