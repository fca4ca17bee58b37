// What the page shows when a line, function or graph is asked for. All texts are put in as text, never as HTML.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const panel = document.getElementById("panel");
const source = document.getElementById("source");
const search = document.getElementById("search");
const found = document.getElementById("found");
const MARKS = {
  graph: ["g", "in the graph"],
  folded: ["g", "known when the graph was made, so the graph has its result"],
  "after run": ["g", "done after the run of the graph, by what it gives"],
  assumed: ["a", "taken for granted by the graph; a check sends the call back to Python if it does not hold"],
  "co-executed": ["c", "run by Python; its operators are noted and run as graphs"],
  imperative: ["i", "run by Python"],
  cut: ["x", "run by Python, between graphs"],
  "not taken": ["n", "never run while it was watched, so no graph has it"],
  "no operator": ["o", "nothing of it is in a graph: it did not run while it was watched, or only with what was known when the graph was made"],
};
const LABELS = { "not taken": "not run" };

// --- elements ------------------------------------------------------------------------------------

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) if (value != null) element.setAttribute(name, value);
  element.append(...children.flat(Infinity).filter((each) => each != null && each !== ""));
  return element;
}
const h = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const s = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

/** An element whose content is made when it is opened. */
function later(title, make, isOpen = false) {
  const element = h("details", {}, h("summary", {}, title));
  const fillIn = () => element.childElementCount === 1 && element.append(...[make()].flat());
  if (isOpen) { fillIn(); element.open = true; }
  element.addEventListener("toggle", () => element.open && fillIn());
  return element;
}

const section = (title, ...children) =>
  children.flat(Infinity).some((each) => each != null && each !== "") ? [h("h3", {}, title), ...children] : [];
