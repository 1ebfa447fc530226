"""`sfumato ledger` and `sfumato audit`, as an application of their own: sentences and exit codes, no traceback."""

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from sfumato.cli import audit as audit_module
from sfumato.cli import ledger as ledger_module
from sfumato.cli.terminal import CommandGroup
from sfumato.privacy.ledger import FileLedger
from sfumato.privacy.plan import Line, Plan

app = typer.Typer(cls=CommandGroup)
app.add_typer(ledger_module.app, name="ledger")
app.add_typer(audit_module.app, name="audit")


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def go(*words):
        result = CliRunner().invoke(app, list(words))
        assert "Traceback" not in result.output
        return result.exit_code, result.stdout, result.stderr

    return go


def test_the_life_of_a_ledger(run):
    assert run("ledger", "create", "l.jsonl", "--epsilon", "3", "--purpose", "trial")[0] == 0
    assert run("ledger", "create", "l.jsonl", "--epsilon", "3")[0] == 2
    ledger = FileLedger("l.jsonl", purpose="first look")
    plan = Plan((Line("a", "a", 1.0, ""), Line("b", "b", 1.0, ""))).calibrate(ledger.budget)
    ledger.reserve(plan)
    code, out, _ = run("ledger", "show", "l.jsonl", "--releases")
    assert code == 0 and "first look" in out and "open" in out
    assert run("ledger", "remaining", "l.jsonl")[1] == "nothing is left\n"
    assert run("ledger", "close", "l.jsonl", "no-such-run")[0] == 2
    assert run("ledger", "close", "l.jsonl", ledger.runs()[0].id)[0] == 0
    assert "epsilon = 3" in run("ledger", "remaining", "l.jsonl")[1]
    code, out, _ = run("ledger", "verify", "l.jsonl")
    assert code == 0 and run("ledger", "verify", "l.jsonl", "--head", out.split()[-1].rstrip("."))[0] == 0
    assert run("ledger", "verify", "l.jsonl", "--head", "ab")[0] == 3
    assert run("ledger", "merge", "l.jsonl", "--out", "m.jsonl", "--rho", "1")[0] == 0
    assert FileLedger("m.jsonl").budget.rho == 1


def test_a_damaged_ledger_is_explained_and_repaired(run, tmp_path):
    run("ledger", "create", "l.jsonl", "--rho", "1")
    path = tmp_path / "l.jsonl"
    path.write_bytes(path.read_bytes() + b'{"kind": "ent')
    code, _, err = run("ledger", "verify", "l.jsonl")
    assert code == 3 and "line 2 is cut off" in err
    assert run("ledger", "repair", "l.jsonl", "--reason", "power cut")[0] == 3
    assert run("ledger", "repair", "l.jsonl", "--reason", "power cut", "--nothing-lost")[0] == 0
    assert run("ledger", "verify", "l.jsonl")[0] == 0
    for words in (["show", "none.jsonl"], ["create", "x"], ["create", "x", "--epsilon", "-1"], ["remaining", "."]):
        code, _, err = run("ledger", *words)
        assert code == 2 and err.count("\n") == 1


def test_audits_report_and_decide(run):
    code, out, _ = run("audit", "releases", "--only", "histogram of the response", "--runs", "300")
    assert code == 0 and out.count("holds") == 2
    assert run("audit", "releases", "--only", "no such", "--runs", "100")[0] == 2
    code, out, err = run("audit", "controls", "--runs", "2500")
    assert code == 0 and out.count("false") == 5, err


def test_a_trace_writes_its_picture(run, tmp_path):
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.standard_normal((60, 3)), rng.standard_normal(60)])
    np.savetxt(tmp_path / "t.csv", table, delimiter=",", header="a,b,c,y", comments="")
    code, out, err = run("audit", "trace", "t.csv", "-y", "y", "--splits", "5")
    assert code == 0 and "raw: area" in out, err
    assert (tmp_path / "tracing.svg").read_text().startswith("<svg")
    assert run("audit", "trace", "t.csv", "-y", "z")[0] == 2
