"""The tables of what benchmarks measure, in Markdown: of rows as their JSON files hold them."""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import scaling

Row = Mapping[str, Any]
Column = Callable[[Row], str]


def table(columns: Mapping[str, Column], rows: Iterable[Row], names: int = 1) -> str:
    """A column by its title; the first so many are names, the others numbers."""
    marks = ["---"] * names + ["--:"] * (len(columns) - names)
    lines = [[*columns], *([cell(row) for cell in columns.values()] for row in rows)]
    text = [f"| {' | '.join(cells)} |" for cells in lines]
    text.insert(1, f"|{'|'.join(marks)}|")
    return "\n".join(text) + "\n"


def title(row: Row) -> str:
    return row["title"]


def seconds(value: float | None, digits: int = 2) -> str:
    return "never" if value is None else f"{value:.{digits}f} s"


def mebibytes(value: float) -> str:
    return f"{value:.1f}" if value < 9.95 else f"{value:.0f}"


# --- programs.json -------------------------------------------------------------------------------


def compiled(row: Row) -> Row | None:
    """The better of torch.compile's versions that were measured."""
    found = [each for name, each in row["systems"].items() if name.startswith("torch.compile")]
    return min(found, key=lambda each: each["median_ms"], default=None)


def compiled_ms(row: Row, noted: bool = False) -> str:
    """Milliseconds of torch.compile, else why there are none."""
    if best := compiled(row):
        note = f" ({best['note']})" if noted and best["note"] else ""
        return f"{best['median_ms']:.2f}{note}"
    return "; ".join(sorted(set(row["out"].values()))) or "–"


def milliseconds_of(system: str) -> Column:
    return lambda row: f"{row['systems'][system]['median_ms']:.2f}"


def against_eager(row: Row) -> str:
    return f"{row['systems']['torchjanus']['against_eager']:.2f} ×"


def against_compiled(row: Row) -> str:
    best = compiled(row)
    ours = row["systems"]["torchjanus"]["median_ms"]
    return f"{best['median_ms'] / ours:.2f} ×" if best else "–"


def caught_up(row: Row, system: Row | None) -> str:
    return seconds(system["caught_up_s"], 1) if system else "–"


def share_as_graphs(row: Row) -> str:
    """How many of the last steps ran as graphs; of a step that is cut, how many of its converted parts."""
    last = row["last"]
    share = last["hits"] / max(1, last["hits"] + last["misses"] + last["bypassed"])
    return f"{100 * share:.4g} %{' of its parts' if row['is_cut'] else ''}"


SPEED: dict[str, Column] = {
    "program": title,
    "eager ms": milliseconds_of("eager"),
    "torch.compile ms": compiled_ms,
    "torchjanus ms": milliseconds_of("torchjanus"),
    "against eager": against_eager,
}


def speed(rows: Iterable[Row]) -> str:
    """The README's columns."""
    return table(SPEED, rows)


def speed_in_full(rows: Iterable[Row]) -> str:
    columns = {
        **SPEED,
        "torch.compile ms": lambda row: compiled_ms(row, noted=True),
        "against torch.compile": against_compiled,
        "floor ms": lambda row: f"{row['floor_ms']:.2f}",
    }
    return table(columns, rows)


def start(rows: Iterable[Row]) -> str:
    columns: dict[str, Column] = {
        "program": title,
        "first graph, cold start": lambda row: seconds(row["first_graph_s"]["cold"]),
        "warm start": lambda row: seconds(row["first_graph_s"]["warm"]),
        "graphs": lambda row: str(row["graphs"]),
        "made in": lambda row: seconds(row["made_in_s"]),
        "caught up with eager": lambda row: caught_up(row, row["systems"]["torchjanus"]),
        "torch.compile": lambda row: caught_up(row, compiled(row)),
        "made in the last steps": lambda row: (
            f"{row['last']['generated']} in {row['last']['steps']:,}"
        ),
        "of these ran as a graph": share_as_graphs,
    }
    return table(columns, rows)