const plural = (count, one, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;
const chip = (mark) => h("span", { class: `chip ${MARKS[mark][0]}` }, LABELS[mark] || mark);

function duration(milliseconds) {
  for (const [unit, factor] of [["µs", 1e3], ["ms", 1]])
    if (milliseconds * factor < 1000) return `${Number((milliseconds * factor).toPrecision(3))} ${unit}`;
  return `${Number((milliseconds / 1e3).toPrecision(3))} s`;
}
function bytes(count) {
  for (const unit of ["bytes", "KiB", "MiB"]) {
    if (count < 1024) return `${Number(count.toPrecision(3))} ${unit}`;
    count /= 1024;
  }
  return `${Number(count.toPrecision(3))} GiB`;
}

// --- places --------------------------------------------------------------------------------------

const placeName = ([file, line]) => `${data.files[file].name}:${line}`;
const link = (place, ...children) =>
  h("a", { href: `#${encodeURI(placeName(place))}` }, ...(children.length ? children : [placeName(place)]));
const lineElement = (place) => document.getElementById(placeName(place));
const textOf = (place) => lineElement(place)?.querySelector("code").textContent ?? "";

/** [file, line] of a name such as "train.py:12"; null if there is no such line. */
function placeOf(name) {
  const colon = name.lastIndexOf(":");
  const file = data.files.findIndex((each) => each.name === name.slice(0, colon));
  return file >= 0 && document.getElementById(name) ? [file, Number(name.slice(colon + 1))] : null;
}

/** All graphs, and what stands at each line: made when it is first asked for. */
const graphs = data.functions.flatMap((each, f) =>
  each.parts.flatMap((part, p) => part.graphs.map((graph, g) => ({ ...graph, f, p, number: g + 1 }))));
let indexed = null;
function atLine([file, line]) {
  if (!indexed) {
    indexed = { values: new Map(), operators: new Map() };
    const add = (map, file, line, entry) => {
      const key = `${file}:${line}`;
      map.has(key) ? map.get(key).push(entry) : map.set(key, [entry]);
    };
    for (const graph of graphs) {
      for (const [at, file, line] of graph.places) add(indexed.values, file, line, [graph, at]);
      for (const [at, file, line] of graph.operators) add(indexed.operators, file, line, [graph, at]);
    }
  }
  const key = `${file}:${line}`;
  return { values: indexed.values.get(key) ?? [], operators: indexed.operators.get(key) ?? [] };
}

// --- a line --------------------------------------------------------------------------------------

function showLine(place) {
  const told = data.lines[place[0]]?.[place[1]] ?? [];
  const text = textOf(place);
  show(
    h("h2", {}, placeName(place)),
    h("pre", { class: "sourceline" }, text.trim() || " "),
    told.map(([f, mark, notes]) => [
      h("p", {}, mark ? [chip(mark), " "] : "", h("a", { href: `#function:${f}` }, data.functions[f].name),
        mark ? `: ${MARKS[mark][1]}` : ""),
      h("ul", { class: "notes" }, notes.map((each) => h("li", {}, each))),
    ]),
    timeAt(place),
    told.length ? "" : h("p", { class: "faint" }, `No part of a function or loop that was converted${data.processes.length ? " in this process" : ""}.`),
    section("Why not", whyNot(place, told)),
    section("Shapes and dtypes", valueTable(atLine(place).values)),
    section("Assumed of names here", assumedOf(place, new Set(told.map(([f]) => f)))),
    section("Became", kernelsAt(place)),
  );
}

const allSeconds = data.seconds.flatMap((lines) => Object.values(lines)).reduce((one, other) => one + other, 0);
function timeAt([file, line]) {
  const seconds = data.seconds[file][line];
  return seconds ? h("p", {}, `${duration(1e3 * seconds)} in all, ${Number((100 * seconds / allSeconds).toPrecision(2))} % of the time that has lines.`) : "";
}

/** The reasons that name the line; if there are none, those of what runs it in Python: of a cut function that part. */
function whyNot(place, told) {
  const here = reasonsAt((other) => other && other[0] === place[0] && other[1] === place[1]);
  if (here.length) return here;
  const functions = told.filter(([, mark]) => mark === "imperative").map(([f]) => data.functions[f]);
  return functions.flatMap((each) => each.is_cut && each.file === place[0]
    ? each.parts.filter((part) => part.line <= place[1] && place[1] <= part.end).flatMap(whyPart)
    : reasonsAt(() => true, [each])).slice(0, MOST_REASONS);
}

const whyPart = (part) => part.reasons.length ? part.reasons.map(reasonBox)
  : [h("p", {}, `${linesOf(part)}: ${part.says}.`)];
const linesOf = (part) => part.line === part.end ? `Line ${part.line}` : `Lines ${part.line} to ${part.end}`;

const MOST_REASONS = 8;
function reasonsAt(isHere, functions = data.functions) {
  return functions.flatMap((each) => {
    const isCut = (reason) => each.cuts.some((cut) => cut.code === reason.code && cut.sentence === reason.sentence);
    return [
      ...each.cuts.filter((cut) => isHere(cut.place) || isHere(cut.why)).map(cutBox),
      ...each.parts.flatMap((part) => part.reasons.filter((reason) => isHere(reason.place) && !isCut(reason))).map(reasonBox),
    ];
  });
}

function cutBox(cut) {
  const cost = cut.in_python?.runs
    ? `Python ran it ${plural(cut.in_python.runs, "time")}, ${duration(cut.in_python.milliseconds / cut.in_python.runs)} each, and each cut ends one graph and enters another.`
    : "Each cut ends one graph and enters another.";
  return reasonBox({ ...cut, count: 1, place: cut.why ?? cut.place, extra: `Cut here. ${cost}` });
}

function reasonBox(reason) {
  const told = data.codes[reason.code];
  return h("div", { class: "reason" },
    h("p", {}, reason.sentence, reason.count > 1 ? ` (×${reason.count})` : "", " ",
      reason.place ? h("small", {}, link(reason.place)) : ""),
    reason.extra ? h("p", { class: "faint" }, reason.extra) : "",
    told ? h("p", { class: "try" }, h("b", {}, "Try: "), told.remedy) : "",
    told ? later(h("small", {}, `[${reason.code}] what it means`), () => [
      h("p", {}, told.meaning), h("pre", {}, told.example.trim()),
      ...(told.instead ? [h("p", {}, "Instead:"), h("pre", {}, told.instead.trim())] : []),
    ]) : "");
}

const RESULT = /^\s*(%[\w.]+(?:, %[\w.]+)*) = (\S+)/;

/** What is known of the results at one line of a graph's text: names, operator, types. */
function results(text) {
  const match = RESULT.exec(text);
  const types = /(?:^|[^:]) : ([^{]*?)(?: \{.*)?$/.exec(text);
  return match && types ? { names: match[1], operator: match[2], types: types[1] } : null;
}

const MOST_ROWS = 60;
function valueTable(entries) {
  const rows = new Map();
  for (const [graph, at] of entries) {
    const text = graph.generated[at], told = results(text);
    if (!told || told.operator === "constant") continue;
    const cell = /\{cell="([^"]*)"/.exec(text)?.[1];
    const types = told.types.split(/, (?![^[]*\])/);
    told.names.split(", ").forEach((name, i) => {
      const row = { name: cell ?? name.slice(1).replace(/^\d+$/, "·"), type: types[i] ?? "", operator: told.operator };
      const key = Object.values(row).join(" ");
      rows.set(key, { ...row, count: (rows.get(key)?.count ?? 0) + 1 });
    });
  }
  if (!rows.size) return "";
  const shown = [...rows.values()].slice(0, MOST_ROWS);
  return h("table", {},
    h("tr", {}, ["value", "type", "of"].map((each) => h("th", { scope: "col" }, each))),
    shown.map((row) => h("tr", { class: "mono" },
      h("td", {}, row.name), h("td", {}, row.type), h("td", {}, row.operator, row.count > 1 ? ` ×${row.count}` : ""))),
    rows.size > MOST_ROWS ? h("tr", {}, h("td", { colspan: 3 }, `and ${rows.size - MOST_ROWS} more`)) : "");
}

const MOST_ASSUMED = 10;
/** Assumptions that begin with a name which the line's code has, of the functions that the line belongs to. */
function assumedOf(place, functions) {
  const code = [...(lineElement(place)?.lastChild.childNodes ?? [])].filter((each) => !each.matches?.(".c, .s"));
  const names = new Set(code.map((each) => each.textContent).join(" ").match(/[A-Za-z_]\w*/g) ?? []);
  const told = new Set(graphs.filter((graph) => functions.has(graph.f)).flatMap((graph) => graph.assumptions)
    .filter((each) => names.has(/^(?:len\(|the keys of )?([A-Za-z_]\w*)/.exec(each)?.[1])));
  const list = (some) => h("ul", { class: "plain mono" }, some.map((each) => h("li", {}, each)));
  const shortest = [...told].sort((one, other) => one.length - other.length);
  const rest = shortest.splice(MOST_ASSUMED);
  return told.size ? [list(shortest), rest.length ? later(h("small", {}, `and ${rest.length} more`), () => list(rest)) : ""] : "";
}

/** Of each graph the operators that the line led to, with the kernel that each is in. */
function kernelsAt(place) {
  const groups = new Map();
  for (const [graph, at] of atLine(place).operators) {
    const kernel = kernelAround(graph, at);
    const key = `${graphs.indexOf(graph)} ${kernel ?? at}`;
    if (["constant", "state"].includes(results(graph.optimised[kernel ?? at])?.operator)) continue;
    groups.set(key, { graph, at: kernel ?? at, isKernel: kernel != null });
  }
  return [...groups.values()].slice(0, 40).map(({ graph, at, isKernel }) => isKernel
    ? kernelBox(graph, at)
    : h("p", { class: "mono" }, graph.optimised[at].trim()));
}

const indentation = (text) => text.length - text.trimStart().length;

/** The line of the fused operator that a line of the text belongs to; null: none. */
function kernelAround(graph, at) {
  for (let line = at, depth = Infinity; line >= 0; --line) {
    const text = graph.optimised[line], indent = indentation(text);
    if (indent >= depth) continue;
    depth = indent;
    if (results(text)?.operator === "fused") return line;
  }
  return null;
}

function bodyOf(graph, at) {
  const depth = indentation(graph.optimised[at]);
  let end = at + 1;
  while (end < graph.optimised.length && indentation(graph.optimised[end]) > depth) ++end;
  return graph.optimised.slice(at + 1, end);
}

function kernelBox(graph, at) {
  const body = bodyOf(graph, at);
  const names = body.map((each) => results(each)?.operator).filter((each) => each && each !== "constant");
  const [, , , together, apart] = graph.operators.find(([line]) => line === at) ?? [];
  const llvm = graph.kernels.find(([line]) => line === at);
  return later(
    h("span", {}, h("span", { class: "mono" }, names.join(" · ") || "copy"), " ", savings(together, apart)),
    () => [
      h("pre", {}, [graph.optimised[at], ...body].map((each) => each.slice(indentation(graph.optimised[at]))).join("\n")),
      ...(llvm ? kernelTexts(data.kernels[llvm[1]]) : []),
    ]);
}

/** The loop nest heads the LLVM text as a comment. */
function kernelTexts(text) {
  const lines = text.split("\n");
  const nest = lines.filter((each) => each.startsWith(";")).map((each) => each.replace(/^; ?/, ""));
  const code = lines.filter((each) => !each.startsWith(";")).join("\n").trim();
  return [
    ...(nest.length ? [later("loop nest", () => h("pre", {}, nest.join("\n")))] : []),
    ...(code ? [later("LLVM", () => h("pre", {}, code))] : []),
  ];
}

function savings(together, apart) {
  if (!apart || apart <= together) return "";
  const share = Math.round(100 * (1 - together / apart));
  return h("small", { title: "bytes that cross memory, by the sizes in the types" },
    `${bytes(together)} instead of ${bytes(apart)}: ${share} % saved`);
}

// --- a function ----------------------------------------------------------------------------------

function showFunction(number, graphNumber) {
  const each = data.functions[number];
  show(
    h("h2", {}, each.name, " ", h("small", {}, link([each.file, each.line]))),
    h("p", {}, `${each.says[0].toUpperCase()}${each.says.slice(1)}.`),
    speedOf(each),
    section("Calls", counters(each.counters, each.is_cut), strip(each.history, each)),
    section("Time", times(each.ms)),
    section("Cuts", each.cuts.map(cutBox)),
    section("Co-execution", each.lazily.length ? h("ul", { class: "plain" }, each.lazily.map((line) => h("li", {}, line))) : ""),
    each.parts.map((part, p) => [
      each.is_cut ? section(`${linesOf(part)}: ${part.says}`, counters(part.counters), strip(part.history, each)) : [],
      section("Why some runs were imperative", part.reasons.map(reasonBox)),
      part.graphs.map((_, g) => graphBox(graphs.find((one) => one.f === number && one.p === p && one.number === g + 1))),
    ]),
  );
  if (graphNumber) panel.querySelectorAll(".graph")[graphNumber - 1]?.scrollIntoView();
}

function speedOf(each) {
  if (!each.speed) return "";
  const { as_graph: graph, in_python: python, by_turns: byTurns } = each.speed;
  const factor = Number((python / graph).toPrecision(3));
  return h("p", {}, h("b", {}, `${byTurns ? "" : "at most "}${factor} × the speed of eager`),
    `: ${duration(graph)} as a graph, ${duration(python)} ${byTurns ? "in Python, by turns" : "while profiled, which is slower than eager"}.`);
}

function counters(told, isCut = false) {
  const rows = [
    [isCut ? "calls before the cut" : "calls", told.calls], [isCut ? "runs of parts as graphs" : "as a graph", told.hits], ["profiled", told.profiled], ["missed", told.misses],
    ["left", told.aborts], ["relaxations", told.relaxations], ["graphs made", told.generated],
    ["left alone", told.bypassed], ["in Python for good", told.passed],
  ].filter(([what, count]) => count || (what === "as a graph" && !isCut));
  return h("table", {}, h("tr", {}, rows.map(([what]) => h("th", { class: "num", scope: "col" }, what))),
    h("tr", {}, rows.map(([, count]) => h("td", { class: "num" }, count))));
}

function times(ms) {
  const rows = [["profiled runs", ms.profiling], ["generating", ms.generating], ["optimising", ms.optimising],
    ["compiling", ms.compiling], ["running as graphs", ms.running], ["in Python", ms.python]].filter(([, each]) => each > 0);
  const most = Math.max(...rows.map(([, each]) => each));
  return rows.length ? h("table", {}, rows.map(([what, each]) => h("tr", {}, h("td", {}, what),
    h("td", { class: "num" }, duration(each)),
    h("td", {}, h("span", { class: "saved", "aria-hidden": "true" }, h("i", { style: `width:${(100 * each) / most}%` })))))) : "";
}

const KINDS = [
  ["hits", "as a graph", "--g"], ["profiled", "profiled", "--n"], ["aborts", "left", "--x"], ["misses", "missed", "--a"],
  ["bypassed", "left alone", "--c"], ["python", "in Python", "--i"],
];

function kindOf(cell) {
  const python = cell.calls - (cell.hits ?? 0) - (cell.profiled ?? 0);
  const counts = { ...cell, python: python - (cell.misses ?? 0) - (cell.aborts ?? 0) - (cell.bypassed ?? 0) };
  return KINDS.reduce((best, kind) => ((counts[kind[0]] ?? 0) > (counts[best[0]] ?? 0) ? kind : best));
}

/** Milliseconds a call, as far as they were taken. */
function pace(cell) {
  const spent = (cell.running_ms ?? 0) + (cell.timed_ms ?? 0) + (cell.profiling_ms ?? 0);
  const runs = (cell.hits ?? 0) + (cell.timed ?? 0) + (cell.profiled ?? 0);
  return runs && spent ? spent / runs : null;
}

/** A bar for each call, or for several that follow each other; its height is the time of a call. */
function strip(cells, each) {
  if (!cells.length) return "";
  const width = 440, height = 110, left = 52, bottom = 20, top = 14;
  const paces = cells.map(pace), known = paces.filter((pace) => pace);
  const eager = each.speed?.by_turns ? each.speed.in_python : null;
  const all = [...known, ...(eager ? [eager] : [])];
  const low = Math.log10(Math.min(...all) / 1.6), high = Math.log10(Math.max(...all) * 1.2);
  const y = (ms) => top + (height - top - bottom) * (1 - (Math.log10(ms) - low) / (high - low || 1));
  const step = (width - left) / Math.max(cells.length, 24);
  const used = new Set();
  const bars = cells.map((cell, i) => {
    const [, label, colour] = kindOf(cell);
    used.add(label);
    const up = paces[i] ? y(paces[i]) : height - bottom - 6;
    const calls = cell.calls === 1 ? `call ${cell.first}` : `calls ${cell.first} to ${cell.first + cell.calls - 1}`;
    const made = cell.generated ? `, ${plural(cell.generated, "graph")} made` : "";
    const middle = left + (i + 0.5) * step;
    const relaxed = cell.relaxations ? `, ${plural(cell.relaxations, "relaxation")}` : "";
    return [
      s("rect", { x: left + i * step, y: up, width: Math.max(step - 1, 1), height: height - bottom - up, fill: `var(${colour})` },
        s("title", {}, `${calls}: ${label}${paces[i] ? `, ${duration(paces[i])} each` : ""}${made}${relaxed}, ${duration(cell.at)} after the first`)),
      cell.generated ? s("path", { d: `M${middle - 4} 2h8l-4 7z`, fill: "var(--text)" }) : "",
      cell.relaxations ? s("path", { class: "relaxed", d: `M${middle + (cell.generated ? 8 : 0)} 1l4 4-4 4-4-4z`, fill: "none", stroke: "var(--text)" }) : "",
    ];
  });
  const longest = Math.max(...all), shortest = Math.min(...all);
  const ticks = [longest, ...(y(shortest) - y(longest) > 12 ? [shortest] : [])].map((ms) =>
    s("text", { class: "axis", x: left - 6, y: y(ms) + 4, "text-anchor": "end" }, duration(ms)));
  const last = cells.at(-1);
  const signs = [["generated", "▾ graph made"], ["relaxations", "◇ assumption relaxed"]]
    .filter(([what]) => cells.some((cell) => cell[what])).map(([, sign]) => `${sign}; `).join("");
  const summary = KINDS.filter(([, label]) => used.has(label)).map(([, label]) => label).join(", ");
  return [
    s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Time of calls 1 to ${last.first + last.calls - 1}: ${summary}` },
      all.length ? ticks : "", bars,
      eager ? s("line", { class: "eager", x1: left, x2: width, y1: y(eager), y2: y(eager) }) : "",
      eager ? s("text", { class: "axis", x: width, y: y(eager) - 3, "text-anchor": "end" }, `eager: ${duration(eager)}`) : "",
      s("text", { class: "axis", x: left, y: height - 5 }, "call 1"),
      s("text", { class: "axis", x: left + Math.max(cells.length * step, 44), y: height - 5, "text-anchor": cells.length > 12 ? "end" : "start" },
        `call ${last.first}, after ${duration(last.at)}`)),
    h("p", { class: "key" }, KINDS.filter(([, label]) => used.has(label)).map(([, label, colour]) =>
      h("span", { style: `--colour:var(${colour})` }, label)), h("small", {}, `${signs}height: time of a call, logarithmic`)),
  ];
}

// --- a graph -------------------------------------------------------------------------------------

function graphBox(graph) {
  const { hits, misses, aborts } = graph.counters;
  const named = (each) => results(graph.optimised[each[0]])?.operator;
  const operators = graph.operators.filter((each) => !["constant", "fused"].includes(named(each)));
  const fused = graph.operators.filter((each) => named(each) === "fused");
  const inGuards = graph.places.filter(([at]) => graph.generated[at].trim().startsWith("guard "));
  return h("div", { class: "graph" },
    h("h2", {}, `Graph ${graph.number}`),
    h("p", {}, `Ran ${plural(hits, "time")}, did not fit ${plural(misses, "time")}, was left ${plural(aborts, "time")}.`),
    h("ul", { class: "plain faint" }, graph.made_of.map((each) => h("li", {}, each))),
    later(`${plural(operators.length, "operator")}: the graph as compiled`, () => graphText(graph.optimised, graph.operators)),
    later("the graph as generated", () => graphText(graph.generated, graph.places)),
    later(`${plural(graph.count, "assumption")} checked before each run, ${plural(inGuards.length, "guard")} in it`, () => [
      h("ul", { class: "plain mono" }, graph.assumptions.map((each) => h("li", {}, each))),
      h("ul", { class: "plain mono" }, inGuards.map(([at, file, line]) =>
        h("li", {}, graph.generated[at].trim(), " ", file == null ? "" : link([file, line])))),
    ]),
    later(fusedTitle(fused), () => fused.map(([at]) => kernelBox(graph, at))),
    later(`memory plan: ${graph.order.length ? `an arena of ${bytes(graph.arena_bytes)}` : "none yet"}`, () => memory(graph), graph.memory.length > 0),
    later(`${plural(graph.steps.length, "step")} of the plan`, () => h("pre", {}, graph.steps.join("\n"))));
}

function fusedTitle(fused) {
  const sum = (column) => fused.reduce((all, row) => all + row[column], 0);
  const saved = Math.max(0, sum(4) - sum(3));
  return `${plural(fused.length, "fused group")}${saved ? `: ${bytes(saved)} a run need not cross memory` : ""}`;
}

function graphText(lines, places) {
  const at = new Map(places.map(([line, file, number]) => [line, file == null ? null : [file, number]]));
  return h("pre", { class: "text" }, lines.map((text, i) => {
    const place = at.get(i);
    const isShown = place && lineElement(place);
    return isShown
      ? h("a", { href: `#${encodeURI(placeName(place))}`, title: placeName(place) }, text || " ")
      : h("div", {}, text || " ");
  }));
}

/** Offsets upwards, the order of execution to the right. */
function memory(graph) {
  if (!graph.memory.length) return h("p", { class: "faint" }, graph.order.length
    ? "Nothing lies in the arena: all results leave the graph, or are written in place."
    : "No run has followed a plan yet.");
  const width = 440, height = Math.min(240, 80 + 16 * graph.memory.length), left = 62, bottom = 18, top = 6;
  const steps = Math.max(graph.order.length, 1);
  const x = (step) => left + ((width - left) * step) / steps;
  const y = (offset) => height - bottom - ((height - bottom - top) * offset) / Math.max(graph.arena_bytes, 1);
  const colours = ["--g", "--c", "--a", "--i", "--x", "--n"];
  const place = new Map(graph.operators.map(([line, file, number]) => [line, file == null ? null : [file, number]]));
  const pieces = graph.memory.map(([line, output, offset, size, first, last], i) => {
    const told = line == null ? null : results(graph.optimised[line]);
    const name = told ? told.names.split(", ")[output] ?? told.names : "a copy";
    const at = place.get(line);
    const box = { x: x(first), y: y(offset + size), width: Math.max(x(last + 1) - x(first), 1.5), height: Math.max(y(offset) - y(offset + size), 1.5) };
    const colour = colours[i % colours.length];
    const title = `${name}: ${bytes(size)} at ${offset}, steps ${first} to ${last}${told ? `, of ${told.operator}` : ""}${at ? `, ${placeName(at)}` : ""}`;
    const label = box.width > 7 * name.length + 6 && box.height > 14;
    const shape = [
      s("rect", { ...box, fill: `var(${colour}-back)`, stroke: `var(${colour})` }, s("title", {}, title)),
      label ? s("text", { x: box.x + 4, y: box.y + box.height / 2 + 4, "pointer-events": "none" }, name) : "",
    ];
    return at && lineElement(at) ? s("a", { href: `#${encodeURI(placeName(at))}`, "aria-label": title }, shape) : shape;
  });
  return [
    s("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `The arena of ${bytes(graph.arena_bytes)} over ${plural(steps, "step")}` },
      s("line", { class: "rule", x1: left, x2: width, y1: y(0), y2: y(0) }),
      s("line", { class: "rule", x1: left, x2: left, y1: top, y2: y(0) }),
      s("text", { class: "axis", x: left - 6, y: top + 10, "text-anchor": "end" }, bytes(graph.arena_bytes)),
      s("text", { class: "axis", x: left - 6, y: y(0), "text-anchor": "end" }, "0"),
      s("text", { class: "axis", x: left, y: height - 4 }, "first step"),
      s("text", { class: "axis", x: width, y: height - 4, "text-anchor": "end" }, `step ${steps}`), pieces),
    h("p", { class: "faint" }, `${plural(pieces.length, "piece")} of together ${bytes(graph.memory.reduce((all, each) => all + each[3], 0))} share ${bytes(graph.arena_bytes)}. A piece is as wide as it lives and as high as it is large.`),
  ];
}

// --- the whole -----------------------------------------------------------------------------------

function showOverview() {
  show(
    h("h2", {}, "The run"),
    summary(),
    section("What was found", data.functions.length ? h("ul", { class: "plain overview" }, data.functions.map((each, f) =>
      h("li", {}, h("a", { href: `#function:${f}` }, each.name), `: ${each.says}`))) : ""),
    section("Processes that it started", processes()),
    section("Keys", h("ul", { class: "plain overview" },
      [["/", "search"], ["↑ ↓", "go from line to line, once the source has the focus"], ["Enter", "show the line's details"],
        ["n p", "the next line that is not in a graph, and the one before"], ["Esc", "close the details"]]
        .map(([keys, what]) => h("li", {}, keys.split(" ").flatMap((key) => [h("kbd", {}, key), " "]), what)))),
    h("p", { class: "faint" }, `torchjanus ${data.version}`),
  );
}

/** Only counters are known of them. */
function processes() {
  return data.processes.length ? [
    h("p", { class: "faint" }, `Lines and graphs on this page are those of the program's first process, not of the ${plural(data.processes.length, "process", "processes")} it started. --stats FILE writes the counters of each to FILE.<its number>.`),
    h("ul", { class: "plain overview processes" }, data.processes.map((each) => h("li", {}, each.says,
      h("ul", { class: "notes" }, each.functions.map((line) => h("li", {}, line)))))),
  ] : [];
}

/** The ten lines; those that are set in are about the first one. */
function summary() {
  return h("ul", { class: "plain summary" }, data.summary.map((line) =>
    h("li", { style: `padding-left:${indentation(line) * 5}px` }, withLinks(line.trim()))));
}

/** A text with its places, as "models/net.py:12", as links. */
function withLinks(text) {
  return text.split(/([\w./-]+:\d+)/).map((part) => {
    const [, path, line] = /^([\w./-]+):(\d+)$/.exec(part) ?? [];
    const file = path ? data.files.findIndex((each) => `/${each.path}`.endsWith(`/${path}`)) : -1;
    return file >= 0 && lineElement([file, line]) ? link([file, line], part) : part;
  });
}

function showFunctions() {
  document.getElementById("functions").append(h("h2", {}, "Functions and loops"), ...data.functions.map((each, f) => {
    const hits = each.counters.hits, calls = Math.max(each.counters.calls + each.counters.passed, hits, 1);
    return h("a", { href: `#function:${f}` }, each.name, h("small", {}, `${placeName([each.file, each.line])} · ${each.state}`),
      h("span", { class: "share", title: `${hits} runs as graphs` }, h("i", { style: `width:${(100 * hits) / calls}%` })));
  }));
}

let close = null;
function show(...children) {
  close = h("button", { class: "close", "aria-label": "Close" }, "×");
  close.addEventListener("click", closePanel);
  panel.replaceChildren(close, ...children.flat(Infinity).filter((each) => each != null && each !== ""));
  panel.scrollTop = 0;
  panel.classList.add("open");
}

function closePanel() {
  panel.classList.remove("open");
  history.replaceState(null, "", "#");
  (chosen?.querySelector("a") ?? source).focus({ preventScroll: true });
}

// --- going about ---------------------------------------------------------------------------------

const isNarrow = matchMedia("(max-width: 1000px)");
let chosen = null;
function choose(element, scrolls) {
  chosen?.classList.remove("on");
  chosen = element;
  chosen?.classList.add("on");
  if (scrolls) chosen?.scrollIntoView({ block: isNarrow.matches ? "start" : "center", inline: "start" });
}

/** What the address asks for; one that somebody wrote by hand may not be encoded. */
function asked() {
  const text = location.hash.slice(1);
  try { return decodeURIComponent(text); } catch { return text; }
}

function follow() {
  const name = asked();
  const number = /^function:(\d+)(?::(\d+))?$/.exec(name);
  for (const each of document.querySelectorAll("nav a")) each.classList.toggle("on", !!number && each.hash === `#function:${number[1]}`);
  found.hidden = true;
  if (number && data.functions[number[1]]) {
    const each = data.functions[number[1]];
    choose(lineElement([each.file, each.line]), true);
    return showFunction(Number(number[1]), Number(number[2] ?? 0));
  }
  const place = placeOf(name);
  if (!place) {
    showOverview();
    return panel.classList.remove("open");
  }
  showLine(place);  // first: where it covers the source, the line goes above it
  const element = lineElement(place), box = element.getBoundingClientRect(), around = source.getBoundingClientRect();
  const bottom = isNarrow.matches ? panel.getBoundingClientRect().top : around.bottom;
  choose(element, box.top < around.top || box.bottom > bottom);
}

document.querySelector("h1 a").addEventListener("click", (event) => {
  event.preventDefault();
  history.replaceState(null, "", "#");
  showOverview();
});

source.addEventListener("click", (event) => {
  const line = event.target.closest(".l");
  if (line && !getSelection().toString()) location.hash = encodeURI(line.id);
});

const lines = () => source.querySelectorAll(".l");
function moveBy(step) {
  const all = [...lines()];
  const at = chosen ? all.indexOf(chosen) + step : 0;
  const next = all[Math.max(0, Math.min(all.length - 1, at))];
  if (!next) return;
  choose(next, false);
  next.scrollIntoView({ block: "nearest", inline: "start" });
  next.querySelector("a").focus({ preventScroll: true });
}

function jump(step) {
  const all = [...source.querySelectorAll(".l.i, .l.x")];
  if (!all.length) return;
  const isAfter = (each) => !chosen || chosen.compareDocumentPosition(each) & Node.DOCUMENT_POSITION_FOLLOWING;
  const next = step > 0 ? all.find(isAfter) ?? all[0] : all.findLast((each) => each !== chosen && !isAfter(each)) ?? all.at(-1);
  location.hash = encodeURI(next.id);
}
document.getElementById("after").addEventListener("click", () => jump(1));
document.getElementById("before").addEventListener("click", () => jump(-1));

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const isTyping = event.target === search;
  if (event.key === "Escape") {
    if (isTyping || !found.hidden) { found.hidden = true; search.value = ""; search.blur(); } else closePanel();
  } else if (isTyping) {
    return;
  } else if (event.key === "/") {
    event.preventDefault();
    search.focus();
  } else if (event.key === "n") jump(1);
  else if (event.key === "p") jump(-1);
  else if (source.contains(event.target) && ["ArrowDown", "ArrowUp"].includes(event.key)) {
    event.preventDefault();
    moveBy(event.key === "ArrowDown" ? 1 : -1);
  } else if (event.key === "Enter" && event.target === source && chosen) location.hash = encodeURI(chosen.id);
});

