"""A Dask cluster adds: every part of the files has a home among the workers, where it is read and stays.

Only sums travel. They are exact integers, so a part that is added again elsewhere, after a worker was lost, gives the
same sum; noise is drawn at the door, never by a worker, so nothing is drawn twice.
"""

import ipaddress
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from operator import add
from typing import Any, TypeVar
from urllib.parse import urlsplit

import numpy as np

from sfumato import progress
from sfumato.errors import InputError, SfumatoError
from sfumato.settings.central import Central
from sfumato.settings.worker import add_parts, check_parts
from sfumato.sources import Source
from sfumato.sources.files import FileSource, Place, cut_places
from sfumato.statistics.wire import FORMAT, dump_json, encode, travels
from sfumato.sums import BoundedSum
from sfumato.typing import IntArray

try:
    import dask
    import distributed
    from distributed import Client, KilledWorker, LocalCluster
    from distributed.client import FutureCancelledError
except ImportError:  # pragma: no cover - the extra is not installed
    raise InputError("cluster: Dask is not installed; pip install 'sfumato[cluster]'.") from None

T = TypeVar("T")
RETRIES = 3
PATIENCE = 60.0
"""Seconds until a cluster without workers is given up."""
_TASKS = 4
"""Tasks of each thread of a worker in a pass: few enough to cost nothing, many enough to show how far a pass is."""
QUIET = {
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.profile.enabled": False,
    # Dask has workers give freed pages back at once, and the next chunk would fault them in again
    "distributed.nanny.pre-spawn-environ": {"OMP_NUM_THREADS": 1, "OPENBLAS_NUM_THREADS": 1, "MKL_NUM_THREADS": 1},
}
"""Settings of workers: no sum is written to a disk, no stack is sampled."""
_NO_PAGES: dict[str, Any] = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}
"""Without a dashboard Dask still serves pages about tasks and workers; of these there are none either."""


class ClusterError(SfumatoError):
    """The cluster is gone, or lost its workers too often; what the ledger has spent stays spent."""