def memory(rows: Iterable[Row]) -> str:
    def cell(what: str, system: str) -> Column:
        return lambda row: mebibytes(row["peak_mib"][what][system])

    columns: dict[str, Column] = {
        "program": title,
        "a step's MiB: eager": cell("step", "eager"),
        "torchjanus": cell("step", "torchjanus"),
        "process's peak MiB: eager": cell("process", "eager"),
        "torchjanus ": cell("process", "torchjanus"),
    }
    return table(columns, rows)


# --- the others ----------------------------------------------------------------------------------


def ablation(rows: Sequence[Row]) -> str:
    """Milliseconds of each configuration, and how much faster than eager that is."""

    def cell(name: str) -> Column:
        if name == "eager":
            return lambda row: f"{row['ms'][name]:.2f}"
        return lambda row: f"{row['ms'][name]:.2f} ({row['ms']['eager'] / row['ms'][name]:.2f} ×)"

    configurations = rows[0]["ms"] if rows else ()
    return table({"program": title, **{f"{name}, ms": cell(name) for name in configurations}}, rows)


def coexecution(rows: Sequence[Row]) -> str:
    """Milliseconds of each mode and how much faster than eager that is, or why there are none."""

    def cell(name: str) -> Column:
        def text(row: Row) -> str:
            if name not in row["ms"]:
                return row["out"].get(name, "–")
            ms, eager = row["ms"][name], row["ms"]["eager"]
            ahead = row.get("ahead", {}).get(name)
            told = f"; runner {ahead['worked']:.1f}, waited {ahead['waited']:.1f}" if ahead else ""
            return f"{ms:.1f}" if name == "eager" else f"{ms:.1f} ({eager / ms:.2f} ×{told})"

        return text

    modes = dict.fromkeys(name for row in rows for name in row["modes"])
    columns: dict[str, Column] = {"program": title, "steps": lambda row: str(row["steps"])}
    return table(columns | {f"{name}, ms": cell(name) for name in modes}, rows)


def distributed(rows: Iterable[Row]) -> str:
    """A line for each system and way; each of its cells says why, if there is no figure."""

    def ways() -> Iterable[Row]:
        for row in rows:
            for system, found in row["systems"].items():
                for overlap in ("on", "off"):
                    names = {"title": row["title"], "system": system, "overlap": overlap}
                    yield names | {"one": found["one"], "two": found[overlap], "of": row}

    def of_both(figure: Callable[[Row, Row], str]) -> Column:
        def cell(way: Row) -> str:
            fails = "problem" in way["one"] or "problem" in way["two"]
            return "–" if fails else figure(way["one"], way["two"])

        return cell

    def exposed(way: Row) -> str:
        if "problem" in way["two"]:
            return "–"
        network = scaling.delayed(scaling.Network(**way["of"]["network"]))
        transfers = way["two"]["timeline"]["transfers"]
        whole = sum(network(size) for _, size, _ in transfers)
        return f"{way['two']['delayed_ms'] - way['two']['ms']:.1f} of {whole:.1f}"

    def simulated(way: Row) -> str:
        if "problem" in way["two"]:
            return "–"
        network = scaling.delayed(scaling.Network(**way["of"]["network"]))
        return f"{scaling.step_ms(way['two']['timeline'], network):.1f}"

    columns: dict[str, Column] = {
        "program": title,
        "system": lambda way: way["system"],
        "overlap": lambda way: way["overlap"],
        "one process, ms": lambda way: way["one"].get("problem") or f"{way['one']['ms']:.1f}",
        "two, no delay": lambda way: way["two"].get("problem") or f"{way['two']['ms']:.1f}",
        "two, delayed": of_both(lambda one, two: f"{two['delayed_ms']:.1f}"),
        "simulated": simulated,
        "exposed ms": exposed,
        "scale factor, no delay": of_both(lambda one, two: f"{one['ms'] / two['ms']:.2f}"),
        "delayed": of_both(lambda one, two: f"{one['ms'] / two['delayed_ms']:.2f}"),
    }
    return table(columns, ways(), names=3)


