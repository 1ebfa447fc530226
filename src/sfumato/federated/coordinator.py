"""The coordinator: proposes a plan, fits on the sums that the sites release, and writes down what came of it.

And what its folder tells: the run that is going on or was left undone, and the last result.
"""

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import numpy as np
from sklearn.base import clone

from sfumato.errors import InputError
from sfumato.federated.remote import RemoteSites, Transport
from sfumato.federated.simulation import Reducer, walk_sites
from sfumato.federated.sites import in_own_units, refuse_unless_own
from sfumato.federated.store import Journal, read_journal, read_object, unreadable, write_whole
from sfumato.federated.task import SitesTask, SparseSites, federated_task, odd_sites, refuse_unless_federated, too_small
from sfumato.federated.terms import Terms
from sfumato.hints import visible
from sfumato.privacy.parameters import budget_of, relation_of
from sfumato.privacy.unit import RECORD, unit_of
from sfumato.report import svg
from sfumato.report.html import templates
from sfumato.settings.federated import SiteFacts, SiteLedger, SitesLostError, trust_of


def fit_remote(
    estimator: Reducer,
    transport: Transport,
    sites: tuple[str, ...],
    *,
    minimum: int | None = None,
    run: str | Journal | None = None,
    least: int | str | None = None,
    leave_out: bool = False,
    own_units: bool = False,
) -> Reducer:
    """Fit over remote sites, each of which adds all its own noise.

    Parameters
    ----------
    estimator : any of the family
        Parameters of the fit; each site is asked to spend its (epsilon, delta).
    transport : Transport
    sites : tuple of str
        Whom to ask.
    minimum : int, optional
        Go on as long as this many sites answer; all of them by default.
    run : str or Journal, optional
        Name of the run. Giving the name of a run that was interrupted goes on with it: sites repeat their stored
        answers, at no further cost. A `Journal` also remembers who was heard, so that sites may come and go.
    least : int, "auto" or None
        Sites with fewer records do not take part (see `simulate`).
    leave_out : bool
        Leave a site whose releases disagree with the others' out of later sums.
    own_units : bool
        Sites have means and scales of their own (see `simulate`).

    Returns
    -------
    estimator
        A fitted copy, with ``sites_`` (facts), ``spending_`` (by site), ``left_out_`` (site: reason), ``transfers_``,
        and ``disagreeing_`` and ``local_`` (see `simulate`).
    """
    if estimator.random_state is not None or estimator.ledger is not None:
        raise InputError("random_state and ledger belong to the sites; leave them None at the coordinator.")
    refuse_unless_federated(estimator)
    fitted: Any = clone(estimator)
    if own_units:
        refuse_unless_own(fitted)
    needed = len(sites) if minimum is None else minimum
    journal = run if isinstance(run, Journal) else Journal(run)
    remote = RemoteSites(transport, journal)
    try:
        task, ledger = _agree(fitted, remote, journal, sites, needed, least, own_units)
        try:
            outcome = walk_sites(fitted, task, remote, remote.left_out, leave_out, own_units, needed=needed)
            fitted._keep(outcome, ledger)
        except SitesLostError as error:
            raise SitesLostError(f"{error} Left out: {_named(remote.left_out) or 'nobody by name'}.") from None
    except Exception:
        if run is None:  # nobody can go on with a run without a name: give back what it set aside
            remote.close()
        raise
    fitted.spending_ = remote.close()
    fitted.sites_, fitted.left_out_, fitted.transfers_ = remote.facts, remote.left_out, tuple(remote.transfers)
    return cast(Reducer, fitted)


