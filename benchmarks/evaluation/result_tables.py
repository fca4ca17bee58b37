"""The tables of docs/evaluation, of results by row and column."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tables import Column, table

from . import paper, parts, plots

Found = Mapping[str, Mapping[str, Mapping[str, Any]]]  # by row and column


def result(found: Found, row: str, column: str) -> Mapping[str, Any]:
    return found.get(row, {}).get(column, {}).get("result", {"problem": "–"})


def figure(found: Found, column: str, form: str, name: str) -> Callable[[str], str]:
    """A figure of a row's cell, or why there is none."""

    def cell(row: str) -> str:
        given = result(found, row, column)
        return given["problem"] if "problem" in given else form.format(given[name])

    return cell


def table_of(
    rows: Iterable[str], columns: Mapping[str, Callable[[str], str]], names: int = 1
) -> str:
    """Rows by their keys."""
    made: dict[str, Column] = {
        title: lambda row, cell=cell: cell(row["key"]) for title, cell in columns.items()
    }
    return table(made, [{"key": row} for row in rows], names)


def eager_milliseconds(found: Found, beside: str) -> Callable[[str], str]:
    """As measured beside that system, if it could be measured; each system has its own turns with eager."""

    def cell(row: str) -> str:
        given = (result(found, row, column) for column in (beside, *found[row]))
        return next((f"{each['eager_ms']:.2f}" for each in given if "eager_ms" in each), "–")

    return cell


def of_paper(factor: float | None) -> str:
    return "–" if factor is None else f"{factor:.2f} ×"


def with_milliseconds(found: Found, column: str) -> Callable[[str], str]:
    def cell(row: str) -> str:
        given = result(found, row, column)
        if "problem" in given:
            return given["problem"]
        note = f"; {given['note']}" if given.get("note") else ""
        return f"{given['ms']:.2f} ({given['faster']:.2f} ×{note})"

    return cell


# --- JANUS ---


def throughput(found: Found) -> str:
    rows = [row for row in paper.JANUS if row in found]
    return table_of(
        rows,
        {
            "program": lambda row: paper.JANUS[row].title,
            "here": lambda row: paper.JANUS[row].here,
            "eager, ms": eager_milliseconds(found, "torchjanus"),
            "torchjanus, ms": with_milliseconds(found, "torchjanus"),
            "JANUS's paper": lambda row: of_paper(paper.JANUS[row].faster),
            "torch.compile (step), ms": with_milliseconds(found, "torch.compile (step)"),
            "torch.compile (model), ms": with_milliseconds(found, "torch.compile (model)"),
            "JAX, ms": with_milliseconds(found, "JAX"),
        },
        names=2,
    )


def correctness(found: Found) -> str:
    """A line for each program; its key is its kind and its name."""
    systems = [
        name for name in parts.KINDS_SYSTEMS if any(name in cells for cells in found.values())
    ]
    rows: dict[tuple[str, str], None] = {}
    for kind in parts.KINDS:
        for system in systems:
            rows |= dict.fromkeys(
                (kind, name) for name in result(found, kind, system).get("verdicts", ())
            )

    def cell(system: str) -> Column:
        def text(row: Mapping[str, Any]) -> str:
            kind, name = row["key"]
            given = result(found, kind, system)
            return given["problem"] if "problem" in given else given["verdicts"].get(name, "–")

        return text

    columns: dict[str, Column] = {
        "kind": lambda row: row["key"][0],
        "program": lambda row: row["key"][1],
        **{system: cell(system) for system in systems},
    }
    return table(columns, [{"key": row} for row in rows], names=2 + len(systems))


def convergence(found: Found) -> str:
    def last(system: str) -> Callable[[str], str]:
        def cell(row: str) -> str:
            given = result(found, row, system)
            if "problem" in given:
                return given["problem"]
            seconds, quality = given["points"][-1]
            reached = plots.seconds_until(given["points"], wanted(found, row), row in parts.FALLING)
            return f"{'–' if reached is None else f'{reached:.1f} s'} ({quality:.4g} after {seconds:.1f} s)"

        return cell

    def training(row: str) -> str:
        seeds = max(cell["result"].get("seeds", 1) for cell in found[row].values())
        return parts.TRAININGS[row] + (f" ({seeds} seeds)" if seeds > 1 else "")

    def quality(row: str) -> str:
        least = wanted(found, row)
        return "–" if least is None else f"{least:.4g}"

    return table_of(
        [row for row in parts.TRAININGS if row in found],
        {
            "training": training,
            "quality": quality,
            **{system: last(system) for system in parts.TRAINED_BY},
        },
    )


