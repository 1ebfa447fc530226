"""Hostile messages of a federation: to a site, and from one."""

import json

import numpy as np

from benchmarks.fuzz_files import mutated, pick, replaced
from sfumato import Budget, SfumatoError
from sfumato.audit.releases import queries
from sfumato.federated.checks import SiteDecoder, check
from sfumato.federated.remote import facts_from, release_from
from sfumato.federated.site import Site, handle
from sfumato.federated.terms import Terms
from sfumato.local.forms import Sheet, answers_from, from_text, to_text
from sfumato.local.randomisers import NumberRandomiser, SliceRandomiser
from sfumato.local.waves import Survey
from sfumato.privacy.ledger import FileLedger
from sfumato.privacy.plan import Line
from sfumato.records import Records, Response
from sfumato.settings.federated import SiteFacts, trust_of
from sfumato.sources import ArraySource
from sfumato.statistics.wire import dump_json, encode

RUN = "ab" * 8
SHARES = (("response magnitude", 0.5), ("radius", 0.5))
TERMS = Terms(RUN, "replace", Budget.approximate(1.0, 1e-5), trust_of("sites", 3, 1), SHARES).to_json()
FACTS = SiteFacts(3, 20, Response(), None)
FEW = Records(np.random.default_rng(0).uniform(-1, 1, (20, 3)), np.linspace(-1, 1, 20))


def _questions():
    found = []
    for query in queries().values():
        try:
            found.append(dump_json(encode(query)))
        except SfumatoError:  # not asked in a federation
            continue
    return found


QUESTIONS = _questions()


def odd_json(rng, text):
    """Text of a JSON message: bytes spoiled, or one value replaced."""
    if rng.random() < 0.4:
        return mutated(rng, text.encode()).decode("utf-8", "replace")
    return json.dumps(replaced(rng, json.loads(text)))


def questions(rng, folder):
    """A question with one part replaced: decoded, checked, and if it passes, asked; its bounds must hold."""
    data = json.loads(pick(rng, QUESTIONS))
    query = SiteDecoder().query(replaced(rng, data))
    check(query, FACTS)
    one, other = (Records(FEW.x[:n], FEW.y[:n]) for n in (20, 19))
    moved = (query.of(one) - query.of(other)) * query.weights
    assert np.linalg.norm(moved) <= query.norm * (1 + 1e-9), "a record weighs more than its bound"


def messages(rng, folder):
    """A whole message to a site; it always replies, and what it refuses costs nothing."""
    ledger = folder / "site.jsonl"
    if not ledger.exists():
        FileLedger(ledger, Budget.approximate(1e4, 1e-5), rehearsal=True)
    site = Site(ArraySource(FEW.x, FEW.y, Response()), ledger, folder / "site", random_state=3)
    kinds = [
        {"ask": "facts"},
        {"ask": "accept", "terms": TERMS},
        {"ask": "answer", "run": RUN, "line": "radius", "query": json.loads(pick(rng, QUESTIONS))},
        {"ask": "close", "run": RUN},
    ]
    before = len(FileLedger(ledger))
    head, _ = handle(site, odd_json(rng, dump_json(pick(rng, kinds))))
    reply = json.loads(head)
    assert "unexpected" not in str(reply.get("refused")), reply["refused"]
    if "refused" in reply:
        assert len(FileLedger(ledger)) == before, "refused after a release"
        raise SfumatoError(reply["refused"])


def uploads(rng, folder):
    """What a dishonest site may send: public facts, and a release."""
    good = {
        "n_features": 3,
        "n_records": 20,
        "response": {"categories": None, "hashed": False},
        "feature_names": ["a", "b", "c"],
        "rehearsal": False,
    }
    if rng.random() < 0.5:
        facts_from(replaced(rng, good))
        return
    query = SiteDecoder().query(json.loads(pick(rng, QUESTIONS)))
    line = Line("radius", "", 1.0, "", rho=0.1)
    head = replaced(rng, {"line": "radius", "shape": list(query.shape)})
    values = np.zeros(query.shape)
    if rng.random() < 0.5:
        values.flat[0] = pick(rng, [np.nan, np.inf, 1e300, -1e15, 5e-324])
    raw = values.tobytes() if rng.random() < 0.7 else mutated(rng, values.tobytes()[:200])
    assert np.isfinite(release_from(head, raw, query, line, "replace", 20).value).all(), "not finite"


def forms(rng, folder):
    """The file between devices and analyst: its public form, and answers no device could have sent."""
    form = pick(rng, [SliceRandomiser(1.0, [0.0, 1.0]), NumberRandomiser(-1.0, 1.0, 1.0)])
    read, _, rehearsal = from_text(odd_json(rng, to_text(form.randomize([0.5]), "y")))
    answers_from([pick(rng, [0.0, 1.0, 0.5, np.nan, 1e300, -3.0]) for _ in range(3)], read, rehearsal)


def sheets(rng, folder):
    """The header of a wave of questions or answers."""
    survey = Survey.plan(1.0, 60, 4, "k", edges=pick(rng, [None, (0.0, 1.0)]))
    sheet = Sheet.from_text(odd_json(rng, Sheet(survey, 1, "y", "id", "threshold", 60, False).to_text()))
    assert len(sheet.survey.wave_of(range(5))) == 5


ENTRIES = {
    "federated questions": questions,
    "site messages": messages,
    "uploads": uploads,
    "local forms": forms,
    "survey sheets": sheets,
}
