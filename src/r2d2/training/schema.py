"""From plain YAML values to typed dataclasses, with errors that name the key and suggest the nearest right one."""

from __future__ import annotations

import dataclasses
import difflib
import types
import typing
from typing import Any, TypeVar

from r2d2.errors import InputError

T = TypeVar("T")


def build(cls: type[T], values: Any, path: str = "") -> T:
    """An instance of dataclass `cls` from a mapping; nested dataclasses and lists of them from nested mappings."""
    if not isinstance(values, dict):
        raise InputError(f"{path or 'the recipe'} ({values!r}) must be a mapping of keys to values")
    fields = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    hints = typing.get_type_hints(cls)
    for key in values:
        if key not in fields:
            raise InputError(unknown_key(_join(path, key), key, list(fields)))
    missing = [
        name
        for name, field in fields.items()
        if name not in values and field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise InputError(f"{_join(path, missing[0])} is missing")
    given = {key: _convert(hints[key], value, _join(path, key)) for key, value in values.items()}
    return cls(**given)


def unknown_key(path: str, key: str, known: list[str]) -> str:
    """The message for a key that does not exist."""
    close = difflib.get_close_matches(str(key), known, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]}?" if close else f"the keys are {', '.join(known)}"
    return f"{path} is not a key: {hint}"


def to_plain(value: Any) -> Any:
    """Dataclasses back to plain values, for writing as YAML."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: to_plain(item) for key, item in value.items()}
    return value


def _join(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)


def _convert(hint: Any, value: Any, path: str) -> Any:
    """`value` as the type `hint` says, or an error that says what was expected."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        problems = []
        for option in arguments:
            try:
                return _convert(option, value, path)
            except InputError as error:
                problems.append(str(error))
        raise InputError(problems[0] if value is not None else f"{path} must not be empty")
    if hint is type(None):
        if value is None:
            return None
        raise InputError(f"{path} ({value!r}) must be empty")
    if origin is typing.Literal:
        if value in arguments:
            return value
        raise InputError(f"{path} ({value!r}) must be one of {', '.join(map(str, arguments))}")
    if origin is list:
        items = value if isinstance(value, list) else [value]
        return [_convert(arguments[0], item, f"{path}[{number}]") for number, item in enumerate(items)]
    if origin is dict:
        if not isinstance(value, dict):
            raise InputError(f"{path} ({value!r}) must be a mapping")
        return {_convert(arguments[0], k, path): _convert(arguments[1], v, _join(path, k)) for k, v in value.items()}
    if dataclasses.is_dataclass(hint):
        return build(typing.cast(type[Any], hint), value, path)
    if hint is Any:
        return value
    return convert_scalar(hint, value, path)


def convert_scalar(hint: Any, value: Any, path: str) -> Any:
    """`value` as an int, float, str or bool, or an error that names it by its path."""
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if hint is float and isinstance(value, str):  # YAML 1.1 reads 1e-3 as text
        try:
            return float(value)
        except ValueError:
            pass
    if hint in (int, str, bool) and type(value) is hint:
        return value
    names = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
    raise InputError(f"{path} ({value!r}) must be {names[hint]}")
