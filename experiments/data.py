"""Find, verify and read Fashion-MNIST and 20 Newsgroups."""

import gzip
import hashlib
import os
import tarfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from looselabels._files import check_parent, new_file

CACHE = Path("~/.cache/looselabels").expanduser()
DEBIAN = Path("/usr/share/datasets/fashion-mnist")  # Debian package dataset-fashion-mnist

# Shape and sha256 of the decompressed files. The .gz files themselves differ: Debian removes the
# name and the time from the gzip header.
FASHION = {
    "train-images-idx3-ubyte": (
        (60000, 28, 28),
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    ),
    "train-labels-idx1-ubyte": (
        (60000,),
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    ),
    "t10k-images-idx3-ubyte": (
        (10000, 28, 28),
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    ),
    "t10k-labels-idx1-ubyte": (
        (10000,),
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
}
# The original archive, and the same files repacked.
NEWS = {
    "20news-bydate.tar.gz": "8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
    "20news-bydate.tar.xz": "06f6abad493106a0fa9f63cef2964fa29293ae745fcd50980f684a024ebbbafd",
}


class Data(NamedTuple):
    """Training rows and test rows with their true classes 0, 1, …"""

    name: str
    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


class DataError(ValueError):
    """A data set is missing or differs from the expected one."""


def load(name, folder=None, quick=False) -> Data:
    """Return the data set `name`, "fashion" or "news"; `quick`: a small part of it."""
    data = {"fashion": load_fashion, "news": load_news}[name](folder)
    return small(data) if quick else data


def small(data, n_train=2000, n_test=1000) -> Data:
    """Return a small part of `data`, the same one in each call."""
    rng = np.random.default_rng(0)
    train = np.sort(rng.choice(len(data.y), n_train, replace=False))
    test = np.sort(rng.choice(len(data.y_test), n_test, replace=False))
    return Data(data.name, data.X[train], data.y[train], data.X_test[test], data.y_test[test])


def places(name, folder=None) -> list[Path]:
    """Return the folders to search, in order.

    A folder that the user specified is searched alone: if it does not hold the data, this is an
    error to report. It may hold the files itself or in a folder `name`.
    """
    specified = folder or os.environ.get("LOOSELABELS_DATA")
    if specified:
        return [Path(specified) / name, Path(specified)]
    return [*([DEBIAN] if name == "fashion-mnist" else []), CACHE / name]


def _find(name, files, folder):
    """Return the path of the first of `files` that exists, or None; and the folders searched."""
    tried = places(name, folder)
    for place in tried:
        for file in files:
            if (place / file).is_file():
                return place / file, tried
    return None, tried


def _not_found(what, tried, source, reason=""):
    names = ", ".join(str(place) for place in tried)
    return DataError(
        f"{what} was not found in {names}{source}{reason}. Specify its folder by --data DIR or "
        "LOOSELABELS_DATA."
    )


# ----------------------------------------------------------------------------------- Fashion-MNIST


def load_fashion(folder=None) -> Data:
    """Return Fashion-MNIST with pixels standardized by the training set."""
    first = next(iter(FASHION)) + ".gz"
    found, tried = _find("fashion-mnist", [first], folder)
    if found is None:
        found = _download_fashion(tried, bool(folder or os.environ.get("LOOSELABELS_DATA")))
    read = {name: read_idx(found.with_name(name + ".gz"), *FASHION[name]) for name in FASHION}
    X, y, X_test, y_test = read.values()
    X, X_test = standardize_pixels(X.reshape(len(X), -1), X_test.reshape(len(X_test), -1))
    return Data("fashion", X, y.astype(int), X_test, y_test.astype(int))


def standardize_pixels(X, X_test):
    """Return both as float32, standardized by the means and variances of the columns of X."""
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler(copy=False)
    X = scaler.fit_transform(X.astype(np.float32))
    return X, scaler.transform(X_test.astype(np.float32))


def read_idx(path, shape, sha256) -> np.ndarray:
    """Return the array of unsigned bytes in an idx.gz file, which must have this `shape`.

    The header is compared with the expected one before the content is read: a wrong header cannot
    cause a large allocation.
    """
    header = bytes([0, 0, 8, len(shape)]) + np.array(shape, dtype=">u4").tobytes()
    size = int(np.prod(shape))
    try:
        with gzip.open(path) as file:
            start = file.read(len(header))
            if start != header:
                raise DataError(f"{path}: expected the header {_idx(header)}, found {_idx(start)}.")
            content = file.read(size + 1)
    except FileNotFoundError:
        raise DataError(f"{path} is missing, but other files of the data set exist.") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"{path}: expected a complete gzip file, found a broken one: {error}."
        ) from None
    if len(content) != size:
        found = "more" if len(content) > size else len(content)
        raise DataError(f"{path}: expected {size} bytes of data, found {found}.")
    _check_sum(path, hashlib.sha256(header + content).hexdigest(), sha256)
    return np.frombuffer(content, np.uint8).reshape(shape)


