"""A conversation, tools and formats in the API's own words."""

from __future__ import annotations

import base64
import mimetypes
import re
from collections.abc import Mapping, Sequence
from typing import Any

from accord.agents.content import (
    Content,
    DataContent,
    FunctionCallContent,
    FunctionResultContent,
    TextContent,
    UriContent,
)
from accord.agents.errors import ChatClientError
from accord.agents.message import Message, Role
from accord.agents.schema import JSONSchema, map_subschemas
from accord.agents.structured import ResponseFormat, response_schema
from accord.agents.tools import ToolDefinition

_AUDIO_FORMATS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
_TEXT_TYPES = re.compile(r"text/|application/(json|xml|yaml)|[^;]+\+(json|xml)")
_OWN_FORMATS = ("text", "json_object", "json_schema")
_NOT_STRICT = {"allOf", "not", "if", "patternProperties", "propertyNames", "prefixItems", "uniqueItems", "contains"}
_NAME = re.compile(r"[^\s<|\\/>]{1,64}")


def api_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The conversation. Raises `ChatClientError` for a content that the API has no form for."""
    converted: list[dict[str, Any]] = []
    attachments: list[dict[str, Any]] = []
    for index, message in enumerate(messages):
        results = [content for content in message.contents if isinstance(content, FunctionResultContent)]
        if attachments and not results:
            # A tool can answer in text only, and nothing may come between the answers of one turn.
            converted.append({"role": "user", "content": attachments})
            attachments = []
        for result in results:
            converted.append({"role": "tool", "tool_call_id": result.call_id, "content": result.text})
            parts = _parts([content for content in result.contents if not isinstance(content, TextContent)], index)
            if parts:
                attachments += [{"type": "text", "text": f"From the result of call {result.call_id}:"}, *parts]
        if not results:
            converted.append(_message(message, index))
    if attachments:
        converted.append({"role": "user", "content": attachments})
    return converted


def api_tool(definition: ToolDefinition) -> dict[str, Any]:
    function = {"name": definition.name, "description": definition.description, "parameters": definition.parameters}
    return {"type": "function", "function": function}


def api_tool_choice(choice: str) -> str | dict[str, Any]:
    if choice in ("auto", "none", "required"):
        return choice
    return {"type": "function", "function": {"name": choice}}


def api_response_format(response_format: ResponseFormat) -> dict[str, Any]:
    """`strict` for a type whose schema allows it. The API then guarantees the shape; a JSON Schema that was given
    is sent as it is, and so is a format in the API's own words."""
    if isinstance(response_format, Mapping) and response_format.get("type") in _OWN_FORMATS:
        return dict(response_format)
    name, schema = response_schema(response_format)
    strict = None if isinstance(response_format, Mapping) else _strict(schema)
    return {
        "type": "json_schema",
        "json_schema": {
            "name": re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64],
            "schema": schema if strict is None else strict,
            "strict": strict is not None,
        },
    }


def _message(message: Message, index: int) -> dict[str, Any]:
    converted: dict[str, Any] = {"role": message.role.value}
    if message.author_name and _NAME.fullmatch(message.author_name):
        converted["name"] = message.author_name
    if message.role is Role.ASSISTANT:
        calls = [_call(call) for call in message.function_calls]
        if calls:
            converted["tool_calls"] = calls
        converted["content"] = message.text or (None if calls else "")
    else:
        parts = _parts(message.contents, index)
        only_text = all(part["type"] == "text" for part in parts)
        converted["content"] = "".join(part["text"] for part in parts) if only_text else parts
    return converted


def _call(call: FunctionCallContent) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments or "{}"}
    return {"id": call.call_id, "type": "function", "function": function}


def _parts(contents: Sequence[Content], index: int) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for content in contents:
        match content:
            case TextContent(text=text):
                parts.append({"type": "text", "text": text})
            case DataContent():
                parts.append(_data_part(content, index))
            case UriContent(uri=uri, media_type=media_type):
                kind = media_type or mimetypes.guess_type(uri)[0] or "image/*"
                if not kind.startswith("image/"):
                    raise _unsupported(f"an address of {kind}", index)
                parts.append({"type": "image_url", "image_url": {"url": uri}})
    return parts


def _data_part(content: DataContent, index: int) -> dict[str, Any]:
    kind = content.media_type.partition(";")[0].strip().lower()
    if kind.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": content.data_uri()}}
    if kind in _AUDIO_FORMATS:
        data = base64.b64encode(content.data).decode("ascii")
        return {"type": "input_audio", "input_audio": {"data": data, "format": _AUDIO_FORMATS[kind]}}
    if kind == "application/pdf":
        return {"type": "file", "file": {"filename": content.name or "file.pdf", "file_data": content.data_uri()}}
    if _TEXT_TYPES.match(kind):
        return {"type": "text", "text": content.data.decode("utf-8", "replace")}
    raise _unsupported(f"data of {kind}", index)


def _unsupported(what: str, index: int) -> ChatClientError:
    return ChatClientError(f"messages[{index}]: {what} cannot be sent to this model", code="unsupported_content")


def _strict(schema: JSONSchema) -> JSONSchema | None:
    """The schema with closed objects and every member required; None where strict mode cannot say what it says."""
    refused = False

    def close(part: JSONSchema) -> JSONSchema:
        nonlocal refused
        part = {key: value for key, value in map_subschemas(part, close).items() if key != "default"}
        if "$ref" in part:
            return {"$ref": part["$ref"]}  # alone, or the API refuses it
        if "oneOf" in part:
            part["anyOf"] = part.pop("oneOf")
        if part.get("type") == "object":
            # An object with members of any name has no strict form.
            refused = refused or "properties" not in part or part.get("additionalProperties", False) is not False
            part["additionalProperties"] = False
            part["required"] = list(part.get("properties", ()))
        refused = refused or bool(part.keys() & _NOT_STRICT) or not part.keys() & {"type", "anyOf", "enum", "const"}
        return part

    closed = close(schema)
    return None if refused or closed.get("type") != "object" else closed
