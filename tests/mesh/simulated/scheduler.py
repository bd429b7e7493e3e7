"""Simulated time: tasks are real threads; exactly one runs and hands on a baton.

A task that waits runs the events that are due, until one of them resumes a task. So everything
happens in one order, which the seed determines: it shuffles events at the same instant.
"""

from __future__ import annotations

import heapq
import random
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future
from functools import partial
from typing import ClassVar

from ssdfl.mesh.runtime import Runtime

Call = Callable[[], None]


class KilledError(BaseException):
    """The process of a task has ended; nothing that mesh code catches."""


class StuckError(Exception):
    """Tasks wait for each other, or something waits where it must not."""


class Host:
    """One process of a device, from its start to its end.

    Attributes:
        frozen_until: it does nothing before that.
        tasks: those that have not ended.
    """

    def __init__(self, name: str) -> None:
        self.name, self.dead, self.frozen_until = name, False, 0.0
        self.tasks: dict[int, Task] = {}


class Task:
    """A thread's work, and what it waits for.

    Attributes:
        turn: how often it has waited; a wake-up for an earlier turn comes too late.
        woken: whether the last wait ended by a wake-up.
    """

    def __init__(self, number: int, host: Host | None, name: str) -> None:
        self.number, self.host, self.name = number, host, name
        self.turn, self.woken, self.parked = 0, False, False
        self.baton = _held_lock()


def _held_lock() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


class Worker:
    """A thread that is used again for one task after another; starting one is slow."""

    idle: ClassVar[deque[Worker]] = deque()

    def __init__(self) -> None:
        self._work: Call | None = None
        self._ready = _held_lock()
        threading.Thread(target=self._loop, daemon=True, name="simulated").start()

    @classmethod
    def begin(cls, work: Call) -> None:
        """Have some work done."""
        worker = cls.idle.pop() if cls.idle else cls()
        worker._work = work
        worker._ready.release()

    def _loop(self) -> None:
        while True:
            self._ready.acquire()
            assert self._work is not None
            self._work()
            # The last work handed on the baton, so another thread may append here, too: deques are
            # safe for that.
            self.idle.append(self)


class Scheduler:
    """The events of one schedule, in the order of simulated time."""

    def __init__(self, seed: int) -> None:
        self.now, self.events = 0.0, 0
        self.failure: BaseException | None = None
        self._random = random.Random(seed)
        self._heap: list[tuple[float, float, int, Host | None, Call]] = []
        self._number = 0
        self._main = Task(0, None, "main")
        self._current: Task | None = self._main
        self._next: Task | None = None

    def after(self, seconds: float, call: Call, host: Host | None = None) -> None:
        """Do something later, which must not wait; a dead host does nothing, a frozen one later."""
        self._number += 1
        key = self.now + seconds if seconds > 0 else self.now
        heapq.heappush(self._heap, (key, self._random.random(), self._number, host, call))

    def start(self, work: Call, host: Host, name: str) -> None:
        """Begin a task."""
        self._number += 1
        task = Task(self._number, host, name)
        host.tasks[task.number] = task
        task.parked = True
        Worker.begin(partial(self._live, task, work))
        self.after(0.0, partial(self._resume, task, task.turn, True), host)

    def park(self, seconds: float | None = None) -> bool:
        """Let others run until this task is woken, which is True, or time is over."""
        task = self._current
        if task is None:
            raise StuckError("an answer that must come at once waits")
        self._check_alive(task)
        task.turn += 1
        task.parked = True
        if seconds is not None:
            self.after(seconds, partial(self._resume, task, task.turn, False), task.host)
        self._dispatch(task)
        self._check_alive(task)
        return task.woken

    def waker(self) -> Call:
        """What ends the next wait of the task that runs."""
        task = self._current
        if task is None:
            raise StuckError("an answer that must come at once waits")
        return partial(self._wake, task, task.turn + 1)

    def _wake(self, task: Task, turn: int) -> None:
        """Resume a task at once if an event does it, else when the running task waits."""
        is_free = self._current is None and self._next is None
        if is_free and not _is_held_up(task.host, self.now):
            self._resume(task, turn, True)
        else:
            self.after(0.0, partial(self._resume, task, turn, True), task.host)

    def on(self, host: Host, call: Call) -> None:
        """Have a host do something as soon as it can; a dead one never can."""
        if _is_held_up(host, self.now):
            self.after(0.0, call, host)
        else:
            call()

    def run(self, seconds: float) -> None:
        """Run until `finish`, the first failure, or simulated time is over."""
        self.park(seconds)
        if self.failure is not None:
            raise self.failure

    def finish(self) -> None:
        """Let `run` return."""
        self._next = self._main

    def fail(self, error: BaseException) -> None:
        """Let `run` raise the first failure."""
        self.failure = self.failure or error
        self.finish()

    def kill(self, host: Host) -> None:
        """End a process at once; its tasks unwind without any effect."""
        host.dead = True
        for task in host.tasks.values():
            self.after(0.0, partial(self._resume, task, task.turn, False))

    def close(self, hosts: Iterable[Host]) -> None:
        """End what is left of a schedule, so that its threads can be used again."""
        self._heap.clear()
        for host in hosts:
            self.kill(host)
        self.after(1.0, self.finish)
        self.park()

    def _live(self, task: Task, work: Call) -> None:
        task.baton.acquire()
        try:
            self._check_alive(task)
            work()
        except KilledError:
            pass
        except BaseException as error:
            self.fail(error)
        assert task.host is not None
        task.host.tasks.pop(task.number)
        self._dispatch(None)

    def _check_alive(self, task: Task) -> None:
        if task.host is not None and task.host.dead:
            raise KilledError

    def _resume(self, task: Task, turn: int, woken: bool) -> None:
        if task.parked and task.turn == turn:
            task.parked, task.woken = False, woken
            self._next = task

    def _dispatch(self, waiting: Task | None) -> None:
        """Run events until one resumes a task, and hand the baton to it."""
        self._current = None
        task = self._next_task()
        self._next, self._current = None, task
        if task is not waiting:
            task.baton.release()
            if waiting is not None:
                waiting.baton.acquire()

    def _next_task(self) -> Task:
        while self._next is None:
            if not self._heap:
                self.fail(StuckError("all wait for each other"))
                break
            time_s, tie, number, host, call = heapq.heappop(self._heap)
            self.now = max(self.now, time_s)
            self._run_event(host, call, tie, number)
        assert self._next is not None
        return self._next

    def _run_event(self, host: Host | None, call: Call, tie: float, number: int) -> None:
        if host is not None and host.dead:
            return
        if host is not None and host.frozen_until > self.now:
            heapq.heappush(self._heap, (host.frozen_until, tie, number, host, call))
            return
        self.events += 1
        try:
            call()
        except BaseException as error:
            self.fail(error)


