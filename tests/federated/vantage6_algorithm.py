"""A task of vantage6's in one process, with its own client for tests: ``python vantage6_algorithm.py JOB``.

`JOB` is JSON: the organizations' ids, the settings of the run, the name of a file for the replies.
"""

import json
import sys
from pathlib import Path

import pandas as pd
from vantage6.algorithm.tools.mock_client import MockAlgorithmClient

from sfumato.federated.vantage6 import algorithm

job = json.loads(Path(sys.argv[1]).read_text())
nothing = [[{"database": pd.DataFrame()}] for _ in job["organizations"]]
client = MockAlgorithmClient(nothing, "sfumato.federated.vantage6.algorithm", organization_ids=job["organizations"])
settings = job["settings"] | {"organizations": job["organizations"]}
honest = client.task.create


def note(input_, organizations, **how):
    """Keep what sites reply; stop after so many tasks."""
    if len(client.tasks) == job.get("lasts"):
        raise ConnectionError
    task = honest(input_, organizations, **how)
    with Path(job["notes"]).open("a") as file:
        file.write(json.dumps([input_["kwargs"]["question"], client.result.from_task(task["id"])]) + "\n")
    return task


client.task.create = note
found = algorithm.fit(settings=settings, mock_client=client)
print(json.dumps({"found": found, "callable": [name for name in dir(algorithm) if callable(getattr(algorithm, name))]}))
