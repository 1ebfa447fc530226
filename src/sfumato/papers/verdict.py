"""What a finished study says about the printed values: reached or not with the printed noise, and by how much."""

from sfumato.papers.run import Done, cells
from sfumato.papers.study import Study, Summary


def verdict(study: Study, done: Done) -> list[str]:
    """One sentence for each printed method that was measured with its printed noise, and one on the tight noise.

    Studies of a user's own table have none: their columns are no distances, and were printed for another table.
    """
    if study.data:
        return []
    summaries = cells(study, done)
    sentences = []
    for method in dict.fromkeys(name for row in study.rows for name in row.printed):
        pairs = [
            (row.printed[method], summaries[row.label, f"{method} paper"])
            for row in study.rows
            if method in row.printed and (row.label, f"{method} paper") in summaries
        ]
        if pairs:
            sentences.append(_reached(method, pairs))
    return [*sentences, *filter(None, (_tight(study, summaries), _below(study, summaries)))]


def _reached(method: str, pairs: list[tuple[float, Summary]]) -> str:
    """Reached: measured at most two standard errors above what is printed."""
    reached = sum(found.value - 2.0 * found.error <= printed for printed, found in pairs)
    measured = [found.value for _, found in pairs]
    printed = [value for value, _ in pairs]
    return (
        f"{method}: printed {min(printed):.3f} to {max(printed):.3f}; with the printed noise we measure "
        f"{min(measured):.3f} to {max(measured):.3f}. "
        + ("No row reaches" if reached == 0 else f"{reached} of {len(pairs)} rows reach")
        + " the printed value (the authors' code was not seen)."
    )


def _tight(study: Study, summaries: dict[tuple[str, str], Summary]) -> str:
    """Whether tight noise is at least as accurate as printed noise, row by row, within two standard errors."""
    worse, compared = [], 0
    for (label, column), paper in summaries.items():
        tight = summaries.get((label, column.replace(" paper", " tight")))
        if column.endswith(" paper") and tight is not None:
            compared += 1
            if tight.value - paper.value > 2.0 * (tight.error**2 + paper.error**2) ** 0.5:
                worse.append(f"{column.removesuffix(' paper')} in {label}")
    if not compared:
        return ""
    if not worse:
        return (
            f"Tight noise is at least as accurate as printed noise in all {compared} comparisons (two standard errors)."
        )
    return (
        f"Tight noise is at least as accurate as printed noise in {compared - len(worse)} of {compared} comparisons; "
        f"not so: {', '.join(worse)}. No printed row has a guarantee."
    )


def _below(study: Study, summaries: dict[tuple[str, str], Summary]) -> str:
    """In how many rows ours is below everything that is printed there; rows beside the printed table do not count."""
    rows = [row for row in study.rows if row.printed and "," not in row.label and (row.label, "sfumato") in summaries]
    lost = [row.label for row in rows if summaries[row.label, "sfumato"].value >= min(row.printed.values())]
    if not rows:
        return ""
    return f"sfumato is below every printed column in {len(rows) - len(lost)} of {len(rows)} rows" + (
        f"; not in: {'; '.join(lost)}." if lost else "."
    )
