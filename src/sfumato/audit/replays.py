"""Every private estimator, method, relation, setting and kind of source under replay on hostile neighbours."""

import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from sklearn.base import clone
from sklearn.utils import get_tags

from sfumato.audit.fits import list_attacks
from sfumato.audit.hostile import Hostile, Private, Table, forges
from sfumato.audit.tape import Recording, Replayed, record
from sfumato.federated import simulate
from sfumato.methods.about import BOX, NAMES, NUMBERS, Attack
from sfumato.methods.cca import PrivateCCA
from sfumato.methods.label_iht import LabelPrivateIHT
from sfumato.methods.label_sir import LabelPrivateSIR
from sfumato.methods.lda import PrivateLDA
from sfumato.methods.local_sir import LocalSIR
from sfumato.methods.pca import PrivatePCA
from sfumato.methods.phd import PrivatePHD
from sfumato.methods.second_order import PrivateDR, PrivateSAVE
from sfumato.methods.sir import PrivateSIR
from sfumato.methods.sparse_pca import PrivateSparsePCA
from sfumato.methods.sparse_sir import PrivateSparseSIR
from sfumato.settings.central import one_blas_thread
from sfumato.sources import scan
from sfumato.sources.files import open_source
from sfumato.typing import Relation

SECOND = 2
"""Columns of the second table of a canonical pair."""
CUTS = (2, 4)
"""The first people of the second and of the third site; the person that differs is at the last."""
HIDDEN = 2
"""Rows that a person has beyond those that count; they must change nothing."""

NEIGHBOURS = 4
"""Of each table: its own fit is the same for all of them."""

Way = Callable[[Any, Table, Path, dict[str, Any]], Any]
"""How a table reaches an estimator: ``way(estimator, table, folder, declared)`` returns it fitted.

It says whose row is whose if ``declared["person"]`` says so.
"""


@dataclass(frozen=True, slots=True)
class Subject:
    """An estimator under replay, the responses its records may have, and what its guarantee protects.

    `declared` is what is declared beside its parameters: the kind of a response that has no classes.
    """

    estimator: Any
    n_features: int = 3
    responses: tuple[Any, ...] = NUMBERS
    private: Private = "record"
    declared: dict[str, Any] = field(default_factory=dict)


def subjects(relation: Relation) -> dict[str, Subject]:
    """Everything that claims a guarantee under this relation, one curator holding the records (or nobody)."""
    attacked = {attack.name: _subject(attack) for attack in list_attacks(1.0, 1e-6, relation)}
    return attacked | (_devices() if relation == "replace" else {})


def _subject(attack: Attack) -> Subject:
    declared = {} if attack.declared is None else {"response_kind": attack.declared}
    return Subject(attack.estimator, attack.n_features, attack.responses or NUMBERS, declared=declared)


def _devices() -> dict[str, Subject]:
    """Answers of devices; there is no add-or-remove, as taking part is not hidden."""
    return {
        "LabelPrivateSIR, edges found": Subject(LabelPrivateSIR(1.0, 1), private="label"),
        "LabelPrivateSIR, edges given": Subject(LabelPrivateSIR(1.0, 1, edges=[0.0]), private="label"),
        "LabelPrivateSIR, classes": Subject(LabelPrivateSIR(1.0, 1, classes=NAMES), 3, NAMES, "label"),
        "LabelPrivateSIR, sparse": Subject(LabelPrivateSIR(1.0, 1, n_active="auto"), 6, private="label"),
        "LabelPrivateSIR, in waves": Subject(LabelPrivateSIR(1.0, 1, waves=4), private="label"),
        **{
            f"LabelPrivateIHT {mechanism}": Subject(
                LabelPrivateIHT(1.0, 1e-6, n_active=1, mechanism=mechanism), private="label"
            )
            for mechanism in ("two-point", "laplace", "gaussian")
        },
        "LocalSIR": Subject(LocalSIR(1.0, 1e-6, bounds=BOX), private="answer"),
    }


