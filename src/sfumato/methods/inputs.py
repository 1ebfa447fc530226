"""What the user hands over, checked before anything is spent: parameters, and tables as a `Source`.

No message repeats a value of the table.
"""

from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import get_tags
from sklearn.utils.validation import _check_feature_names, _check_n_features

from sfumato.errors import InputError
from sfumato.local.answers import Answers
from sfumato.privacy.unit import RECORD, Unit, unit_of
from sfumato.records import Response, is_finite
from sfumato.settings import adder_of
from sfumato.sources import ArraySource, ResponseKind, Source, declared_response
from sfumato.sources.arrays import binary_columns, features_to_array, response_to_array
from sfumato.typing import FloatArray, is_whole

if TYPE_CHECKING:  # it imports pyarrow, which tables in memory do not need
    from sfumato.sources.columns import Columns

MOVED = {
    "PrivateSIR": {"dp-ini": "DPIni", "dp-sir": "DPSIR", "dp-sir-full": "DPSIR", "rayleigh-flow": "RayleighFlowSIR"},
    "PrivateSparseSIR": {
        "dp-sini": "DPSIni",
        "dp-ssir": "DPSSIR",
        "truncated-rayleigh-flow": "TruncatedRayleighFlowSIR",
    },
    "PrivatePCA": {"rayleigh-flow": "RayleighFlowPCA"},
    "PrivateSparsePCA": {"dp-spca": "DPSPCA", "truncated-rayleigh-flow": "TruncatedRayleighFlowPCA"},
    "PrivateLDA": {"rayleigh-flow": "RayleighFlowLDA"},
    "PrivateCCA": {"rayleigh-flow": "RayleighFlowCCA"},
}
"""Methods of the papers by the estimator they once belonged to, and the names they have in `sfumato.research` now."""


def directions_of(n_directions: Any, n_features: int) -> int | None:
    """Number of directions, None for "auto"."""
    if isinstance(n_directions, str) and n_directions == "auto":
        return None
    if not is_whole(n_directions, 1):
        raise InputError(f"n_directions must be a positive integer or 'auto', got {n_directions!r}.")
    if int(n_directions) > n_features:
        raise InputError(
            f"n_directions is {n_directions} but x has {n_features} feature(s); ask for at most {n_features}."
        )
    return int(n_directions)


def sizes_of(n_samples: Any, n_features: Any) -> tuple[int, int]:
    """Number of records and of features of a study to come."""
    for name, value in (("n_samples", n_samples), ("n_features", n_features)):
        if not is_whole(value, 1):
            raise InputError(
                f"{name} must be a positive integer, got {value!r}; a guess will do, since no record is read."
            )
    return int(n_samples), int(n_features)


def share_of(picture: Any, default: float) -> float:
    """Share of the budget reserved for the picture."""
    if isinstance(picture, (bool, np.bool_)):
        return default if picture else 0.0
    if not isinstance(picture, Real) or not 0.0 <= float(picture) <= 0.5:
        raise InputError(f"picture must be True, False or a share of the budget up to 0.5, got {picture!r}.")
    return float(picture)


def one_of(name: str, value: Any, allowed: Sequence[str]) -> str:
    """A word from a short list."""
    if value not in allowed:
        raise InputError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}.")
    return str(value)


def chosen_method(estimator: Any, allowed: Sequence[str]) -> str:
    """The method that an estimator was told; one that has moved is refused with its new place."""
    moved = MOVED.get(type(estimator).__name__, {}).get(str(estimator.method))
    if moved is not None:
        raise InputError(f"method={estimator.method!r} is an estimator of its own now; use sfumato.research.{moved}.")
    return one_of("method", estimator.method, allowed)


class CellError(InputError, TypeError):
    """A cell is not a number; a TypeError too, as scikit-learn's conventions ask."""


@np.errstate(all="ignore")  # whatever the user asked numpy for, a value is judged by our own checks
def fit_source(
    estimator: Any,
    X: Any,
    y: Any,
    classes: Sequence[Any] | None,
    response_kind: ResponseKind | None = None,
    unit: Unit = RECORD,
) -> Source:
    """Checked records for ``fit``; sets ``n_features_in_`` and ``feature_names_in_`` on the estimator."""
    if isinstance(X, Source):
        _check_scanned(estimator, X, y, classes, response_kind, unit)
        _remember(estimator, X.n_features, X.feature_names)
        estimator.columns_ = getattr(X, "columns", None)
        return X
    x, names = _array(X, _least(estimator, unit))
    if y is None and get_tags(estimator).target_tags.required:
        raise InputError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")
    responses, kind = response_to_array(np.zeros(len(x)) if y is None else y, classes, response_kind)
    if len(responses) != len(x):
        raise InputError("x and y must have the same number of rows.")
    _remember(estimator, x.shape[1], names)
    return ArraySource(x, responses, kind, names, binary=binary_columns(X))


