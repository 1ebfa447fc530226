"""Files in an object store, of a real local S3 server: the same bits as files of this machine."""

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from sfumato import Bounds, InputError, PrivateSIR, scan
from sfumato.sources.names import find

moto_server = pytest.importorskip("moto.server", reason="no S3 server is installed; pip install 'moto[server,s3]'.")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(5)
    x = np.round(rng.normal(size=(2000, 3)), 6)
    y = np.round(x @ [1.0, -0.5, 0.0] + 0.3 * rng.normal(size=2000), 6)
    return pa.table({"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "y": y})


@pytest.fixture(scope="module")
def bucket(table):
    """The query that leads to a bucket full of files, its keys in the environment."""
    with pytest.MonkeyPatch.context() as environment:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            environment.setenv(name, "testing")
        environment.setenv("AWS_EC2_METADATA_DISABLED", "true")
        server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        host, port = server.get_host_and_port()
        store = fs.S3FileSystem(endpoint_override=f"{host}:{port}", scheme="http", allow_bucket_creation=True)
        store.create_dir("visits")
        for i in range(2):
            with store.open_output_stream(f"visits/2026/{i}.parquet") as stream:
                pq.write_table(table.slice(1000 * i, 1000), stream, row_group_size=300)
        with store.open_output_stream("visits/all.csv.gz", compression="gzip") as stream:
            pcsv.write_csv(table, stream)
        with store.open_output_stream("visits/all.feather") as stream:
            feather.write_feather(table, stream)
        yield f"?endpoint_override={host}%3A{port}&scheme=http"
        server.stop()


def fit(source, **options):
    """One shot: without memory every question reads the objects again, and a server in Python is slow."""
    sir = PrivateSIR(bounds=Bounds(-4, 4), method="one-shot", random_state=1)
    return sir.fit(scan(source, response="y", **options)).directions_


@pytest.mark.parametrize("name", ["2026/*.parquet", "all.csv.gz", "all.feather"])
@pytest.mark.parametrize("memory", ["1GB", 0])
def test_an_object_store_gives_the_bits_of_the_table(name, memory, table, bucket):
    assert np.array_equal(fit(f"s3://visits/{name}{bucket}", memory=memory), fit(table))


def test_objects_are_listed_in_order_and_by_their_whole_address(bucket):
    found = find(f"s3://visits/2026/*{bucket}")
    assert [str(each) for each in found] == [f"s3://visits/2026/{i}.parquet{bucket}" for i in range(2)]


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("s3://visits/2027/*.parquet{}", "no object matches|cannot be listed"),
        ("s3://visits/none.parquet{}", "cannot be read"),
        ("s3://key:secret@visits/2026/0.parquet{}", "leave keys out of the address"),
        ("ftp://visits/0.parquet", "no address that Arrow can reach"),
    ],
)
def test_what_is_not_there_is_said_in_a_sentence(address, words, bucket):
    with pytest.raises(InputError, match=words) as caught:
        scan(address.format(bucket), response="y")
    assert "secret" not in str(caught.value)
