"""A real local Spark: the same bits as one process. Skipped, with a sentence, where Spark or Java is not installed."""

import os
import shutil
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato import Bounds, InputError, Ledger, PrivateCCA, PrivateLDA, PrivatePCA, PrivateSIR, PrivateSparseSIR, scan
from sfumato.privacy.budget import Budget
from sfumato.settings.spark import SparkError

pytest.importorskip("pyspark", reason="Spark is not installed; 'make test-spark' installs it and runs these tests.")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs Java 17 or newer, which is not installed.", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore")  # of the engine
NAMES = ["a", "b.1", "c", "d"]
BOX = Bounds(-6, 6)
MARK = 4242.424242


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable  # of the executors, which need sfumato
    folder = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.local.dir", str(folder))
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(3000, 4))
    columns = {name: x[:, j] for j, name in enumerate(NAMES)}
    table = pa.table(columns | {"y": x[:, 0] + rng.normal(size=3000), "kind": np.where(x[:, 0] > 0, "ash", "oak")})
    path = tmp_path_factory.mktemp("tables") / "table.parquet"
    pq.write_table(table, path, row_group_size=500)
    return path


CASES = {
    "descent": (PrivateSIR(bounds=BOX, method="descent", picture=True), {"response": "y"}),
    "one-shot, bounds found": (PrivateSIR(bounds="search", method="one-shot"), {"response": "y"}),
    "classes found": (PrivateSIR(bounds=BOX, method="one-shot"), {"response": "kind"}),
    "sparse": (PrivateSparseSIR(bounds=BOX, max_features=2), {"response": "y"}),
    "pca": (PrivatePCA(2, bounds=BOX), {}),
    "cca": (PrivateCCA(1, bounds=BOX, y_bounds=BOX), {"second": ["y"]}),
    "lda": (PrivateLDA(bounds=BOX, classes=["ash", "oak"]), {"response": "kind", "classes": ["ash", "oak"]}),
}


@pytest.mark.parametrize("case", CASES)
def test_spark_gives_the_bits_of_one_process(case, path, spark):
    estimator, options = CASES[case]
    frame = spark.read.parquet(str(path)).repartition(5)
    alone, together = (
        estimator.set_params(random_state=5).fit(scan(source, features=NAMES, **options)).directions_
        for source in (path, frame)
    )
    assert np.array_equal(alone, together)


def test_missing_values_are_refused_by_their_column_and_nothing_is_spent(spark):
    frame = spark.createDataFrame([(1.0, MARK, 1.0), (2.0, 3.0, 2.0), (None, 3.0, 3.0)], ["a", "b", "y"])
    ledger = Ledger(Budget.approximate(1.0, 1e-6), "replace")
    with pytest.raises(InputError, match="column 'a' has missing") as caught:
        PrivateSIR(ledger=ledger).fit(scan(frame, response="y"))
    assert "4242" not in str(caught.value) and len(ledger) == 0


def test_what_spark_says_of_a_cell_is_not_repeated(spark):
    frame = spark.createDataFrame([("1",), (f"{MARK}x",)], ["t"]).selectExpr("cast(t as double) as a", "1.0 as y")
    with pytest.raises((SparkError, InputError)) as caught:
        PrivateSIR().fit(scan(frame, response="y"))
    assert "4242" not in str(caught.value) and caught.value.__suppress_context__


def test_the_rows_of_a_person_have_no_order_in_spark(spark, path):
    with pytest.raises(InputError, match="no order"):
        scan(spark.read.parquet(str(path)), response="y", person="kind")
