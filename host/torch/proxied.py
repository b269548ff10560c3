"""Gradients of a torch model averaged by parameter proxies, whichever way they sum (COARSE)."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from catchment.host.proxy import ProxyError, SumClient, TensorTable


def gradient_table(
    model: nn.Module, exponent: int | Mapping[str, int] | None, *, shard_bytes: int = 1 << 20
) -> TensorTable:
    """The table of a model's trained parameters, in forward order as far as the model names them so.

    Args:
        model: its parameters are fp32.
        exponent: E of all averaged gradients, or one for each parameter's name; None: fp32, on a ring.
        shard_bytes: S', see `catchment.host.proxy.partition`.
    """
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters() if parameter.requires_grad}
    return TensorTable.of(sizes, exponent, shard_bytes=shard_bytes)


class ProxiedGradients:
    """Pushes each gradient the moment that backward has completed it; `wait` puts the averages in place, as DDP does.

        gradients = ProxiedGradients(model, client)
        loss(model(x)).backward()
        gradients.wait()
        optimizer.step()

    As in DDP a gradient is divided by the number of clients before it is summed, so with the same exponents the
    averages have DDP's bits.
    """

    def __init__(self, model: nn.Module, client: SumClient) -> None:
        """Install the hooks.

        Raises:
            ProxyError: the client's table is not the model's (`gradient_table`).
        """
        self._client = client
        self._parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        found = {tensor.name: tensor.numel for tensor in client.table.tensors}
        if found != {name: parameter.numel() for name, parameter in self._parameters.items()}:
            raise ProxyError("the client's table is not the model's: make it with gradient_table(model, ...)")
        self._pushed: set[str] = set()
        self._handles: list[RemovableHandle] = [
            parameter.register_post_accumulate_grad_hook(self._hook(name))  # type: ignore[no-untyped-call]
            for name, parameter in self._parameters.items()
        ]

    def wait(self) -> None:
        """Wait for all averages and put them into `.grad`; a parameter without a gradient has pushed zeros.

        Raises:
            ProxyError: a client or a proxy is gone.
        """
        for name, parameter in self._parameters.items():
            if name not in self._pushed:
                parameter.grad = torch.zeros_like(parameter)
                self._push(name, parameter)
        averages = {name: torch.empty(parameter.shape) for name, parameter in self._parameters.items()}
        pulls = [self._client.pull(name, average) for name, average in averages.items()]
        for pull in pulls:
            pull.wait()
        self._client.end_step()
        self._pushed.clear()
        for name, parameter in self._parameters.items():
            parameter.grad = averages[name]

    def detach(self) -> None:
        """Remove the hooks; the model is as before."""
        while self._handles:
            self._handles.pop().remove()

    def _hook(self, name: str) -> object:
        return lambda parameter: self._push(name, parameter)

    def _push(self, name: str, parameter: torch.Tensor) -> None:
        assert parameter.grad is not None, "the hook runs when there is one"
        self._client.push(name, (parameter.grad.detach() / self._client.clients).contiguous())
        self._pushed.add(name)
