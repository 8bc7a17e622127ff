"""Frozen records that cost a fifth of a dataclass to create, because every start of the command line makes fifty.

In: a class body with annotations, as for a dataclass. Out: `__init__`, `==`, `hash`, `repr` and keyword patterns for
`match`. Fields marked with `place()` say where something was found: they take no part in `==`, `hash` and `repr`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self, dataclass_transform

__all__ = ["Record", "place"]


class _Place:
    """Marks a field that says where or how something was written."""

    def __init__(self, default: Any) -> None:
        self.default = default


def place(*, kw_only: bool = True, default: Any = ...) -> Any:
    """Mark a field as keyword-only and outside of `==`, `hash` and `repr`; required unless it has a default."""
    return _Place(default)


class _RecordType(type):
    """Turns the annotations of a class body into slots and an `__init__` that fills them."""

    def __new__(mcs, name: str, bases: tuple[type, ...], space: dict[str, Any]) -> _RecordType:
        if not bases:
            return super().__new__(mcs, name, bases, space)
        fields = tuple(space.get("__annotations__", ()))
        positional: list[str] = []
        keyword: list[str] = []
        known: dict[str, Any] = {}
        compared: list[str] = []
        for field in fields:
            default = space.pop(field, ...)
            target = positional
            if isinstance(default, _Place):
                default, target = default.default, keyword
            else:
                compared.append(field)
            known[f"_default_{field}"] = default
            target.append(field if default is ... else f"{field}=_default_{field}")
        space["__slots__"] = fields
        space["_compared"] = space["__match_args__"] = tuple(compared)
        made = super().__new__(mcs, name, bases, space)
        # The slots' own setters get past the `__setattr__` that keeps records frozen.
        known.update({f"_set_{field}": made.__dict__[field].__set__ for field in fields})
        header = ", ".join(["self", *positional, *(["*", *keyword] if keyword else [])])
        body = "".join(f"\n _set_{field}(self, {field})" for field in fields) or "\n pass"
        exec(f"def __init__({header}):{body}", known)
        type.__setattr__(made, "__init__", known["__init__"])
        return made


@dataclass_transform(frozen_default=True, field_specifiers=(place,))
class Record(metaclass=_RecordType):
    """Base of the frozen records; subclasses list their fields as annotations."""

    __slots__: ClassVar[tuple[str, ...]] = ()
    __match_args__: ClassVar[tuple[str, ...]] = ()
    _compared: ClassVar[tuple[str, ...]] = ()

    def _key(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in self._compared])

    def _values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not type(self):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._key()))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._compared)
        return f"{type(self).__name__}({fields})"

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: use replace({name}=...)")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self._values())

    def replace(self, **changes: object) -> Self:
        """A copy with some fields changed."""
        return type(self)(**{**self._values(), **changes})


def _restore(kind: type[Record], values: dict[str, Any]) -> Record:
    return kind(**values)
