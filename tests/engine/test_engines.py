"""The contract: every engine computes what the reference does, whatever the job."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from torch import nn

from helpers import TOPOLOGY_SPECS, in_double, tiny_data, tiny_job, tiny_task
from ssdfl.engine import initial_state, load_state, local, make_engine, run, save_state
from ssdfl.engine.gradients import looped, stacked
from ssdfl.errors import InputError
from ssdfl.graph import load_network
from ssdfl.learning import KINDS, Shards, paper_optimizer, parse_optimizer
from ssdfl.methods import (
    METHODS,
    RULES,
    ScheduleInputs,
    drop_devices,
    drop_links,
    find_rule,
    period_of,
)
from ssdfl.records.engines import ENGINES

HERE = [name for name, traits in ENGINES.items() if not traits.process_per_device]
FAST = [name for name in HERE if name != "reference"]
EXACT = [name for name in HERE if ENGINES[name].resumes_exactly]


def assert_same_run(job, engines=FAST, tolerance=2e-5):
    """What engines compute is what the reference does, which takes longest and is asked once."""
    expected = list(run(job, "reference"))
    assert len(expected) == job.cycles
    for engine in engines:
        for (record, right), found in zip(expected, run(job, engine), strict=True):
            assert_same(engine, record, right, *found, tolerance)


def assert_same(engine, expected, right, record, state, tolerance):
    difference = (state.X - right.X).abs().max()
    assert torch.allclose(state.X, right.X, atol=tolerance), (engine, difference)
    assert state.ready_s == pytest.approx(right.ready_s), engine
    for name, value in dataclasses.asdict(expected).items():
        close = pytest.approx(value, rel=1e-3, abs=1e-4, nan_ok=True)
        assert getattr(record, name) == close, (engine, name)


@pytest.mark.parametrize("spec", TOPOLOGY_SPECS)
@pytest.mark.parametrize("method", METHODS)
def test_methods_and_topologies(method, spec):
    assert_same_run(tiny_job(method, spec, cycles=2))


@pytest.mark.parametrize("optimizers", KINDS)
@pytest.mark.parametrize("rule", ["cta", "atc", "gt"])
def test_rules_and_optimizers(rule, optimizers):
    """In 64 bit, since Adam turns the last bits of small gradients into whole steps."""
    task = in_double(tiny_task(6))
    job = tiny_job(f"ssdfl+{rule}", optimizers=optimizers, cycles=2, local_steps=2, task=task)
    assert_same_run(job, tolerance=1e-9)


COMPRESSED = (
    "choco:compressor=int8",
    "gt:compressor=randomk,fraction=0.5",
    "median:compressor=bf16",
)


@pytest.mark.parametrize("rule", [*RULES, *COMPRESSED, "outer:rule=ed"])
@pytest.mark.parametrize("method", METHODS)
def test_methods_and_rules(method, rule):
    """In 64 bit: a last bit more or less may round a number up instead of down."""
    changes = {
        "cycles": 2,
        "local_steps": 2,
        "task": in_double(tiny_task(6)),
        "optimizers": "mixed",
    }
    steady = find_rule(rule).steady
    if steady and period_of(tiny_job(method).schedule) is None:
        with pytest.raises(InputError, match="links change at random"):
            tiny_job(f"{method}+{rule}", **changes)
        return
    job = tiny_job(f"{method}+{rule}", **changes)
    right = list(run(job, "reference"))
    for engine in FAST:
        for (expected, after), (record, state) in zip(right, run(job, engine), strict=True):
            assert torch.allclose(state.X, after.X, atol=1e-9)
            for name, rows in after.memory.items():
                assert torch.allclose(state.memory[name], rows, atol=1e-8), name
            assert record.sent_bytes == expected.sent_bytes
            assert record.effective_gradient == pytest.approx(expected.effective_gradient, rel=1e-6)


@pytest.mark.parametrize("rule", [*RULES, *COMPRESSED])
def test_a_resumed_run_is_the_same_bit_for_bit(rule, tmp_path):
    job = tiny_job(f"ssdfl+{rule}", cycles=4, optimizers="mixed")
    whole = list(run(job))
    save_state(whole[1][1], job, tmp_path / "state")
    rest = list(run(job, state=load_state(tmp_path / "state", job)))
    assert [record for record, _ in rest] == [record for record, _ in whole[2:]]
    assert torch.equal(rest[-1][1].X, whole[-1][1].X)


@pytest.mark.parametrize("rule", [rule for rule in RULES if not find_rule(rule).steady])
def test_rules_with_devices_that_fail(rule):
    """Some train while others do not, and some hear nobody."""
    job = tiny_job(f"ssdfl+{rule}", cycles=3, task=in_double(tiny_task(6)))
    faulty = dataclasses.replace(job, schedule=drop_devices(job.schedule, 0.4, seed=2))
    assert_same_run(faulty, ["local"], tolerance=1e-9)


@pytest.mark.parametrize(
    "changes",
    [
        {"local_steps": 3},
        {"batch_size": 0},
        {"batch_size": 0, "local_steps": 2},
        {"evaluate_every": 2},
        {"model": "mlp", "local_steps": 2},
        {"optimizers": "momentum", "local_steps": 4},
    ],
    ids=str,
)
def test_other_settings(changes):
    assert_same_run(tiny_job(**changes))


@pytest.mark.parametrize("drop", [drop_links, drop_devices])
def test_faults(drop):
    job = tiny_job("ssdfl", cycles=4)
    assert_same_run(dataclasses.replace(job, schedule=drop(job.schedule, 0.4, seed=2)))


def test_convolutions():
    task = tiny_task(6, f"{__name__}:small_cnn")
    assert task.has_convolutions
    assert_same_run(tiny_job(task=task, optimizers="mixed"))


def small_cnn(image_shape, num_classes):
    return nn.Sequential(
        nn.Conv2d(1, 3, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(48, num_classes)
    )


@pytest.mark.parametrize("engine", FAST)
@pytest.mark.parametrize("factory", ["with_dropout", "with_functional_dropout"])
def test_dropout_is_drawn_alike_and_off_in_tests(factory, engine):
    task = tiny_task(6, f"{__name__}:{factory}")
    assert not task.stackable
    job = tiny_job(task=task)
    assert_same_run(job, [engine])
    X = initial_state(job).X
    scores = [make_engine(engine, job).evaluate(X)[0] for _ in range(2)]
    assert torch.equal(*scores)


class FunctionalDropout(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.convolution, self.head = nn.Conv2d(1, 2, 3), nn.Linear(8, num_classes)

    def forward(self, x):
        return self.head(nn.functional.dropout(self.convolution(x).flatten(1), 0.5, self.training))


def with_functional_dropout(image_shape, num_classes):
    return FunctionalDropout(num_classes)


def with_dropout(image_shape, num_classes):
    return nn.Sequential(
        nn.Flatten(), nn.Linear(16, 12), nn.Dropout(0.5), nn.Linear(12, num_classes)
    )


def test_both_ways_to_the_gradients_agree():
    job = tiny_job(model="mlp")
    X = initial_state(job).X + 0.1 * torch.randn(6, job.task.num_parameters)
    samples = job.samples(range(6), 0)[:, 0]
    one_by_one, at_once = (
        make(job, job.task)(X, np.arange(6), samples, (0, 0)) for make in (looped, stacked)
    )
    assert torch.allclose(one_by_one, at_once, atol=1e-6)


@pytest.mark.parametrize("engine", HERE)
def test_the_same_twice_bit_for_bit(engine):
    job = tiny_job("stc")
    for (first, a), (second, b) in zip(run(job, engine), run(job, engine), strict=True):
        assert first == second
        assert torch.equal(a.X, b.X)


@pytest.mark.parametrize("engine", EXACT)
def test_any_state_can_be_gone_on_from(engine):
    job = tiny_job("cstc", optimizers="momentum", cycles=4)
    whole = list(run(job, engine))
    for k, (_, state) in enumerate(whole):
        rest = list(run(job, engine, state))
        assert [record for record, _ in rest] == [record for record, _ in whole[k + 1 :]]
        assert not rest or torch.equal(rest[-1][1].X, whole[-1][1].X)


def test_momentum_goes_on_across_cycles_of_a_schedule_that_never_pauses():
    """A regime ends when a device does not train; a schedule without such a step is one regime."""
    job = tiny_job("sdfl", optimizers="momentum")
    never_pauses = dataclasses.replace(job, schedule=lambda t: job.schedule(0))
    assert_same_run(never_pauses, ["local"])
    states = [state for _, state in run(never_pauses, "local")]
    assert states[0].trained.all()
    assert [r for r, _ in run(never_pauses, "local", states[0])] == [
        r for r, _ in run(never_pauses)
    ][1:]


@pytest.mark.parametrize("engine", HERE)
def test_divergence_names_step_and_device(engine):
    job = tiny_job(learning_rate=1e30, optimizers="sgd", model="mlp", cycles=30)
    with pytest.raises(InputError, match=r"device \d+ diverged at step \d+"):
        list(run(job, engine))


def test_unknown_engine():
    with pytest.raises(InputError, match="engine.name = quantum: expected one of local, reference"):
        next(run(tiny_job(), "quantum"))


def test_records_cost_what_the_schedule_sends():
    job = tiny_job("ssdfl", "barbell:size=3", cycles=2)
    record, state = list(run(job))[-1]
    # Per cycle: 2 training steps over 6 links inside clusters, 1 step over all 7; two messages
    # each.
    assert record.transmissions == 2 * (2 * 2 * 6 + 2 * 7)
    assert record.sent_bytes == record.transmissions * 4 * job.task.num_parameters
    assert record.time_s == state.ready_s.max() > 0


def test_pdfl_time_is_computing_then_one_exchange():
    job = tiny_job("pdfl", "ring:n=4", local_steps=3, cycles=1)
    record, _ = next(run(job))
    message_s = job.network.message_time_s(4 * job.task.num_parameters)[0]
    assert record.time_s == pytest.approx(2 * 3 * 0.01 + message_s)


def test_central_agrees_fully_and_consensus_is_measured():
    central, _ = list(run(tiny_job("central")))[-1]
    assert central.consensus_distance == pytest.approx(0, abs=1e-5)
    assert central.score_std == pytest.approx(0, abs=1e-9)
    record, state = list(run(tiny_job("pdfl")))[-1]
    X = state.X.numpy().astype(float)
    assert record.consensus_distance == pytest.approx(
        np.sqrt(((X - X.mean(0)) ** 2).sum(1).mean()), rel=1e-4
    )


def test_the_effective_gradient_is_the_step_over_the_learning_rate():
    job = tiny_job("pdfl", optimizers="sgd", cycles=1, steps_per_cycle=1, batch_size=0)
    record, _ = next(run(job))
    X = initial_state(job).X
    G = looped(job, job.task)(X, np.arange(6), job.samples(range(6), 0)[:, 0], (0, 0))
    assert record.effective_gradient == pytest.approx(
        float(G.square().sum(1).mean().sqrt()), rel=1e-3
    )


def test_accuracy_is_only_tested_when_due():
    records = [record for record, _ in run(tiny_job(cycles=5, evaluate_every=3))]
    assert [math.isnan(record.score) for record in records] == [True, True, False, True, False]
    assert [len(record.device_score) for record in records] == [0, 0, 6, 0, 6]


@pytest.mark.parametrize("engine", HERE)
def test_the_mean_model_alone_is_tested_as_among_all(engine):
    both = (
        tiny_job(cycles=3, evaluate_every=2),
        tiny_job(cycles=3, evaluate_every=2, tested_models="mean"),
    )
    among_all, alone = ([record for record, _ in run(job, engine)] for job in both)
    for every, mean in zip(among_all, alone, strict=True):
        assert mean.average_model_score == pytest.approx(every.average_model_score, nan_ok=True)
        assert mean.tested == every.tested
        untested = (mean.score, mean.score_std, mean.score_worst, mean.loss)
        assert all(map(math.isnan, untested))
        assert mean.device_score == ()
        assert mean.consensus_distance == every.consensus_distance
    assert [record.tested for record in alone] == [False, True, True]
    assert alone[1].reported_score == alone[1].average_model_score


def test_it_learns():
    record, _ = list(run(tiny_job("ssdfl", cycles=15)))[-1]
    assert record.score > 0.9
    assert record.score_worst <= record.score <= 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"optimizers": (paper_optimizer(),) * 5}, "number of optimizers = 5: expected 6"),
        ({"learning_rate": 0.0}, "learning_rate = 0.0"),
        ({"learning_rate": math.nan}, "learning_rate = nan"),
        ({"cycles": 0}, "cycles = 0"),
        ({"batch_size": -1}, "batch_size = -1"),
        ({"local_steps": 0}, "local_steps = 0"),
    ],
)
def test_impossible_jobs(changes, message):
    with pytest.raises(InputError, match=message):
        dataclasses.replace(tiny_job(), **changes)


def test_network_and_task_must_match():
    network = load_network("ring:n=5")
    with pytest.raises(InputError, match="number of shards = 6: expected 5"):
        tiny_job(network=network, schedule=METHODS["sdfl"].schedule(ScheduleInputs(network, ())))


def test_torch_keeps_to_one_thread_and_gets_the_rest_back(threads):
    threads(2)
    seen = []
    job = tiny_job()

    def spy(t):
        seen.append(torch.get_num_threads())
        return job.schedule(t)

    watched = dataclasses.replace(job, schedule=spy)
    for _ in zip(run(watched), run(watched), strict=True):
        assert torch.get_num_threads() == 2
    assert set(seen) == {1}


@pytest.mark.parametrize("model", ["mlp", f"{__name__}:small_cnn", f"{__name__}:with_dropout"])
def test_any_number_of_cores_gives_the_same_bits(model, threads, monkeypatch):
    monkeypatch.setattr(local, "_FEWEST", 1)
    monkeypatch.setattr(local, "_NUMBERS_IN_CACHE", 1)
    job = tiny_job(task=tiny_task(6, model), local_steps=2)
    states = []
    for number in (1, 2, 5):
        threads(number)
        states.append([(record, state.X) for record, state in run(job)])
    for one, other in zip(states[0], states[1], strict=True):
        assert one[0] == other[0]
        assert torch.equal(one[1], other[1])
    assert [record for record, _ in states[0]] == [record for record, _ in states[2]]


def test_a_state_that_is_kept_does_not_change_unless_asked_for():
    job = tiny_job("stc", optimizers="momentum", cycles=4)
    kept = [state for _, state in run(job)]
    copies = [state.X.clone() for _, state in run(job, in_place=True)]
    reused = [state.X for _, state in run(job, in_place=True)]
    assert all(torch.equal(state.X, copy) for state, copy in zip(kept, copies, strict=True))
    assert len({X.data_ptr() for X in reused}) <= 2
    assert len({state.X.data_ptr() for state in kept}) == 4


def test_a_run_does_not_write_into_the_state_it_starts_from():
    job = tiny_job("stc", optimizers="mixed", cycles=4)
    _, start = next(run(job))
    before = start.clone()
    list(run(job, state=start))
    assert torch.equal(start.X, before.X)
    assert start.memory.keys() == before.memory.keys()
    assert all(torch.equal(start.memory[name], before.memory[name]) for name in before.memory)


@pytest.mark.parametrize(("optimizers", "matrices"), [("sgd", 2), ("momentum", 3), ("mixed", 3)])
def test_the_engine_holds_two_matrices_and_what_optimizers_keep(optimizers, matrices):
    job = tiny_job(optimizers=optimizers, local_steps=2)
    engine, state = make_engine("local", job), initial_state(job)
    rows = {}
    for t in range(7):
        step = job.schedule(t)
        X, memory, *_ = engine.advance(state, step, t)
        rows |= {tensor.data_ptr(): len(tensor) for tensor in (X, *memory.values())}
        state = dataclasses.replace(state, X=X, memory=memory, trained=step.train)
    engine.close()
    assert sum(rows.values()) <= matrices * len(state.X)


def test_many_devices_never_make_a_dense_matrix(monkeypatch):
    network = load_network("ring:n=3000")
    shards = Shards.of(np.arange(3000 * 4).reshape(3000, 4) % len(tiny_data().train_targets))
    task = dataclasses.replace(tiny_task(2), shards=shards)
    setting = ScheduleInputs(network, (tuple(range(1500)), tuple(range(1500, 3000))), tau_a=2)
    job = dataclasses.replace(
        tiny_job(),
        network=network,
        task=task,
        schedule=METHODS["ssdfl"].schedule(setting),
        optimizers=(paper_optimizer(rho=0.5),) * 3000,
        cycles=1,
    )
    monkeypatch.setattr(csr_array, "toarray", None)
    monkeypatch.setattr(csr_array, "todense", None)
    record, _ = next(run(job))
    assert record.transmissions == 2 * (2 * 2998) + 6000


@pytest.mark.parametrize("optimizers", ["mixed", "momentum", "sgd"])
@pytest.mark.parametrize("model", ["mlp", f"{__name__}:small_cnn"])
@pytest.mark.parametrize("spec", ["barbell:size=3", "ring:n=6", "complete:n=6"])
def test_every_tensor_of_a_step_lives_on_the_tasks_device(spec, model, optimizers):
    """On torch's device without memory, which refuses tensors of another device, as a GPU does."""
    here = tiny_job(spec=spec, task=tiny_task(6, model), optimizers=optimizers)
    task = here.task.to("meta")
    task.__dict__.update(stackable=here.task.stackable, draws_random_numbers=False)
    job = dataclasses.replace(here, task=task)
    engine, state = make_engine("local", job), initial_state(job)
    for t in range(3):
        step = job.schedule(t)
        if t == 1:
            step = dataclasses.replace(step, train=step.train & (np.arange(6) % 2 == 0))
        X, memory, moved, *_ = engine.advance(state, step, t)
        tensors = (X, *memory.values(), moved)
        assert {tensor.device.type for tensor in tensors} == {"meta"}
        state = dataclasses.replace(state, X=X, memory=memory, trained=step.train)


