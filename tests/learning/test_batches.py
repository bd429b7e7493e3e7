import numpy as np
from scipy import stats

from ssdfl.learning import draw_batches


def test_one_device_alone_draws_what_it_draws_among_all():
    everyone = draw_batches(3, 17, range(10), (2, 5), 100)
    for device in range(10):
        assert np.array_equal(
            draw_batches(3, 17, range(device, device + 1), (2, 5), 100)[0], everyone[device]
        )


def test_uniform_and_different_at_every_step():
    draws = [draw_batches(0, t, range(4), (1, 50), 20) for t in range(50)]
    assert stats.chisquare(np.bincount(np.concatenate(draws).ravel(), minlength=20)).pvalue > 1e-3
    assert not np.array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0][0], draws[0][1])
