"""Who builds what a confined process needs: the process that started it, which owns the cache.

A process that runs code of a tree starts no compiler and writes nothing that other runs read. A function that does
is marked as a builder; called in such a process, it asks the process that started it, which knows the builders by
name. Everywhere else it is an ordinary function.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Ask = Callable[[str, tuple[Any, ...], dict[str, Any]], Any]

_builders: dict[str, Callable[..., Any]] = {}
_ask: list[Ask] = []


def builder(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Mark a function whose arguments and result can be sent, and that trusts none of its arguments."""
    name = f"{function.__module__}:{function.__qualname__}"
    _builders[name] = function

    @wraps(function)
    def built(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        if _ask:
            answer: Result = _ask[0](name, args, kwargs)
            return answer
        return function(*args, **kwargs)

    return built


def ask_instead(ask: Ask) -> None:
    """From now on, builders are asked for in this process."""
    _ask[:] = [ask]


def build(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a builder for another process.

    Raises:
        KeyError: there is no builder of this name.
    """
    if name not in _builders and name.partition(":")[0] in _MODULES:
        import_module(name.partition(":")[0])
    return _builders[name](*args, **kwargs)


# Where builders are; a request for anything else is refused.
_MODULES = ("stackproof.engines.metal.build", "stackproof.engines.apple.build")