def _agree(
    fitted: Any,
    remote: RemoteSites,
    journal: Journal,
    sites: tuple[str, ...],
    needed: int,
    least: int | str | None,
    own_units: bool,
) -> tuple[SitesTask | SparseSites, SiteLedger]:
    """Meet the sites and propose the plan. A run that goes on proposes the plan it began with."""
    relation, budget = relation_of(fitted.relation), budget_of(fitted.epsilon, fitted.delta, fitted.rho)
    remote.meet(sites)
    if journal.abandoned:
        remote.give_up(journal.abandoned)
        journal.given_up()
    odd = odd_sites(fitted, remote.facts)
    if len(remote.facts) - len(odd) >= needed:  # otherwise they are named as what must be made to agree
        remote.dismiss(odd)
    remote.dismiss(too_small(remote.facts, least, budget))
    late = [site for site in remote.facts if journal.members and site not in journal.members]
    remote.dismiss(dict.fromkeys(late, "was not there when this run began."))
    _enough(remote, needed)
    # From here on the sizes are those of the beginning: a run that goes on must propose the very same plan.
    journal.begin({site: facts.n_records for site, facts in remote.facts.items()})
    _remember(fitted, next(iter(remote.facts.values())))
    unit = unit_of(fitted.rows_per_person, has_ids=True) if fitted.rows_per_person is not None else RECORD
    planned = federated_task(fitted, _as_begun(remote.facts, journal.members), relation, unit=unit)
    planned = in_own_units(planned) if own_units else planned
    trust = trust_of("sites", len(journal.members))
    ledger = SiteLedger(budget, relation, rehearsal=any(facts.rehearsal for facts in remote.facts.values()), unit=unit)
    ledger.trust = trust
    remote.propose(Terms.of(journal.run, relation, budget, trust, planned.plan(), unit), ledger)
    _enough(remote, needed)
    # Those who accepted hold to the plan that was proposed, whoever did not: method, rounds and steps stay.
    accepted = federated_task(fitted, _as_begun(remote.facts, journal.accepted), relation, unit=unit)
    return replace(cast(Any, planned), n_records=accepted.n_records), ledger


def _as_begun(facts: Mapping[str, SiteFacts], sizes: Mapping[str, int | None]) -> dict[str, SiteFacts]:
    """The facts of the sites that began the run; those of a site that is gone from another, as all must agree."""
    some = next(iter(facts.values()))
    return {site: facts.get(site) or replace(some, n_records=size) for site, size in sizes.items()}


def _enough(remote: RemoteSites, needed: int) -> None:
    if len(remote.facts) < max(needed, 1):
        raise SitesLostError(
            f"only {len(remote.facts)} sites take part, {needed} are needed. "
            f"Left out: {_named(remote.left_out) or 'nobody'}."
        )


def _named(left_out: Mapping[str, str]) -> str:
    return ", ".join(f"{name} ({why.removesuffix('.')})" for name, why in left_out.items())


def _remember(fitted: Any, facts: SiteFacts) -> None:
    fitted.n_features_in_ = first = facts.n_features - facts.n_second
    if facts.n_second:
        fitted.n_targets_in_ = facts.n_second
    if facts.feature_names is not None:
        names = np.asarray(facts.feature_names, dtype=object)
        fitted.feature_names_in_ = names[:first]
        if facts.n_second:
            fitted.y_feature_names_in_ = names[first:]


def describe_outcome(fitted: Any) -> dict[str, Any]:
    """As plain data."""
    traffic: dict[str, dict[str, int]] = defaultdict(dict)
    for transfer in fitted.transfers_:
        traffic[transfer.line][transfer.site] = transfer.received
    return {
        "directions": fitted.directions_.tolist(),
        "eigenvalues": fitted.eigenvalues_.tolist(),
        "guarantee": fitted.ledger_.guarantee,
        "sites": {name: facts.n_records for name, facts in fitted.sites_.items()},
        "left_out": dict(fitted.left_out_),
        "disagreeing": {name: found.about for name, found in fitted.disagreeing_.items()},
        "spending": fitted.spending_,
        "uploaded_bytes": dict(traffic),
        **_extras(fitted),
    }


def _extras(fitted: Any) -> dict[str, Any]:
    """The support of a sparse fit, directions of a second table, the bounds of sites in units of their own."""
    found: dict[str, Any] = {}
    if hasattr(fitted, "y_directions_"):
        found["y_directions"] = fitted.y_directions_.tolist()
    if hasattr(fitted, "support_"):
        found["support"] = fitted.support_.tolist()
    if hasattr(fitted, "local_"):
        sides = {name: (bounds.lower.tolist(), bounds.upper.tolist()) for name, bounds in fitted.local_.items()}
        found["own_units"] = {name: {"lower": lower, "upper": upper} for name, (lower, upper) in sides.items()}
    return found


