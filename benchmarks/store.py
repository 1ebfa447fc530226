"""A store of finished numbers, for studies that are run in pieces."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Store:
    """Finished numbers in a file: a study goes on where it stopped, for at most so many seconds of processor time."""

    def __init__(self, path: Path, seconds: float) -> None:
        self._path, self._end = path, time.process_time() + seconds
        path.parent.mkdir(parents=True, exist_ok=True)
        self._known: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}

    def __contains__(self, key: str) -> bool:
        return key in self._known

    def get(self, key: str, make: Callable[..., Any], *args: Any) -> Any:
        """The number of that name, made if it is not known."""
        if key not in self._known:
            if time.process_time() > self._end:
                raise SystemExit("time is up; run the same command again to go on")
            self._known[key] = make(*args)
            self._path.write_text(json.dumps(self._known, indent=0) + "\n", encoding="utf-8")
        return self._known[key]