def test_the_global_generator_is_left_alone():
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    list(run(tiny_job(), "reference"))
    assert torch.equal(torch.rand(1), expected)


def uneven_task(model="logreg"):
    """A device with 2 samples beside one with 60."""
    order = np.random.default_rng(4).permutation(180)
    shards = Shards.of(np.split(order, [2, 62, 65, 90, 115]))
    return dataclasses.replace(tiny_task(6, model), shards=shards)


@pytest.mark.parametrize(
    "changes",
    [{}, {"batch_size": 0, "local_steps": 2}, {"model": "mlp"}, {"weights": True}, {"gaps": True}],
    ids=str,
)
@pytest.mark.parametrize("method", ["ssdfl", "sdfl", "pdfl+atc"])
def test_shards_of_different_sizes(method, changes):
    changes = dict(changes)
    task = uneven_task(changes.pop("model", "logreg"))
    if changes.pop("weights", False):
        changes["weights"] = task.shards.weights
    if changes.pop("gaps", False):
        changes["gap_clusters"] = ((0, 1, 2), (3, 4, 5))
    assert_same_run(tiny_job(method, task=task, **changes))


@pytest.mark.parametrize("engine", HERE)
def test_weights_by_size_learn_what_one_device_with_all_samples_would(engine):
    """Exact averages of whole-shard gradients, times their shares, are the gradient of all."""
    job = tiny_job(
        "central+atc",
        optimizers="sgd",
        task=in_double(uneven_task()),
        batch_size=0,
        weights=uneven_task().shards.weights,
    )
    expected = job.task.initial_parameters
    for _ in range(2):
        leaf = expected.clone().requires_grad_()
        loss = job.task.batch_loss(leaf, *job.task.batch(job.task.shards.samples))
        expected = expected - 0.1 * torch.autograd.grad(loss, leaf)[0]
    _, state = next(run(job, engine))
    assert torch.allclose(state.X.mean(0), expected, atol=1e-12)
    unweighted = dataclasses.replace(job, weights=None)
    assert not torch.allclose(next(run(unweighted, engine))[1].X.mean(0), expected, atol=1e-6)


def test_kinds_of_optimizers_train_in_any_order():
    """Without the first device, the kind that it names first comes second."""
    job = tiny_job("sdfl+helpers:Doubled", "ring:n=5", cycles=2, local_steps=2)
    near, plain = parse_optimizer("proximal:mu=0.1"), parse_optimizer("sgd")
    kinds = (near, plain, plain, near, near)
    others = np.array([False, True, True, True, True])

    def without_first(t):
        step = job.schedule(t)
        return dataclasses.replace(step, train=step.train & others)

    assert_same_run(dataclasses.replace(job, optimizers=kinds, schedule=without_first))
