"""Progress of long work: functions report it, and a caller can listen.

A function divides its work into steps; the functions that it calls divide these further. It does
not have to know who calls it, or which share of all work it does. If nobody listens, nothing
happens.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import accumulate
from typing import TypeVar

Item = TypeVar("Item")


class Work:
    """How much is done, and where the current step ends, as shares of all work."""

    def __init__(self, tell: Callable[[float, str], None]):
        self.tell, self.done, self.end, self.words = tell, 0.0, 1.0, ""

    def reach(self, share: float) -> None:
        """Report the share that is done; it never decreases."""
        self.done = max(self.done, share)
        self.tell(self.done, self.words)


# Of this thread: what other threads and processes do is reported when their results arrive.
_work: ContextVar[Work | None] = ContextVar("work", default=None)


@contextmanager
def listen(tell: Callable[[float, str], None]) -> Iterator[None]:
    """Call `tell(share, words)` after each step within this context: what is done, what is next."""
    token = _work.set(Work(tell))
    try:
        yield
    finally:
        _work.reset(token)


@contextmanager
def steps(*costs: float) -> Iterator[Callable]:
    """Divide the current step in proportion to costs; yield a function that begins the next step.

    >>> with listen(print), steps(1, 3) as begin:
    ...     begin("read")
    ...     begin("fit")
    0.0 read
    0.25 fit
    1.0 fit
    """
    work = _work.get()
    if work is None:
        yield lambda words=None: None
        return
    outer, outer_words = work.end, work.words
    size = (outer - work.done) / (sum(costs) or 1)
    ends = [work.done + size * cost for cost in accumulate(costs)]
    work.end = work.done

    def begin(words=None):
        work.done, work.end = work.end, ends.pop(0)
        if work.end > work.done:  # not a step that costs nothing
            work.words = words or outer_words
            work.reach(work.done)

    try:
        yield begin
        work.reach(work.end)
    finally:
        work.end, work.words = outer, outer_words


def each(items: Iterable[Item], n: float) -> Iterator[Item]:
    """Yield the items; each takes one part in `n` of the current step, to make and to use.

    If there are fewer items, the rest is left to what follows.

    >>> with listen(lambda share, words: print(share)):
    ...     for i in each(range(2), 4):
    ...         print(f"item {i}")
    item 0
    0.25
    item 1
    0.5
    """
    work = _work.get()
    if work is None:
        yield from items
        return
    outer, size = work.end, (work.end - work.done) / (n or 1)
    work.end = work.done + size  # before the loop: items may be made when they are asked for
    try:
        for item in items:
            yield item
            work.reach(work.end)
            work.end = min(work.end + size, outer)
    finally:
        work.end = outer
        if isinstance(items, Generator):  # like `yield from`: nothing goes on after an interruption
            items.close()
