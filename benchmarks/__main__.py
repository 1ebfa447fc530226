"""``make bench``: every study in turn, results under benchmarks/results.

``python -m benchmarks --list`` names them, ``python -m benchmarks accuracy`` runs one, ``--replications 10`` makes a
quick look of those that count in replications, ``--folder`` says where the real tables are that are not shipped.
"""

import argparse
import os
import subprocess
import sys

from benchmarks.registry import BENCHMARKS


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("studies", nargs="*", choices=[*BENCHMARKS, []], default=[])  # [] stands for all
    parser.add_argument("--replications", type=int, default=100)
    parser.add_argument("--folder", help="folder with tables, for studies of real ones (also: SFUMATO_DATA)")
    parser.add_argument(
        "--list", action="store_true", help="name every study, its purpose and what it writes, and stop"
    )
    options = parser.parse_args()
    if options.folder:
        os.environ["SFUMATO_DATA"] = options.folder
    failed: list[str] = []
    for name in options.studies or BENCHMARKS:
        if options.list:
            written = ", ".join(BENCHMARKS[name].writes) or "the terminal"
            print(f"{name:16} {BENCHMARKS[name].purpose}: {written}")
            continue
        try:
            BENCHMARKS[name].run(options.replications)
        except (OSError, subprocess.CalledProcessError) as error:  # its data or its environment is not there
            failed.append(f"{name}: {error}")
    sys.exit("\n".join(failed) if failed else 0)


if __name__ == "__main__":
    main()