def federations(relation: Relation) -> dict[str, tuple[Subject, dict[str, Any]]]:
    """Everything that sites fit together, and with which options."""
    known: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "relation": relation, "n_directions": 1, "bounds": BOX}
    found = known | {"bounds": "search"}
    shared = {"trust": "secure-aggregation"}
    return {
        "PrivateSIR descent": (Subject(PrivateSIR(**known, method="descent")), {}),
        "PrivateSIR descent, leaving out": (Subject(PrivateSIR(**known, method="descent")), {"leave_out": True}),
        "PrivateSIR one-shot": (Subject(PrivateSIR(**known, method="one-shot")), {}),
        "PrivateSIR one-shot, noise shared": (Subject(PrivateSIR(**known, method="one-shot")), shared),
        "PrivateSIR descent, bounds found, noise shared": (Subject(PrivateSIR(**found, method="descent")), shared),
        "PrivateSIR descent, own units": (Subject(PrivateSIR(**found, method="descent")), {"own_units": True}),
        "PrivateSIR, classes": (Subject(PrivateSIR(**known, method="descent", classes=NAMES), 3, NAMES), {}),
        "PrivateSparseSIR, votes": (Subject(PrivateSparseSIR(**known), 6), {}),
        "PrivateSparseSIR, votes, bounds found": (Subject(PrivateSparseSIR(**found, picture=True), 6), {}),
        "PrivateSAVE": (Subject(PrivateSAVE(**known)), {}),
        "PrivateDR, own units": (Subject(PrivateDR(**found)), {"own_units": True}),
        "PrivateDR, bounds found, noise shared": (Subject(PrivateDR(**found)), shared),
        "PrivatePHD": (Subject(PrivatePHD(**known)), {}),
        "PrivatePCA refined, leaving out": (Subject(PrivatePCA(**known, method="refined")), {"leave_out": True}),
        "PrivatePCA one-shot, bounds found": (Subject(PrivatePCA(**found, method="one-shot")), {}),
        "PrivateSparsePCA, votes": (Subject(PrivateSparsePCA(**known, max_features=2), 6), {}),
        "PrivateLDA": (Subject(PrivateLDA(**known, classes=NAMES), 3, NAMES), {}),
        "PrivateCCA": (Subject(PrivateCCA(**known, y_bounds=BOX), 4), {}),
        "PrivateCCA, own units": (Subject(PrivateCCA(**found, y_bounds="search"), 4), {"own_units": True}),
    }


def ways() -> dict[str, Way]:
    """Every kind of source; frames of libraries that are not installed are left out."""
    frames: dict[str, Way] = {name: partial(_from_frame, name) for name in ("pandas", "polars") if find_spec(name)}
    files: dict[str, Way] = {kind: partial(_scanned, kind) for kind in ("arrow", "parquet", "csv")}
    return {"array": _from_array, **frames, **files, "csv, categories": _with_categories}


def _from_array(estimator: Any, table: Table, folder: Path, declared: dict[str, Any]) -> Any:
    x, y = _split(estimator, table)
    return estimator.fit(x, y, **_taken(estimator, table, declared))


def _from_frame(library: str, estimator: Any, table: Table, folder: Path, declared: dict[str, Any]) -> Any:
    frames = import_module(library)
    x, y = _split(estimator, table)
    frame = frames.DataFrame({f"x{j}": column for j, column in enumerate(x.T)})
    if y is not None and y.ndim == 2:
        y = frames.DataFrame({f"y{j}": column for j, column in enumerate(y.T)})
    elif y is not None:
        y = frames.Series(y.tolist())
    told = _taken(estimator, table, declared)
    return estimator.fit(frame, y, **told | {name: frames.Series(told[name]) for name in told if name == "groups"})


def _taken(estimator: Any, table: Table, declared: dict[str, Any]) -> dict[str, Any]:
    """What ``fit`` itself is told; an estimator that knows of one kind of response only does not ask."""
    told = {name: value for name, value in declared.items() if name in signature(estimator.fit).parameters}
    return told | {"groups": table.ids} if "person" in declared else told


def _scanned(kind: str, estimator: Any, table: Table, folder: Path, declared: dict[str, Any]) -> Any:
    columns, options = _columns(estimator, table, declared)
    arrow, path = pa.table(columns), folder / f"table.{kind}"
    match kind:
        case "arrow":
            return estimator.fit(scan(arrow, **options))
        case "parquet":
            pyarrow.parquet.write_table(arrow, path)
        case "csv":
            pyarrow.csv.write_csv(arrow, path)
    return estimator.fit(scan(path, **options))


