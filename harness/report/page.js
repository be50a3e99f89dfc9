"use strict";
// The page's state is `state`; every change redraws all of it. Data: harness/report/data.py says what is in it.
const data = JSON.parse(document.getElementById("data").textContent);
const state = { environment: 0, filter: "", metric: "speedup", sort: "first", down: false, file: null, cell: null };
const ALLOWED = { factor: 20, orth: 100 };
const $ = (id) => document.getElementById(id);

// ------------------------------------------------------------------ small tools

function make(tag, attributes = {}, ...children) {
  const svg = ["svg", "g", "line", "circle", "rect", "path", "text", "title"].includes(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "click") node.addEventListener("click", value);
    else if (value !== null && value !== undefined) node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

function duration(ns) { // as harness/show.py: four significant figures
  if (ns === null || ns === undefined) return "–";
  const [value, unit] = ns < 1e6 ? [ns / 1e3, "µs"] : ns < 1e10 ? [ns / 1e6, "ms"] : [ns / 1e9, "s"];
  return value.toFixed(Math.max(0, 4 - String(Math.trunc(value)).length)) + " " + unit;
}
const times = (x) => (x === null ? "–" : (x >= 100 ? x.toFixed(0) : x >= 10 ? x.toFixed(1) : x.toFixed(2)) + "×");
const percent = (x) => (x === null ? "–" : (100 * x).toFixed(x < 0.1 ? 1 : 0) + " %");
const residual = (x) => (x === null ? "–" : x >= 99.5 ? x.toFixed(0) : x >= 0.95 ? x.toFixed(1) : x.toPrecision(1));
const ratio = (a, b) => (a && b ? a / b : null);

const environment = () => data.environments[state.environment];
const baseline = () => { const e = environment(); return e.base === null ? null : e.files[e.base]; };
const shown = () => environment().files.filter((f) => f.file.toLowerCase().includes(state.filter.toLowerCase()));

// What a cell is worth under a metric: null where there is nothing to show.
const METRICS = {
  time: { value: (cell) => cell.ns, text: duration },
  speedup: { value: (cell, i) => ratio(baseline()?.cells[i]?.ns, cell.ns), text: times },
  floor: { value: (cell, i) => ratio(environment().cases[i].floor_ns, cell.ns), text: percent },
  factor: { value: (cell) => cell.factor, text: residual },
  orth: { value: (cell) => cell.orth, text: residual },
};
const valueOf = (file, i, metric) => (file.cells[i] ? METRICS[metric].value(file.cells[i], i) : null);

// Blue above what is neutral, orange below; the depth is logarithmic, as speed-ups are.
function shade(metric, value, i) {
  if (value === null) return null;
  let depth = 0;
  if (metric === "speedup") depth = Math.log10(value) / 3;
  if (metric === "floor") depth = value;
  if (metric === "time") {
    const all = environment().files.map((f) => valueOf(f, i, "time")).filter((x) => x !== null);
    const worst = Math.max(...all);
    depth = worst > Math.min(...all) ? Math.log(worst / value) / Math.log(worst / Math.min(...all)) : 0;
  }
  if (metric in ALLOWED) depth = value > ALLOWED[metric] / 2 ? -value / ALLOWED[metric] : 0;
  const strength = Math.min(60, Math.round(60 * Math.abs(depth)));
  return `background: color-mix(in oklab, var(${depth < 0 ? "--worse" : "--better"}) ${strength}%, transparent)`;
}

// ------------------------------------------------------------------ sorting, shared by both tables

function sorted(files) {
  const key = state.sort;
  const value = (f) => {
    if (key.startsWith("case:")) return valueOf(f, Number(key.slice(5)), state.metric);
    if (key === "speedup") return ratio(baseline()?.geomean_ns, f.geomean_ns);
    if (key === "margin") return worstMargin(f);
    return f[key];
  };
  return [...files].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === null || y === null) return (x === null) - (y === null); // what has no value stands last either way
    const order = typeof x === "string" ? x.localeCompare(y, "en", { numeric: true }) : x - y;
    return state.down ? -order : order;
  });
}

