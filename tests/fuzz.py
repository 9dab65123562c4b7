"""Damage files at random, and see that all that readers raise are errors of our own.

    python -m tests.fuzz --seconds 60                # each reader for 60 seconds
    python -m tests.fuzz --reader Excel --first 1234 # go on at case 1234

An error is our own if a `raise` statement of the project raised it: it then names the file and says
what to do. Case k of a reader is the same in every run. A finding keeps its folder.
"""

import argparse
import io
import json
import linecache
import random
import re
import shutil
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
from experiments.data import DataError, read_idx

import looselabels
from looselabels import DecoupledClassifier, Transition, load, save
from looselabels.command.decisions import read_decisions
from looselabels.command.design import read_design_file
from looselabels.command.feature_file import FeatureFile
from looselabels.command.features import Features
from looselabels.command.tables import TableError, read_blocks, read_table
from looselabels.command.writing import table_writer

OWN = (Path(looselabels.__file__).parent, Path(__file__).parents[1] / "experiments")
TYPES = (ValueError, TableError, DataError, OSError, MemoryError, click.UsageError)
SLOWEST = 20.0  # seconds; a small damaged file must not take longer
TOKENS = (
    *(
        b'"',
        b'""',
        b"\n",
        b"\r",
        b"\r\n",
        b",",
        b"\t",
        b"\0",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\xed\xa0",
    ),
    *(b"1e999", b"-1", b"NaN", b"null", b"true", b"{}", b"[]", b"[[", b'{"a":', b"9" * 30, b"0"),
    b"9" * 400,  # more than a float holds
    *(b"\xff\xff\xff\x7f", b"\0\0\0\x80", b"PAR1", b"PK\3\4", b"\x1f\x8b", b"\\ud800", b"../x"),
    "(unlabeled)🦆\u202e".encode(),
)
FRAME = {"name": ["a", "b, c", 'say "hi"', None], "size": [1.5, -2.0, 0.0, 1e9], "n": [1, 2, 3, 4]}


class Reader(NamedTuple):
    """What is fuzzed: `write` makes good files in a folder, `read` reads them."""

    write: Callable[[Path], object]
    read: Callable[[Path], object]


# ------------------------------------------------------------------------------------- the readers


def table(name):
    """Return the reader of a table with this file name."""

    def write(folder):
        import pandas as pd

        frame, path = pd.DataFrame(FRAME), folder / name
        if name.endswith(".xlsx"):
            frame.to_excel(path, index=False)
        elif name.endswith(".jsonl"):
            frame.to_json(path, orient="records", lines=True)
        else:
            with table_writer(path) as append:
                append(frame)

    def read(folder):
        read_table(folder / name)
        list(read_blocks(folder / name, 2))

    return Reader(write, read)


def write_decisions(folder):
    """Write two decisions."""
    head = "id,label,suggestion,doubt,decision,class,hash,reviewed\n"
    rows = "a,cat,dog,0.9,accept,dog,12ab,yes\nb,(unlabeled),cat,1e-3,skip,,34cd,no\n"
    (folder / "decisions.csv").write_text(head + rows)


def write_designs(folder):
    """Write a design file of each kind."""
    meanings = {"meanings": {"cat": "cat", "pet": ["cat", "dog"], "": {"dog": 0.5, "cat": 0.5}}}
    own = meanings | {"counts": {"cat": 3, "pet": 5, "": 2}, "noise": 0.1}
    transition = json.loads(Transition.partial(["cat", "dog"]).with_noise(0.1).to_json())
    sources = {"sources": {"pets": meanings, "web": transition}, "sizes": {"pets": 3, "web": 5}}
    for name, content in (("own", own), ("transition", transition), ("sources", sources)):
        (folder / f"{name}.json").write_text(json.dumps(content))


def read_designs(folder):
    """Read all of them."""
    for path in sorted(folder.glob("*.json")):
        read_design_file(path)


def write_model(folder):
    """Save a small forest and a table of features."""
    import pandas as pd
    from sklearn.ensemble import RandomForestClassifier

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.array(["cat", "dog"], object)[rng.integers(2, size=40)]
    y[::3] = None
    clf = DecoupledClassifier(RandomForestClassifier(2, max_depth=2), random_state=0, refit=False)
    save(clf.fit(X, y), folder / "classifier")
    words = pd.Series(["small cat here", "big dog there"] * 20, dtype=object)
    frame = pd.DataFrame(
        {"size": X[:, 0], "words": words, "day": ["2020-01-02", "2021-03-04"] * 20}
    )
    (folder / "features").mkdir()
    Features.fit(frame).save(folder / "features")


def read_model(folder):
    """Load both."""
    load(folder / "classifier")
    Features.load(folder / "features")


def write_idx(folder):
    """Write an idx file of two images of 3 × 4 pixels."""
    import gzip

    content = bytes([0, 0, 8, 3]) + np.array([2, 3, 4], ">u4").tobytes() + bytes(range(24))
    (folder / "images.gz").write_bytes(gzip.compress(content, mtime=0))


