"""What an experiment's ``clusters`` tell formation."""

import pytest

from ssdfl.clusters import AmplificationSettings, FormationSettings
from ssdfl.errors import InputError
from ssdfl.records import Experiment, load_experiment
from ssdfl.records.formation import TaskFacts, formation_settings


def settings_with(*texts):
    return formation_settings(load_experiment(None, texts), TaskFacts())


def test_defaults_are_the_papers():
    settings = formation_settings(Experiment(), TaskFacts())
    assert settings == FormationSettings()
    assert settings.amplification == AmplificationSettings(1, 1, 1, 0, 0.2, 0, 0.2)
    assert (settings.constants.variance_floor, settings.constants.tolerance) == (0.1, 10)
    assert settings.threshold_step == "eta"


def test_every_constant_of_the_paper_can_be_set():
    settings = settings_with(
        "clusters.threshold_step=eta_E",
        "clusters.variance_floor=0.3",
        "clusters.optimizer_weights=[1, 2.0, 3]",
        "clusters.optimizer_amplification=[0.1, 0.4]",
        "clusters.data_amplification=[0.2, 0.5]",
    )
    assert settings.threshold_step == "eta_E"
    assert settings.constants.variance_floor == 0.3
    assert settings.amplification == AmplificationSettings(
        kind_weight=1,
        mu_weight=2,
        rho_weight=3,
        optimizer_min=0.1,
        optimizer_max=0.4,
        data_min=0.2,
        data_max=0.5,
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("clusters.threshold_step=E", "clusters.threshold_step = E: expected eta or eta_E"),
        ("clusters.variance_floor=-1", "clusters.variance_floor = -1"),
        (
            "clusters.optimizer_weights=[0, 0, 0]",
            "clusters.optimizer_weights = .*at least one number above",
        ),
        ("clusters.optimizer_weights=[1, 1]", "clusters.optimizer_weights"),
        (
            "clusters.data_amplification=[0.3, 0.2]",
            "clusters.data_amplification = .*the least and the most",
        ),
        ("clusters.optimizer_amplification=[-1, 0]", "clusters.optimizer_amplification.0 = -1"),
    ],
)
def test_impossible_values(text, message):
    with pytest.raises(InputError, match=message):
        settings_with(text)
