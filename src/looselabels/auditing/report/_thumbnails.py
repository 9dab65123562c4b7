"""Arrays as small PNG images inside the page, without an imaging library."""

import struct
import zlib
from base64 import b64encode
from collections.abc import Sequence

import numpy as np

SIDES = (96, 80, 64, 48, 40, 32, 28, 24)  # pixels; the first size that fits is used


def thumbnails(images: Sequence, max_bytes: int) -> list[str | None]:
    """Return data URIs of the images, scaled down until they fit into `max_bytes` in total.

    None stays None. If even the smallest size does not fit, the last images become None.

    >>> thumbnails([np.eye(3), None], 1000)[0][:22]
    'data:image/png;base64,'
    """
    checked = [_check(i, image) for i, image in enumerate(images)]
    small = [None if image is None else _shrink(image, SIDES[0]) for image in checked]
    pixels = _as_pixels(small)
    for side in SIDES:
        found = [None if image is None else _data_uri(_shrink(image, side)) for image in pixels]
        sizes = np.cumsum([len(uri or "") for uri in found])
        if np.all(sizes <= max_bytes):
            break
    return [uri if size <= max_bytes else None for uri, size in zip(found, sizes, strict=True)]


def png(pixels: np.ndarray) -> bytes:
    """Return uint8 pixels, (height, width) or (height, width, 3), as a PNG file."""
    height, width = pixels.shape[:2]
    color = 2 if pixels.ndim == 3 else 0
    header = struct.pack(">2I5B", width, height, 8, color, 0, 0, 0)
    # each line starts with the number of its filter; 0 means no filter
    lines = np.insert(pixels.reshape(height, -1), 0, 0, axis=1)
    body = zlib.compress(lines.astype(np.uint8).tobytes(), 9)
    chunks = _chunk(b"IHDR", header) + _chunk(b"IDAT", body) + _chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


def _chunk(kind: bytes, body: bytes) -> bytes:
    check = zlib.crc32(kind + body)
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", check)


def _data_uri(pixels: np.ndarray) -> str:
    return "data:image/png;base64," + b64encode(png(pixels)).decode()


def _check(i: int, image) -> np.ndarray | None:
    if image is None:
        return None
    array = np.asarray(image)
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    if 0 in array.shape or not (array.ndim == 2 or (array.ndim == 3 and array.shape[2] == 3)):
        raise ValueError(
            f"Image {i} has shape {array.shape}; it must be (height, width) or (height, width, 3)."
        )
    if array.dtype.kind not in "buif":
        raise ValueError(f"Image {i} must hold numbers; its type is {array.dtype}.")
    return array.astype(np.float32) if array.dtype == bool else array


def _as_pixels(arrays: list) -> list:
    """Return the arrays as uint8.

    Arrays of other types share one scale: 0 is their smallest number, 255 their largest.
    """
    other = [array for array in arrays if array is not None and array.dtype != np.uint8]
    finite = [array[np.isfinite(array)] for array in other]
    low = min((float(a.min()) for a in finite if a.size), default=0.0)
    high = max((float(a.max()) for a in finite if a.size), default=1.0)
    scale = 255 / (high - low) if high > low else 255.0

    def scaled(array):
        if array is None or array.dtype == np.uint8:
            return array
        finite = np.nan_to_num(array.astype(float), nan=low, posinf=high, neginf=low)
        return (scale * (finite - low)).astype(np.uint8)

    return [scaled(array) for array in arrays]


def _shrink(pixels: np.ndarray, side: int) -> np.ndarray:
    """Return means over blocks of pixels, at most `side` blocks along the longer axis."""
    longest = max(pixels.shape[:2])
    if longest <= side:
        return pixels
    for axis in (0, 1):
        length = pixels.shape[axis]
        blocks = max(1, round(length * min(1, side / longest)))
        edges = np.linspace(0, length, blocks + 1).astype(int)
        shape = [-1 if a == axis else 1 for a in range(pixels.ndim)]
        sums = np.add.reduceat(pixels.astype(float), edges[:-1], axis=axis)
        pixels = (sums / np.diff(edges).reshape(shape)).astype(pixels.dtype)
    return pixels