def _least(estimator: Any, unit: Unit) -> int:
    """Fewest records a fit takes: where their number is private an empty table is a neighbour of one of one record."""
    private = getattr(estimator, "relation", "replace") == "add-remove" or unit != RECORD
    return 0 if private else 1


def _check_scanned(
    estimator: Any,
    source: Source,
    y: Any,
    classes: Sequence[Any] | None,
    response_kind: ResponseKind | None,
    unit: Unit,
) -> None:
    """Refuse a source that does not say what this estimator needs, or whose records are outside the domain."""
    if y is not None:
        raise InputError("y must be left out when x is a scanned source, which names its own response.")
    if source.n_second and not get_tags(estimator).target_tags.multi_output:
        raise InputError("x was scanned with a second table, which this estimator has no use for; scan it without.")
    if get_tags(estimator).target_tags.required and not (source.has_response or source.n_second):
        raise InputError("x was scanned without a response, which is needed; name it: scan(..., response='y').")
    if classes is not None and source.response != declared_response(True, classes):
        raise InputError("classes must be given to scan as well when x is a scanned source; give it the same list.")
    if response_kind is not None and source.response != declared_response(True, classes, response_kind):
        raise InputError("response_kind must be given to scan when x is a scanned source; give it there.")
    if source.count() < _least(estimator, unit):
        raise InputError("x has 0 sample(s), a minimum of 1 is required; give at least one record.")
    adder_of(source).check()


def has_ids(X: Any, groups: Any) -> bool:
    """Whether it is known whose row is whose."""
    scanned = issubclass(type(X), Source)  # the ledger is asked before a record is touched, so this does not look
    if scanned and groups is not None:
        raise InputError("groups must be left out when x is a scanned source; name the column: scan(..., person='id').")
    return groups is not None or (scanned and bool(X.has_people))


def device_unit(estimator: Any, X: Any, y: Any, groups: Any) -> Unit:
    """How many rows each person's device answers for; what has been answered can no longer be left out."""
    if not isinstance(y, Answers):
        return unit_of(estimator.rows_per_person, has_ids(X, groups))
    if groups is not None:
        raise InputError(
            "groups must be left out when y was randomised on the devices; rows_per_person says how many answers each "
            "person gave at most."
        )
    return unit_of(estimator.rows_per_person, has_ids=False)


def first_rows(source: Source, groups: Any, unit: Unit) -> Source:
    """The rows that count: all, or so many of each person as the unit says."""
    if unit.rows is None or unit.declared:
        return source
    if groups is not None and isinstance(source, ArraySource):
        source = source.of(groups)
    return source.first_rows(unit.rows)


@np.errstate(all="ignore")
def paired_source(estimator: Any, X: Any, Y: Any, unit: Unit = RECORD) -> Source:
    """Checked records of two tables side by side, X first; the second may be a single column.

    Sets also ``n_targets_in_`` and, where the second table names its columns, ``y_feature_names_in_``.
    """
    if isinstance(X, Source):
        if not X.n_second:
            raise InputError("x was scanned without a second table; name its columns: scan(..., second=['a', 'b']).")
        _check_scanned(estimator, X, Y, None, None, unit)
        p, names = X.n_features - X.n_second, X.feature_names
        _remember(estimator, p, None if names is None else names[:p], None if names is None else names[p:])
        estimator.n_targets_in_, estimator.columns_ = X.n_second, getattr(X, "columns", None)
        return X
    x, names = _array(X, _least(estimator, unit))
    if Y is None:
        raise InputError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")
    y, others = second_array(Y, _least(estimator, unit))
    if len(y) != len(x):
        raise InputError("x and y must have the same number of rows.")
    _remember(estimator, x.shape[1], names, others)
    estimator.n_targets_in_ = y.shape[1]
    binary = (*binary_columns(X), *(x.shape[1] + j for j in binary_columns(Y)))
    both = None if names is None or others is None else (*names, *others)
    return ArraySource(np.hstack([x, y]), np.zeros(len(x)), Response(), both, n_second=y.shape[1], binary=binary)


