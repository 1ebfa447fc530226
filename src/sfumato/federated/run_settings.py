"""What a run is told, where settings come as names and values: whom to wait for, how long, and what to fit.

A network that runs Flower or NVFlare already hands a job's settings over in its own way; they are read here, once.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from sfumato.bounds import Bounds
from sfumato.errors import InputError
from sfumato.federated.coordinator import fit_remote, summarise_outcome, write_outcome
from sfumato.federated.remote import Transport
from sfumato.federated.store import Journal
from sfumato.federated.task import refuse_unless_federated
from sfumato.methods import FAMILY, load
from sfumato.methods.base import PrivateReducer
from sfumato.settings.federated import SitesLostError
from sfumato.typing import is_whole

OF_THE_RUN = frozenset({"sites", "minimum", "wait", "timeout", "least", "leave-out", "own-units", "anew", "folder"})
OF_THE_TABLES = frozenset({"estimator", "classes", "lower", "upper", "second-lower", "second-upper"})


class Network(Transport, Protocol):
    """Carries messages to the sites it met."""

    @property
    def sites(self) -> tuple[str, ...]:
        """Names of the sites that were there."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Whom to wait for, and how long: seconds until the sites appear and for each answer, sites that must stay."""

    wait: float
    timeout: float
    minimum: int
    least: int | None = None
    leave_out: bool = False
    own_units: bool = False
    anew: bool = False

    @property
    def rules(self) -> dict[str, Any]:
        """Those that decide what the sites are asked, and so belong to the run."""
        return {"least": self.least, "leave_out": self.leave_out, "own_units": self.own_units}


def fit_as_told(
    config: Mapping[str, Any], meet: Callable[[int, Limits], Network], say: Callable[[str], None]
) -> dict[str, Any]:
    """Fit as a run's settings say, over the sites that `meet` finds; the outcome, which is also in ``folder/result``.

    A run that was interrupted goes on when it is started again with the same settings, at no further cost to the sites.
    """
    told = {key: value for key, value in config.items() if value != ""}
    folder, limits, estimator = folder_of(told), limits_of(told), estimator_of(told)
    count = told["sites"]
    journal = Journal.resume(folder / "run.json", settings_of(estimator, limits), anew=limits.anew)
    say(f"waiting for {count} site(s).")
    network = meet(count, limits)
    again = "Start the run again, with the same folder, to go on with it."
    found = write_outcome(fit_within(limits, estimator, network, journal, again), folder / "result")
    journal.forget()
    say(f"{summarise_outcome(found)}\nreport: {folder / 'result' / 'report.html'}")
    return found


def fit_within(
    limits: Limits, estimator: PrivateReducer, network: Network, journal: Journal, again: str
) -> PrivateReducer:
    """Fit over the sites that a network met; where too many are lost, `again` says how to go on."""
    try:
        return fit_remote(estimator, network, network.sites, minimum=limits.minimum, run=journal, **limits.rules)
    except SitesLostError as error:
        raise SitesLostError(f"{error} {again}") from None


def settings_of(estimator: PrivateReducer, limits: Limits) -> Mapping[str, Any]:
    """What makes a run this run and no other."""
    given = {name: repr(value) for name, value in estimator.get_params().items()}
    return {"estimator": type(estimator).__name__, **given, **limits.rules}


def folder_of(told: Mapping[str, Any]) -> Path:
    """Where the coordinator keeps its files: a network starts its jobs wherever it likes."""
    folder = Path(str(told.get("folder", "")))
    if not folder.is_absolute():
        raise InputError("folder: name the coordinator's folder by its whole path, such as '/srv/federation'.")
    return folder


def limits_of(told: Mapping[str, Any]) -> Limits:
    """Whom to wait for and how long; `minimum` is all sites and `least` none, where they are 0 or not given."""
    count, minimum, least = (told.get(name, 0) for name in ("sites", "minimum", "least"))
    if not is_whole(count, 1):
        raise InputError(f"sites must be the number of sites to wait for, from 1 on, got {count!r}.")
    if not is_whole(minimum, 0) or minimum > count or not is_whole(least, 0):
        raise InputError(f"minimum must be a whole number up to the {count} sites, least one from 0 on.")
    seconds = [told.get(name, usual) for name, usual in (("wait", 600.0), ("timeout", 300.0))]
    if not all(isinstance(each, int | float) and not isinstance(each, bool) and each >= 0 for each in seconds):
        raise InputError("wait and timeout must be seconds.")
    flags = [told.get(name, False) for name in ("leave-out", "own-units", "anew")]
    if not all(isinstance(flag, bool) for flag in flags):
        raise InputError("leave-out, own-units and anew must be true or false.")
    wait, timeout = map(float, seconds)
    leave_out, own_units, anew = flags
    return Limits(wait, timeout, minimum or count, least or None, leave_out, own_units, anew)


def estimator_of(told: Mapping[str, Any]) -> PrivateReducer:
    """The estimator with its parameters, which are called as in Python, with hyphens; lists are written ``a|b|c``.

    >>> estimator_of({"estimator": "pca", "epsilon": 2.0, "n-directions": 3, "lower": -1, "upper": "1|2"})
    PrivatePCA(bounds=Bounds(lower=-1.0, upper=[1.0, 2.0]), epsilon=2.0,
               n_directions=3)
    """
    name = told.get("estimator", "sir")
    if name not in FAMILY:
        raise InputError(f"estimator must be one of {', '.join(FAMILY)}, got {name!r}.")
    made: PrivateReducer = load(FAMILY[name])()
    takes = made.get_params().keys()
    own = {key.replace("-", "_"): value for key, value in told.items() if key not in OF_THE_RUN | OF_THE_TABLES}
    unknown = own.keys() - (takes - {"ledger", "random_state", "bounds", "y_bounds", "classes"})
    if unknown:
        raise InputError(f"{sorted(unknown)[0].replace('_', '-')}: {name} has no such parameter; leave it out.")
    if "classes" in told:
        own["classes"] = str(told["classes"]).split("|")
    for prefix, parameter in (("", "bounds"), ("second-", "y_bounds")):
        bounds = _bounds(told, prefix)
        if bounds is not None:
            own[parameter] = bounds
    more = {"classes": "classes", "bounds": "lower", "y_bounds": "second-lower"}
    for parameter in own.keys() - takes:
        raise InputError(f"{more[parameter]}: {name} takes none; leave it out.")
    refuse_unless_federated(made)
    made.set_params(**own)
    return made


def _bounds(told: Mapping[str, Any], prefix: str) -> Bounds | None:
    given = [told.get(f"{prefix}{side}") for side in ("lower", "upper")]
    if given == [None, None]:
        return None
    try:
        sides = [[float(value) for value in str(side).split("|")] for side in given]
    except ValueError:
        raise InputError(f"{prefix}lower and {prefix}upper must be numbers, one or a|b|c, both or neither.") from None
    return Bounds(*(side[0] if len(side) == 1 else side for side in sides))
