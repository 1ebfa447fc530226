"""One curator: the sum over all chunks, whatever the threads, the files and the order."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from threadpoolctl import threadpool_info

from sfumato import scan
from sfumato.errors import InputError
from sfumato.records import Records, Response
from sfumato.settings.central import Central
from sfumato.sources import MOST_ROWS, ArraySource, Source, chunk_rows
from sfumato.statistics.histograms import Bins, ResponseHistogram

QUERY = ResponseHistogram(Bins(np.array([0.0, 0.5])))


class Torn(Source):
    """A source whose third part cannot be read."""

    n_features, feature_names, response = 1, None, Response()

    def parts(self):
        return list(range(5))

    def read(self, part):
        if part == 3:
            raise OSError("unreadable")
        yield Records(np.zeros((2, 1)), np.zeros(2))

    def count(self):
        return 10


@pytest.mark.parametrize("threads", [None, 1, 3, 64])
def test_every_record_is_counted_once(threads):
    n = 3 * chunk_rows(2) + 17
    y = np.random.default_rng(0).normal(size=n)
    total = Central(ArraySource(np.zeros((n, 2)), y, Response()), threads=threads).sum(QUERY)
    assert total.tolist() == np.histogram(y, [-np.inf, 0.0, 0.5, np.inf])[0].tolist()


@pytest.mark.parametrize("row_group", [1, 7, 1000])
def test_files_of_any_layout_give_the_sum_of_the_table(tmp_path, row_group):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(50, 2)), rng.normal(size=50)
    for i, rows in enumerate((slice(0, 20), slice(20, 20), slice(20, 50))):
        table = pa.table({"a": x[rows, 0], "b": x[rows, 1], "y": y[rows]})
        pq.write_table(table, tmp_path / f"{i}.parquet", row_group_size=row_group)
    source = scan(str(tmp_path / "*.parquet"), response="y")
    assert source.count() == 50
    assert np.array_equal(Central(source).sum(QUERY), QUERY.of(Records(x, y)))


@pytest.mark.parametrize("threads", [1, 4])
def test_a_failing_part_fails_the_sum(threads):
    with pytest.raises(OSError, match="unreadable"):
        Central(Torn(), threads=threads).sum(QUERY)


def test_a_chunk_too_long_for_exact_sums_is_refused():
    class Long(Torn):
        def read(self, part):
            yield Records(np.zeros((MOST_ROWS + 1, 1)), np.zeros(MOST_ROWS + 1))

    with pytest.raises(InputError, match="yield smaller ones"):
        Central(Long()).sum(QUERY)


def test_an_empty_source_sums_to_zero():
    assert Central(ArraySource(np.zeros((0, 1)), np.zeros(0), Response())).sum(QUERY).tolist() == [0, 0, 0]


def test_blas_gets_its_threads_back():
    before = [library["num_threads"] for library in threadpool_info()]
    Central(ArraySource(np.zeros((9, 1)), np.zeros(9), Response())).sum(QUERY)
    assert [library["num_threads"] for library in threadpool_info()] == before
