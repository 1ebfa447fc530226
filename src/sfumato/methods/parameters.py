"""Checks of what private estimators are told about the fit, before anything is read or spent."""

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from sfumato.errors import InputError
from sfumato.typing import is_whole

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
