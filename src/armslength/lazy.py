"""An attribute that is computed when it is first asked for, without a lock.

`functools.cached_property` of Python 3.11 holds one lock for all instances of a class: a large transform would keep
every other one waiting, and a child forked meanwhile would wait for ever. Two threads that ask at once may both compute;
the values are equal, and one of them stays.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Value = TypeVar("Value")


class lazy(Generic[Value]):  # noqa: N801  # a decorator, like property
    """Makes a method of no arguments an attribute that is computed once for each instance."""

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "lazy[Value]": ...

    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...

    def __get__(self, instance: object | None, owner: type) -> "Value | lazy[Value]":
        if instance is None:
            return self
        value = self._compute(instance)
        # An entry of the instance's own dictionary is found before this descriptor from now on.
        kept: Value = instance.__dict__.setdefault(self._name, value)
        return kept
