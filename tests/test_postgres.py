"""Records that lie in PostgreSQL: a real server, read through ADBC."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from sfumato import InputError, PrivateSIR, scan

dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi", reason="pip install adbc-driver-postgresql.")
N = 2000
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
READ = "select age, dose, smoker, los from visits"


def programs() -> Path | None:
    """Where a PostgreSQL server is installed, if one is."""
    found = shutil.which("postgres")
    places = [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return places[-1] if places else None


pytestmark = pytest.mark.skipif(programs() is None, reason="no PostgreSQL server on this machine; install postgresql.")


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(5)
    age, dose, smoker = rng.integers(20, 90, N), np.round(rng.normal(size=N), 6), rng.uniform(size=N) < 0.3
    los = np.round(0.05 * age - 0.5 * dose + smoker + 0.3 * rng.normal(size=N), 6)
    return pa.table({"age": age, "dose": dose, "smoker": smoker, "los": los})


@pytest.fixture(scope="module")
def database(table):
    """The address of a server of its own, with the table in it; as another user where this is root, as it demands."""
    who = pwd.getpwnam("postgres").pw_name if os.getuid() == 0 else None
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        if who:
            shutil.chown(name, who)
        folder, start = Path(name) / "data", ("-o", f"-p {port} -k {name} -c listen_addresses=127.0.0.1 -c fsync=off")
        run, tool = partial(subprocess.run, user=who, check=True, cwd="/", **QUIET), programs()
        run([tool / "initdb", "-D", folder, "-U", "analyst", "-A", "trust", "--no-sync"])
        run([tool / "pg_ctl", "-D", folder, "-l", f"{name}/log", *start, "-w", "start"])
        try:
            address = f"postgresql://analyst@127.0.0.1:{port}/postgres"
            with dbapi.connect(address) as connection, connection.cursor() as cursor:
                cursor.adbc_ingest("visits", table, mode="create")
                connection.commit()
            yield address
        finally:
            run([tool / "pg_ctl", "-D", folder, "-m", "immediate", "stop"])


def fit(source, **options):
    bounds = {"age": (18, 100), "dose": (-4, 4), "smoker": (0, 1)}
    return PrivateSIR(bounds=bounds, random_state=1).fit(scan(source, response="los", **options)).directions_


@pytest.mark.parametrize("memory", ["1GB", 0])
def test_a_query_gives_the_bits_of_the_table(memory, database, table):
    with dbapi.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute(READ)
        assert np.array_equal(fit(cursor.fetch_record_batch(), memory=memory), fit(table))


def test_rows_that_others_write_meanwhile_are_not_read(database, table):
    with dbapi.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute(READ)
        source = scan(cursor.fetch_record_batch, response="los")
        with dbapi.connect(database) as other, other.cursor() as writer:
            writer.execute("create table copied as select * from visits")
            writer.execute("delete from visits where age > 40")
            other.commit()
            try:
                bounds = {"age": (18, 100), "dose": (-4, 4), "smoker": (0, 1)}
                assert np.array_equal(PrivateSIR(bounds=bounds, random_state=1).fit(source).directions_, fit(table))
            finally:
                writer.execute("insert into visits select * from copied where age > 40")
                writer.execute("drop table copied")
                other.commit()


@pytest.mark.parametrize("column", ["age", "los"])
def test_a_decimal_of_the_database_is_refused_with_the_cast_that_helps(column, database):
    others = [name for name in ("age", "dose", "los") if name != column]
    with dbapi.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute(f"select {column}::numeric as {column}, {', '.join(others)} from visits")
        with pytest.raises(InputError, match=f"column '{column}'.*::float8"):
            scan(cursor.fetch_record_batch(), response="los")
