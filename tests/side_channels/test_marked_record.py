"""A marked record goes through every private estimator; nothing that leaves may carry its mark."""

import io
import logging
import pickle
import struct
import traceback
import warnings
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
import pytest

import sfumato
from sfumato import Budget, SfumatoError
from sfumato.privacy.ledger import FileLedger
from sfumato.privacy.ledger.admin import show

MARK, WORD = 987654321.125, "SECRET-MARK"
NAMES = [name for name in sfumato.__all__ if name.startswith(("Private", "LabelPrivate", "Local"))]
PUBLIC_X = {"LabelPrivateSIR", "LabelPrivateIHT"}  # there only y is secret
CLASSES = {"PrivateLDA"}
TABLES = {"PrivateCCA", "PrivateMultiSIR", "PrivateCensoredSIR"}  # y has several columns


def data(name):
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-1, 1, (120, 4)), rng.uniform(-1, 1, 120)
    if name not in PUBLIC_X:
        x[7, 1] = MARK
    if name in TABLES:
        return x, np.column_stack([np.where(np.arange(120) == 7, MARK, y), x[:, 0] > 0])
    if name in CLASSES:
        return x, np.where(np.arange(120) == 7, WORD, np.where(y > 0, "a", "b"))
    return x, np.where(np.arange(120) == 7, MARK, y)


def traces():
    packed = [struct.pack(order + kind, MARK) for order in "<>" for kind in "df"]
    return [*packed, b"987654321", b"9.8765432", WORD.encode(), WORD.encode("utf-16-le")]


def carried(*things):
    return [trace for thing in things for trace in traces() if trace in thing]


def estimator(name, **options):
    kind = getattr(sfumato, name)
    known = set(kind().get_params())
    if name.startswith("Private"):
        options = {"bounds": "search"} | options  # however few records there are
    return kind(**{key: value for key, value in options.items() if key in known})


class Overheard:
    """Everything a block prints, warns and logs."""

    def __enter__(self):
        self.out, self.log = io.StringIO(), io.StringIO()
        self.handler = logging.StreamHandler(self.log)
        self.level, root = logging.getLogger().level, logging.getLogger()
        root.addHandler(self.handler)
        root.setLevel(logging.DEBUG)
        self.parts = [redirect_stdout(self.out), redirect_stderr(self.out), warnings.catch_warnings(record=True)]
        *_, self.warned = [part.__enter__() for part in self.parts]
        warnings.simplefilter("always")
        return self

    def __exit__(self, *error):
        for part in reversed(self.parts):
            part.__exit__(*error)
        logging.getLogger().removeHandler(self.handler)
        logging.getLogger().setLevel(self.level)

    @property
    def text(self):
        told = "\n".join(str(warning.message) for warning in self.warned)
        return (self.out.getvalue() + self.log.getvalue() + told).encode()


@pytest.mark.parametrize("name", NAMES)
def test_nothing_that_leaves_a_fit_carries_the_mark(name):
    x, y = data(name)
    assert carried(pickle.dumps((x, y)))  # the search would find it
    with Overheard() as heard:
        fitted = estimator(name, epsilon=1.0).fit(x, y)
    texts = [repr(fitted), str(fitted), repr(vars(fitted))]
    if hasattr(fitted, "ledger_"):
        texts += [repr(fitted.ledger_), repr(fitted.ledger_.entries), fitted.ledger_.guarantee]
    assert not carried(pickle.dumps(fitted), heard.text, *(text.encode() for text in texts))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("spoil", [np.nan, np.inf, "text"])
def test_no_error_carries_the_mark(name, spoil):
    x, y = data(name)
    if spoil == "text":
        x = x.astype(object)
        x[9, 2] = WORD
    else:
        x[9, 2] = spoil
    with Overheard() as heard, pytest.raises((SfumatoError, ValueError, TypeError)) as caught:
        estimator(name, epsilon=1.0).fit(x, y)
    chain = "".join(traceback.format_exception(caught.value))
    ours = "\n".join(line for line in chain.splitlines() if not line.startswith(" "))  # messages, not source lines
    assert not carried(ours.encode(), heard.text)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in PUBLIC_X and name != "LocalSIR"])
def test_a_ledger_file_carries_no_mark(name, tmp_path):
    path = tmp_path / "study.jsonl"
    FileLedger(path, Budget.approximate(20, 1e-5))
    fitted = estimator(name, epsilon=1.0, ledger=path).fit(*data(name))
    kept = show(FileLedger(path), entries=True).encode()
    assert len(FileLedger(path)) == len(fitted.ledger_) > 0
    assert not carried(path.read_bytes(), kept, pickle.dumps(fitted.ledger_))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in PUBLIC_X and name != "LocalSIR"])
def test_the_number_of_records_is_not_told_where_it_is_private(name):
    """Under add-remove the ledger of 4096 + 57 records reads like any other."""
    x, y = data(name)
    rows = np.arange(4153) % 119
    with Overheard() as heard:
        fitted = estimator(name, epsilon=1.0, relation="add-remove").fit(x[rows], y[rows])
    told = repr(fitted) + repr(fitted.ledger_) + repr(fitted.ledger_.entries) + fitted.ledger_.guarantee
    assert b"4153" not in told.encode() + heard.text
