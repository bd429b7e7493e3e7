"""Batched functions without torch's transforms: their plain tensor operations, recorded once.

`torch.func.vmap` and `torch.func.grad` wrap every operation at every call, which takes longer than
a small model's arithmetic. The resulting operations are the same each time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from threading import Lock
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node
from torch.fx.experimental.proxy_tensor import make_fx

CALLS_BEFORE = 48
"""Recording a small model costs what some fifty calls gain, so short runs skip it."""
_TRANSPOSE = torch.ops.aten.transpose.int
_ADD = torch.ops.aten.add.Tensor
_RELU_BACK = torch.ops.aten.threshold_backward.default
_IN_PLACE = {
    _ADD: torch.ops.aten.add_.Tensor,
    torch.ops.aten.relu.default: torch.ops.aten.relu_.default,
    _RELU_BACK: torch.ops.aten.threshold_backward.grad_input,
}
_FRESH = {torch.ops.aten.bmm.default, _ADD, _IN_PLACE[_ADD]}
"""Operations whose results lie in memory of their own."""
_SHAPING = {
    torch.ops.aten.view.default,
    torch.ops.aten._unsafe_view.default,
    torch.ops.aten.expand.default,
}


def kept_with(
    owner: object, name: str, make: Callable[[], Callable[..., Any]]
) -> Callable[..., Any]:
    """The function kept for an owner under a name, made on first use: jobs on a task share it.

    It lives as long as its owner, which may be frozen.
    """
    if name not in owner.__dict__:
        owner.__dict__[name] = make()
    found: Callable[..., Any] = owner.__dict__[name]
    return found


def traced(function: Callable[..., Any], calls_before: int = CALLS_BEFORE) -> Callable[..., Any]:
    """The function, recorded for each combination of shapes that recurs; same bits, faster.

    May be called from several threads, even if the function may not.

    Args:
        function: of tensors alone, its operations depending on their shapes only, as vmap demands.
        calls_before: how often shapes occur before they are recorded.
    """
    calls: Counter[tuple[torch.Size, ...]] = Counter()
    recorded: dict[tuple[torch.Size, ...], Callable[..., Any]] = {}
    lock = Lock()

    def call(*tensors: Tensor) -> Any:
        shapes = tuple(tensor.shape for tensor in tensors)
        if shapes not in recorded:
            with lock:
                calls[shapes] += 1
                if calls[shapes] <= calls_before:
                    return function(*tensors)
                if shapes not in recorded:
                    recorded[shapes] = _record(function, tensors)
        with torch.no_grad():
            return recorded[shapes](*tensors)

    return call


def _record(function: Callable[..., Any], tensors: tuple[Tensor, ...]) -> Callable[..., Any]:
    """The operations of a call, without the many that change nothing."""
    module = make_fx(lambda *given: function(*given))(*tensors)
    for node in list(module.graph.nodes):
        same = _same_as(node)
        if same is not None:
            node.replace_all_uses_with(same)
    module.graph.eliminate_dead_code()
    for node in module.graph.nodes:
        _compute_in_place(node)
    module.recompile()
    forward: Callable[..., Any] = module.forward
    return forward


def _same_as(node: Node) -> Node | None:
    """The node that a node merely repeats: shaped as it is, times 1, or transposed back."""
    source = node.args[0] if node.args else None
    if node.op != "call_function" or not isinstance(source, Node):
        return None
    if _keeps_shape(node, source) or _multiplies_by_one(node):
        return source
    return _transposed_back(node, source)


def _compute_in_place(node: Node) -> None:
    """Let a node overwrite what only it reads: the same bits, with less memory to pass over."""
    operands = node.args[:2] if node.target is _ADD else node.args[:1]
    free = next((one for one in operands if _is_free_for(node, one)), None)
    if free is None or node.target not in _IN_PLACE or node.kwargs:
        return
    others = list(node.args)
    others.remove(free)
    node.args = (free, *others)
    node.kwargs = {"grad_input": free} if node.target is _RELU_BACK else {}
    node.target = _IN_PLACE[node.target]


def _is_free_for(node: Node, source: object) -> bool:
    """Whether a node may overwrite one that it reads: no other reads it, and the result fits."""
    if node.op != "call_function" or not isinstance(source, Node) or source.target not in _FRESH:
        return False
    was, becomes = source.meta["val"], node.meta["val"]
    alike = was.shape == becomes.shape and was.dtype == becomes.dtype
    return len(source.users) == 1 and bool(alike)


def _keeps_shape(node: Node, source: Node) -> bool:
    return node.target in _SHAPING and bool(node.meta["val"].shape == source.meta["val"].shape)


def _multiplies_by_one(node: Node) -> bool:
    return node.target is torch.ops.aten.mul.Scalar and bool(node.args[1] == 1)


def _transposed_back(node: Node, source: Node) -> Node | None:
    """What was transposed twice, by this node and its source."""
    twice = node.target is _TRANSPOSE and source.target is _TRANSPOSE
    if not twice or node.args[1:] != source.args[1:]:
        return None
    return source.args[0] if isinstance(source.args[0], Node) else None
