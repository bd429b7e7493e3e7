import tomllib

import pytest
from pydantic import ValidationError

from ssdfl.errors import InputError
from ssdfl.records import Experiment, load_experiment, make_experiment, to_toml


def test_toml_there_and_back():
    experiment = load_experiment(
        None, ["training.learning_rate=0.2", "optimizers.rho=[0.5]", "model.options.hidden=9"]
    )
    assert make_experiment(tomllib.loads(to_toml(experiment))) == experiment


def test_the_default_experiment():
    experiment = Experiment()
    assert experiment.data.name == "digits"
    assert (experiment.schedule.tau_a, experiment.schedule.tau_r) == (5, 1)
    assert experiment.data.labels_per_device == 3
    assert experiment.optimizers.kind == "mixed"
    assert len(experiment.methods) == 7
    assert experiment.seeds == (0, 1)


def test_it_is_frozen():
    with pytest.raises(ValidationError, match="frozen"):
        Experiment().cycles = 5


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("cycles=7", 7),
        ("name=trial", "trial"),
        ('name="trial"', "trial"),
        ("methods=['sdfl']", ("sdfl",)),
        ("training.learning_rate=1", 1.0),
        ("network.spec=er:n=30,p=0.1", "er:n=30,p=0.1"),
        ("network.spec=a.graphml", "a.graphml"),
    ],
)
def test_settings_from_the_command_line(setting, expected):
    value = load_experiment(None, [setting])
    for part in setting.partition("=")[0].split("."):
        value = getattr(value, part)
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("training.lerning_rate=0.1", "training.lerning_rate = 0.1: .*Did you mean learning_rate"),
        ("training.loss=mse", "training.loss = mse: .*Did you mean task.loss"),
        ("cycels=3", "cycels = 3: .*Did you mean cycles"),
        ("trainning.batch_size=3", "trainning = .*Did you mean training"),
        ("cycles=0", "cycles = 0: expected greater than or equal to 1"),
        ("cycles='3'", "cycles = 3: expected a valid integer"),
        ("cycles=2.5", "cycles = 2.5: expected a valid integer"),
        ("cycles=true", "cycles = True: expected a valid integer"),
        ("training.learning_rate=-1", "training.learning_rate = -1: expected greater than 0"),
        ("training.learning_rate=nan", "training.learning_rate = nan"),
        ("training.learning_rate=inf", "training.learning_rate = inf"),
        (
            "schedule.link_probability=1.5",
            "schedule.link_probability = 1.5: expected less than or equal to 1",
        ),
        ("faults.liars=-1", "faults.liars = -1: expected a number of at least 0, or a list"),
        ("faults.liars=true", "faults.liars = True: expected a number of at least 0"),
        ("faults.liars=0.5", "faults.liars = 0.5: expected a number of at least 0"),
        ("faults.liars=['a', 'a']", "faults.liars = .*a list of different names"),
        ("network.mixing=fast", "network.mixing = fast: expected metropolis, lazy or fastest"),
        (
            "engine.name=quantum",
            "engine.name = quantum: expected local, reference, distributed or mesh",
        ),
        ("seeds=[]", "seeds = "),
        ("seeds=[-1]", "seeds.0 = -1"),
        ("seeds=[0, 0]", "seeds = .*each only once"),
        ("methods=['sdfl', 'sdfl']", "methods = .*each only once"),
        ("optimizers.rho=[2.0]", "optimizers.rho.0 = 2.0: expected less than 1"),
        ("seeds=[9223372036854775808]", "seeds.0"),
        ("name=..", "name = .."),
        ("methods=3", "methods = 3"),
        ("name=a/b", "name = a/b"),
        ("cycles.x=3", "cycles = {'x': 3}"),
        ("cycles", "--set = cycles: expected key=value"),
    ],
)
def test_bad_settings_name_the_key(setting, message):
    with pytest.raises(InputError, match=message):
        load_experiment(None, [setting])


def test_settings_below_a_value():
    with pytest.raises(InputError, match="cycles to be a section"):
        load_experiment(None, ["cycles=3", "cycles.x=4"])


def test_files(tmp_path):
    path = tmp_path / "e.toml"
    path.write_text('cycles = 4\n[network]\nspec = "net.csv"\n')
    (tmp_path / "net.csv").write_text("source,target\na,b\n")
    experiment = load_experiment(path, ["cycles=5"])
    assert experiment.cycles == 5
    assert experiment.network.spec == str(tmp_path / "net.csv")


@pytest.mark.parametrize("content", [None, b"cycles = ", b"\xff\xfe"])
def test_unreadable_files(tmp_path, content):
    path = tmp_path / "e.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match="expected a TOML file"):
        load_experiment(path)


def test_a_table_in_the_place_of_an_experiment_is_refused_with_the_setting(tmp_path):
    table = tmp_path / "houses.csv"
    table.write_text("rooms,price\n3,120\n")
    with pytest.raises(InputError, match=f"Use --set data.name={table} for data"):
        load_experiment(table)
