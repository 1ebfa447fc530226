"""What goes over the wire says nothing of where a site keeps its files."""

import pytest
from tests.federated.conftest import Consortium, draws

from sfumato import Bounds, PrivateSIR
from sfumato.federated.coordinator import fit_remote
from sfumato.privacy.ledger import FileLedger


class Overheard(Consortium):
    """Sites whose files have names that occur nowhere else, and every reply that they sent."""

    def __init__(self, folder, parts, seed):
        self.replies = []
        super().__init__(folder / "srv-wardroom", parts, seed=seed)

    def ledger(self, name):
        return self.folder / f"ledger-of-{name}-oncology.jsonl"

    def send(self, requests):
        replies = super().send(requests)
        self.replies += [head.encode() + values for head, values in replies.values()]
        return replies

    def words(self):
        """Parts of paths, as bytes."""
        return {b"wardroom", b"oncology", b"jsonl", str(self.folder.parent).encode(), self.folder.parent.name.encode()}


@pytest.mark.parametrize("seed", [None, 7])
def test_no_reply_of_a_whole_run_names_a_file_or_a_folder(tmp_path, seed):
    overheard = Overheard(tmp_path, draws(1_500)[0], seed)
    found = fit_remote(PrivateSIR(1.0, 1e-5, 1, Bounds(-6, 6), "one-shot"), overheard, tuple(overheard.parts))
    assert len(overheard.replies) == len(found.transfers_) and {each.line for each in found.transfers_} >= {"close"}
    for reply in overheard.replies:
        assert not any(word in reply for word in overheard.words())
    if seed is None:
        assert "in the site's ledger so far" in found.spending_["h0"]["guarantee"]


def test_no_refusal_names_one_either_whatever_went_wrong(tmp_path):
    overheard = Overheard(tmp_path, draws(1_500)[0], 7)
    fit_remote(PrivateSIR(1.0, 1e-5, 1, Bounds(-6, 6), "one-shot"), overheard, tuple(overheard.parts))
    asked = [(name, request) for name, request in overheard.sent if name == "h0"]
    ledger, other = overheard.ledger("h0"), tmp_path / "another"
    sound = ledger.read_bytes()
    FileLedger(other, FileLedger(ledger).budget, rehearsal=True)

    overheard.replies.clear()
    for spoiled in (b"", b"spoiled", b"".join(sound.splitlines(keepends=True)[:-1]), other.read_bytes()):
        ledger.write_bytes(spoiled)
        for name, request in asked:
            overheard.send({name: request})
    ledger.unlink()
    for name, request in asked:
        overheard.send({name: request})
    assert sum(b"refused" in reply for reply in overheard.replies) >= 2 * 5  # the facts and the end, each time
    assert not any(word in reply for reply in overheard.replies for word in overheard.words())
    assert any(str(ledger) in told for told in overheard.told)  # the site's own operator is told
