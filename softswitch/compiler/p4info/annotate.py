"""Annotations and documentation in P4Info messages."""

from __future__ import annotations

from typing import Any

from catchment.softswitch.compiler import ir

_ELSEWHERE = frozenset(("name", "id", "brief", "description"))


def add_annotations(message: Any, annotations: tuple[ir.Annotation, ...], skip: frozenset[str] = frozenset()) -> None:
    """Copies annotations into a P4Info message, except those that it shows in fields of their own."""
    for annotation in annotations:
        if annotation.structured:
            _add_structured(message.structured_annotations.add(), annotation)
        elif annotation.name not in _ELSEWHERE and annotation.name not in skip:
            body = f"({annotation.text})" if annotation.text else ""
            message.annotations.append(f"@{annotation.name}{body}")


def add_documentation(message: Any, annotations: tuple[ir.Annotation, ...]) -> None:
    """Fills `doc` from @brief and @description."""
    for annotation in annotations:
        if annotation.name in ("brief", "description") and annotation.values:
            setattr(message.doc, annotation.name, str(annotation.values[0]))


def set_preamble(
    preamble: Any,
    *,
    id_: int,
    name: str,
    alias: str,
    annotations: tuple[ir.Annotation, ...],
    skip: frozenset[str] = frozenset(),
) -> None:
    """Fills a preamble."""
    preamble.id, preamble.name, preamble.alias = id_, name, alias
    add_annotations(preamble, annotations, skip)
    add_documentation(preamble, annotations)


def is_hidden(annotations: tuple[ir.Annotation, ...]) -> bool:
    """Whether `@hidden` keeps an object from the control plane."""
    return any(a.name == "hidden" for a in annotations)


def _add_structured(message: Any, annotation: ir.Annotation) -> None:
    message.name = annotation.name
    for value in annotation.values:
        _set_value(message.expression_list.expressions.add(), value)
    for key, value in annotation.pairs:
        pair = message.kv_pair_list.kv_pairs.add()
        pair.key = key
        _set_value(pair.value, value)


def _set_value(message: Any, value: ir.ConstantValue) -> None:
    if isinstance(value, bool):
        message.bool_value = value
    elif isinstance(value, int):
        message.int64_value = value
    else:
        message.string_value = value
