"""A declaration: what an analyst says of a table, and the command and the plan that follow from it."""

import csv
import hashlib
import io
import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

from sfumato.errors import InputError
from sfumato.study import EstimatorOptions, TableOptions, find_member, quote_key, read_kind

_NAMES_AT_ONCE = 200  # one word of a command holds 128 kB at the most


@dataclass(frozen=True)
class Declaration:
    """What is fitted and how: a table of the folder, what its columns are, the budget.

    A declaration is named by what it says (`id`): declared twice, in two tabs or after a reload, it is the same one.
    `again` counts fits that were asked for anew on purpose, each of which costs anew.

    >>> said = Declaration("patients.csv", response="los", features=("age", "dose"), bounds={"age": (0, 120)})
    >>> said.id == Declaration("patients.csv", response="los", features=("age", "dose"), bounds={"age": (0, 120)}).id
    True
    >>> said.title
    'los in patients.csv'
    """

    table: str
    response: str | None = None
    features: tuple[str, ...] = ()
    second: tuple[str, ...] = ()
    person: str | None = None
    categorical: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    response_kind: str | None = None
    drop_missing: bool = False
    search: bool = False
    rows_per_person: int | None = None
    relation: str = "replace"
    estimator: str = "sir"
    epsilon: float = 1.0
    delta: float = 1e-6
    directions: str | None = None
    max_features: str | None = None
    picture: bool = True
    again: int = 0

    def __post_init__(self) -> None:
        ends = {name: (float(low), float(high)) for name, (low, high) in self.bounds.items()}
        object.__setattr__(self, "bounds", ends)  # 0 and 0.0 are the same bound, and make the same name

    @property
    def id(self) -> str:
        """The name of the declaration, from its content."""
        said = json.dumps(asdict(self), sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(said.encode()).hexdigest()[:16]

    @property
    def title(self) -> str:
        """What is explained, and where."""
        return self.table if self.response is None else f"{self.response} in {self.table}"

    @property
    def has_picture(self) -> bool | None:
        """Whether a picture is bought; None for methods that have none."""
        return self.picture if "picture" in find_member(self.estimator).takes else None

    def fit_again(self) -> "Declaration":
        """The same, to be paid for once more."""
        return replace(self, again=self.again + 1)

    def written(self) -> str:
        """The declaration as JSON."""
        return json.dumps(asdict(self), indent=1, sort_keys=True, ensure_ascii=True) + "\n"

    @classmethod
    def read(cls, text: str) -> "Declaration":
        """A declaration that was written; `InputError` if the text is none."""
        try:
            said = json.loads(text)
            if set(said) != {each.name for each in fields(cls)}:
                raise ValueError
            lists = {name: tuple(said[name]) for name in ("features", "second", "classes")}
            categories = {name: tuple(values) for name, values in said["categorical"].items()}
            return cls(**{**said, **lists, "categorical": categories})
        except (ValueError, TypeError, KeyError, AttributeError):
            raise InputError("run: its declaration cannot be read; declare the study again.") from None

    def bounds_file(self) -> str:
        """The bounds as the file that ``sfumato fit --bounds`` reads; empty if none were given."""
        lines = (f"{quote_key(name)} = [{low!r}, {high!r}]\n" for name, (low, high) in self.bounds.items())
        return "[bounds]\n" + "".join(lines) if self.bounds else ""

    def words(self, folder: Path, account: Path) -> list[str]:
        """The command that fits it, from the folder of the tables; results and bounds are in `folder`."""
        options: dict[str, object] = {
            "estimator": self.estimator,
            "response": self.response,
            "person": self.person,
            "rows-per-person": self.rows_per_person,
            "response-kind": self.response_kind,
            "bounds": self._bounds(folder),
            "epsilon": f"{self.epsilon:.12g}",
            "delta": f"{self.delta:.12g}",
            "relation": self.relation,
            "directions": self.directions,
            "max-features": self.max_features,
            "cap-ledger": account,
            "out": folder / "result",
        }
        said = [f"--{name}={value}" for name, value in options.items() if value is not None]
        for option, given in (("features", self.features), ("second", self.second), ("classes", self.classes)):
            said += [f"--{option}={names}" for names in _listed(given)]
        said += [f"--categorical={name}={'|'.join(values)}" for name, values in self.categorical.items()]
        said += ["--drop-missing"] if self.drop_missing else []
        said += ["--no-picture"] if self.has_picture is False else []
        return ["fit", *said, "--", self.table]

    def command(self, folder: Path, account: Path) -> str:
        """The same as a line to be typed."""
        return shlex.join(["sfumato", *self.words(folder, account)])

    def study(self, tables: Path, folder: Path) -> tuple[TableOptions, EstimatorOptions]:
        """The objects that the command makes of its words, for a plan; nothing is read yet."""
        study = TableOptions(
            str(tables / self.table),
            self.response,
            second=list(self.second) or None,
            features=list(self.features) or None,
            categorical={name: list(values) for name, values in self.categorical.items()},
            bounds=self._bounds(folder),
            drop_missing=self.drop_missing,
            response_kind=read_kind(self.response_kind),
            person=self.person,
        )
        asked = EstimatorOptions(
            self.estimator,
            self.epsilon,
            self.delta,
            directions=self.directions,
            classes=list(self.classes) or None,
            picture=self.has_picture,
            max_features=self.max_features,
        )
        return study, study.options(asked, self.relation, self.rows_per_person)

    def _bounds(self, folder: Path) -> str:
        return str(folder / "bounds.toml") if self.bounds else "search" if self.search else "none"


def _listed(names: Iterable[str]) -> list[str]:
    """Names as the lists that an option takes, every name quoted."""
    given = list(names)
    lists = []
    for start in range(0, len(given), _NAMES_AT_ONCE):
        text = io.StringIO()
        csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="").writerow(given[start : start + _NAMES_AT_ONCE])
        lists.append(text.getvalue())
    return lists
