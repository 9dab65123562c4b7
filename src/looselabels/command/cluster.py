"""A cluster of Dask that fits models: one that runs elsewhere, or workers on this machine."""

import logging
from contextlib import contextmanager

import click
from joblib import parallel_config

from looselabels._validation import import_extra
from looselabels.learning.workers import dask_backend

SECONDS = 10  # to wait for a scheduler, and for its first worker


@contextmanager
def on_cluster(scheduler: str | None, n_workers: int | None):
    """Run what joblib runs in parallel on a cluster; with neither of the two, on this machine."""
    if scheduler is not None and n_workers is not None:
        raise click.UsageError("Pass either --scheduler or --workers, which starts a cluster here.")
    if scheduler is None and n_workers is None:
        yield
        return
    import_extra("distributed", '"looselabels[dask]"')
    # Dask logs each lost connection; what the user should know is the message of the error.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    connect = _local(n_workers) if scheduler is None else _connected(scheduler)
    with connect as client, parallel_config(dask_backend(client)):
        yield


@contextmanager
def _connected(address):
    """Connect to a scheduler that has workers."""
    from distributed import Client

    try:
        client = Client(address, timeout=SECONDS)
    except (OSError, ValueError) as error:
        raise ConnectionError(
            f"No Dask scheduler answers at {address} within {SECONDS} s. Check that it runs and "
            "that --scheduler has the address it prints, such as tcp://10.0.0.1:8786."
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=SECONDS)
        except TimeoutError as error:
            raise ConnectionError(
                f"The Dask scheduler at {address} has no workers. Start one, such as with: dask "
                f"worker {address}"
            ) from error
        yield client


@contextmanager
def _local(n_workers):
    """Start workers on this machine, each with one thread."""
    from distributed import Client, LocalCluster

    # a free port: the usual one may belong to another cluster of the user
    options = {"silence_logs": logging.CRITICAL, "dashboard_address": ":0"}
    try:
        started = LocalCluster(n_workers, threads_per_worker=1, **options)
    except (OSError, RuntimeError) as error:
        raise ConnectionError(
            f"Dask cannot start --workers {n_workers} on this machine: {error} Pass fewer, or fit "
            "without a cluster."
        ) from error
    with started as here, Client(here) as client:
        yield client
