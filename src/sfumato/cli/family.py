"""The family: which estimator goes by which name, and which options each takes."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from sfumato.errors import InputError


@dataclass(frozen=True)
class Member:
    """One estimator of the command line. The options that all take (budget, bounds, directions) are not listed."""

    name: str
    home: str
    takes: tuple[str, ...]

    @property
    def make(self) -> Any:
        """The class."""
        module, _, name = self.home.rpartition(".")
        return getattr(import_module(f"sfumato.{module}"), name)

    @property
    def methods(self) -> tuple[str, ...]:
        """Ways to find the directions."""
        return tuple(getattr(import_module(self.make.__module__), "METHODS", ()))

    def check_method(self, method: str) -> None:
        """Refuse a method that the estimator does not have; of one that is an estimator now, say which."""
        from sfumato.methods.parameters import MOVED, one_of

        moved = MOVED.get(self.home.rpartition(".")[2], {}).get(method)
        if moved is not None:
            name = next(each.name for each in PAPERS if each.home.endswith(f".{moved}"))
            raise InputError(f"method: {method!r} is an estimator of its own now; use --estimator {name}.")
        one_of("method", method, self.methods)


EXPLAINING = ("response", "classes", "response_kind")
MEMBERS = (
    Member("sir", "methods.sir.PrivateSIR", (*EXPLAINING, "method", "picture")),
    Member("sparse-sir", "methods.sparse_sir.PrivateSparseSIR", (*EXPLAINING, "method", "picture", "max_features")),
    Member("save", "methods.second_order.PrivateSAVE", (*EXPLAINING, "slices")),
    Member("dr", "methods.second_order.PrivateDR", (*EXPLAINING, "slices")),
    Member("pca", "methods.pca.PrivatePCA", ("method",)),
    Member("sparse-pca", "methods.sparse_pca.PrivateSparsePCA", ("method", "max_features")),
    Member("lda", "methods.lda.PrivateLDA", (*EXPLAINING, "method")),
    Member("cca", "methods.cca.PrivateCCA", ("second", "q", "method")),
)
PAPERS = (
    Member("dp-ini", "research.sir.DPIni", EXPLAINING),
    Member("dp-sir", "research.sir.DPSIR", EXPLAINING),
    Member("dp-sini", "research.sir.DPSIni", (*EXPLAINING, "max_features")),
    Member("dp-ssir", "research.sir.DPSSIR", (*EXPLAINING, "max_features")),
    Member("dp-spca", "research.components.DPSPCA", ("max_features",)),
    Member("rayleigh-flow-sir", "research.sir.RayleighFlowSIR", EXPLAINING),
    Member("rayleigh-flow-pca", "research.components.RayleighFlowPCA", ()),
    Member("rayleigh-flow-lda", "research.pairs.RayleighFlowLDA", EXPLAINING),
    Member("rayleigh-flow-cca", "research.pairs.RayleighFlowCCA", ("second", "q")),
    Member("truncated-rayleigh-flow-sir", "research.sir.TruncatedRayleighFlowSIR", (*EXPLAINING, "max_features")),
    Member("truncated-rayleigh-flow-pca", "research.components.TruncatedRayleighFlowPCA", ("max_features",)),
)
"""The papers' own estimators, for comparison."""
FAMILY = {member.name: member for member in (*MEMBERS, *PAPERS)}
NEEDS = {
    "response": "the column to explain",
    "second": "the columns of the second set, as a,b,c or 'lab_*'",
    "q": "the number of columns of the second set",
}
INSTEAD = {
    ("pca", "response"): "it explains no column: leave it out, and choose columns with --features",
    ("sparse-pca", "response"): "it explains no column: leave it out, and choose columns with --features",
    ("cca", "response"): "it compares two sets of columns: name the second with --second",
}


def find_member(name: str) -> Member:
    """The estimator of this name.

    >>> find_member("pac")
    Traceback (most recent call last):
    sfumato.errors.InputError: estimator: there is no 'pac'; did you mean 'pca'?
    """
    if name not in FAMILY:
        close = difflib.get_close_matches(name.lower().removeprefix("private"), FAMILY, n=1)
        names = ", ".join(each.name for each in MEMBERS)
        hint = f"did you mean {close[0]!r}?" if close else f"choose among {names}."
        raise InputError(f"estimator: there is no {name!r}; {hint}")
    return FAMILY[name]


def check_options(chosen: Member, options: Mapping[str, Any], needed: tuple[str, ...] = ()) -> None:
    """Refuse what the estimator does not take, and the lack of what it needs; None is what was not given."""
    for option, value in options.items():
        flag = f"--{option.replace('_', '-')}"
        if value is not None and option not in chosen.takes:
            others = ", ".join(other.name for other in MEMBERS if option in other.takes)
            instead = INSTEAD.get((chosen.name, option), f"leave it out (it is for {others})")
            raise InputError(f"{flag[2:]}: {chosen.name} takes no {flag}; {instead}.")
        if value is None and option in needed and option in chosen.takes:
            raise InputError(f"{flag[2:]}: {chosen.name} needs {flag}, {NEEDS[option]}.")
