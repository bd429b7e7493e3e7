import numpy as np
import torch

from ssdfl.learning import Shards, draw_batches


def test_shards_of_any_sizes():
    held = [[5, 1], [7], [2, 9, 4]]
    shards = Shards.of(held)
    assert [shard.tolist() for shard in shards] == held
    assert len(shards) == 3
    assert shards.sizes.tolist() == [2, 1, 3]
    assert shards.weights.mean() == 1
    assert shards.weights[2] == 3 * shards.weights[1]
    positions = np.array([[[1, 1], [0, 1]], [[2, 0], [1, 2]]])
    expected = [
        [[held[d][k] for k in row] for row in of] for d, of in zip((0, 2), positions, strict=True)
    ]
    assert shards.at([0, 2], positions).tolist() == expected


def test_equal_rows_stack():
    rows = np.arange(6).reshape(3, 2)
    assert torch.equal(Shards.of(rows).whole([0, 2]), torch.tensor([[0, 1], [4, 5]]))


def test_a_device_draws_from_all_of_its_own_samples_and_none_else():
    sizes = np.array([20, 2000, 1])
    drawn = np.concatenate(
        [draw_batches(0, t, range(3), (2, 500), sizes) for t in range(40)], axis=1
    )
    assert drawn.reshape(3, -1).max(axis=1).tolist() == [19, 1999, 0]
    assert len(np.unique(drawn[0])) == 20
    alone = draw_batches(0, 3, [1], (2, 5), sizes[1])
    assert np.array_equal(alone[0], draw_batches(0, 3, range(3), (2, 5), sizes)[1])
