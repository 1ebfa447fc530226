"""Kill -9 of each party of a real federation at random moments: coordinator, its Flower server, each of three sites.

    python -m benchmarks.kill_federation --kills 10 --out benchmarks/results/kill-federation.md

Every kill is in a fit of its own, over TLS on loopback, at a moment that is uniform in the time that an undisturbed fit
takes from when the coordinator waits for its sites. Whoever was killed is started again by the same command; where that
was the coordinator or its server, the same `server` command goes on with the run. Afterwards each site's ledger is read
beside the answers that the site keeps and the lines that the coordinator says it heard. Needs ``.venv-flower``.
"""

import argparse
import json
import os
import platform
import random
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.federated.deployment import BOUNDED, LONG, SITES, Deployment

from sfumato.errors import BudgetError
from sfumato.federated.terms import KNOWN
from sfumato.privacy.ledger import FileLedger
from sfumato.simulate import he

PARTIES = ("coordinator", "server", *SITES)
EPSILON = 0.05
"""Of each fit: all of them together stay below the cap of the sites."""
SPOILT = "interrupted after it was charged"
"""What a site says of a line whose answer it had paid for and not kept when it was killed."""


@dataclass
class Tally:
    """What was found after the kills of one party."""

    kills: int = 0
    outcomes: int = 0
    left_out: int = 0
    unexplained: int = 0
    releases: int = 0
    under_reported: int = 0
    paid_twice: int = 0
    never_sent: int = 0
    damaged: int = 0
    reservations: int = 0
    orphans: int = 0
    seconds: list[float] = field(default_factory=list)
    moments: list[str] = field(default_factory=list)


class Target(Deployment):
    """A deployment whose parties can be killed one at a time."""

    def fit(self):
        """Start the coordinator; two of three sites are enough."""
        self.server(*BOUNDED, "--method", "descent", "--epsilon", EPSILON, minimum=2, timeout=30)

    def until_it_waits(self):
        """Until the coordinator has started its server."""
        self.until(lambda: "waiting for 3 site(s)" in self.said("server"), "the server's start")

    def wait(self):
        """The exit code of the coordinator, whoever else ends meanwhile."""
        return self.started.pop("server").wait(timeout=LONG)

    def strike(self, party):
        """Kill one of the parties; False if it had ended."""
        if party in SITES:
            self.kill(party)
            return True
        coordinator = self.started["server"]
        if coordinator.poll() is not None:
            return False
        if party == "coordinator":
            coordinator.kill()
            return True
        for child in _children(coordinator.pid):
            os.kill(child, signal.SIGKILL)
        return True

    def reached(self):
        """How far the run was: its last line that a site had begun to answer."""
        journal = self.folder / "federation" / "run.json"
        if not journal.exists():
            return "after the outcome"
        run = json.loads(journal.read_text())["run"]
        claims = [path for name in SITES for path in self.answers(name, f"{run}/*.claim")]
        return max(claims, key=lambda path: path.stat().st_mtime).stem if claims else "before the first line"


def _children(parent):
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(stat.parent.name))
    return found


def disturb(made, party, seconds, rng, tally):
    """One fit in which a party is killed and started again; what came of it."""
    before = {name: {path.name for path in made.answers(name, "*")} for name in SITES}
    made.fit()
    made.until_it_waits()
    began = time.monotonic()
    time.sleep(rng.uniform(0.0, seconds))
    moment = made.reached()
    if made.strike(party):
        tally.kills += 1
        tally.moments.append(moment)
    if party in SITES:
        made.site(party)
    code = made.wait()
    if code != 0 and party not in SITES:
        made.nothing_left_of(*SITES)
        made.fit()
        code = made.wait()
    for _ in range(3):  # too few sites were there in time: the same command goes on
        if code == 0:
            break
        made.fit()
        code = made.wait()
    tally.seconds.append(time.monotonic() - began)
    tally.outcomes += int(code == 0)
    outcome = json.loads((made.folder / "federation" / "result" / "outcome.json").read_text())
    examine(made, outcome, before, party, tally)