def growth(rows: Mapping[str, Row]) -> str:
    """A table for each quantity."""

    def of_quantity(quantity: Row) -> str:
        columns: dict[str, Column] = {
            quantity["title"]: lambda row: f"{row['size']:,}",
            "generation ms": lambda row: f"{row['generation_ms']:.0f}",
            "call beyond the graph µs": lambda row: f"{row['entry_us']:.0f}",
            "eager step ms": lambda row: f"{row['eager_ms']:.2f}",
            "torchjanus step ms": lambda row: f"{row['converted_ms']:.2f}",
            "against eager": lambda row: f"{row['eager_ms'] / row['converted_ms']:.2f} ×",
        }
        return table(columns, quantity["sizes"], names=0)

    return "\n".join(of_quantity(quantity) for quantity in rows.values())


def overheads(rows: Row) -> str:
    columns: dict[str, Column] = {
        "program": title,
        "call before the graph, µs": lambda row: f"{row['entry_us']:.0f}",
        "after it, µs": lambda row: f"{row['leaving_us']:.0f}",
        "profiled step / plain step": lambda row: f"{row['profiled_ratio']:.2f}",
        "profile's end to first graph's end, ms": lambda row: f"{row['first_graph_ms']:.0f}",
        "in a second process": lambda row: f"{row['first_graph_again_ms']:.0f}",
        "kernels compiled": lambda row: str(len(row["kernels_ms"])),
        "median of one, ms": lambda row: (
            f"{statistics.median(row['kernels_ms']):.1f}" if row["kernels_ms"] else "–"
        ),
    }
    alone = [{"title": name, "cost": cost} for name, cost in rows["alone"].items()]
    costs: dict[str, Column] = {"what": title, "time": lambda row: row["cost"]}
    return table(columns, rows["programs"]) + "\n" + table(costs, alone)


def threads(rows: Sequence[Row]) -> str:
    count = max(map(int, rows[0]["least_ms"])) if rows else 0
    columns: dict[str, Column] = {
        "program": title,
        "one thread, least ms": lambda row: f"{row['least_ms']['1']:.3f}",
        f"{count} threads, least ms": lambda row: f"{row['least_ms'][str(count)]:.3f}",
        "faster": lambda row: f"{row['least_ms']['1'] / row['least_ms'][str(count)]:.2f} ×",
        "by medians": lambda row: f"{row['median_ms']['1'] / row['median_ms'][str(count)]:.2f} ×",
    }
    return table(columns, rows)


def recurrent(rows: Iterable[Row]) -> str:
    columns: dict[str, Column] = {
        "layer": lambda row: row["layer"],
        "length": lambda row: row["length"],
        "batch": lambda row: str(row["batch"]),
        "units": lambda row: str(row["units"]),
        "eager ms": lambda row: f"{row['eager_ms']:.2f}",
        "torchjanus ms": lambda row: f"{row['torchjanus_ms']:.2f}",
        "against eager": lambda row: f"{row['eager_ms'] / row['torchjanus_ms']:.2f} ×",
    }
    return table(columns, rows)


def kernels(rows: Iterable[Row]) -> str:
    columns: dict[str, Column] = {
        "kernel": title,
        "ms": lambda row: f"{row['ms']:.2f}",
        "GB/s": lambda row: f"{row['gigabytes']:.1f}",
        "of a copy's": lambda row: f"{row['share']:.0%}",
        "eager ms": lambda row: f"{row['eager_ms']:.2f}" if "eager_ms" in row else "–",
    }
    return table(columns, rows)


def state(rows: Iterable[Row]) -> str:
    def verdict(system: str) -> Column:
        return lambda row: row[system]

    columns: dict[str, Column] = {
        "a float kept in": title,
        "torchjanus": verdict("torchjanus"),
        "torch.compile": verdict("torch.compile"),
    }
    return table(columns, rows, names=3)


#: What becomes of a sample (tests/oracles/run.py), and how the table says it.
OUTCOMES = {
    "graph": "ran as a graph",
    "imperative": "stayed imperative, with a reason",
    "strides": "gradients laid out otherwise",
    "differs": "differ",
    "crash": "crashed",
}


def oracles(rows: Iterable[Row]) -> str:
    def count(kind: str) -> Column:
        return lambda row: str(row["counts"][kind])

    columns: dict[str, Column] = {
        "samples of": title,
        "in all": lambda row: str(sum(row["counts"].values())),
        **{shown: count(kind) for kind, shown in OUTCOMES.items()},
    }
    return table(columns, rows)