// --- search --------------------------------------------------------------------------------------

const MOST_FOUND = 60;
function* matches(words) {
  const fits = (text) => words.every((word) => text.toLowerCase().includes(word));
  for (const [f, each] of data.functions.entries()) {
    if (fits(`${each.name} ${each.says}`)) yield [`#function:${f}`, each.name, each.says];
    const reasons = [...each.cuts, ...each.parts.flatMap((part) => part.reasons)];
    for (const reason of reasons)
      if (reason.place && fits(`[${reason.code}] ${reason.sentence}`))
        yield [`#${encodeURI(placeName(reason.place))}`, placeName(reason.place), `[${reason.code}] ${reason.sentence}`];
  }
  for (const line of lines()) {
    const text = line.lastChild.textContent;
    if (fits(`${text} ${line.id}`)) yield [`#${encodeURI(line.id)}`, line.id, text.trim()];
  }
  for (const graph of graphs)
    for (const [at, file, number] of graph.places)
      if (file != null && fits(graph.generated[at]))
        yield [`#${encodeURI(placeName([file, number]))}`, placeName([file, number]), graph.generated[at].trim()];
}

search.addEventListener("input", () => {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = new Map();
  if (words.length)
    for (const [href, place, text] of matches(words)) {
      shown.set(`${href} ${text}`, h("li", {}, h("a", { href }, place, " ", h("code", {}, text))));
      if (shown.size >= MOST_FOUND) break;
    }
  found.replaceChildren(...(shown.size ? shown.values() : [h("li", {}, h("a", {}, "nothing found"))]));
  found.hidden = !words.length;
});
document.querySelector(".search").addEventListener("keydown", (event) => {
  const all = [...found.querySelectorAll("a[href]")], at = all.indexOf(document.activeElement);
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    const next = at + (event.key === "ArrowDown" ? 1 : -1);
    (next < 0 ? search : all[Math.min(next, all.length - 1)])?.focus();
  } else if (event.key === "Enter" && event.target === search) all[0]?.click();
});
document.addEventListener("click", (event) => { if (!event.target.closest(".search")) found.hidden = true; });

showFunctions();
addEventListener("hashchange", follow);
follow();
