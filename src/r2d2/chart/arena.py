"""The arena: the values of every cell of a batch, and their gradients, in linear memory.

A cell is an integer, a row of flat tensors: its vector e, its log p and its log p~. Row 0 is the null cell that
stands for "no cell here"; the leaves come next; every step of the induction publishes its new cells behind them.

Plain autograd would copy the whole arena at each in-place write, quadratic in the sentence. Instead four small
functions share one buffer for values and one for gradients:

    open     leaves in            backward: hands out the leaves' gradients
    gather   rows out             backward: adds into the gradient buffer
    publish  new rows in          backward: hands out these rows' gradients
    close    every row out        backward: starts the gradient buffer

A token tensor threads through them, so that autograd runs their backwards in exactly the opposite order: all that
was read from a row has been added before the row's own gradient is handed out. What happens between gather and
publish is ordinary autograd.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

NULL = 0


class Arena:
    """Values of cells, written once each and read often; see the module's text."""

    def __init__(self, leaves: Float[Tensor, "t d"], capacity: int) -> None:
        """Open an arena for `capacity` cells beyond the null cell, the leaves among them."""
        log_dtype = torch.promote_types(leaves.dtype, torch.float32)
        self.e = leaves.new_empty(capacity + 1, leaves.shape[1])
        self.e[NULL] = 0
        self.log_p = leaves.new_zeros(capacity + 1, dtype=log_dtype)
        self.log_p_tree = leaves.new_zeros(capacity + 1, dtype=log_dtype)
        self.used = 1
        self.gradients: tuple[Tensor, Tensor, Tensor] | None = None
        self.token: Tensor = _Open.apply(leaves, self)

    def gather(self, ids: Int[Tensor, " x"]) -> tuple[Float[Tensor, "x d"], Float[Tensor, " x"]]:
        """The vectors and the log p~ of cells."""
        e, log_p_tree, self.token = _Gather.apply(self.token, self, ids)
        return e, log_p_tree

    def publish(
        self, e: Float[Tensor, "c d"], log_p: Float[Tensor, " c"], log_p_tree: Float[Tensor, " c"]
    ) -> Int[Tensor, " c"]:
        """Append cells; returns their ids."""
        first = self.used
        self.token = _Publish.apply(self.token, self, e, log_p, log_p_tree)
        return torch.arange(first, self.used, device=e.device)

    def close(self) -> tuple[Float[Tensor, "r d"], Float[Tensor, " r"], Float[Tensor, " r"]]:
        """Every row's e, log p and log p~, the null cell's first. Nothing can be published afterwards."""
        token, self.token = self.token, _new_token(self.e)  # the graph knows the arena: a circle unless broken here
        e, log_p, log_p_tree = _Close.apply(token, self)
        return e, log_p, log_p_tree

    def _write(self, e: Tensor, log_p: Tensor | float, log_p_tree: Tensor | float) -> slice:
        rows = slice(self.used, self.used + len(e))
        self.e[rows] = e
        self.log_p[rows] = log_p
        self.log_p_tree[rows] = log_p_tree
        self.used = rows.stop
        return rows

    def _gradients(self) -> tuple[Tensor, Tensor, Tensor]:
        assert self.gradients is not None, "the backward of close comes first"
        return self.gradients


def _new_token(like: Tensor) -> Tensor:
    return like.new_zeros((), dtype=torch.float32)


class _Open(Function):
    @staticmethod
    def forward(ctx: Any, leaves: Tensor, arena: Arena) -> Tensor:
        ctx.arena = arena
        ctx.rows = arena._write(leaves, 0.0, 0.0)
        return _new_token(leaves)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, token: Tensor) -> tuple[Tensor, None]:
        gradient = ctx.arena._gradients()[0][ctx.rows].clone()
        ctx.arena.gradients = None
        return gradient, None


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, token: Tensor, arena: Arena, ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        ctx.arena = arena
        ctx.save_for_backward(ids)
        return arena.e.index_select(0, ids), arena.log_p_tree.index_select(0, ids), _new_token(token)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, e: Tensor, log_p_tree: Tensor, token: Tensor) -> tuple[Tensor, None, None]:
        (ids,) = ctx.saved_tensors
        e_gradient, _, log_p_tree_gradient = ctx.arena._gradients()
        e_gradient.index_add_(0, ids, e)
        log_p_tree_gradient.index_add_(0, ids, log_p_tree)
        return token, None, None


class _Publish(Function):
    @staticmethod
    def forward(ctx: Any, token: Tensor, arena: Arena, e: Tensor, log_p: Tensor, log_p_tree: Tensor) -> Tensor:
        ctx.arena = arena
        ctx.rows = arena._write(e, log_p, log_p_tree)
        ctx.dtypes = [e.dtype, log_p.dtype, log_p_tree.dtype]
        return _new_token(token)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, token: Tensor) -> tuple[Tensor | None, ...]:
        # Cloned: later steps of the backward pass go on adding into the buffer, though never into these rows.
        rows = (
            gradient[ctx.rows].to(dtype, copy=True)
            for gradient, dtype in zip(ctx.arena._gradients(), ctx.dtypes, strict=True)
        )
        return token, None, *rows


class _Close(Function):
    @staticmethod
    def forward(ctx: Any, token: Tensor, arena: Arena) -> tuple[Tensor, Tensor, Tensor]:
        ctx.arena = arena
        rows = slice(arena.used)
        return arena.e[rows].detach(), arena.log_p[rows].detach(), arena.log_p_tree[rows].detach()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, e: Tensor, log_p: Tensor, log_p_tree: Tensor) -> tuple[Tensor, None]:
        ctx.arena.gradients = (e.clone(), log_p.clone(), log_p_tree.clone())
        return _new_token(e), None