class DaskAdder:
    """Adds a query over the parts of files, each on its home worker.

    Parameters
    ----------
    source : FileSource
        Files that every worker can open by the same names.
    client : distributed.Client
        Of a cluster on this machine, or over TLS.
    """

    def __init__(self, source: FileSource, client: Client) -> None:
        self._source, self._client = source, client
        self._recipe = dump_json(source.recipe)
        self._homes: dict[Place, str] = {}
        self._checked: set[str] = set()

    def sum(self, query: BoundedSum) -> IntArray:
        """The exact sum of the query over all records, added up by worker before it is sent."""
        if not travels(query):  # a question of a paper's own method: this process reads the files itself
            return Central(self._source).sum(query)
        text = dump_json(encode(query))
        with self._submitting() as submit:
            question = submit(None, str, text)  # a long one is sent to each worker once, not with each task
            tasks, totals = [], []
            for home, batches in self._batches():
                mine = [submit(home, add_parts, self._recipe, batch, question) for batch in batches]
                tasks += mine
                totals.append(submit(home, _total, mine))
            told = progress.reading(len(tasks))
            for _ in distributed.as_completed(tasks, loop=self._client.loop):
                told()
            sums: list[IntArray] = self._client.gather(totals)
        return reduce(add, sums, np.zeros(query.shape, dtype=np.int64))

    def check(self) -> None:
        """Refuse values outside the declared domain, before anything is spent."""
        with self._submitting() as submit:
            tasks = [
                submit(home, check_parts, self._recipe, batch) for home, batches in self._batches() for batch in batches
            ]
            refused = [sentence for sentence in self._client.gather(tasks) if sentence is not None]
        if refused:
            raise InputError(refused[0])

    @contextmanager
    def _submitting(self) -> Iterator[Callable[..., Any]]:
        """How to give a task to its home worker; another may take it if that one is lost.

        When the block is left, however that happens, the cluster forgets what the tasks gave: sums without noise.
        """
        given: list[Any] = []

        def submit(home: str | None, function: Callable[..., Any], *arguments: Any) -> Any:
            place = {} if home is None else {"workers": [home], "allow_other_workers": True}
            given.append(self._client.submit(function, *arguments, retries=RETRIES, pure=False, **place))
            return given[-1]

        try:
            yield submit
        except SfumatoError:
            raise
        except (KilledWorker, FutureCancelledError, OSError, TimeoutError) as error:
            raise ClusterError(
                f"cluster: workers or the scheduler were lost ({type(error).__name__}); start them again and fit again."
            ) from None
        except Exception as error:  # their own text may hold the arguments of a task
            raise ClusterError(f"cluster: Dask failed ({type(error).__name__}); its own log says why.") from None
        finally:
            for future in given:
                future.release()

    def _batches(self) -> Iterator[tuple[str, list[list[Place]]]]:
        """The tasks of each worker: lists of places."""
        threads = self._workers()
        parts = self._source.parts()
        self._homes = assign_homes(parts, threads, self._homes)
        for worker in threads:
            mine = [part for part in parts if self._homes[part] == worker]
            groups = len({place[:2] for place in mine})
            if mine:
                yield worker, cut_places(mine, max(threads[worker], min(_TASKS * threads[worker], groups // 2)))

    def _workers(self) -> dict[str, int]:
        """Number of threads of each worker that is there now, those that have just come checked first."""
        known = self._ask_for_workers()
        new = [address for address in known if address not in self._checked]
        if new:
            check_addresses([self._client.scheduler.address, *new])
            _check_workers(self._client.run(describe_worker, workers=new, on_error="ignore"))
            self._checked.update(new)
        return {address: int(known[address]["nthreads"]) for address in sorted(known)}

    def _ask_for_workers(self) -> dict[str, Any]:
        """What the scheduler knows of its workers, as soon as there are some.

        `Client.scheduler_info` may be overwritten by a shorter answer that the client asks for now and then.
        """
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            known: dict[str, Any] = self._client.sync(self._client.scheduler.identity, n_workers=-1)["workers"]
            if known:
                return known
            time.sleep(0.1)
        raise ClusterError("cluster: it has no worker; start one and fit again.")


def assign_homes(parts: Sequence[T], threads: Mapping[str, int], before: Mapping[T, str]) -> dict[T, str]:
    """A worker for each part, by their numbers of threads; parts move only if their worker is gone or has too many.

    Neighbours stay together as far as possible: slices of a row group are best decoded by one worker.

    >>> homes = assign_homes([0, 1, 2, 3], {"a": 1, "b": 1}, {})
    >>> homes
    {0: 'a', 1: 'a', 2: 'b', 3: 'b'}
    >>> assign_homes(list(homes), {"a": 1, "b": 1, "c": 2}, homes)
    {0: 'a', 2: 'b', 1: 'c', 3: 'c'}
    """
    total = sum(threads.values())
    share = {worker: -(-len(parts) * mine // total) for worker, mine in threads.items()}
    homes: dict[T, str] = {}
    load: Counter[str] = Counter()
    for part in parts:
        home = before.get(part)
        if home in share and load[home] < share[home]:
            homes[part] = home
            load[home] += 1
    for part in parts:
        if part not in homes:
            homes[part] = next(worker for worker in share if load[worker] < share[worker])
            load[homes[part]] += 1
    return homes


def check_addresses(addresses: Sequence[str]) -> None:
    """Refuse a cluster whose exact sums would cross a network in the clear.

    >>> check_addresses(["tcp://127.0.0.1:8786", "inproc://10.0.0.4/17", "tls://10.0.0.4:8786"])
    >>> check_addresses(["tcp://10.0.0.4:8786"])
    Traceback (most recent call last):
    sfumato.errors.InputError: cluster: 10.0.0.4 is reached without TLS, ...
    """
    for address in addresses:
        parsed = urlsplit(address)
        if parsed.scheme not in ("tls", "wss", "inproc") and not _is_loopback(parsed.hostname or ""):
            raise InputError(
                f"cluster: {parsed.hostname} is reached without TLS, and workers send sums without noise; start "
                "scheduler and workers with --protocol tls, or on 127.0.0.1."
            )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def describe_worker(dask_worker: Any) -> tuple[str, bool]:
    """Fingerprint of the questions that a worker can read, and whether it may write results to a disk."""
    return FORMAT, not isinstance(dask_worker.data, dict)


def _check_workers(found: Mapping[str, tuple[str, bool]]) -> None:
    for questions, spills in found.values():
        if questions != FORMAT:
            raise InputError("cluster: a worker has another version of sfumato than this process; install the same.")
        if spills:
            raise InputError(
                "cluster: workers write results to a disk when memory is short, and sums without noise must not lie "
                "there; start them with DASK_DISTRIBUTED__WORKER__MEMORY__SPILL=False and "
                "DASK_DISTRIBUTED__WORKER__MEMORY__TARGET=False."
            )


def dask_adder(source: Source) -> DaskAdder:
    """The adder of a source, the same for every fit, so that parts stay at home."""
    if not isinstance(source, FileSource):
        raise InputError(
            "cluster: workers read files themselves; write the records to Parquet files that they can open."
        )
    if source not in _adders:
        _adders[source] = DaskAdder(source, connect(source.cluster))
    return _adders[source]


_adders: "weakref.WeakKeyDictionary[Source, DaskAdder]" = weakref.WeakKeyDictionary()


def connect(cluster: Any) -> Client:
    """A client of a cluster, given as one or as the address of its scheduler.

    Over TLS the certificates are those of Dask's own settings (``distributed.comm.tls``).
    """
    if isinstance(cluster, Client):
        return cluster
    if not isinstance(cluster, str):
        raise InputError("cluster must be a dask.distributed.Client or the address of a scheduler, as tls://host:8786.")
    check_addresses([cluster if "://" in cluster else f"tcp://{cluster}"])
    try:
        return Client(cluster, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError, RuntimeError):
        raise InputError(
            f"cluster: no scheduler answers at {cluster}; check the address, and the certificates if it is tls."
        ) from None


@contextmanager
def local_cluster(workers: int = 2, threads: int = 1, **options: Any) -> Iterator[Client]:
    """Worker processes on this machine, for a ``with`` block; nothing listens beyond it, nothing is written to a disk.

    Parameters
    ----------
    workers, threads : int
        How many processes, and threads of each.
    options
        For `distributed.LocalCluster`, such as ``dashboard_address=":8787"``.
    """
    shown = "dashboard_address" in options
    quiet = QUIET if shown else QUIET | _NO_PAGES
    defaults = {
        "host": "127.0.0.1",
        "dashboard_address": "127.0.0.1:0",
        "scheduler_kwargs": {"dashboard": shown},
        "silence_logs": "ERROR",
    }
    with (
        dask.config.set(quiet),
        LocalCluster(n_workers=workers, threads_per_worker=threads, **defaults | options) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def _total(sums: Sequence[IntArray]) -> IntArray:
    """Runs on a worker: what its tasks found, added up."""
    return reduce(add, sums)