def _columns(estimator: Any, table: Table, declared: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The columns of a file, and which of them are what: options of `scan`."""
    columns = {f"x{j}": pa.array(column) for j, column in enumerate(table.x.T)}
    tags, options = get_tags(estimator).target_tags, dict(declared)
    if tags.multi_output:
        options |= {"second": list(columns)[-SECOND:]}
    elif tags.required:
        options |= {"response": "y", "classes": getattr(estimator, "classes", None)}
        columns |= {"y": pa.array(list(table.y))}
    return columns | {declared[name]: pa.array(table.ids) for name in ("person",) if name in declared}, options


def _with_categories(estimator: Any, table: Table, folder: Path, declared: dict[str, Any]) -> Any:
    """The first feature as text: one of two declared categories, or one that was not declared."""
    first = table.x[:, 0]
    names = np.where(np.abs(first) > 1.0, "odd", np.where(first < 0.0, "low", "high"))
    columns, options = _columns(estimator, table, declared)
    path = folder / "categories.csv"
    pyarrow.csv.write_csv(pa.table(columns | {"x0": pa.array(names.tolist())}), path)
    features = [name for name in columns if name.startswith("x") and name not in options.get("second", ())]
    options = {"response": None, "categorical": {"x0": ["low", "high"]}} | options
    return estimator.fit(open_source([path], features=features, **options))


def _at_sites(options: dict[str, Any], estimator: Any, table: Table, folder: Path, declared: dict[str, Any]) -> Any:
    x, y = _split(estimator, table)
    site = np.searchsorted(CUTS, table.ids, side="right")
    columns = (x, y, table.ids) if "person" in declared else (x, y)
    parts = [[None if each is None else each[site == i] for each in columns] for i in range(len(CUTS) + 1)]
    return simulate(estimator, [tuple(part) for part in parts], **options)


def _split(estimator: Any, table: Table) -> tuple[Any, Any]:
    """Features and response as the estimator takes them: a second table, no response, or numbers or names."""
    tags = get_tags(estimator).target_tags
    if tags.multi_output:
        return table.x[:, :-SECOND], table.x[:, -SECOND:]
    return table.x, np.array(table.y) if tags.required else None


@dataclass(frozen=True, slots=True)
class Row:
    """One estimator, relation and way in, replayed on many pairs.

    `moved` is the largest part of a sensitivity that any pair realised, `raised` how often both fits ended with the
    same error, and `findings` what differed, with the number of the first pair for each.
    """

    name: str
    relation: Relation
    way: str
    pairs: int
    refused: int
    questions: int
    moved: float
    raised: int
    findings: dict[str, int]

    @property
    def passed(self) -> bool:
        """Whether nothing was found on any pair, and there were pairs."""
        return self.pairs > 0 and not self.findings


@dataclass(frozen=True, slots=True)
class People:
    """Neighbours that differ in all rows of a person, of which so many count; or nobody has more, says the user."""

    rows: int
    vouched: bool = False

    def protected(self, subject: Subject) -> Subject:
        """The subject, told so."""
        estimator = clone(subject.estimator).set_params(rows_per_person=self.rows)
        return replace(subject, estimator=estimator, declared=subject.declared | self._declared)

    @property
    def most(self) -> int:
        """Rows that a person may have."""
        return self.rows if self.vouched else self.rows + HIDDEN

    @property
    def _declared(self) -> dict[str, Any]:
        return {} if self.vouched else {"person": "person"}

    def __str__(self) -> str:
        rows = "one row" if self.rows == 1 else f"{self.rows} rows"
        return f"{rows} of a person{', vouched for' if self.vouched else ''}"


COUNTED = tuple(map(People, (1, 2, 10)))
VOUCHED = People(2, vouched=True)


@dataclass(frozen=True, slots=True)
class Run:
    """One row to be. Tables, releases and noise follow from its name and a number: every pair can be repeated.

    Neighbours differ in one record, or in all rows of one of `people`.
    """

    name: str
    relation: Relation
    way: str
    subject: Subject
    fit: Way
    at_sites: bool = False
    people: People | None = None

    def of(self, people: People) -> "Run":
        """The same where persons are protected."""
        return replace(self, way=f"{self.way}, {people}", subject=people.protected(self.subject), people=people)

    def pairs(self, count: int, seed: int, folder: Path, first: int = 0) -> Iterator[Replayed]:
        """So many pairs, from number `first` on; a table is fitted once for `NEIGHBOURS` of them."""
        for group in range(first // NEIGHBOURS, -(-(first + count) // NEIGHBOURS)):
            table, recording = self._recording(group, seed, folder)
            for i in range(group * NEIGHBOURS, (group + 1) * NEIGHBOURS):
                if first <= i < first + count:
                    yield recording.play(self._hostile.neighbour(self._rng(seed, 1, i), table))

    def row(self, pairs: int, seed: int) -> Row:
        """All pairs, summed up."""
        row = Row(self.name, self.relation, self.way, 0, 0, 0, 0.0, 0, {})
        # two threads on matrices of three rows wait for each other longer than they compute
        with tempfile.TemporaryDirectory() as folder, one_blas_thread():
            for i, found in enumerate(self.pairs(pairs, seed, Path(folder))):
                row = _added(row, i, found)
        return row

    @property
    def _hostile(self) -> Hostile:
        subject, sizes = self.subject, (6, 8, 15) if self.at_sites else (1, 2, 3, 8, 20, 40)
        known = (subject.n_features, subject.responses, self.relation, subject.private)
        if self.people is None:
            return Hostile(*known, sizes, last=self.at_sites)
        return Hostile(*known, sizes[:-2] or sizes, self.people.most, last=self.at_sites)

    def _rng(self, *numbers: int) -> np.random.Generator:
        return np.random.default_rng([*numbers, zlib.crc32(f"{self.name}/{self.relation}/{self.way}".encode())])

    def _recording(self, group: int, seed: int, folder: Path) -> tuple[Table, Recording[Table]]:
        rng = self._rng(seed, 0, group)
        table, told, noise = self._hostile.table(rng), forges(group), int(rng.integers(2**31))
        strict: Any = "raise" if group % 3 == 2 else "warn"  # whatever the user asked numpy for
        subject = self.subject

        def fit(table: Table) -> Any:
            with np.errstate(all=strict):
                estimator = clone(subject.estimator).set_params(random_state=noise)
                return self.fit(estimator, table, folder, subject.declared)

        rows = 1 if self.people is None else self.people.rows
        return table, record(fit, table, told[group % len(told)], rows)


def _added(row: Row, i: int, found: Replayed) -> Row:
    if found.refused:
        return replace(row, refused=row.refused + 1)
    return replace(
        row,
        pairs=row.pairs + 1,
        questions=max(row.questions, found.questions),
        moved=max(row.moved, found.moved),
        raised=row.raised + bool(found.raised),
        findings={**dict.fromkeys(found.findings, i), **row.findings},
    )


def runs(only: str = "") -> list[Run]:
    """Every combination there is, or those whose name, relation or way in contain `only`."""
    central = {
        (name, relation): [Run(name, relation, way, subject, fit) for way, fit in ways().items()]
        for relation in get_args(Relation)
        for name, subject in subjects(relation).items()
    }
    sites = [
        Run(name, relation, "sites", subject, partial(_at_sites, options), at_sites=True)
        for relation in get_args(Relation)
        for name, (subject, options) in federations(relation).items()
    ]
    every = [
        *(run for each in central.values() for run in each),
        *sites,
        *(run for place, each in enumerate(central.values()) for run in _of_people(place, each)),
        *(run.of(people) for run in sites for people in (*COUNTED[1:], VOUCHED)),
    ]
    return [run for run in every if only in f"{run.name}, {run.relation}, {run.way}"]


def _of_people(place: int, central: list[Run]) -> list[Run]:
    """Persons with a few rows and many, told of by ids in arrays and in one of the other sources, and vouched for."""
    array, *others = central
    told = [array.of(people) for people in COUNTED]
    return [*told, array.of(VOUCHED), others[place % len(others)].of(COUNTED[1])]


def replay_all(
    pairs: int = 20, *, only: str = "", seed: int = 0, progress: Callable[[str], None] | None = None
) -> list[Row]:
    """Replay every private estimator, method, relation, setting and kind of source on hostile neighbours.

    Examples
    --------
    >>> [(row.pairs, row.passed) for row in replay_all(2, only="PrivatePCA one-shot, replace, array, one row")]
    [(2, True)]
    """
    found = []
    for run in runs(only):
        if progress is not None:
            progress(f"{run.name}, {run.relation}, {run.way}")
        found.append(run.row(pairs, seed))
    return found


def replay_markdown(rows: Iterable[Row]) -> str:
    """The rows as a table."""
    lines = ["| fit | relation | source | pairs | questions | moved | raised | refused | found |", "|---|" + "---|" * 8]
    for row in rows:
        what = "nothing" if row.passed else "; ".join(f"**{text}** (pair {i})" for text, i in row.findings.items())
        cells = (row.name, row.relation, row.way, row.pairs, row.questions, f"{row.moved:.3f}", row.raised, row.refused)
        lines.append(f"| {' | '.join(map(str, cells))} | {what} |")
    return "\n".join(lines)
