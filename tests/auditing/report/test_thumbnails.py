"""Small PNG images, read back by a decoder that follows the format."""

import struct
import zlib
from base64 import b64decode

import numpy as np
import pytest

from looselabels.auditing.report._thumbnails import thumbnails


def decoded(uri):
    """Return the pixels of a PNG without filters, and check each part of the file."""
    data = b64decode(uri.removeprefix("data:image/png;base64,"))
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(data):
        (length,), kind = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        body = data[at + 8 : at + 8 + length]
        (check,) = struct.unpack(">I", data[at + 8 + length : at + 12 + length])
        assert check == zlib.crc32(kind + body)
        chunks[kind], at = body, at + 12 + length
    width, height, depth, color = struct.unpack(">2I2B", chunks[b"IHDR"][:10])
    assert depth == 8
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    channels = {0: 1, 2: 3}[color]
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, -1)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(height, width, channels).squeeze()


@pytest.mark.parametrize("shape", [(5, 7), (7, 5, 3)])
def test_a_small_image_keeps_its_pixels(shape):
    image = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    np.testing.assert_array_equal(decoded(thumbnails([image], 10_000)[0]), image)


def test_images_of_any_range_share_one_scale():
    first, second = np.array([[0.0, 16.0]]), np.array([[8.0, np.nan, np.inf]])
    uris = thumbnails([first, None, second, first > 1], 10_000)
    assert uris[1] is None
    np.testing.assert_array_equal(decoded(uris[0]), [0, 255])
    np.testing.assert_array_equal(decoded(uris[2]), [127, 0, 255])


def test_a_large_image_is_averaged_and_keeps_its_proportions():
    image = np.kron([[0, 100], [200, 50]], np.ones((100, 50))).astype(np.uint8)
    small = decoded(thumbnails([image], 10_000)[0])
    assert small.shape == (96, 48)
    assert small[0, 0] == 0
    assert small[-1, 0] == 200
    tiny = decoded(thumbnails([image[:, :1]], 10_000)[0])
    assert tiny.shape == (96,)


def test_images_are_scaled_down_until_they_fit():
    noise = list(np.random.default_rng(0).integers(0, 256, (50, 64, 64), dtype=np.uint8))
    for budget in (400_000, 100_000, 50_000):
        assert budget / 4 < sum(map(len, thumbnails(noise, budget))) <= budget
    small = thumbnails(noise, 20_000)  # the smallest size needs more: the last are left out
    n_kept = sum(uri is not None for uri in small)
    assert 10 < n_kept < 50
    assert small[n_kept:] == [None] * (50 - n_kept)
    assert 15_000 < sum(map(len, small[:n_kept])) <= 20_000
    assert thumbnails(noise, 100) == [None] * 50


@pytest.mark.parametrize("image", [np.ones(3), np.ones((0, 2)), np.ones((2, 2, 4)), [["a"]]])
def test_an_array_that_is_not_an_image_is_named(image):
    with pytest.raises(ValueError, match="Image 1 "):
        thumbnails([np.eye(2), image], 1000)