def examine(made, outcome, before, party, tally):
    """Each site's ledger beside its answers of this fit and what the coordinator heard."""
    for name, why in outcome["left_out"].items():
        tally.left_out += 1
        tally.unexplained += int(name != party or not (SPOILT in why or "did not answer" in why))
    for name in SITES:
        ledger = FileLedger(made.folder / f"{name}.jsonl")
        try:
            ledger.verify()
        except BudgetError:
            tally.damaged += 1
            continue
        accounts = {run.id: run for run in ledger.runs()}
        known = set()
        every = sorted(made.answers(name, "*/terms.json"), key=lambda path: path.stat().st_mtime)
        for path in every:
            kept = json.loads(path.read_text())
            known.add(kept["account"])
            if path.parent.name in before[name]:
                continue
            run = accounts[kept["account"]]
            paid = Counter(entry.purpose for _, entry in run.entries)
            lines = {line: KNOWN[line].purpose for line, _ in kept["terms"]["shares"]}
            sent = {line for line in lines if (path.parent / f"{line.replace(' ', '-')}.npy").exists()}
            last = outcome["uploaded_bytes"] if path == every[-1] else {}  # the outcome is that of the last run
            heard = {line for line, sites in last.items() if line in lines and name in sites}
            tally.releases += len(run.entries)
            tally.under_reported += sum(not paid[lines[line]] for line in sent | heard)
            tally.paid_twice += sum(count - 1 for count in paid.values())
            tally.never_sent += len(run.entries) - len(sent)
            tally.reservations += int(bool(run.unspent))
        tally.orphans += len([run for run in accounts.values() if run.unspent and run.id not in known])


def study(folder, kills, seed, keep):
    """Kill every party so many times, in turns; `keep` is shown the tallies by party after every turn."""
    sample = he("I", n=3_000, p=5, random_state=0)
    made = Target(folder, {name: (sample.x[i::3], sample.y[i::3]) for i, name in enumerate(SITES)})
    rng, tallies = random.Random(seed), {party: Tally() for party in PARTIES}
    try:
        made.fit()
        made.wait()  # the first waits for the sites, too
        made.fit()
        made.until_it_waits()
        began = time.monotonic()
        if made.wait() != 0:
            raise SystemExit(made.said("server"))
        seconds = time.monotonic() - began
        while late := [party for party, tally in tallies.items() if tally.kills < kills]:
            for party in late:
                disturb(made, party, seconds, rng, tallies[party])
                note = f"{party} {tallies[party].kills}/{kills}: {tallies[party].moments[-1]}"
                print(note, file=sys.stderr, flush=True)
            keep(tallies, seconds)
        made.nothing_left_of(*SITES)
    finally:
        made.stop()
    return tallies, seconds


COLUMNS = {
    "kills": "kills",
    "outcomes": "fits with an outcome",
    "left_out": "sites left out",
    "unexplained": "left out without a reason",
    "releases": "releases in the ledgers",
    "under_reported": "sent but not recorded",
    "paid_twice": "paid twice",
    "never_sent": "paid, never sent",
    "damaged": "damaged ledgers",
    "reservations": "runs left open",
    "orphans": "reservations of no known run",
}


def page(tallies, seconds, command, took):
    """The result as a page."""
    rows = []
    for party, tally in tallies.items():
        counts = " | ".join(str(getattr(tally, name)) for name in COLUMNS)
        rows.append(f"| {party} | {counts} | {statistics.median(tally.seconds):.1f} |")
    moments = [f"* {party}: {', '.join(tally.moments)}" for party, tally in tallies.items()]
    return f"""# Kill -9 of each party of a federation

`{command}`, {took:.0f} s, Python {platform.python_version()}, {os.cpu_count()} cores.
Three sites of 1,000 records, SIR by descent at epsilon = {EPSILON}, two of three sites are enough. An undisturbed fit
took {seconds:.1f} s from when its coordinator waited for the sites; kills are uniform in that time.

| killed | {" | ".join(COLUMNS.values())} | median seconds |
|---|{"---|" * (len(COLUMNS) + 1)}
{chr(10).join(rows)}

*Sent but not recorded* is what must be 0: an answer that a site kept, or that a coordinator heard, without an entry in
the site's ledger. *Paid, never sent*: the site was killed between charge and answer, so its ledger says too much. *Left
out without a reason* would be a site that was not killed, or of which the coordinator does not say that a line was
interrupted or not answered. *Runs left open* hold back what they set aside. No process was left at the end (checked).

The last line that some site had begun when the party was killed:

{chr(10).join(moments)}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[1] / "src")  # what is started runs the sources beside this
    command = f"python -m benchmarks.kill_federation --kills {given.kills} --seed {given.seed}"
    began = time.monotonic()

    def keep(tallies, seconds):
        if given.out is not None:
            text = page(tallies, seconds, command, time.monotonic() - began)
            given.out.write_text(text, encoding="utf-8")

    with tempfile.TemporaryDirectory() as folder:
        print(page(*study(Path(folder), given.kills, given.seed, keep), command, time.monotonic() - began))


if __name__ == "__main__":
    main()
