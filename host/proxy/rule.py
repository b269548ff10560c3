"""The rule of proxies that keep parameters, as a group file has it: a name, and constants that differ from torch's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from catchment.host.proxy.errors import ProxyError

if TYPE_CHECKING:
    from catchment.host.optimizer import Adam, Sgd

_NAMES: Final = ("adam", "sgd")
_MOST: Final = 3.4e38
"""The largest constant: proxies reckon with fp32."""


def check_rule(facts: Any) -> None:
    """Whether this is a name that there is, and numbers; which constants the rule has is `rule_of`'s concern.

    Raises:
        ProxyError: it is not.
    """
    if not isinstance(facts, Mapping):
        raise ProxyError(f'a rule {facts!r:.80}: give an object, such as {{"name": "adam", "lr": 0.001}}')
    name = facts.get("name")
    if not isinstance(name, str) or name not in _NAMES:
        told = f"{' or '.join(_NAMES)}, beside the constants that differ from torch's"
        raise ProxyError(f"a rule named {name!r:.80}: {told}")
    for key, value in facts.items():
        if key != "name" and not (isinstance(value, int | float) and abs(value) <= _MOST):
            raise ProxyError(f"rule {name}: {key} is {value!r:.80}: give a number that fp32 has")


def rule_of(facts: Mapping[str, Any]) -> Adam | Sgd:
    """The rule itself.

    Raises:
        ProxyError: it has a constant that there is not, or one out of its range.
    """
    from catchment.host.layers import TrainingError  # noqa: PLC0415  torch takes seconds to import
    from catchment.host.optimizer import Adam, Sgd  # noqa: PLC0415

    check_rule(facts)
    rules: dict[str, Callable[..., Adam | Sgd]] = {"adam": Adam, "sgd": Sgd}
    try:
        return rules[facts["name"]](**{key: value for key, value in facts.items() if key != "name"})
    except (TypeError, TrainingError) as error:
        raise ProxyError(f"rule {dict(facts)}: {error}") from error
