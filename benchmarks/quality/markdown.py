"""Tables in Markdown."""

from benchmarks.quality.data import TEST


def markdown(header, rows):
    """Return a table."""
    lines = [f"| {' | '.join(header)} |", "|" + "---|" * len(header)]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


def data_name(data):
    """Return the name of a data set, in bold for the test half."""
    return f"**{data}**" if data in TEST else data