def summarise_outcome(found: dict[str, Any]) -> str:
    """An outcome in a few lines, for the terminal: what sites call themselves and say of themselves, spelled out."""
    spent = [
        f"  {name}: epsilon {float(told['epsilon']):.4g} spent in all runs, cap {told.get('cap')}"
        for name, told in found["spending"].items()
    ]
    lost = [f"  left out: {name}, {why}" for name, why in found["left_out"].items()]
    lost += [f"  {name} disagrees with the others in {about}" for name, about in found["disagreeing"].items()]
    head = f"{len(found['directions'])} direction(s) from {len(found['sites'])} site(s)"
    return "\n".join(map(visible, [head, *spent, *lost]))


def write_outcome(fitted: Any, folder: Path) -> dict[str, Any]:
    """Write ``report.html``, then ``outcome.json``, whose content is returned: who waits for it finds both."""
    folder.mkdir(parents=True, exist_ok=True)
    fitted.report(folder / "report.html")
    found = describe_outcome(fitted)
    write_json(found, folder)
    return found


def write_json(found: dict[str, Any], folder: Path) -> None:
    """Write ``outcome.json`` in one step, so that nobody reads half of it."""
    write_whole(folder / "outcome.json", json.dumps(found, indent=1))


GOES_ON = "the same command goes on with it, --anew gives it up"


@dataclass(frozen=True, slots=True)
class Member:
    """A site of a run; `records` is None where their number is private."""

    site: str
    records: int | None
    accepted: bool

    @property
    def size(self) -> str:
        """As one says it."""
        return "records" if self.records is None else f"{self.records:,} records"

    @property
    def state(self) -> str:
        """As one says it."""
        return "takes part" if self.accepted else "has not accepted (yet)"


@dataclass(frozen=True, slots=True)
class Run:
    """A run without an outcome; a run that has not begun has no members. `answered` counts the sites of each line."""

    name: str
    members: tuple[Member, ...]
    answered: tuple[tuple[str, int], ...]
    abandoned: int

    def describe(self) -> list[str]:
        """In a few lines."""
        found = [f"run {self.name} is going on, or was interrupted: {GOES_ON}"]
        found += [f"  {member.site}: {member.size}, {member.state}" for member in self.members]
        heard = ", ".join(f"{line} ({count})" for line, count in self.answered)
        found.append(f"  answered so far, by so many sites: {heard or 'nothing'}")
        if self.abandoned:
            found.append(f"  {self.abandoned} run(s) given up, of which sites are told when they are there")
        return found


@dataclass(frozen=True, slots=True)
class Status:
    """All that a coordinator's folder tells; `outcome` is the last result, as it is written in the file `result`."""

    run: Run | None
    result: Path
    outcome: dict[str, Any] | None
    summary: str

    def describe(self) -> list[str]:
        """In a few lines."""
        found = ["no run is going on"] if self.run is None else self.run.describe()
        if self.outcome is not None:
            found += ["", f"last result ({self.result}):", *self.summary.split("\n")]
        return found


def read_status(folder: Path) -> Status:
    """Read a coordinator's folder; `InputError` for one that is none, or whose files cannot be read."""
    if not folder.is_dir():
        raise InputError(f"folder: there is no {folder}; name the folder of a coordinator, as 'server --folder' did.")
    journal, result = folder / "run.json", folder / "result" / "outcome.json"
    run = _run_of(read_journal(journal)) if journal.exists() else None
    outcome = read_object(result) if result.exists() else None
    try:
        return Status(run, result, outcome, "" if outcome is None else summarise_outcome(outcome))
    except (KeyError, TypeError, AttributeError):
        raise InputError(unreadable(result)) from None


def describe_status(folder: Path) -> str:
    """A coordinator's folder in a few lines, for the terminal."""
    return "\n".join(map(visible, read_status(folder).describe()))


def make_status_page(folder: Path) -> str:
    """The same as an HTML page in the manner of a report: it loads nothing and runs no script."""
    page = templates().get_template("status.html.jinja")
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    return svg.printable(page.render(status=read_status(folder), goes_on=GOES_ON, now=now, ramp=svg.RAMP))


def _run_of(run: dict[str, Any]) -> Run:
    members = tuple(Member(site, size, site in run["accepted"]) for site, size in run["members"].items())
    answered = tuple((turn.partition(":")[0], len(sites)) for turn, sites in run["heard"].items())
    return Run(run["run"][:8], members, answered, len(run.get("abandoned", ())))
