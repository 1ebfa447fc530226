"""`sfumato federated`, and the Flower commands behind it."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from sfumato.errors import InputError
from sfumato.federated.flower import commands
from sfumato.federated.flower.app import write_app
from sfumato.federated.split import by_column
from sfumato.simulate import he


@pytest.fixture
def table(tmp_path):
    sample = he("I", n=900, p=3, random_state=0)
    columns = {f"x{j}": sample.x[:, j] for j in range(3)} | {"y": sample.y}
    hospital = np.array(["north", "south", "west"])[np.arange(900) % 3]
    path = tmp_path / "data.csv"
    pyarrow.csv.write_csv(pa.table(columns | {"hospital": hospital}), path)
    return str(path)


def test_a_file_becomes_one_site_for_each_value_of_a_column(table):
    sites = by_column(table, "hospital", "y")
    assert list(sites) == ["north", "south", "west"]
    assert all(len(y) == 300 and features.schema.names == ["x0", "x1", "x2"] for features, y in sites.values())


def test_a_column_that_is_not_there_is_named(table):
    with pytest.raises(InputError, match="by: there is no column 'clinic'"):
        by_column(table, "clinic", "y")


def test_simulate_prints_every_sites_spending(table):
    from typer.testing import CliRunner

    from sfumato.cli.federated import federated_app

    done = CliRunner().invoke(federated_app, ["simulate", table, "--by", "hospital", "-y", "y", "--epsilon", "1"])
    assert done.exit_code == 0, done.output
    assert all(f"{name}: epsilon 1" in done.output for name in ("north", "south", "west"))


def test_the_app_that_flower_runs_has_every_setting(tmp_path):
    import tomllib

    folder = write_app(tmp_path, sites=3, out='a "quoted" place')
    project = tomllib.loads((folder / "pyproject.toml").read_text())
    assert project["tool"]["flwr"]["app"]["config"]["sites"] == 3
    assert project["tool"]["flwr"]["app"]["config"]["out"] == 'a "quoted" place'
    with pytest.raises(KeyError):
        write_app(tmp_path, colour="red")


def test_a_servers_commands_ask_for_tls_and_registered_nodes(tmp_path):
    command = commands.superlink("127.0.0.1", 8000, tmp_path, *(tmp_path / name for name in ("ca", "crt", "key")))
    assert "--enable-supernode-auth" in command and "--ssl-certfile" in command and "--insecure" not in command
    commands.connection(tmp_path / "home", "h:1", tmp_path / "ca.crt")
    assert "root-certificates" in (tmp_path / "home" / "config.toml").read_text()
