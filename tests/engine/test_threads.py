import threading

import pytest
import torch
from torch import nn
from torch.func import grad, vmap

from helpers import tiny_job, tiny_task
from ssdfl.engine.gradients import gradient
from ssdfl.engine.threads import Threads, one_thread_each, threads_for
from ssdfl.engine.tracing import traced
from ssdfl.learning import build_model


@pytest.mark.parametrize("number", [1, 2, 7])
@pytest.mark.parametrize("count", [0, 1, 20])
def test_results_come_in_the_order_of_the_items(number, count):
    threads_ = Threads(number)
    seen = threads_.each(lambda thread, item: (thread, item**2), range(count))
    threads_.close()
    assert [square for _, square in seen] == [item**2 for item in range(count)]
    assert {thread for thread, _ in seen} <= set(range(number))


def test_workers_work_at_the_same_time():
    threads_ = Threads(2)
    meeting = threading.Barrier(2, timeout=20)
    assert len(threads_.each(lambda thread, item: meeting.wait(), range(2))) == 2
    threads_.close()


@pytest.mark.parametrize("number", [1, 3])
def test_an_error_is_raised_where_the_work_was_asked_for(number):
    def fail(thread, item):
        if item == 5:
            raise ValueError("item 5")

    threads_ = Threads(number)
    with pytest.raises(ValueError, match="item 5"):
        threads_.each(fail, range(20))
    threads_.close()


def test_threads_of_workers_compute_alone(threads):
    threads(3)
    threads_ = Threads(3)
    with one_thread_each():
        assert set(threads_.each(lambda thread, item: torch.get_num_threads(), range(9))) == {1}
    threads_.close()
    assert torch.get_num_threads() == 3


def test_one_thread_where_models_draw_random_numbers(threads):
    threads(3)
    assert threads_for(tiny_job(model="mlp")).number == 3
    assert threads_for(tiny_job(task=tiny_task(6, f"{__name__}:with_dropout"))).number == 1


def test_recorded_operations_give_the_same_bits_at_any_shape():
    task = tiny_task(4, "mlp")
    plain = vmap(grad(task.batch_loss))
    recorded = traced(plain, calls_before=2)
    for count in (3, 3, 5, 3, 3, 5, 5, 3):
        Θ = task.initial_parameters + 0.1 * torch.randn(count, task.num_parameters)
        inputs, labels = task.batch(torch.arange(count * 2).reshape(count, 2))
        assert torch.equal(recorded(Θ, inputs, labels), plain(Θ, inputs, labels))


def test_operations_are_recorded_once_and_then_the_function_is_not_called_again():
    calls = []

    def double(x):
        calls.append(len(x))
        return 2 * x

    recorded = traced(double, calls_before=2)
    for _ in range(6):
        assert recorded(torch.ones(3)).tolist() == [2, 2, 2]
    assert calls == [3, 3, 3]  # twice as it is, once to record
    recorded(torch.ones(4))
    assert calls == [3, 3, 3, 4]


def with_dropout(image_shape, num_classes):
    return nn.Sequential(
        nn.Flatten(), nn.Linear(16, 12), nn.Dropout(0.5), nn.Linear(12, num_classes)
    )


def test_models_made_in_another_thread_change_nothing_that_training_draws():
    """As on a real device, which makes a model for a changed mesh while it trains with dropout."""
    job = tiny_job(task=tiny_task(6, f"{__name__}:with_dropout"))
    task, made, ended = job.task, [], threading.Event()

    def gradients():
        samples = task.shards.samples[:2]
        return [
            gradient(job, task, task.initial_parameters, samples, (0, 0, e)) for e in range(200)
        ]

    def make_models():
        while not ended.is_set():
            model = build_model("mlp", (1, 8, 8), 4, seed=1)
            made.append(float(next(model.parameters()).detach().sum()))

    alone = gradients()
    maker = threading.Thread(target=make_models)
    maker.start()
    beside = gradients()
    ended.set()
    maker.join()
    assert all(torch.equal(a, b) for a, b in zip(alone, beside, strict=True))
    assert len(made) > 5
    assert len(set(made)) == 1
