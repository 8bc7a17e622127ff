"""Frozen records that cost a fifth of a dataclass to create, because every start of the command line makes fifty.

In: a class body with annotations, as for a dataclass. Out: `__init__`, `==`, `hash`, `repr` and keyword patterns for
`match`. Fields marked with `place()` say where something was found: they take no part in `==`, `hash` and `repr`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self, dataclass_transform

__all__ = ["Record", "place"]


class _Place:
    """Marks a field that says where or how something was written."""

    def __init__(self, optional: bool, default: Any) -> None:
        self.optional = optional
        self.default = default


def place(*, kw_only: bool = True, default: Any = ...) -> Any:
    """Mark a field as keyword-only and outside of `==`, `hash` and `repr`; required unless it has a default."""
    return _Place(default is not ..., default)


@dataclass_transform(frozen_default=True, field_specifiers=(place,))
class Record:
    """Base of the frozen records; subclasses list their fields as annotations."""

    __match_args__: ClassVar[tuple[str, ...]] = ()
    _compared: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        names = [name for name in cls.__annotations__ if not name.startswith("_")]
        positional: list[str] = []
        keyword: list[str] = []
        globals_: dict[str, Any] = {}
        for name in names:
            default = cls.__dict__.get(name, ...)
            if isinstance(default, _Place):
                globals_[f"_default_{name}"] = default.default
                keyword.append(f"{name}=_default_{name}" if default.optional else name)
                delattr(cls, name)
            elif default is ...:
                positional.append(name)
            else:
                globals_[f"_default_{name}"] = default
                positional.append(f"{name}=_default_{name}")
        header = ", ".join(["self", *positional, *(["*", *keyword] if keyword else [])])
        body = "".join(f"\n d[{name!r}] = {name}" for name in names)
        exec(f"def __init__({header}):\n d = self.__dict__{body}", globals_)
        cls.__init__ = globals_["__init__"]  # type: ignore[method-assign]
        cls._compared = tuple(item.partition("=")[0] for item in positional)
        cls.__match_args__ = cls._compared  # type: ignore[misc]

    def _key(self) -> tuple[Any, ...]:
        values = self.__dict__
        return tuple([values[name] for name in self._compared])

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not type(self):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._key()))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={self.__dict__[name]!r}" for name in self._compared)
        return f"{type(self).__name__}({fields})"

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: use replace({name}=...)")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def replace(self, **changes: object) -> Self:
        """A copy with some fields changed."""
        unknown = changes.keys() - self.__dict__.keys()
        if unknown:
            raise TypeError(f"{type(self).__name__} has no field {sorted(unknown)[0]}")
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy.__dict__.update(changes)
        return copy