def _is_held_up(host: Host | None, now: float) -> bool:
    return host is not None and (host.dead or host.frozen_until > now)


class SimulatedEvent(threading.Event):
    """A flag whose waiters wait in simulated time."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__()
        self._scheduler = scheduler
        self._wakers: list[Call] = []

    def set(self) -> None:
        """Raise the flag."""
        super().set()
        wakers, self._wakers = self._wakers, []
        for wake in wakers:
            wake()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for it."""
        if not self.is_set():
            self._wakers.append(self._scheduler.waker())
            self._scheduler.park(timeout)
        return self.is_set()


class SimulatedCondition(threading.Condition):
    """A lock in simulated time, and a place to wait for news."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__()
        self._scheduler = scheduler
        self._held = False
        self._wakers: list[Call] = []
        self._queue: deque[Call] = deque()

    def __enter__(self) -> bool:
        while self._held:
            self._queue.append(self._scheduler.waker())
            self._scheduler.park()
        self._held = True
        return True

    def __exit__(self, *_: object) -> None:
        self._held = False
        if self._queue:
            self._queue.popleft()()

    def wait(self, timeout: float | None = None) -> bool:
        """Give up the lock until there is news or time is over."""
        self._wakers.append(self._scheduler.waker())
        self.__exit__()
        try:
            return self._scheduler.park(timeout)
        finally:
            self.__enter__()

    def notify_all(self) -> None:
        """There is news."""
        wakers, self._wakers = self._wakers, []
        for wake in wakers:
            wake()


class SimulatedFuture(Future):
    """A result that is waited for in simulated time."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__()
        self._scheduler = scheduler

    def result(self, timeout: float | None = None) -> object:
        """The result, once it is there."""
        if not self.done():
            wake = self._scheduler.waker()
            self.add_done_callback(lambda _: wake())
            self._scheduler.park(timeout)
        return super().result(0)


class SimulatedPool(Executor):
    """As many tasks at a time as a thread pool would have threads."""

    def __init__(self, runtime: SimulatedRuntime, threads: int, name: str) -> None:
        self._runtime, self._idle, self._name = runtime, threads, name
        self._waiting: deque[tuple[SimulatedFuture, Callable[[], object]]] = deque()

    def submit(
        self, call: Callable[..., object], /, *args: object, **options: object
    ) -> SimulatedFuture:
        """Do something as soon as a thread is free."""
        future = SimulatedFuture(self._runtime.scheduler)
        self._waiting.append((future, partial(call, *args, **options)))
        if self._idle:
            self._idle -= 1
            self._runtime.start(self._work, self._name)
        return future

    def _work(self) -> None:
        while self._waiting:
            future, call = self._waiting.popleft()
            if future.set_running_or_notify_cancel():
                _settle(future, call)
        self._idle += 1

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Do nothing more."""
        while cancel_futures and self._waiting:
            self._waiting.popleft()[0].cancel()


def _settle(future: SimulatedFuture, call: Callable[[], object]) -> None:
    try:
        future.set_result(call())
    except Exception as error:
        future.set_exception(error)


class SimulatedRuntime(Runtime):
    """What one process has of simulated time."""

    def __init__(self, scheduler: Scheduler, host: Host) -> None:
        self.scheduler, self.host = scheduler, host

    def now(self) -> float:
        """Simulated seconds."""
        return self.scheduler.now

    def sleep(self, seconds: float) -> None:
        """Wait in simulated time."""
        self.scheduler.park(seconds)

    def event(self) -> SimulatedEvent:
        """A flag to wait for."""
        return SimulatedEvent(self.scheduler)

    def condition(self) -> SimulatedCondition:
        """A lock whose holders can wait for news."""
        return SimulatedCondition(self.scheduler)

    def start(self, task: Call, name: str) -> None:
        """Begin a task of this process."""
        self.scheduler.start(task, self.host, f"{self.host.name}: {name}")

    def pool(self, threads: int, name: str) -> SimulatedPool:
        """Tasks that wait for work."""
        return SimulatedPool(self, threads, name)