function heading(label, key) {
  const on = state.sort === key;
  return make("th", { scope: "col", "aria-sort": on ? (state.down ? "descending" : "ascending") : null },
    make("button", { type: "button", "data-sort": key, click: () => {
      state.down = on && !state.down;
      state.sort = key;
      draw(`[data-sort="${key}"]`);
    } }, label));
}

const worstMargin = (f) => f.cells.reduce((worst, c) => Math.max(worst ?? 0, (c?.factor ?? 0) / 20, (c?.orth ?? 0) / 100), null);

function nameCell(f) {
  return make("td", {}, make("button", { type: "button", title: `${f.file} ${f.sha}`, "data-file": f.name, click: () => {
    state.file = f.name; state.cell = null; draw(`[data-file="${f.name}"]`);
  } }, f.name));
}
const row = (f, cells) => make("tr", { class: f.name === state.file ? "chosen" : null, "data-row": f.name }, ...cells);

// ------------------------------------------------------------------ the parts

function drawLadder() {
  const base = baseline();
  $("ladder").replaceChildren(
    make("thead", {}, make("tr", {}, heading("version", "name"), heading("geomean", "geomean_ns"),
      heading("over geqrf", "speedup"), heading("passes", "passed"), heading("of allowance", "margin"),
      heading("rounds", "rounds"), heading("first measured", "first"))),
    make("tbody", {}, ...sorted(shown()).map((f) => row(f, [
      nameCell(f), make("td", { "data-ns": f.geomean_ns }, duration(f.geomean_ns)),
      make("td", {}, times(ratio(base?.geomean_ns, f.geomean_ns))),
      make("td", { class: f.passed < f.ran ? "bad" : null }, `${f.passed} of ${environment().cases.length}`),
      make("td", { class: worstMargin(f) > 0.5 ? "bad" : null }, percent(worstMargin(f))),
      make("td", {}, String(f.rounds)), make("td", {}, f.first.replace("T", " ").replace("Z", "")),
    ]))));

  const files = shown().map((f) => ({ f, ns: f.geomean_ns, // without a score the cases that it passed place it
    y: f.geomean_ns ?? geomean(f.cells.filter((c) => c?.ns).map((c) => c.ns)) })).filter((p) => p.y);
  const [width, height, left, top, bottom] = [1100, 300, 64, 16, 64];
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "geometric mean by version" });
  if (files.length) {
    const [low, high] = [Math.min(...files.map((p) => p.y)) / 1.3, Math.max(...files.map((p) => p.y)) * 1.3];
    const x = (i) => left + (width - left - 30) * (files.length > 1 ? i / (files.length - 1) : 0.5);
    const y = (ns) => top + (height - top - bottom) * Math.log(high / ns) / Math.log(high / low);
    for (const tick of decades(low, high)) {
      svg.append(make("line", { class: "grid", x1: left, x2: width - 20, y1: y(tick), y2: y(tick) }),
        make("text", { x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, duration(tick).replace(/\.0+ /, " ")));
    }
    let best = Infinity, path = "";
    files.forEach((p, i) => {
      if (p.ns !== null && p.ns < best) { path += path ? `H${x(i)}V${y(p.ns)}` : `M${x(i)},${y(p.ns)}`; best = p.ns; }
    });
    if (path) svg.append(make("path", { class: "best", d: `${path}H${width - 20}` }));
    const every = Math.ceil(files.length / 28);
    let day = "";
    files.forEach((p, i) => {
      svg.append(make("circle", { class: p.ns === null ? "dot hollow" : "dot", cx: x(i), cy: y(p.y), r: 5, click: () => { state.file = p.f.name; state.cell = null; draw(); } },
        make("title", {}, `${p.f.file}: ${duration(p.y)}${p.ns === null ? ", not a score" : ""}`)));
      if (i % every === 0) svg.append(make("text", { class: "name", x: x(i), y: height - bottom + 22, "text-anchor": "middle" }, p.f.name.slice(0, 12)));
      if (p.f.first.slice(0, 10) !== day) {
        day = p.f.first.slice(0, 10);
        svg.append(make("text", { x: x(i), y: height - bottom + 40, "text-anchor": i ? "middle" : "start" }, day));
      }
    });
  }
  $("ladder-chart").replaceChildren(svg);
}

