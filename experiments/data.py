"""Fashion-MNIST and 20 Newsgroups: where they are looked up, how they are checked and read."""

import gzip
import hashlib
import os
import tarfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

CACHE = Path("~/.cache/looselabels").expanduser()
DEBIAN = Path("/usr/share/datasets/fashion-mnist")  # its package dataset-fashion-mnist

# What gunzip gives: its shape and its sha256. Not the sha256 of the .gz, because Debian strips the
# name and the time out of the gzip header; the pictures are the same bytes.
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
# The original archive, and a repack of the same files.
NEWS = {
    "20news-bydate.tar.gz": "8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
    "20news-bydate.tar.xz": "06f6abad493106a0fa9f63cef2964fa29293ae745fcd50980f684a024ebbbafd",
}


class Data(NamedTuple):
    """Rows to learn from and rows to test on, with their true classes 0, 1, …"""

    name: str
    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


class DataError(ValueError):
    """The data are not there, or are not what they should be."""


def load(name, folder=None, quick=False) -> Data:
    """Return the data called `name`, "fashion" or "news"; `quick` is a small part of it."""
    data = {"fashion": load_fashion, "news": load_news}[name](folder)
    return small(data) if quick else data


def small(data, n_train=2000, n_test=1000) -> Data:
    """Return a part of `data` that is always the same."""
    rng = np.random.default_rng(0)
    train = np.sort(rng.choice(len(data.y), n_train, replace=False))
    test = np.sort(rng.choice(len(data.y_test), n_test, replace=False))
    return Data(data.name, data.X[train], data.y[train], data.X_test[test], data.y_test[test])


def places(name, folder=None) -> list[Path]:
    """Return the folders to look in, in order; the folder that was given may hold the files itself.

    A folder that is given and does not hold the data is a mistake to tell of, not to pass over.
    """
    given = folder or os.environ.get("LOOSELABELS_DATA")
    if given:
        return [Path(given) / name, Path(given)]
    return [*([DEBIAN] if name == "fashion-mnist" else []), CACHE / name]


def _find(name, files, folder):
    """Return the path of the first of `files` that is there, or None; and the places tried."""
    tried = places(name, folder)
    for place in tried:
        for file in files:
            if (place / file).is_file():
                return place / file, tried
    return None, tried


def _not_found(what, tried, source, reason=""):
    names = ", ".join(str(place) for place in tried)
    return DataError(
        f"{what} is in none of {names}{source}{reason}. Give its folder: --data DIR or "
        "LOOSELABELS_DATA."
    )


# ----------------------------------------------------------------------------------- Fashion-MNIST


def load_fashion(folder=None) -> Data:
    """Return Fashion-MNIST, its pixels standardized as in the training set."""
    first = next(iter(FASHION)) + ".gz"
    found, tried = _find("fashion-mnist", [first], folder)
    if found is None:
        found = _download_fashion(tried, bool(folder or os.environ.get("LOOSELABELS_DATA")))
    read = {name: read_idx(found.with_name(name + ".gz"), *FASHION[name]) for name in FASHION}
    X, y, X_test, y_test = read.values()
    X, X_test = standardize_pixels(X.reshape(len(X), -1), X_test.reshape(len(X_test), -1))
    return Data("fashion", X, y.astype(int), X_test, y_test.astype(int))


def standardize_pixels(X, X_test):
    """Return both as float32, with zero mean and unit variance in each column of X."""
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler(copy=False)
    X = scaler.fit_transform(X.astype(np.float32))
    return X, scaler.transform(X_test.astype(np.float32))