def write_array(folder):
    """Write a .npy file."""
    np.save(folder / "features.npy", np.arange(12.0).reshape(4, 3))


def read_array(folder):
    """Read features of the rows of a table."""
    import pandas as pd

    FeatureFile(folder / "features.npy").of(pd.DataFrame({"a": range(4)}))


READERS = {
    **{name: table(f"data.{name}") for name in ("csv", "tsv.gz", "csv.zst", "csv.xz", "jsonl")},
    **{name: table(f"data.{name}") for name in ("parquet", "feather", "xlsx")},
    "decisions": Reader(write_decisions, lambda folder: read_decisions(folder / "decisions.csv")),
    "designs": Reader(write_designs, read_designs),
    "model": Reader(write_model, read_model),
    "idx": Reader(write_idx, lambda folder: read_idx(folder / "images.gz", (2, 3, 4), "0" * 64)),
    "npy": Reader(write_array, read_array),
}


# --------------------------------------------------------------------------------------- the damage


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Return data with a few random changes; inside of a member, if it is a zip archive."""
    if data.startswith(b"PK") and rng.random() < 0.7:
        return _damaged_member(data, rng)
    for _ in range(rng.choice([1, 1, 2, 5])):
        begin = rng.randrange(len(data) + 1)
        end = min(len(data), begin + rng.choice([0, 1, 1, 4, 30]))
        part, token = data[begin:end], rng.choice(TOKENS)
        kind = rng.choice(["replace", "replace", "remove", "repeat", "cut", "flip", "number"])
        if kind == "number":  # another number where there is one
            data = _with_other_number(data, rng)
        elif kind == "cut":
            data = data[:begin] if rng.random() < 0.3 else data
        else:
            new = {
                "replace": token,
                "remove": b"",
                "repeat": part * rng.choice([2, 3, 100]),
                "flip": bytes(byte ^ (1 << rng.randrange(8)) for byte in part),
            }[kind]
            data = data[:begin] + new + data[end:]
    return data


def _with_other_number(data, rng):
    found = list(re.finditer(rb"\d+(?:\.\d+)?", data))
    if not found:
        return data
    begin, end = rng.choice(found).span()
    number = rng.choice([b"-1", b"0", b"1e308", b"9" * 20, b"9" * 400, b'"x"'])
    return data[:begin] + number + data[end:]


def _damaged_member(data, rng):
    """Return a zip archive with a change in one of its members, and right check sums."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [(member, archive.read(member)) for member in archive.infolist()]
    chosen, output = rng.randrange(len(members) or 1), io.BytesIO()
    with zipfile.ZipFile(output, "w") as archive:
        for k, (member, content) in enumerate(members):
            content = damaged(content, rng) if k == chosen else content
            archive.writestr(member, content, member.compress_type)
    return output.getvalue()


def is_our_own(error: BaseException) -> bool:
    """Return whether a `raise` statement of the project raised an error of one of `TYPES`."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    line = linecache.getline(frame.filename, frame.lineno or 0).strip()
    is_ours = any(Path(frame.filename).is_relative_to(folder) for folder in OWN)
    return isinstance(error, TYPES) and is_ours and line.startswith("raise")


def fuzz(name, folder: Path, seconds, first=0):
    """Yield (number of the case, error or time) for each finding; return the number of cases."""
    reader, end, number = READERS[name], time.monotonic() + seconds, first
    reader.write(folder)
    good = {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while time.monotonic() < end:
            rng = random.Random(f"{name} {number}")
            path = rng.choice(list(good))
            path.write_bytes(damaged(good[path], rng))
            begin = time.monotonic()
            try:
                reader.read(folder)
            except Exception as error:
                if not is_our_own(error):
                    yield number, error
            if time.monotonic() - begin > SLOWEST:
                yield number, TimeoutError(f"{path} took {time.monotonic() - begin:.0f} seconds")
            path.write_bytes(good[path])
            number += 1
    return number - first


def main():
    """Fuzz readers, and print what is found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60, help="for each reader")
    parser.add_argument("--reader", choices=READERS, action="append", help="default: all")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    options = parser.parse_args()
    n_findings = 0
    for name in options.reader or READERS:
        with tempfile.TemporaryDirectory() as folder:
            cases = fuzz(name, Path(folder), options.seconds, options.first)
            found: dict = {}
            while True:
                try:
                    number, error = next(cases)
                except StopIteration as stop:
                    print(f"{name}: {stop.value:,} cases, {len(found)} findings", flush=True)
                    break
                frame = traceback.extract_tb(error.__traceback__)[-1:]
                place = (type(error).__name__, *((f.filename, f.lineno) for f in frame))
                if place not in found:
                    found[place] = number
                    kept = tempfile.mkdtemp(prefix=f"fuzz-{name}-{number}-")
                    shutil.copytree(folder, kept, dirs_exist_ok=True)
                    print(f"{name}, case {number}, in {kept}: {error!r}"[:500])
                    traceback.print_tb(error.__traceback__, limit=-4)
            n_findings += len(found)
    return n_findings > 0


if __name__ == "__main__":
    sys.exit(main())
