"""One curator: the sum over all chunks, whatever the threads, the files and the order."""

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from sfumato import Bounds, scan
from sfumato.errors import InputError
from sfumato.records import Records, Response
from sfumato.settings.central import Central
from sfumato.sources import MOST_ROWS, ArraySource, Source, chunk_rows
from sfumato.sources.columns import Columns
from sfumato.sources.files import open_source
from sfumato.sources.formats import ParquetTable
from sfumato.statistics.histograms import Bins, NormHistogram, OctaveHistograms, ResponseHistogram
from sfumato.statistics.slices import SlicedMoments
from sfumato.statistics.whitening import Whitening

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
    with threadpool_limits(2, "blas"):
        before = [library["num_threads"] for library in threadpool_info()]
        Central(ArraySource(np.zeros((9, 1)), np.zeros(9), Response())).sum(QUERY)
        assert [library["num_threads"] for library in threadpool_info()] == before
        assert 2 in before


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """A file of four parts, and which columns of it are decoded from now on."""
    rng = np.random.default_rng(2)
    table = pa.table({"a": rng.normal(size=4000), "b": rng.normal(size=4000), "y": rng.normal(size=4000)})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=1000)
    seen, decode = [], ParquetTable.batches

    def spy(self, part, columns, *more):
        seen.append(tuple(columns))
        return decode(self, part, columns, *more)

    monkeypatch.setattr(ParquetTable, "batches", spy)
    return tmp_path / "t.parquet", seen


def test_after_the_first_pass_only_the_columns_of_a_question_are_decoded(asked):
    path, seen = asked
    adder, x = Central(scan(path, response="y", memory=0), threads=2), OctaveHistograms(2)
    adder.check()
    assert seen == [("a", "b", "y")] * 4
    seen.clear()
    for query, columns in ((QUERY, {("y",)}), (x, {("a", "b"), ("y",)})):
        adder.sum(query)
        assert set(seen) == columns and len(seen) == 4 * len(columns)
        seen.clear()


def test_what_is_kept_is_not_decoded_again_and_stays_within_the_memory_given(asked):
    path, seen = asked
    whitening = Whitening(Bounds(-5, 5).grid(2), np.eye(2), np.zeros(2), 3.0)
    slices = SlicedMoments(whitening, QUERY.bins, np.arange(3), 3)
    working, expected, limits = scan(path, response="y").working, None, (0, 30_000, 65_000, 2**30)
    decoded = []
    for kept in limits:
        source = scan(path, response="y", memory=working + kept)
        adder = Central(source, threads=2)
        sums = [adder.sum(slices) for _ in range(3)]
        seen.clear()
        sums.append(adder.sum(slices))
        decoded.append(len(seen))
        assert source._memory.taken <= kept
        expected = sums[0] if expected is None else expected
        assert all(np.array_equal(each, expected) for each in sums)
    assert decoded[0] == 8 and decoded[-1] == 0 and decoded == sorted(decoded, reverse=True)
    assert 0 < decoded[1] < 8


def test_features_are_kept_as_far_as_there_is_room_the_last_of_each_part(tmp_path, monkeypatch):
    rng, path, decoded = np.random.default_rng(0), tmp_path / "t.parquet", []
    rows, slices = 8 * 20, {"a": rng.normal(size=320), "b": rng.normal(size=320), "y": rng.normal(size=320)}
    pq.write_table(pa.table(slices), path, row_group_size=rows)
    monkeypatch.setattr("sfumato.sources.files.chunk_rows", lambda n_features: 20)
    working, encode = scan(path, response="y").working, Columns.encode
    monkeypatch.setattr(Columns, "encode", lambda self, batch: decoded.append(1) or encode(self, batch))
    whitening = Whitening(Bounds(-5, 5).grid(2), np.eye(2), np.zeros(2), 3.0)
    whitened = SlicedMoments(whitening, QUERY.bins, np.arange(3), 3)
    expected, counts = None, []
    for numbers in (0, 2, 3, 4, 9):  # so many for each record: two are for its response and bins, two are its features
        source = scan(path, response="y", memory=working + 8 * 320 * numbers)
        adder, decodes = Central(source, threads=1), []
        adder.check()
        sums = []
        for query in (OctaveHistograms(2), NormHistogram(whitening.source), whitened, whitened):
            decoded.clear()
            sums.append(adder.sum(query))
            decodes.append(len(decoded))
            assert source._memory.taken <= 8 * 320 * numbers
        counts.append(decodes)
        expected = expected or sums
        assert all(map(np.array_equal, sums, expected))
    assert counts[0] == [16, 16, 16, 16] and counts[1][:2] == [16, 16]  # nothing is kept, or only responses
    assert counts[2][:2] == [8, 8] and counts[3][:2] == [0, 0]  # half of the features, all of them
    assert counts[4] == [0, 0, 0, 0]