const geomean = (xs) => (xs.length ? Math.exp(xs.reduce((sum, x) => sum + Math.log(x), 0) / xs.length) : null);

function decades(low, high) {
  const ticks = [];
  for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); e++) {
    for (const m of high / low > 100 ? [1] : [1, 2, 5]) if (m * 10 ** e >= low && m * 10 ** e <= high) ticks.push(m * 10 ** e);
  }
  return ticks;
}

function drawHeat() {
  const e = environment();
  $("heat").replaceChildren(
    make("thead", {}, make("tr", {}, heading("version", "name"),
      ...e.cases.map((c, i) => heading(c.label.replace(" ", "\n").replace(/ (\S+)$/, "\n$1"), `case:${i}`)))),
    make("tbody", {}, ...sorted(shown()).map((f) => row(f, [nameCell(f), ...e.cases.map((c, i) => {
      const cell = f.cells[i];
      if (!cell) return make("td", {}, "–");
      const value = valueOf(f, i, state.metric);
      const bad = cell.ns === null;
      return make("td", {}, make("button", {
        type: "button", class: bad ? "bad" : null, style: shade(state.metric, value, i), title: `${f.name}, ${c.label}: ${bad ? cell.status : duration(cell.ns)}`,
        "data-cell": `${f.name}|${c.label}`, "data-ns": cell.ns, "data-value": value, click: () => openSamples(f, i),
      }, bad && !(state.metric in ALLOWED) ? cell.status : METRICS[state.metric].text(value)));
    })]))));
}

function drawCases() {
  const e = environment();
  const f = e.files.find((x) => x.name === state.file);
  $("h-file").textContent = f ? `${f.name}, case by case` : "Case by case";
  $("file-hint").textContent = f ? `${f.file}. Bars on a logarithmic scale: grey v00_geqrf, blue ${f.name}, upright mark the floor (the longest of memory, products, chain). A click shows the raw samples.` : "No file.";
  if (!f) { $("cases").replaceChildren(); return; }
  const base = baseline();
  const all = e.cases.flatMap((c, i) => [c.floor_ns, f.cells[i]?.ns, base?.cells[i]?.ns]).filter((x) => x);
  const [low, high] = [Math.min(...all) / 2, Math.max(...all) * 1.1];
  const at = (ns) => 300 * Math.log(ns / low) / Math.log(high / low);
  $("cases").replaceChildren(
    make("thead", {}, make("tr", {}, ...["case", "", "time", "geqrf", "speed-up", "floor", "of floor", "factor / 20", "orth / 100"].map((h) => make("th", { scope: "col" }, h)))),
    make("tbody", {}, ...e.cases.map((c, i) => {
      const cell = f.cells[i], other = base?.cells[i]?.ns ?? null;
      const svg = make("svg", { viewBox: "0 0 300 18", "aria-hidden": "true" });
      if (other) svg.append(make("rect", { class: "base", x: 0, y: 2, width: at(other), height: 14 }));
      if (cell?.ns) svg.append(make("rect", { class: "own", x: 0, y: 5, width: at(cell.ns), height: 8 }));
      if (c.floor_ns) svg.append(make("line", { class: "floor", x1: at(c.floor_ns), x2: at(c.floor_ns), y1: 1, y2: 17 }));
      const past = (x, allowed) => (x !== null && x !== undefined && x > allowed / 2 ? "bad" : null);
      return make("tr", {}, make("td", {}, cell ? make("button", { type: "button", "data-case": c.label, click: () => openSamples(f, i) }, c.label) : c.label),
        make("td", { class: "bar" }, svg),
        make("td", { class: cell && !cell.ns ? "bad" : null, "data-ns": cell?.ns }, cell ? (cell.ns ? duration(cell.ns) : cell.status) : "–"),
        make("td", {}, duration(other)), make("td", {}, times(ratio(other, cell?.ns))),
        make("td", { title: c.bound }, duration(c.floor_ns)), make("td", {}, percent(ratio(c.floor_ns, cell?.ns))),
        make("td", { class: past(cell?.factor, 20) }, residual(cell?.factor ?? null)),
        make("td", { class: past(cell?.orth, 100) }, residual(cell?.orth ?? null)));
    })));
}

