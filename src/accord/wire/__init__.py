"""Bytes to and from raw events: the wires of AG-UI and the choice between them. Readers decode; they judge nothing.

What the binary wire needs is loaded with the first of its names that is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord import _on_demand
from accord.wire.negotiation import JSON_MEDIA_TYPE, PROTOBUF_MEDIA_TYPE, admits_protobuf, media_type
from accord.wire.sse import MAX_FRAME_BYTES, SSE_MEDIA_TYPE, SSEReader, comment, encode_frame, encode_frames

if TYPE_CHECKING:
    from accord.wire.protobuf_decode import decode_protobuf
    from accord.wire.protobuf_encode import encode_protobuf, frame
    from accord.wire.protobuf_reader import ProtobufReader
else:
    __getattr__, __dir__ = _on_demand(
        globals(),
        {
            "decode_protobuf": "accord.wire.protobuf_decode",
            "encode_protobuf": "accord.wire.protobuf_encode",
            "frame": "accord.wire.protobuf_encode",
            "ProtobufReader": "accord.wire.protobuf_reader",
        },
    )

__all__ = [
    "JSON_MEDIA_TYPE",
    "MAX_FRAME_BYTES",
    "PROTOBUF_MEDIA_TYPE",
    "SSE_MEDIA_TYPE",
    "ProtobufReader",
    "SSEReader",
    "admits_protobuf",
    "comment",
    "decode_protobuf",
    "encode_frame",
    "encode_frames",
    "encode_protobuf",
    "frame",
    "media_type",
]
