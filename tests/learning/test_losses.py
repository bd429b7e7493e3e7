"""Losses and metrics against torch's, scikit-learn's and figures by hand."""

import numpy as np
import pytest
import torch
from sklearn import metrics as sk
from torch import nn

from ssdfl.errors import InputError
from ssdfl.learning import LOSSES, TaskMetric, find_loss, find_metrics
from ssdfl.learning.losses import binary_cross_entropy, cross_entropy, huber, mse
from ssdfl.learning.metrics import METRICS
from ssdfl.records.scores import SCORES, Goal, Score, make_goal

RNG = np.random.default_rng(0)
NUMBERS = torch.from_numpy(RNG.standard_normal((40, 1)).astype(np.float32))
TRUTH = torch.from_numpy(RNG.standard_normal(40).astype(np.float32))
YES = (TRUTH > 0).long()
LABELS = torch.from_numpy(RNG.integers(0, 2, (40, 3)).astype(np.float32))
LOGITS = torch.from_numpy(RNG.standard_normal((40, 3)).astype(np.float32))


def test_losses_are_torchs():
    F = nn.functional
    assert torch.allclose(mse(NUMBERS, TRUTH), F.mse_loss(NUMBERS[:, 0], TRUTH))
    assert torch.allclose(huber(NUMBERS, TRUTH), F.huber_loss(NUMBERS[:, 0], TRUTH))
    expected = F.binary_cross_entropy_with_logits(NUMBERS[:, 0], YES.float())
    assert torch.allclose(binary_cross_entropy(NUMBERS, YES), expected)
    scores, tokens = torch.randn(5, 7, 4), torch.randint(0, 4, (5, 7))
    assert torch.allclose(
        cross_entropy(scores, tokens), F.cross_entropy(scores.transpose(1, 2), tokens)
    )


@pytest.mark.parametrize(
    ("name", "outputs", "targets", "expected"),
    [
        ("r2", NUMBERS, TRUTH, sk.r2_score(TRUTH, NUMBERS[:, 0])),
        ("r2", LOGITS, LABELS, sk.r2_score(LABELS, LOGITS, multioutput="variance_weighted")),
        ("mae", NUMBERS, TRUTH, sk.mean_absolute_error(TRUTH, NUMBERS[:, 0])),
        ("rmse", NUMBERS, TRUTH, sk.root_mean_squared_error(TRUTH, NUMBERS[:, 0])),
        ("binary_accuracy", NUMBERS, YES, sk.accuracy_score(YES, NUMBERS[:, 0] > 0)),
        ("f1", NUMBERS, YES, sk.f1_score(YES, NUMBERS[:, 0] > 0)),
        ("f1", LOGITS, LABELS, sk.f1_score(LABELS, LOGITS > 0, average="micro")),
        ("label_accuracy", LOGITS, LABELS, sk.accuracy_score(LABELS, LOGITS > 0)),
        ("accuracy", LOGITS, YES, sk.accuracy_score(YES, LOGITS.argmax(1))),
        (
            "perplexity",
            LOGITS,
            YES,
            np.exp(sk.log_loss(YES, LOGITS.double().softmax(1), labels=[0, 1, 2])),
        ),
    ],
)
def test_metrics_are_scikit_learns_whole_and_in_pieces(name, outputs, targets, expected):
    metric = METRICS[name]
    assert float(metric(outputs, targets)) == pytest.approx(expected, rel=1e-5)
    pieces = [metric.sums(outputs[k : k + 13], targets[k : k + 13]) for k in range(0, 40, 13)]
    assert float(metric.value(torch.stack(pieces).sum(0))) == pytest.approx(expected, rel=1e-5)


def test_every_score_is_described_computed_and_every_loss_has_some():
    assert METRICS.keys() == SCORES.keys()
    assert {name for kind in LOSSES.values() for name in kind.metrics} <= METRICS.keys()


def largest_error(outputs, targets):
    return (outputs.squeeze(-1) - targets).abs().mean()


largest_error.label, largest_error.better, largest_error.unit = "error", "lower", "m"
own = TaskMetric(Score("own", "own score"), METRICS["mae"].sums)


def test_metrics_of_ones_own():
    function, value = find_metrics([f"{__name__}:largest_error", f"{__name__}:own"])
    assert (function.score.label, function.score.better, function.score.unit) == (
        "error",
        "lower",
        "m",
    )
    expected = float((NUMBERS[:, 0] - TRUTH).abs().mean())
    assert float(function(NUMBERS, TRUTH)) == pytest.approx(expected)
    assert value is own
    with pytest.raises(InputError, match=r"task.metrics = speed: expected one of accuracy"):
        find_metrics(["speed"])
    with pytest.raises(InputError, match=r"1 to 4 metrics"):
        find_metrics(["r2"] * 5)
    with pytest.raises(InputError, match=r"task.loss = speed: expected one of cross_entropy"):
        find_loss("speed", classes=True)
    assert find_loss(f"{__name__}:largest_error", classes=False).metrics == ("r2", "mae")


def plain_difference(outputs, targets):
    return (outputs - targets).abs().mean()


def test_a_function_of_ones_own_gets_outputs_in_the_shape_of_the_targets():
    own = f"{__name__}:plain_difference"
    expected = float((NUMBERS[:, 0] - TRUTH).abs().mean())
    assert float(plain_difference(NUMBERS, TRUTH)) != pytest.approx(expected)  # it takes all pairs
    loss = find_loss(own, classes=False).function
    assert float(loss(NUMBERS, TRUTH)) == pytest.approx(expected)
    (metric,) = find_metrics([own])
    assert float(metric(NUMBERS, TRUTH)) == pytest.approx(expected)
    scores, labels = torch.randn(4, 3), torch.tensor([0, 2, 1, 1])
    of_classes = find_loss("torch.nn.functional:cross_entropy", classes=True).function
    assert torch.equal(of_classes(scores, labels), nn.functional.cross_entropy(scores, labels))


def test_goals_follow_the_good_end():
    up, down = Goal((SCORES["accuracy"],), 0.8), Goal((SCORES["mae"],), 2.0)
    assert up.reached(0.8)
    assert not up.reached(0.79)
    assert not up.reached(float("nan"))
    assert down.reached(2.0)
    assert not down.reached(2.1)
    assert (up.shown_target, down.shown_target) == ("80 %", "2")
    assert SCORES["mae"].worst([1.0, 3.0]) == 3.0
    assert SCORES["r2"].worst([1.0, 3.0]) == 1.0
    assert make_goal([SCORES["r2"]], "auto").target is None
    assert make_goal([SCORES["accuracy"]], "auto").target == 0.85
    assert make_goal([SCORES["r2"]], 0.4).target == 0.4