def test_a_file_that_changes_between_two_passes_is_refused(tmp_path):
    path, y = tmp_path / "t.parquet", np.arange(50.0)
    pq.write_table(pa.table({"a": y, "y": y}), path)
    adder = Central(scan(path, response="y", memory=0))
    adder.check()
    for other in (pa.table({"a": np.arange(40.0), "y": np.arange(40.0)}), pa.table({"a": -y, "y": y})):
        pq.write_table(other, path)
        with pytest.raises(InputError, match="changed while it was read"):
            adder.sum(OctaveHistograms(1))


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_a_row_group_is_summed_in_slices_by_any_number_of_threads(tmp_path, monkeypatch, ending, threads):
    monkeypatch.setattr("sfumato.sources.files.chunk_rows", lambda n_features: 30)
    rng = np.random.default_rng(4)
    table = pa.table({"a": rng.normal(size=1000), "b": rng.normal(size=1000), "y": np.arange(1000.0)})
    (pq.write_table if ending == "parquet" else pcsv.write_csv)(table, tmp_path / f"t.{ending}")
    whole = Central(scan(table, response="y")).sum(OctaveHistograms(2))
    for memory in (0, None):
        source = scan(tmp_path / f"t.{ending}", response="y", memory=memory)
        for _ in range(2):
            assert np.array_equal(Central(source, threads=threads).sum(OctaveHistograms(2)), whole)
        lanes = source.split(source.parts(), threads)
        read = [records.y for lane in lanes for part in lane for records in source.read(part)]
        assert len(lanes) == threads and np.array_equal(np.concatenate(read), table["y"].to_numpy())


def test_every_process_finds_the_same_rows_in_a_slice_whatever_it_read_before(tmp_path, monkeypatch):
    monkeypatch.setattr("sfumato.sources.files.chunk_rows", lambda n_features: 30)
    rng, y = np.random.default_rng(5), np.arange(1000.0)
    features = np.where(rng.random(1000) < 0.1, np.nan, y)
    pq.write_table(pa.table({"a": features, "y": y, "who": rng.integers(0, 300, 1000)}), tmp_path / "t.parquet")
    options = {"response": "y", "person": "who", "features": ["a"], "drop_missing": True, "memory": 0}
    before, after = (open_source([tmp_path / "t.parquet"], **options).first_rows(2) for _ in range(2))
    expected = [[records.y.tolist() for records in before.read(place)] for place in before.parts()]
    found = {place: [records.y.tolist() for records in after.read(place)] for place in reversed(after.parts())}
    again = [[records.x[:, 0].tolist() for records in after.read(place)] for place in after.parts()]
    assert [found[place] for place in before.parts()] == expected == again
    assert len(expected) == 34 and 400 < sum(len(rows) for slices in expected for rows in slices) < 600


def test_decoding_a_large_row_group_takes_no_more_than_was_set_aside_for_it(tmp_path):
    x = np.random.default_rng(6).normal(size=(3, 700_000))
    pq.write_table(pa.table({"a": x[0], "b": x[1], "y": x[2]}), tmp_path / "t.parquet", use_dictionary=["a"])
    source, before = scan(tmp_path / "t.parquet", response="y", memory=0), pa.total_allocated_bytes()
    taken = max(pa.total_allocated_bytes() - before for _ in source.read((0, 0)))
    assert taken < ParquetTable(tmp_path / "t.parquet").decoding(3) < x.nbytes
