"""The plots of the pages, as SVG by file name."""

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import record

from . import paper, parts
from .bars import bars

sys.path.insert(0, str(record.ROOT / "examples"))
from curves import Points, curves

Found = Mapping[str, Mapping[str, Mapping[str, Any]]]


def geometric_mean(factors: Sequence[float]) -> float | None:
    return math.exp(sum(map(math.log, factors)) / len(factors)) if factors else None


def factors(cells: Mapping[str, Mapping[str, Any]], columns: Iterable[str]) -> dict[str, float]:
    """How much faster than eager, where that was measured."""
    found = {column: cells.get(column, {}).get("result", {}).get("faster") for column in columns}
    return {column: factor for column, factor in found.items() if factor}


def lines(cells: Mapping[str, Mapping[str, Any]]) -> dict[str, Points]:
    """Of each system that ended: seconds and quality."""
    return {
        system: cells[system]["result"]["points"]
        for system in parts.TRAINED_BY
        if "points" in cells.get(system, {}).get("result", {})
    }


def seconds_until(points: Points, quality: float, is_falling: bool) -> float | None:
    return next(
        (at for at, value in points if (value <= quality if is_falling else value >= quality)), None
    )


def throughput(found: Found) -> dict[str, str]:
    systems = ("torchjanus", *parts.COMPILED[:1], "JAX")
    groups = {
        model.title: {**factors(found[row], systems), "JANUS's paper": model.faster}
        for row, model in paper.JANUS.items()
        if row in found
    }
    return {"janus-throughput.svg": bars(groups, "Speed of training steps against eager")}


def ablation(found: Found) -> dict[str, str]:
    groups = {
        model.title: factors(found[row], ("base", "+parallel", "+fuse", "+batch"))
        for row, model in paper.JANUS.items()
        if row in found
    }
    groups = {title: group for title, group in groups.items() if group}
    return {"janus-ablation.svg": bars(groups, "Speed against eager")} if groups else {}


def convergence(found: Found) -> dict[str, str]:
    made = {}
    for row, title in parts.TRAININGS.items():
        shown = lines(found.get(row, {}))
        if shown:
            name, _, quality = title.partition(": ")
            picture = curves(shown, name, "seconds", quality, ground="#ffffff")
            made[f"janus-convergence-{row.replace('_', '-')}.svg"] = picture
    return made


def inference(found: Found) -> dict[str, str]:
    groups = {}
    for row, title in paper.JITTOR_BACKBONES.items():
        by_batch = {
            f"torchjanus, batch {batch}": factors(found.get(row, {}), [f"torchjanus, {batch}"])
            for batch in parts.BATCHES
        }
        group = {name: factor for name, each in by_batch.items() for factor in each.values()}
        if group:
            groups[title] = group
    return (
        {"jittor-backbones.svg": bars(groups, "Speed of inference against eager")} if groups else {}
    )


def gans(found: Found) -> dict[str, str]:
    groups = {
        model.title: {
            **factors(found[row], ("torchjanus", parts.COMPILED[0])), "Jittor's paper": model.faster
        }
        for row, model in paper.JITTOR_GANS.items()
        if row in found
    }  # fmt: skip
    return {"jittor-gans.svg": bars(groups, "Speed of training steps against eager")}


def terra(found: Found) -> dict[str, str]:
    groups = {row: factors(cells, ("co-executed", "lazy")) for row, cells in found.items()}
    groups = {row: group for row, group in groups.items() if group}
    return {"terra.svg": bars(groups, "Speed against eager")} if groups else {}