def wanted(found: Found, row: str) -> float | None:
    """What all systems reach that ended: the least good of their best; None: none ended."""
    lines = plots.lines(found[row])
    choose, worst = (min, max) if row in parts.FALLING else (max, min)
    best = [choose(quality for _, quality in points) for points in lines.values()]
    return worst(best, default=None)


def ablation(found: Found) -> str:
    def share(row: str) -> str:
        given = result(found, row, "assertions")
        return given["problem"] if "problem" in given else f"{100 * given['share']:.1f} %"

    return table_of(
        [row for row in paper.JANUS if row in found],
        {
            "program": lambda row: paper.JANUS[row].title,
            **{name: figure(found, name, "{:.2f} ×", "faster") for name in parts.CONFIGURATIONS},
            "of a step before its graph": share,
        },
    )


def scaling(found: Found) -> str:
    return table_of(
        [row for row in paper.JANUS_SCALE_FACTORS if row in found],
        {
            "program": lambda row: paper.JANUS_SCALE_FACTORS[row].title,
            "here": lambda row: paper.JANUS_SCALE_FACTORS[row].here,
            "eager": figure(found, "eager", "{:.2f}", "factor"),
            "torchjanus": figure(found, "torchjanus", "{:.2f}", "factor"),
            "JANUS's paper": lambda row: f"{paper.JANUS_SCALE_FACTORS[row].faster:.2f}",
        },
        names=2,
    )


# --- Jittor and Terra ---


def inference(found: Found) -> str:
    columns: dict[str, Callable[[str], str]] = {"network": lambda row: paper.JITTOR_BACKBONES[row]}
    for batch in parts.BATCHES:
        named = f"torchjanus, {batch}"
        columns[f"batch {batch}: eager, ms"] = figure(found, named, "{:.1f}", "eager_ms")
        columns[f"torchjanus, ms ({batch})"] = with_milliseconds(found, named)
        compiled = f"{parts.COMPILED[1]}, {batch}"
        columns[f"torch.compile, ms ({batch})"] = with_milliseconds(found, compiled)
    rows = [row for row in paper.JITTOR_BACKBONES if row in found]
    means = ", ".join(f"batch {batch}: {mean_factor(found, batch)}" for batch in parts.BATCHES)
    small, large = (f"{factor:.2f} ×" for factor in paper.JITTOR_FASTER)
    return (
        f"{table_of(rows, columns)}\nGeometric means of torchjanus against eager: {means}. "
        f"Jittor's paper: {small} at small batches, {large} at large ones.\n"
    )


def mean_factor(found: Found, batch: int) -> str:
    every = [result(found, row, f"torchjanus, {batch}").get("faster") for row in found]
    factors = [factor for factor in every if factor]
    mean = plots.geometric_mean(factors)
    return "not measured" if mean is None else f"{mean:.2f} × of {len(factors)} networks"


def gans(found: Found) -> str:
    return table_of(
        [row for row in paper.JITTOR_GANS if row in found],
        {
            "network": lambda row: paper.JITTOR_GANS[row].title,
            "here": lambda row: paper.JITTOR_GANS[row].here,
            "eager, ms": eager_milliseconds(found, "torchjanus"),
            "torchjanus, ms": with_milliseconds(found, "torchjanus"),
            "Jittor's paper": lambda row: of_paper(paper.JITTOR_GANS[row].faster),
            "torch.compile (step), ms": with_milliseconds(found, "torch.compile (step)"),
            "torch.compile (model), ms": with_milliseconds(found, "torch.compile (model)"),
        },
        names=2,
    )


def fusion(found: Found) -> str:
    given = result(found, "residual block", "torchjanus")
    if "problem" in given:
        return f"{given['problem']}\n"
    steps = "\n".join(given["steps"])
    before, after = paper.JITTOR_FUSION
    return (
        f"Eager runs {given['operators']} operators, and torchjanus {given['computing']} steps that compute "
        f"(Jittor's paper: {before} become {after}):\n\n```\n{steps}\n```\n"
    )


def terra(found: Found) -> str:
    return table_of(
        [row for row in parts.TERRA if row in found],
        {
            "program": lambda row: row,
            "eager, ms": eager_milliseconds(found, "co-executed"),
            "co-executed, ms": with_milliseconds(found, "co-executed"),
            "the runner works, Python waits, ms": of_runner(found, "co-executed"),
            "lazy, ms": with_milliseconds(found, "lazy"),
            "works, waits, ms": of_runner(found, "lazy"),
        },
    )


def of_runner(found: Found, mode: str) -> Callable[[str], str]:
    def cell(row: str) -> str:
        ahead = result(found, row, mode).get("ahead", {}).get(mode)
        return "–" if ahead is None else f"{ahead['worked']:.2f}, {ahead['waited']:.2f}"

    return cell
