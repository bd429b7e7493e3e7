"""The fast engine of one machine: one (N, d) matrix of parameters, processed in cached pieces."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from ssdfl.arrays import IntArray
from ssdfl.engine.engine import Advanced
from ssdfl.engine.evaluation import Evaluation
from ssdfl.engine.exchange import Exchange, LocalExchange
from ssdfl.engine.gradients import choose_gradients
from ssdfl.engine.indices import rows_at
from ssdfl.engine.job import Job
from ssdfl.engine.linear_gradients import PartGradients, linear_gradients
from ssdfl.engine.mixing import Mixing
from ssdfl.engine.moves import Displacement, PiecewiseMove, PlainMove, Standstill
from ssdfl.engine.shares import LocalShares, Shares
from ssdfl.engine.state import MODEL, RULE, State, home_of, initial_state, memory_name
from ssdfl.engine.threads import threads_for
from ssdfl.engine.training import Group, GroupOptimizers, Kept, keep_variances, plain_move
from ssdfl.methods import Heard, Memory, Moment, Move, Step

_NUMBERS_IN_CACHE = 1 << 20
_FEWEST, _MOST = 2, 512

_Trained = Displacement | PiecewiseMove | PlainMove
_Moved = Standstill | _Trained


@dataclass(frozen=True, eq=False)
class _Turn:
    """One step as the engine works on it.

    Attributes:
        t: the step.
        rate: η.
        before: the state before the step.
        memory: the engine's own, which it may write into.
        step: of the devices here.
        samples: (n, E, M) what a group of devices trains on.
        moved: (n,) to be filled in.
        training: somebody trains in this step, here or elsewhere.
        trained: (n, d) rows after training alone, to be filled in, if the model has variances.
    """

    t: int
    rate: float
    before: State
    memory: dict[str, Tensor]
    step: Step
    samples: Callable[[Group], Tensor]
    moved: Tensor
    training: bool
    trained: Tensor | None


class LocalEngine:
    """All devices of a job, or some, in one process.

    Devices train in small groups, so that a group's parameters stay in a core's cache from the
    gradient to the displacement. Under the paper's rule, a step mixes into a second matrix and adds
    each device's displacement there. So there are two matrices of parameters, besides what
    optimizers keep. Rules that send after training take a third for the messages.

    Args:
        devices: those that are here; states and steps are of them alone.
        exchange: how messages reach the devices here; within the process by default.
    """

    def __init__(
        self, job: Job, devices: IntArray | None = None, exchange: Exchange | None = None
    ) -> None:
        self.job = job
        self.devices = np.arange(job.network.num_devices) if devices is None else devices
        self.shares: Shares = LocalShares(self.devices)
        self.threads = threads_for(job)
        tasks = [job.task, *(job.task.twin() for _ in range(self.threads.number - 1))]
        self._tasks, self._gradients = tasks, choose_gradients(job, tasks)
        # Where a rule adds nothing to the directions, the gradients' parts need not be joined.
        self._by_parts = None if job.rule.steers else linear_gradients(job.task)
        self.evaluate = Evaluation(job, tasks, self.threads)
        self.exchange = exchange or LocalExchange(job)
        fused = job.rule.early and job.rule.additive
        self._optimizers = GroupOptimizers(job, self.devices, by_kind=fused)
        self._everyone = self._groups(np.arange(len(self.devices)))
        self._matrices: list[Tensor] = []
        self._messages: Tensor | None = None
        self._sent = torch.empty(0)
        self._kept: Tensor | None = None
        self._mixed: Tensor | None = None
        self._memory: dict[str, Tensor] | None = None

    def begin(self, state: State | None) -> State:
        """The state as it is."""
        return state or initial_state(self.job)

    def close(self) -> None:
        """End the threads."""
        self.threads.close()

    def advance(self, state: State, step: Step, t: int, training: bool | None = None) -> Advanced:
        """Train and mix; ``step`` and ``state`` are of the devices here, but for ``step.W``.

        Args:
            training: somebody trains in this step; here, if it is not said.
        """
        state = self._laid_out(state)
        turn = self._turn(state, step, t, bool(step.train.any()) if training is None else training)
        rule = self.job.rule
        X = self._fused(turn) if rule.early and rule.additive else self._staged(turn)
        if turn.trained is not None:
            keep_variances(self.job.task, X, turn.trained)
        return Advanced(X, turn.memory, turn.moved)

    def _laid_out(self, state: State) -> State:
        """The state with every row in memory of its own.

        At first, all rows are views of one. Torch would copy the whole matrix whenever it mixes
        some of them.
        """
        if state.X.is_contiguous():
            return state
        return replace(state, X=self._matrix_beside(state.X).copy_(state.X))

    def _turn(self, state: State, step: Step, t: int, training: bool) -> _Turn:
        trains = bool(step.train.any())
        memory = self._own_memory(state) if trains or self._rule_names(state) else state.memory
        samples = self._samples(t) if trains else _no_samples
        moved = torch.zeros(len(state.X), dtype=state.X.dtype, device=state.X.device)
        trained = state.X.clone() if self.job.task.layout.variances else None
        return _Turn(t, self.job.rate(t), state, memory, step, samples, moved, training, trained)

    def _samples(self, t: int) -> Callable[[Group], Tensor]:
        """What groups train on at step t: drawn for all at once, or their whole shards."""
        if self.job.batch_size == 0:
            return lambda group: self.job.samples(group.devices, t)
        drawn = self.job.samples(self.devices, t)
        return lambda group: drawn[group.rows]

    def _moment(self, turn: _Turn, group: Group) -> Moment:
        trains = bool(turn.step.train[group.places[0]])
        return self.job.moment(turn.t, group.devices, trains, turn.training)

    def _fused(self, turn: _Turn) -> Tensor:
        """Mix what is here, train, and add; what comes from elsewhere is added last.

        For rules whose messages leave before training and are only added.
        """
        start = turn.before.X
        X, mixing = self._matrix_beside(start), self.exchange.mixing(turn.step.W)
        at = self.job.moment(turn.t, self.devices, turn.training, turn.training)
        message, _ = self.job.rule.send(at, start, None, {})
        self.exchange.post(turn.step.W, message.rows)
        everyone = bool(turn.step.train.all())
        by_group = everyone and self.job.task.stackable and mixing.kind == "sparse"
        if not by_group:
            mixing.into(X, message.rows, self.threads)

        def train(thread: int, group: Group) -> None:
            before = rows_at(start, group.rows)
            move = self._train(thread, group, before, turn)
            # Mixed only now, so that it is still in cache when the move is added.
            mixed = mixing.rows(message.rows, group.places) if by_group else rows_at(X, group.rows)
            room = X[group.rows] if isinstance(group.rows, slice) else mixed
            heard = Heard(lambda: mixed, lambda: before)
            at = self._moment(turn, group)
            after, _ = self.job.rule.receive(at, before, move.put_into(room), {}, heard)
            if after is not room or isinstance(group.rows, Tensor):
                X[group.rows] = after
            is_free = after is room and (by_group or isinstance(group.rows, Tensor))
            turn.moved[group.rows] = self._distance(after, before, mixed if is_free else None)

        self.threads.each(train, self._training_groups(turn))
        crossed = self.exchange.add_rest(turn.step.W, X, self.threads)
        self._measure_again(turn, X, crossed)
        return X

    def _staged(self, turn: _Turn) -> Tensor:
        """Train, send, mix, receive, one after the other.

        Early rules send first. Then a group receives as soon as it has trained, unless messages
        come from elsewhere.
        """
        early, W = self.job.rule.early, turn.step.W
        groups = [*self._training_groups(turn), *self._idle_groups(turn)]
        X = self._matrix_beside(turn.before.X)
        if early:
            self._send_all(turn, groups)
            self.exchange.post(W, self._sent)
        if early and self.exchange.whole(W):
            self._train_and_receive(turn, groups, X)
            return X
        moves = self._train_and_send(turn, groups)
        if not early:
            self.exchange.post(W, self._sent)
        heard = self._heard(turn, X)

        def receive(thread: int, numbered: tuple[int, Group]) -> None:
            number, group = numbered
            self._receive(turn, group, moves.pop(number), heard(group), X)

        self.threads.each(receive, list(enumerate(groups)))
        return X

    def _train_and_receive(self, turn: _Turn, groups: list[Group], X: Tensor) -> None:
        """Both in one go, so that a group's move is still in cache, and is not kept."""
        heard = self._heard(turn, X)

        def work(thread: int, group: Group) -> None:
            move = self._stay_or_train(thread, group, turn)
            self._receive(turn, group, move, heard(group), X)

        self.threads.each(work, groups)

    def _train_and_send(self, turn: _Turn, groups: list[Group]) -> dict[int, _Moved]:
        """How groups moved, by number; as good as nothing if the rule will not ask."""
        rule, moves = self.job.rule, dict[int, _Moved]()
        if not rule.early:
            self._make_room(turn)

        def work(thread: int, numbered: tuple[int, Group]) -> None:
            number, group = numbered
            move = self._stay_or_train(thread, group, turn)
            if not rule.early and self._sent is not turn.before.X:
                self._send(turn, group, move)
            moves[number] = Standstill(turn.before.X[:0]) if rule.additive else move

        self.threads.each(work, list(enumerate(groups)))
        return moves

    def _stay_or_train(self, thread: int, group: Group, turn: _Turn) -> _Moved:
        before = turn.before.X[group.rows]
        if turn.step.train[group.places[0]]:
            return self._train(thread, group, before, turn)
        return Standstill(before)

    def _receive(self, turn: _Turn, group: Group, move: Move, heard: Heard, X: Tensor) -> None:
        """Put into X what a group makes of what it hears."""
        before, kept = turn.before.X[group.rows], self._rule_memory(turn.memory, group)
        after, renewed = self.job.rule.receive(
            self._moment(turn, group), before, move, dict(kept), heard
        )
        room = X[group.rows]
        if isinstance(group.rows, Tensor) or after.data_ptr() != room.data_ptr():
            X[group.rows] = after
        self._keep(turn.memory, group, kept, renewed)
        if turn.step.train[group.places[0]]:
            turn.moved[group.rows] = self._distance(after, before)

    def _heard(self, turn: _Turn, X: Tensor) -> Callable[[Group], Heard]:
        """What each group hears. Mixed messages of the parameters' width go straight into X."""
        W, messages = turn.step.W, self._sent

        def own(group: Group) -> Tensor:
            rows = messages[group.rows]
            return rows if self._kept is None else rows + self._kept[group.rows]

        if not self.job.rule.linear:
            inboxes, rows = self.exchange.inboxes(W, messages)
            return lambda group: Heard(
                None,
                lambda: own(group),
                lambda: inboxes.batches(group.places, rows),
                lambda: messages[group.rows],
            )
        mixing = self.exchange.mixing(W)
        if self.job.task.stackable and mixing.kind == "sparse" and self.exchange.whole(W):
            return lambda group: Heard(lambda: self._with_kept(mixing, group), lambda: own(group))
        mixed = X if messages.shape == X.shape else self._mixed_beside(messages)
        mixing.into(mixed, messages, self.threads)
        self.exchange.add_rest(W, mixed, self.threads)
        if self._kept is not None:
            mixed += self._kept
        return lambda group: Heard(lambda: mixed[group.rows], lambda: own(group))

    def _with_kept(self, mixing: Mixing, group: Group) -> Tensor:
        """W applied for a group alone, and what it kept back."""
        mixed = mixing.rows(self._sent, group.places)
        return mixed if self._kept is None else mixed.add_(self._kept[group.rows])

    def _mixed_beside(self, messages: Tensor) -> Tensor:
        """Room for mixed messages that are wider than parameters."""
        if self._mixed is None:
            self._mixed = torch.empty_like(messages)
        return self._mixed

    def _send_all(self, turn: _Turn, groups: list[Group]) -> None:
        self._make_room(turn)
        if self._sent is not turn.before.X:
            self.threads.each(lambda thread, group: self._send(turn, group, None), groups)

    def _send(self, turn: _Turn, group: Group, move: _Moved | None) -> None:
        """Put a group's messages into the matrix of messages."""
        before = turn.before.X[group.rows]
        if move is not None and self.job.rule.plain_messages and isinstance(group.rows, slice):
            move.applied_to(before, self._sent[group.rows])
            return
        kept = self._rule_memory(turn.memory, group)
        message, renewed = self.job.rule.send(self._moment(turn, group), before, move, dict(kept))
        message.written_into(self._sent, group.rows)
        if self._kept is not None:
            self._kept[group.rows] = message.kept
        self._keep(turn.memory, group, kept, renewed)

    def _make_room(self, turn: _Turn) -> None:
        """The matrices of messages, made once. Parameters that are sent as they are need none."""
        rule, first = self.job.rule, self.job.first_message
        if rule.plain_messages and (rule.early or not turn.step.train.any()):
            self._sent = turn.before.X
            return
        if self._messages is None:
            shape = (len(self.devices), first.width)
            self._messages = turn.before.X.new_empty(shape)
            self._kept = None if first.kept is None else turn.before.X.new_empty(shape)
        self._sent = self._messages

    def _distance(self, after: Tensor, before: Tensor, free: Tensor | None = None) -> Tensor:
        """(n,) how far parameters have moved; ``free`` is memory to use."""
        moved = torch.sub(after, before, out=free)
        distance: Tensor = torch.linalg.vector_norm(self.job.task.trained(moved), dim=1)
        return distance

    def _train(self, thread: int, group: Group, start: Tensor, turn: _Turn) -> _Trained:
        """A group's E local steps from where it starts."""
        if self.job.task.layout.keeps_state:
            return self._train_alone(thread, group, start, turn)
        kept = self._optimizers.gathered(group, turn.memory)
        self._optimizers.start_step(group, start, kept, ~turn.before.trained)
        if self._by_parts is not None and group.is_by_kind and group.multiples is None:
            return self._train_by_parts(self._by_parts, group, start, turn, kept)
        samples, gradients = turn.samples(group), self._gradients[thread]
        steered = self._steered(group, turn)

        def direction_at(θ: Tensor, e: int) -> Tensor:
            g = gradients(θ, group.devices, samples[:, e], (turn.t, e))
            direction = self._optimizers.direction(group, θ, g, kept)
            return direction if steered is None else _added(direction, steered, kept)

        θ, direction = start, direction_at(start, 0)
        for e in range(1, self.job.local_steps):
            θ = torch.add(θ, direction, alpha=-turn.rate)
            direction = direction_at(θ, e)
        self._optimizers.scattered(group, kept, turn.memory)
        earlier = None if θ is start else θ.sub_(start)
        return Displacement(direction, turn.rate, self.job.local_steps, earlier)

    def _train_by_parts(
        self,
        gradients: PartGradients,
        group: Group,
        start: Tensor,
        turn: _Turn,
        kept: list[dict[str, Tensor]],
    ) -> PiecewiseMove:
        """The same along gradients that come in parts."""
        samples = turn.samples(group)

        def move_from(θ: Tensor, e: int) -> PiecewiseMove:
            parts = gradients(θ, samples[:, e])
            return self._optimizers.move(group, θ, parts, kept, turn.rate)

        θ, move = start, move_from(start, 0)
        for e in range(1, self.job.local_steps):
            θ = move.applied_to(θ)
            move = move_from(θ, e)
        self._optimizers.scattered(group, kept, turn.memory)
        earlier = None if θ is start else θ.sub_(start)
        return replace(move, steps=self.job.local_steps, earlier=earlier)

    def _steered(self, group: Group, turn: _Turn) -> Tensor | None:
        """(n, d) what the rule adds to every local step's direction, if it does."""
        rule = self.job.rule
        if not rule.steers:
            return None
        steered: Tensor = rule.steer(
            self._moment(turn, group), self._rule_memory(turn.memory, group)
        )
        return steered

    def _train_alone(self, thread: int, group: Group, start: Tensor, turn: _Turn) -> PlainMove:
        """The same of a single device, whose model keeps more than parameters."""
        place, at = int(group.places[0]), self._moment(turn, group)
        home = {name: rows[[place]] for name, rows in home_of(turn.memory).items()}
        kept = Kept(self._optimizers.gathered(group, turn.memory)[0], home)
        in_regime = bool(turn.before.trained[place])
        of_rule = self._rule_memory(turn.memory, group)
        move, kept = plain_move(self.job, self._tasks[thread], start, kept, in_regime, at, of_rule)
        self._optimizers.store(group, [kept.optimizer], turn.memory)
        for name, rows in kept.home.items():
            turn.memory[memory_name(MODEL, name)][place] = rows[0]
        if turn.trained is not None:
            turn.trained[place] = start[0] + move.displacement[0]
        return move

    def _training_groups(self, turn: _Turn) -> list[Group]:
        train = turn.step.train
        return self._everyone if train.all() else self._groups(np.flatnonzero(train))

    def _idle_groups(self, turn: _Turn) -> list[Group]:
        return self._groups(np.flatnonzero(~turn.step.train))

    def _measure_again(self, turn: _Turn, X: Tensor, places: IntArray) -> None:
        """How far devices have moved that something was added to afterwards."""
        trained = places[turn.step.train[places]] if len(places) else places
        if len(trained):
            rows = torch.from_numpy(trained).to(X.device)
            turn.moved[rows] = self._distance(X[rows], turn.before.X[rows])

    def _rule_names(self, state: State) -> list[str]:
        return [name for name in state.memory if name.startswith(memory_name(RULE, ""))]

    def _rule_memory(self, memory: dict[str, Tensor], group: Group) -> Memory:
        prefix = memory_name(RULE, "")
        names = [name for name in memory if name.startswith(prefix)]
        return {name.removeprefix(prefix): memory[name][group.rows] for name in names}

    def _keep(self, memory: dict[str, Tensor], group: Group, kept: Memory, renewed: Memory) -> None:
        """Write back what the rule renewed, unless it wrote into views of it."""
        for name, rows in renewed.items():
            if rows is not kept[name] or isinstance(group.rows, Tensor):
                memory[memory_name(RULE, name)][group.rows] = rows

    def _own_memory(self, state: State) -> dict[str, Tensor]:
        """What devices keep, in tensors that the engine may write into."""
        if self._memory is None or state.memory is not self._memory:
            place = self.job.task.initial_parameters.device
            self._memory = {
                name: rows.to(place, copy=True).contiguous() for name, rows in state.memory.items()
            }
        return self._memory

    def _groups(self, places: IntArray) -> list[Group]:
        """Devices in groups that fit a core's cache: the same groups on any machine.

        Groups are about equal, so that threads end together and few shapes are recorded.

        Where batches are whole shards, the devices of a group hold equally many samples.
        """
        size = self._group_size(len(places))
        return [
            self._optimizers.group(group)
            for some in self._trained_alike(places)
            if len(some)
            for group in np.array_split(some, math.ceil(len(some) / size))
        ]

    def _group_size(self, num_devices: int) -> int:
        """How many devices train together."""
        task = self.job.task
        if not task.stackable:
            return 1
        if task.device.type != "cpu":
            return max(1, num_devices)
        return int(np.clip(_NUMBERS_IN_CACHE // task.num_parameters, _FEWEST, _MOST))

    def _trained_alike(self, places: IntArray) -> list[IntArray]:
        """Devices whose batches have the same size."""
        if self.job.batch_size:
            return [places]
        sizes = self.job.task.shards.sizes[self.devices[places]]
        return [places[sizes == size] for size in np.unique(sizes)]

    def _matrix_beside(self, busy: Tensor) -> Tensor:
        """One of this engine's two matrices, not the one in use."""
        for matrix in self._matrices:
            if matrix is not busy:
                return matrix
        like = self.job.task.initial_parameters
        self._matrices.append(torch.empty(busy.shape, dtype=like.dtype, device=like.device))
        return self._matrices[-1]


def _no_samples(group: Group) -> Tensor:
    raise AssertionError("nobody trains in this step")


def _added(direction: Tensor, steered: Tensor, kept: list[dict[str, Tensor]]) -> Tensor:
    """Their sum: in place, unless the direction is what an optimizer keeps."""
    place = direction.untyped_storage().data_ptr()
    if any(rows.untyped_storage().data_ptr() == place for part in kept for rows in part.values()):
        return direction + steered
    return direction.add_(steered)
