"""What pydantic found wrong, said for a model: a line a place, each place a JSON Pointer into what was sent."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from accord.agents.json_value import child_path


def describe_errors(error: ValidationError, value: Any, *, max_errors: int = 20) -> tuple[str, str]:
    """The text of at most `max_errors` errors found in `value`, and the path of the first. No value is repeated."""
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    lines = []
    paths = [_path(value, item["loc"], missing=item["type"] == "missing") for item in errors[:max_errors]]
    for path, item in zip(paths, errors, strict=False):
        lines.append(f"{path or '(root)'}: {item['msg']}")
    if len(errors) > max_errors:
        lines.append(f"and {len(errors) - max_errors} more")
    return "\n".join(lines), paths[0]


def _path(value: Any, location: tuple[int | str, ...], *, missing: bool) -> str:
    """The location less the steps that exist only in the schema, such as the member of a union that was tried."""
    path = ""
    for position, step in enumerate(location):
        last = position == len(location) - 1
        if isinstance(value, dict) and isinstance(step, str) and (step in value or (last and missing)):
            path, value = child_path(path, step), value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            path, value = child_path(path, step), value[step]
    return path