def _idx(header):
    """Return an idx header as text: its magic number and the sizes."""
    if len(header) < 4 or header[:3] != b"\0\0\x08":
        return f"0x{header[:4].hex()}"
    sizes = np.frombuffer(header[4 : 4 + (len(header) - 4) // 4 * 4], dtype=">u4")
    return f"0x{header[:4].hex()} " + " × ".join(str(size) for size in sizes)


def _check_sum(path, found, expected):
    if found != expected:
        raise DataError(f"{path}: expected sha256 {expected[:12]}…, found {found[:12]}….")


def _download_fashion(tried, specified):
    """Download from OpenML into the cache, in the original format; return the first file."""
    if specified:
        raise _not_found("Fashion-MNIST (train-images-idx3-ubyte.gz, …)", tried, "")
    from sklearn.datasets import fetch_openml

    print("Downloading Fashion-MNIST from openml.org (about 30 MB) …", flush=True)
    try:
        bunch = fetch_openml("Fashion-MNIST", version=1, as_frame=False)
    except (OSError, ValueError) as error:
        reason = f" ({' '.join(str(error).split())})"
        raise _not_found(
            "Fashion-MNIST", tried, ", and the download from openml.org failed", reason
        ) from None
    X, y = bunch.data.astype(np.uint8), bunch.target.astype(np.uint8)
    parts = (X[:60000], y[:60000], X[60000:], y[60000:])
    folder = CACHE / "fashion-mnist"
    folder.mkdir(parents=True, exist_ok=True)
    for (name, (shape, sha256)), part in zip(FASHION.items(), parts, strict=True):
        header = bytes([0, 0, 8, len(shape)]) + np.array(shape, dtype=">u4").tobytes()
        content = header + part.tobytes()
        _check_sum(f"openml.org's {name}", hashlib.sha256(content).hexdigest(), sha256)
        with new_file(folder / (name + ".gz"), check_parent) as path:
            path.write_bytes(gzip.compress(content, mtime=0))
    return folder / (next(iter(FASHION)) + ".gz")


# ----------------------------------------------------------------------------------- 20 Newsgroups


def load_news(folder=None) -> Data:
    """Return 20 Newsgroups by date as sparse term counts, with headers, without stop words."""
    from sklearn.feature_extraction.text import CountVectorizer

    found, tried = _find("20newsgroups", NEWS, folder)
    if found is None:
        specified = bool(folder or os.environ.get("LOOSELABELS_DATA"))
        (texts, y), (texts_test, y_test) = _fetch_news(tried, specified)
    else:
        (texts, y), (texts_test, y_test) = read_news(found, NEWS[found.name])
    terms = CountVectorizer(stop_words="english", min_df=2, dtype=np.float32)
    X, X_test = terms.fit_transform(texts), terms.transform(texts_test)
    return Data("news", X, np.asarray(y), X_test, np.asarray(y_test))


def read_news(path, sha256):
    """Return (texts, classes) of the training part and the test part of a by-date archive."""
    with open(path, "rb") as file:
        _check_sum(path, hashlib.file_digest(file, "sha256").hexdigest(), sha256)
    parts: dict = {"train": ([], []), "test": ([], [])}
    try:
        with tarfile.open(path) as tar:
            for member in tar:
                words = member.name.removeprefix("./").split("/")
                subset = words[0].removeprefix("20news-bydate-")
                if member.isfile() and len(words) == 3 and subset in parts:
                    parts[subset][0].append(tar.extractfile(member).read().decode("latin-1"))
                    parts[subset][1].append(words[1])
    except (tarfile.TarError, EOFError) as error:
        raise DataError(
            f"{path}: expected a complete tar archive, found a broken one: {error}."
        ) from None
    groups = {group: k for k, group in enumerate(sorted(set(parts["train"][1])))}
    if not groups or set(parts["test"][1]) - set(groups):
        raise DataError(f"{path}: expected files 20news-bydate-train/<group>/<id>, found none.")
    return [(texts, [groups[name] for name in names]) for texts, names in parts.values()]


def _fetch_news(tried, specified):
    """Return 20 Newsgroups from scikit-learn, which caches or downloads it."""
    from sklearn.datasets import fetch_20newsgroups

    if specified:
        raise _not_found(f"20 Newsgroups ({' or '.join(NEWS)})", tried, "")
    try:
        parts = [fetch_20newsgroups(subset=subset, shuffle=False) for subset in ("train", "test")]
    except OSError as error:
        source = " or in the cache of scikit-learn, and the download failed"
        reason = f" ({' '.join(str(error).split())})"
        raise _not_found("20 Newsgroups", tried, source, reason) from None
    return [(part.data, part.target) for part in parts]
