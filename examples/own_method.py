"""A method of your own is a function from a setting to a schedule.

From the repository's root the command line takes it too:
``ssdfl run --methods ssdfl,examples.own_method:every_second``
"""

import tempfile
from pathlib import Path

from scipy.sparse import csr_array, eye_array

import ssdfl


def every_second(setting: ssdfl.ScheduleInputs) -> ssdfl.Schedule:
    """SSD-FL that mixes inside clusters at every second step only, with half the messages."""
    within = setting.weights(setting.inside(setting.clusters))
    alone = csr_array(eye_array(setting.network.num_devices))
    return setting.cycle(intra=lambda t: within if t % 2 else alone, inter=setting.all_links)


if __name__ == "__main__":
    methods = ("ssdfl", f"{Path(__file__).stem}:every_second")
    experiment = ssdfl.Experiment(methods=methods, seeds=(0,), cycles=20)
    with tempfile.TemporaryDirectory() as folder:
        for row in ssdfl.summarise(ssdfl.run_experiment(experiment, folder + "/run")):
            print(f"{row.method:>24}: {100 * row.score:.1f} %, {row.sent_bytes / 1e6:.0f} MB sent")
