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


class _Pushed:
    """Pushes each gradient the moment that backward has completed it, divided by the number of clients as DDP does."""

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

    def detach(self) -> None:
        """Remove the hooks; the model is as before."""
        while self._handles:
            self._handles.pop().remove()

    def _ended(self) -> dict[str, torch.Tensor]:
        """End the step; gives what has come back of each tensor. Zeros are pushed for one without a gradient."""
        for name, parameter in self._parameters.items():
            if name not in self._pushed:
                parameter.grad = torch.zeros_like(parameter)
                self._push(name, parameter)
        found = self._pulled()
        self._client.end_step()
        self._pushed.clear()
        return found

    def _pulled(self) -> dict[str, torch.Tensor]:
        found = {name: torch.empty(parameter.shape) for name, parameter in self._parameters.items()}
        pulls = [self._client.pull(name, tensor) for name, tensor in found.items()]
        for pull in pulls:
            pull.wait()
        return found

    def _hook(self, name: str) -> object:
        return lambda parameter: self._push(name, parameter)

    def _push(self, name: str, parameter: torch.Tensor) -> None:
        assert parameter.grad is not None, "the hook runs when there is one"
        self._client.push(name, (parameter.grad.detach() / self._client.clients).contiguous())
        self._pushed.add(name)


class ProxiedGradients(_Pushed):
    """Pushes each gradient the moment that backward has completed it; `wait` puts the averages in place, as DDP does.

        gradients = ProxiedGradients(model, client)
        loss(model(x)).backward()
        gradients.wait()
        optimizer.step()

    As in DDP a gradient is divided by the number of clients before it is summed, so with the same exponents the
    averages have DDP's bits.
    """

    def wait(self) -> None:
        """Wait for all averages and put them into `.grad`; a parameter without a gradient has pushed zeros.

        Raises:
            ProxyError: a client or a proxy is gone.
        """
        for name, average in self._ended().items():
            self._parameters[name].grad = average


class ProxiedParameters(_Pushed):
    """Pushes gradients as `ProxiedGradients` does, to proxies that keep the parameters: no optimizer runs at a worker.

    with Client(group, number, table, parameters=parameters_of(model)) as client:  # a group with a rule
        parameters = ProxiedParameters(model, client)  # the model has the proxies' parameters
        for step in range(client.step, steps):
            loss(model(x)).backward()
            parameters.wait()
    """

    def __init__(self, model: nn.Module, client: SumClient) -> None:
        """Install the hooks, and put the parameters that the proxies have into the model.

        Raises:
            ProxyError: the client's table is not the model's, or its proxies keep no parameters.
        """
        super().__init__(model, client)
        self._put(self._pulled())

    def wait(self) -> None:
        """Wait for all parameters of the step, put them into the model and forget its gradients.

        Raises:
            ProxyError: a client or a proxy is gone.
        """
        self._put(self._ended())

    def _put(self, found: dict[str, torch.Tensor]) -> None:
        with torch.no_grad():
            for name, tensor in found.items():
                self._parameters[name].copy_(tensor)
                self._parameters[name].grad = None


def parameters_of(model: nn.Module) -> dict[str, torch.Tensor]:
    """What client 0 brings to proxies that keep parameters."""
    return {name: p.detach().contiguous() for name, p in model.named_parameters() if p.requires_grad}
