"""Tables and matrices that are too large for memory, in temporary files that are mapped into it.

They are used like any other table or matrix. The operating system keeps only the parts in memory
that are in use, and reads the others again when they are needed, so a table can be larger than the
memory. The files are in the folder for temporary files (TMPDIR), and are deleted when they are no
longer used.
"""

from contextlib import contextmanager
from errno import ENOSPC
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

import numpy as np

from looselabels.command.sources import pa

KEPT_BYTES = 128 * 1024**2  # of a table or matrix that is kept in memory


def table_of(batches):
    """Return a table of record batches, of equal types, mapped from a file if it is large."""
    kept, size, batches = [], 0, iter(batches)
    for batch in batches:
        kept.append(batch)
        size += batch.nbytes
        if size > KEPT_BYTES:
            return _mapped_table(chain(kept, batches), batch.schema)
    return pa.Table.from_batches(kept)


def _mapped_table(batches, schema):
    with _folder() as folder:
        path = str(Path(folder, "table.arrow"))
        with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        return pa.ipc.open_file(pa.memory_map(path)).read_all()


def matrix_of(blocks, shape) -> np.ndarray:
    """Return a float32 matrix of this shape from blocks of rows, mapped from a file if it is large.

    >>> matrix_of([[[1, 2]], [[3, 4], [5, 6]]], (3, 2)).sum(axis=0)
    array([ 9., 12.], dtype=float32)
    """
    parts = (np.ascontiguousarray(block, np.float32) for block in blocks)
    if 4 * shape[0] * shape[1] <= KEPT_BYTES:
        return np.concatenate(list(parts))
    with _folder() as folder:
        path = Path(folder, "matrix")
        with open(path, "wb") as file:  # a full disk is an error here, and a crash in a mapped file
            file.writelines(map(memoryview, parts))
        return np.memmap(path, np.float32, mode="r", shape=shape)


@contextmanager
def _folder():
    """Yield a folder whose files disappear at the end, but live on while they are mapped.

    Windows does not delete a file that is mapped; there it stays with the temporary files.
    """
    try:
        with TemporaryDirectory(prefix="looselabels-", ignore_cleanup_errors=True) as folder:
            yield folder
            pa.default_memory_pool().release_unused()  # Arrow would keep what it needed for blocks
    except OSError as error:
        if error.errno != ENOSPC:
            raise
        hint = "the disk is full. Set TMPDIR to a folder with space for a copy of the table"
        raise OSError(ENOSPC, hint, gettempdir()) from error
