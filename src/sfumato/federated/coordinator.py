"""The coordinator: proposes a plan, and fits on the sums that the sites release."""

import secrets
from dataclasses import replace

import numpy as np
from sklearn.base import clone

from sfumato.errors import InputError
from sfumato.estimators.parameters import budget_of, relation_of
from sfumato.estimators.sir import PrivateSIR
from sfumato.federated.agreement import Watched
from sfumato.federated.facts import Facts
from sfumato.federated.remote import RemoteSites, Transport
from sfumato.federated.simulation import walk
from sfumato.federated.task import federated_task, too_small
from sfumato.federated.terms import Terms
from sfumato.settings.federated import FederatedCurator, SiteLedger, SitesLostError, trust_of


def fit_remote(
    estimator: PrivateSIR,
    transport: Transport,
    sites: tuple[str, ...],
    *,
    minimum: int | None = None,
    run: str | None = None,
    least: int | str | None = None,
) -> PrivateSIR:
    """Fit over remote sites, each of which adds all its own noise.

    Parameters
    ----------
    estimator : PrivateSIR or PrivateSparseSIR
        Parameters of the fit; each site is asked to spend its (epsilon, delta).
    transport : Transport
    sites : tuple of str
        Whom to ask.
    minimum : int, optional
        Go on as long as this many sites answer; all of them by default.
    run : str, optional
        Name of the run. Giving the name of a run that was interrupted goes on with it: sites repeat their stored
        answers, at no further cost.
    least : int, "auto" or None
        Sites with fewer records do not take part (see `simulate`).

    Returns
    -------
    PrivateSIR
        Fitted, with ``sites_`` (facts), ``spending_`` (by site), ``left_out_`` (site: reason), ``disagreeing_``
        (see `simulate`) and ``transfers_``.
    """
    if estimator.random_state is not None or estimator.ledger is not None:
        raise InputError("random_state and ledger belong to the sites; leave them None at the coordinator.")
    if getattr(estimator, "max_features", "auto") != "auto":
        raise InputError("max_features must be 'auto' in a deployment; sites name as many features as they agreed to.")
    fitted: PrivateSIR = clone(estimator)
    relation, budget = relation_of(fitted.relation), budget_of(fitted.epsilon, fitted.delta, fitted.rho)
    needed = len(sites) if minimum is None else minimum
    remote = RemoteSites(transport)
    remote.meet(sites)
    remote.dismiss(too_small(remote.facts, least, budget))
    _enough(remote, needed)
    task = federated_task(fitted, remote.facts, relation)
    trust = trust_of("sites", len(remote.facts))
    ledger = SiteLedger(budget, relation, rehearsal=any(facts.rehearsal for facts in remote.facts.values()))
    ledger.trust = trust
    shares = tuple((line.name, line.share) for line in task.plan().lines)
    remote.propose(Terms(run or secrets.token_hex(16), relation, budget, trust, shares), ledger)
    _enough(remote, needed)
    # Those who accepted hold to the plan that was proposed, whoever did not: method, rounds and steps stay.
    task = replace(task, n_records=federated_task(fitted, remote.facts, relation).n_records)
    try:
        watched = Watched(remote)
        fitted._keep(walk(task, FederatedCurator(watched, relation, needed), fitted), ledger)
    except SitesLostError as error:
        if run is None:  # nobody can go on with a run without a name: give back what it set aside
            remote.close()
        raise SitesLostError(f"{error} Left out: {remote.left_out or 'nobody by name'}.") from None
    fitted.spending_, fitted.disagreeing_ = remote.close(), watched.disagreeing
    fitted.sites_, fitted.left_out_, fitted.transfers_ = remote.facts, remote.left_out, tuple(remote.transfers)
    _remember(fitted, next(iter(remote.facts.values())))
    return fitted


def _enough(remote: RemoteSites, needed: int) -> None:
    if len(remote.facts) < max(needed, 1):
        raise SitesLostError(
            f"only {len(remote.facts)} sites take part, {needed} are needed. Left out: {remote.left_out or 'nobody'}."
        )


def _remember(fitted: PrivateSIR, facts: Facts) -> None:
    fitted.n_features_in_ = facts.n_features
    if facts.feature_names is not None:
        fitted.feature_names_in_ = np.asarray(facts.feature_names, dtype=object)
