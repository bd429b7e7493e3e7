"""Mixed precision: layers compute in bf16, everything else in float32, and bits stay the same."""

import dataclasses
import subprocess

import numpy as np
import pytest
import torch
from torch import nn

from commands import quick_command
from helpers import in_double, tiny_job, tiny_task
from ssdfl.engine import load_state, run, save_state
from ssdfl.engine.gradients import looped, stacked
from ssdfl.engine.tracing import CALLS_BEFORE
from ssdfl.errors import InputError
from ssdfl.experiments import run_experiment
from ssdfl.learning import has_bf16_units, precision, precision_remark
from ssdfl.records import load_experiment
from ssdfl.records.cache import run_key
from ssdfl.records.engines import ENGINES

HERE = [name for name, traits in ENGINES.items() if not traits.process_per_device]
MODELS = ("mlp", f"{__name__}:small_cnn")
TOLERANCE = 0.01
"""Of parameters that move by about 0.5: bf16 has 8 bits, and many products' errors cancel."""


def small_cnn(image_shape, num_classes):
    return nn.Sequential(
        nn.Conv2d(1, 3, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(12, num_classes),
    )


def job_in(precision, model, **changes):
    task = tiny_task(6, model).in_precision(precision)
    return tiny_job(task=task, local_steps=2, **changes)


SEEN = set()


class Watch(nn.Module):
    """A layer that changes nothing and notes the types of what passes forward and backward."""

    def forward(self, x):
        SEEN.add(("training" if self.training else "testing", x.dtype))
        if x.requires_grad:
            x.register_hook(lambda g: SEEN.add(("backward", g.dtype)))
        return x


def watched(image_shape, num_classes):
    inner = small_cnn(image_shape, num_classes)
    return nn.Sequential(*inner[:2], Watch(), *inner[2:])


def watched_mlp(image_shape, num_classes):
    return nn.Sequential(
        nn.Flatten(), nn.Linear(16, 8), Watch(), nn.ReLU(), nn.Linear(8, num_classes)
    )


@pytest.mark.parametrize("model", ["watched", "watched_mlp"])
@pytest.mark.parametrize("engine", HERE)
@pytest.mark.parametrize(
    ("precision", "dtype"), [("bf16", torch.bfloat16), ("float32", torch.float32)]
)
def test_forward_and_backward_compute_in_the_precision_and_tests_in_float32(
    model, engine, precision, dtype
):
    job = job_in(precision, f"{__name__}:{model}", cycles=1, evaluate_every=1)
    SEEN.clear()
    (_, state), *_ = run(job, engine)
    assert {("training", dtype), ("backward", dtype), ("testing", torch.float32)} == SEEN
    assert state.X.dtype == torch.float32
    assert {rows.dtype for rows in state.memory.values()} == {torch.float32}


def test_the_recorded_operations_multiply_in_bf16_forward_and_backward(monkeypatch):
    from ssdfl.engine import tracing

    graphs = []
    monkeypatch.setattr(
        tracing,
        "make_fx",
        lambda f, make=tracing.make_fx: lambda *a: graphs.append(make(f)(*a)) or graphs[-1],
    )
    task = tiny_task(6, "mlp").in_precision("bf16")
    job = tiny_job(task=task)
    per_device = stacked(job, task)
    X = task.initial_parameters.repeat(6, 1)
    found = [
        per_device(X, np.arange(6), job.samples(range(6), 0)[:, 0], (0, 0))
        for _ in range(CALLS_BEFORE + 2)
    ]
    products = [node for node in graphs[0].graph.nodes if node.target is torch.ops.aten.bmm.default]
    assert (
        len(products) == 5
    )  # two layers forward, and both of their factors but for the images backward
    assert {node.meta["val"].dtype for node in products} == {torch.bfloat16}
    assert found[0].dtype == torch.float32
    assert all(torch.equal(one, found[0]) for one in found)  # recorded or not, the same bits


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("engine", HERE)
def test_the_same_bits_twice_and_after_a_checkpoint(model, engine, tmp_path):
    job = job_in("bf16", model, cycles=4)
    whole = list(run(job, engine))
    again = list(run(job, engine))
    assert [record for record, _ in whole] == [record for record, _ in again]
    assert torch.equal(whole[-1][1].X, again[-1][1].X)
    save_state(whole[1][1], job, tmp_path / "c.safetensors")
    resumed = list(run(job, engine, load_state(tmp_path / "c.safetensors", job)))
    assert torch.equal(resumed[-1][1].X, whole[-1][1].X)
    assert [record for record, _ in resumed] == [record for record, _ in whole[2:]]


@pytest.mark.parametrize("model", MODELS)
def test_engines_agree_and_float32_is_near(model):
    ends = {}
    for name in HERE:
        *_, (_, state) = run(job_in("bf16", model), name)
        ends[name] = state.X
    *_, (_, exact) = run(job_in("float32", model))
    moved = (exact.X - job_in("float32", model).task.initial_parameters).abs().max()
    assert moved > 20 * TOLERANCE
    for X in ends.values():
        assert torch.allclose(X, ends["reference"], atol=TOLERANCE / 2)
        assert torch.allclose(X, exact.X, atol=TOLERANCE)
        assert not torch.equal(X, exact.X)


def test_both_ways_to_the_gradients_agree():
    task = tiny_task(6, "mlp").in_precision("bf16")
    job = tiny_job(task=task)
    noise = torch.randn(6, task.num_parameters, generator=torch.Generator().manual_seed(0))
    X = task.initial_parameters + 0.1 * noise
    given = (X, np.arange(6), job.samples(range(6), 0)[:, 0], (0, 0))
    one_by_one, at_once = looped(job, task)(*given), stacked(job, task)(*given)
    assert one_by_one.dtype == at_once.dtype == torch.float32
    assert torch.allclose(one_by_one, at_once, atol=0.02 * float(one_by_one.abs().max()))


def test_a_model_of_64_bits_is_refused():
    with pytest.raises(
        InputError, match=r"engine.precision = bf16: expected float32 for a model of torch.float64"
    ):
        in_double(tiny_task(6)).in_precision("bf16")


KILLED = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"


@pytest.fixture
def announced_tiles(monkeypatch):
    """A CPU that announces AMX, in a process that may use it."""
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_tile": True}, raising=False)
    precision._survives_bf16.cache_clear()
    yield
    precision._survives_bf16.cache_clear()


@pytest.mark.parametrize(("program", "refused"), [(KILLED, True), ("pass", False)])
def test_bf16_is_refused_where_it_would_end_the_process(
    program, refused, announced_tiles, monkeypatch
):
    def run_instead(command, run=subprocess.run, **options):
        return run([*command[:-1], program], **options)

    monkeypatch.setattr(subprocess, "run", run_instead)
    task = tiny_task(6)
    if not refused:
        assert task.in_precision("bf16").precision == "bf16"
        return
    with pytest.raises(InputError, match="engine.precision = bf16: expected a CPU whose bf16"):
        task.in_precision("bf16")
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
    assert task.in_precision("bf16").precision == "bf16"


SETTINGS = (
    "methods=['pdfl']",
    "seeds=[0]",
    "cycles=1",
    "evaluate.samples=50",
    "network.spec=path:n=3",
    "data.partition=iid",
)


def test_a_run_belongs_to_its_precision(tmp_path):
    plain, mixed = (
        load_experiment(None, [*SETTINGS, f"engine.precision={one}"]) for one in ("float32", "bf16")
    )
    assert run_key(plain) != run_key(mixed)
    folder = run_experiment(mixed, tmp_path / "run")
    with pytest.raises(
        InputError, match="engine.precision = float32: expected 'bf16' as in the run to resume"
    ):
        run_experiment(plain, folder.path, resume=True)
    shorter = run_experiment(mixed, tmp_path / "twice")
    assert repr(shorter.all_rows()) == repr(folder.all_rows())


def test_the_command_says_once_that_there_is_no_gain(tmp_path, monkeypatch):
    words = [
        word for setting in (*SETTINGS, "engine.precision=bf16") for word in ("--set", setting)
    ]
    monkeypatch.setattr(precision, "has_bf16_units", lambda device: False)
    done = quick_command("run", *words, "--out", tmp_path / "without")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("engine.precision = bf16 brings no gain here: cpu") == 1
    assert precision_remark("float32", "cpu") == ""
    monkeypatch.setattr(precision, "has_bf16_units", lambda device: True)
    assert precision_remark("bf16", "cpu") == ""


@pytest.mark.parametrize("unit", ["avx512_bf16", "amx_bf16"])
def test_units_are_those_that_torch_names(unit, monkeypatch):
    cpu = torch.device("cpu")
    monkeypatch.setattr(
        torch.cpu, "get_capabilities", lambda: {"avx2": True, "avx512_f": True}, raising=False
    )
    assert not has_bf16_units(cpu)  # AVX-512 alone emulates bf16
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {unit: True}, raising=False)
    assert has_bf16_units(cpu)


def test_another_precision_is_another_task_and_the_same_is_the_same():
    task = tiny_task(6)
    assert task.in_precision("float32") is task
    mixed = task.in_precision("bf16")
    assert dataclasses.replace(mixed, precision="float32").targets is task.targets
    assert mixed.twin().precision == mixed.to("cpu").precision == "bf16"