function openSamples(f, i) {
  state.file = f.name;
  state.cell = i;
  draw(`[data-cell="${f.name}|${environment().cases[i].label}"]`);
  $("samples").scrollIntoView({ block: "nearest" });
}

function drawSamples() {
  const f = environment().files.find((x) => x.name === state.file);
  const cell = f && state.cell !== null ? f.cells[state.cell] : null;
  $("samples").hidden = !cell;
  if (!cell) return;
  const all = cell.rounds.flatMap((r) => r.samples);
  const count = cell.rounds.reduce((sum, r) => sum + r.n, 0);
  $("h-samples").textContent = `Raw samples: ${f.name}, ${environment().cases[state.cell].label}`;
  $("samples-about").textContent = (cell.message ? `${cell.status}: ${cell.message} ` : "") +
    `${duration(cell.ns)} over ${cell.rounds.length} round${cell.rounds.length === 1 ? "" : "s"}, ${count} samples` +
    (all.length < count ? ` (${all.length} kept in this page)` : "") + "; the line is each round's mean.";
  $("samples-list").textContent = cell.rounds.map((r) => `round ${r.at + 1}, mean ${r.ns}: ${r.samples.join(" ")}`).join("\n");
  const [width, height, left] = [1100, 220, 80];
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "samples by round" });
  const marks = [...all, ...cell.rounds.map((r) => r.ns)];
  if (marks.length) {
    const [low, high] = [Math.min(...marks), Math.max(...marks)];
    const y = (ns) => 16 + (height - 50) * (high > low ? (high - ns) / (high - low) : 0.5);
    const step = (width - left - 20) / cell.rounds.length;
    for (const tick of [low, (low + high) / 2, high]) {
      svg.append(make("line", { class: "grid", x1: left, x2: width - 20, y1: y(tick), y2: y(tick) }),
        make("text", { x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, duration(tick)));
    }
    cell.rounds.forEach((r, i) => {
      const x0 = left + step * (i + 0.1), x1 = left + step * (i + 0.9);
      r.samples.forEach((ns, k) => svg.append(make("circle", { class: "sample", r: 2.5, cx: x0 + (x1 - x0) * (r.samples.length > 1 ? k / (r.samples.length - 1) : 0.5), cy: y(ns) }, make("title", {}, `${ns} ns`))));
      svg.append(make("line", { class: "mean", x1: x0, x2: x1, y1: y(r.ns), y2: y(r.ns) }),
        make("text", { x: (x0 + x1) / 2, y: height - 8, "text-anchor": "middle" }, `round ${r.at + 1}`));
    });
  }
  $("samples-chart").replaceChildren(svg);
}

// ------------------------------------------------------------------ together

function draw(focus = null) {
  const e = environment();
  if (!e.files.some((f) => f.name === state.file)) { // the quickest that has a score, else the last
    state.file = [...e.files].filter((f) => f.geomean_ns).sort((a, b) => a.geomean_ns - b.geomean_ns)[0]?.name ?? e.files.at(-1)?.name ?? null;
    state.cell = null;
  }
  $("about").textContent = `${e.files.length} files, ${e.cases.length} cases. ` +
    (e.noise === null ? "Noise floor not measured. " : `Noise floor ${(100 * e.noise).toFixed(1)} %. `) +
    (e.cut ? "Batches were cut for a CPU: no times of the ranked shapes. " : "") +
    (data.note ? `In this page ${data.note}. ` : "") + `Made ${data.made}.`;
  drawLadder(); drawHeat(); drawCases(); drawSamples();
  if (focus) document.querySelector(focus)?.focus(); // a redraw would lose it
}

data.environments.forEach((e, i) => $("environment").append(make("option", { value: i }, e.title)));
$("environment").addEventListener("change", (event) => { state.environment = Number(event.target.value); state.file = null; draw(); });
$("filter").addEventListener("input", (event) => { state.filter = event.target.value; draw(); });
$("metric").addEventListener("change", (event) => { state.metric = event.target.value; draw(); });
draw();
