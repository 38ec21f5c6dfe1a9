"""Parts of a message's content, and where the bytes of a media part come from."""

from typing import TypeAlias

from msgspec import UNSET, UnsetType

from accord.protocol.values import NonNull, Shape


class DataSource(Shape, frozen=True, kw_only=True, tag_field="type", tag="data"):
    """Base64 text of the bytes themselves."""

    value: str
    mime_type: str


class UrlSource(Shape, frozen=True, kw_only=True, tag_field="type", tag="url"):
    """An address the bytes can be fetched from."""

    value: str
    mime_type: str | UnsetType = UNSET


class FileSource(Shape, frozen=True, kw_only=True, tag_field="type", tag="file"):
    """A file held by a provider, by the provider's own id."""

    value: str
    provider: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET


PartSource: TypeAlias = DataSource | UrlSource | FileSource


class TextPart(Shape, frozen=True, kw_only=True, tag_field="type", tag="text"):
    """Text."""

    text: str
    id: str | UnsetType = UNSET
    metadata: NonNull | UnsetType = UNSET


class MediaPart(Shape, frozen=True, kw_only=True):
    """What the four media parts share."""

    source: PartSource
    id: str | UnsetType = UNSET
    metadata: NonNull | UnsetType = UNSET


class ImagePart(MediaPart, frozen=True, kw_only=True, tag_field="type", tag="image"):
    """An image."""


class AudioPart(MediaPart, frozen=True, kw_only=True, tag_field="type", tag="audio"):
    """Sound."""


class VideoPart(MediaPart, frozen=True, kw_only=True, tag_field="type", tag="video"):
    """A film."""


class DocumentPart(MediaPart, frozen=True, kw_only=True, tag_field="type", tag="document"):
    """Any other file."""


ContentPart: TypeAlias = TextPart | ImagePart | AudioPart | VideoPart | DocumentPart