def read_idx(path, shape, sha256) -> np.ndarray:
    """Return the array in an idx.gz file, of unsigned bytes and of the `shape` that it must have.

    The header is checked before anything is read by it, so that no header can ask for memory.
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
        raise DataError(f"{path} is missing; the other files of its data are there.") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"{path}: expected a whole gzip file, found a broken one: {error}."
        ) from None
    if len(content) != size:
        found = "more" if len(content) > size else len(content)
        raise DataError(f"{path}: expected {size} bytes of data, found {found}.")
    _check_sum(path, hashlib.sha256(header + content).hexdigest(), sha256)
    return np.frombuffer(content, np.uint8).reshape(shape)


def _idx(header):
    """Return what an idx header says, in words."""
    if len(header) < 4 or header[:3] != b"\0\0\x08":
        return f"0x{header[:4].hex()}"
    sizes = np.frombuffer(header[4 : 4 + (len(header) - 4) // 4 * 4], dtype=">u4")
    return f"0x{header[:4].hex()} " + " × ".join(str(size) for size in sizes)


def _check_sum(path, found, expected):
    if found != expected:
        raise DataError(f"{path}: expected sha256 {expected[:12]}…, found {found[:12]}….")


def _download_fashion(tried, given):
    """Fetch from OpenML into the cache, in the original format; return the first file there."""
    if given:
        raise _not_found("Fashion-MNIST (train-images-idx3-ubyte.gz, …)", tried, "")
    from sklearn.datasets import fetch_openml

    print("Fetching Fashion-MNIST from openml.org (about 30 MB) …", flush=True)
    try:
        bunch = fetch_openml("Fashion-MNIST", version=1, as_frame=False)
    except (OSError, ValueError) as error:
        reason = f" ({' '.join(str(error).split())})"
        raise _not_found(
            "Fashion-MNIST", tried, ", and openml.org does not answer", reason
        ) from None
    X, y = bunch.data.astype(np.uint8), bunch.target.astype(np.uint8)
    parts = (X[:60000], y[:60000], X[60000:], y[60000:])
    for (name, (shape, sha256)), part in zip(FASHION.items(), parts, strict=True):
        header = bytes([0, 0, 8, len(shape)]) + np.array(shape, dtype=">u4").tobytes()
        content = header + part.tobytes()
        _check_sum(f"openml.org's {name}", hashlib.sha256(content).hexdigest(), sha256)
        _write_whole(CACHE / "fashion-mnist" / (name + ".gz"), gzip.compress(content, mtime=0))
    return CACHE / "fashion-mnist" / (next(iter(FASHION)) + ".gz")


def _write_whole(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}")
    part.write_bytes(content)
    part.replace(path)


# ----------------------------------------------------------------------------------- 20 Newsgroups


def load_news(folder=None) -> Data:
    """Return 20 Newsgroups by date, as sparse counts of terms; headers kept, stop words removed."""
    from sklearn.feature_extraction.text import CountVectorizer

    found, tried = _find("20newsgroups", NEWS, folder)
    if found is None:
        given = bool(folder or os.environ.get("LOOSELABELS_DATA"))
        (texts, y), (texts_test, y_test) = _fetch_news(tried, given)
    else:
        (texts, y), (texts_test, y_test) = read_news(found, NEWS[found.name])
    terms = CountVectorizer(stop_words="english", min_df=2, dtype=np.float32)
    X, X_test = terms.fit_transform(texts), terms.transform(texts_test)
    return Data("news", X, np.asarray(y), X_test, np.asarray(y_test))


def read_news(path, sha256):
    """Return (texts, classes) of the training and of the test part of a by-date archive."""
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
            f"{path}: expected a whole tar archive, found a broken one: {error}."
        ) from None
    groups = {group: k for k, group in enumerate(sorted(set(parts["train"][1])))}
    if not groups or set(parts["test"][1]) - set(groups):
        raise DataError(f"{path}: expected 20news-bydate-train/<group>/<id>, found none such.")
    return [(texts, [groups[name] for name in names]) for texts, names in parts.values()]


def _fetch_news(tried, given):
    """Return what scikit-learn has in its cache, or fetches."""
    from sklearn.datasets import fetch_20newsgroups

    if given:
        raise _not_found(f"20 Newsgroups ({' or '.join(NEWS)})", tried, "")
    try:
        parts = [fetch_20newsgroups(subset=subset, shuffle=False) for subset in ("train", "test")]
    except OSError as error:
        source = ", nor in scikit-learn's cache, and its source does not answer"
        reason = f" ({' '.join(str(error).split())})"
        raise _not_found("20 Newsgroups", tried, source, reason) from None
    return [(part.data, part.target) for part in parts]