def second_array(Y: Any, least: int = 1) -> tuple[FloatArray, tuple[str, ...] | None]:
    """A second table of numbers and its column names; one column may be given as a plain list or series."""
    table, names = features_to_array(Y)
    if not hasattr(table, "toarray"):
        plain = _plain(table)
        table = plain.reshape(-1, 1) if plain.ndim == 1 else plain
    try:
        return _array(table, least)[0], names
    except InputError as error:
        raise type(error)(str(error).replace("x ", "y ", 1)) from None


def transform_array(estimator: Any, X: Any) -> FloatArray:
    """Checked features for ``transform``; of a frame with further columns, those that were fitted.

    Columns of declared categories are encoded as they were for the fit.
    """
    x, names = _array(_fitted_columns(estimator, X))
    if names is None:
        _check_feature_names(estimator, X, reset=False)
    elif hasattr(estimator, "feature_names_in_") and tuple(estimator.feature_names_in_) != names:
        raise ValueError("The feature names should match those that were passed during fit.")
    _check_n_features(estimator, x, reset=False)
    return x


def _fitted_columns(estimator: Any, X: Any) -> Any:
    """The frame of the features alone, categories encoded; whatever is no frame as it is."""
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return X
    there, fitted = set(map(str, frame.columns)), [str(name) for name in getattr(estimator, "feature_names_in_", ())]
    columns: Columns | None = getattr(estimator, "columns_", None)
    if columns is not None and columns.categorical and there >= set(columns.features):
        return columns.encode_categories(frame.select(columns.features).to_arrow())
    return frame.select(fitted).to_native() if fitted and set(fitted) < there else X


def _array(X: Any, least: int = 1) -> tuple[FloatArray, tuple[str, ...] | None]:
    """Finite float64 table (n, p) of at least so many rows, and its column names.

    scikit-learn's own ``check_array`` prints the array in some of its messages, so the checks are made here.
    """
    table, names = features_to_array(X)
    if hasattr(table, "toarray"):
        raise InputError("x is sparse, but dense data is required; call toarray() first.")
    raw = _plain(table)
    if raw.ndim != 2:
        raise InputError(f"x must be a table, 2-d, got {raw.ndim}-d. Reshape your data to (n_samples, n_features).")
    rows, columns = raw.shape
    if columns == 0:
        raise InputError(f"x has 0 feature(s) (shape=({rows}, 0)) while a minimum of 1 is required; give a column.")
    if rows < least:
        raise InputError("x has 0 sample(s), a minimum of 1 is required; give at least one record.")
    x = np.ascontiguousarray(_numeric(raw), dtype=np.float64)
    if not is_finite(x):
        which = "" if names is None else f" in column {names[int(np.argmin(np.isfinite(x).all(axis=0)))]!r}"
        raise InputError(f"x has missing or infinite values (NaN or inf){which}; drop or impute them first.")
    return x, names


def _plain(table: Any) -> NDArray[Any]:
    try:
        return np.asarray(table)
    except ValueError:
        raise InputError("x must be a table of numbers with rows of equal length.") from None


def _numeric(raw: NDArray[Any]) -> NDArray[Any]:
    if raw.dtype.kind in "biuf":
        return raw
    if raw.dtype.kind == "c":
        raise InputError("x must be real; Complex data not supported, give real and imaginary parts as columns.")
    if raw.dtype.kind != "O" or any(isinstance(cell, (str, bytes, dict, list, complex)) for cell in raw.ravel()):
        raise CellError(
            "x has cells that are not numbers (argument must be a string or a number); "
            "encode them or leave the column out."
        )
    try:
        return raw.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError("x has cells that are not numbers; encode them or leave the column out.") from None


def _remember(
    estimator: Any, n_features: int, names: tuple[str, ...] | None, second: tuple[str, ...] | None = None
) -> None:
    estimator.n_features_in_, estimator.columns_ = n_features, None
    for attribute, known in (("feature_names_in_", names), ("y_feature_names_in_", second)):
        if known is not None:
            setattr(estimator, attribute, np.asarray(known, dtype=object))
        elif hasattr(estimator, attribute):
            delattr(estimator, attribute)
