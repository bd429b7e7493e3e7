// Curves: any metric against any cost, with methods and runs to choose. Metrics are described by the page's data.

const chosen = { cost: "cycle", quantities: [...data.drawn_first], log: false, off: new Set() };
const CHARTS = chosen.quantities.map((_, k) => `curve-${k}`);

/** A row of radio buttons; rebuilt when the options change. */
function showChoice(set, legend, name, options, value, pickOne) {
  if (set.dataset.options === options.join()) return;
  set.dataset.options = options.join();
  set.replaceChildren();
  add(set, "legend", {}, legend);
  for (const option of options) {
    const label = add(set, "label");
    add(label, "input", { type: "radio", name, value: option, checked: option === value }).addEventListener("change", () => pickOne(option));
    label.append(data.metrics[option].label);
  }
}

/** The choice of a chart's metric; rebuilt when the metrics change. */
function showQuantities(select, value) {
  if (select.dataset.options !== data.quantities.join()) {
    select.dataset.options = data.quantities.join();
    select.replaceChildren();
    for (const name of data.quantities) add(select, "option", { value: name }, data.metrics[name].label);
  }
  select.value = value;
}

/** Checkboxes for methods or runs, each with the stroke of its curves. */
function toggles(parent, legend, kind, names, stroke) {
  const set = add(parent, "fieldset");
  add(set, "legend", {}, legend);
  names.forEach((name, k) => {
    const label = add(set, "label");
    const box = add(label, "input", { type: "checkbox", checked: true, value: name });
    box.dataset.kind = kind;
    box.addEventListener("change", () => { chosen.off[box.checked ? "delete" : "add"](`${kind} ${name}`); drawCurves(); });
    const swatch = addSvg(label, "svg", { class: "swatch", "aria-hidden": "true" });
    const line = addSvg(swatch, "line", { x1: 0, x2: 26, y1: 5, y2: 5, "stroke-width": 3 });
    redraws.push(() => {
      const [colour, dash] = stroke(k);
      line.setAttribute("stroke", colour);
      line.setAttribute("stroke-dasharray", dash);
    });
    label.append(name);
  });
}

const DASH_LENGTHS = { solid: "none", dash: "6 3", dashdot: "6 3 2 3", dot: "2 3", longdash: "10 4", longdashdot: "10 3 2 3" };
const several = () => data.runs !== undefined;
const colourIndex = (series) => data.methods.indexOf(series.method);
const dashOf = (series) => DASHES[(several() ? data.runs.indexOf(series.run) : colourIndex(series)) % DASHES.length];

function curveControls() {
  const parent = byId("curve-controls");
  const first = add(parent, "div", { className: "controls" }), second = add(parent, "div", { className: "controls key" });
  add(first, "fieldset", { id: "curve-costs" });
  const label = add(first, "label"), log = add(label, "input", { type: "checkbox", id: "log" });
  log.addEventListener("change", () => { chosen.log = log.checked; drawCurves(); });
  label.append("logarithmic");
  chosen.quantities.forEach((_, k) => {
    const select = byId(`quantity-${k}`);
    select.addEventListener("change", () => { chosen.quantities[k] = select.value; drawCurves(); });
  });
  toggles(second, "Methods", "method", data.methods, (k) => [colourOf(k), several() ? "none" : DASH_LENGTHS[DASHES[k % DASHES.length]]]);
  if (several()) toggles(second, "Runs", "run", data.runs, (k) => ["currentColor", DASH_LENGTHS[DASHES[k % DASHES.length]]]);
}

/** A translucent version of a colour, for bands. */
function veil(colour) {
  return colour.startsWith("#") ? `rgba(${channels(colour).join(",")},0.16)` : colour.replace(")", " / 0.16)");
}

const isShare = (metric) => metric.unit === "%";

/** Band and line of one series. */
function tracesOf(series, quantity, cost) {
  const found = series.curves[quantity.name], colour = colourOf(colourIndex(series));
  const x = found[cost.name].map((v) => (v === null ? null : v / cost.scale));
  const name = plain(several() ? `${series.method} in ${series.run}` : series.method);
  const form = isShare(quantity) ? ".1%" : ".4g";
  const band = { x: [...x, ...[...x].reverse()], y: [...found.high, ...[...found.low].reverse()], name: `${name} band`,
    fill: "toself", fillcolor: veil(colour), line: { width: 0 }, mode: "lines", hoverinfo: "skip" };
  const seeds = `(seeds %{customdata[0]:${form}} … %{customdata[1]:${form}})`;
  const line = { x, y: found.mean, customdata: found.low.map((low, k) => [low, found.high[k]]), name,
    mode: x.length < 2 ? "markers" : "lines", line: { color: colour, width: 2.2, dash: dashOf(series) }, marker: { color: colour },
    hovertemplate: `<b>${name}</b> %{y:${form}} ${seeds}<br>%{x:.4~g} ${cost.label}<extra></extra>` };
  return [band, line];
}

/** The series that are switched on and have a metric and a cost. */
function shownSeries(quantity, cost) {
  const off = (s) => chosen.off.has(`method ${s.method}`) || chosen.off.has(`run ${s.run}`);
  return data.series.filter((s) => !off(s) && s.curves[quantity.name]?.mean.length && s.curves[quantity.name][cost.name]);
}

function drawCurve(id, quantity) {
  const cost = data.metrics[chosen.cost], share = isShare(quantity), shown = shownSeries(quantity, cost);
  const shapes = quantity.name === data.reading && data.target !== null ? [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: data.target, y1: data.target,
    line: { color: dark() ? "#9aa4af" : "#57606a", width: 1.2, dash: "dot" } }] : [];
  const last = (s) => (share ? percent : short)(s.curves[quantity.name].mean.at(-1));
  const ends = shown.map((s) => `${several() ? `${s.run} ` : ""}${s.method} ${last(s)}`);
  const better = quantity.better ? ` (${quantity.better} is better)` : "";
  plot(id, shown.flatMap((s) => tracesOf(s, quantity, cost)), {
    xaxis: { title: { text: cost.label }, type: chosen.log ? "log" : "linear", rangemode: "tozero", exponentformat: "none" },
    yaxis: { title: { text: quantity.label }, tickformat: share ? ".0%" : "", rangemode: share ? "normal" : "tozero",
      type: quantity.log ? "log" : "linear", ...(shown.length ? {} : { range: [0, 1] }) },
    shapes, hovermode: "closest", uirevision: `${chosen.cost} ${chosen.log} ${quantity.name}`,
  }, `${quantity.label} against ${cost.label}${better}. At the end: ${ends.join(", ") || "nothing shown"}.`);
}

function drawCurves() {
  showChoice(byId("curve-costs"), "Against", "cost", data.costs, chosen.cost, (cost) => { chosen.cost = cost; drawCurves(); });
  chosen.quantities.forEach((name, k) => {
    showQuantities(byId(`quantity-${k}`), name);
    drawCurve(CHARTS[k], data.metrics[name]);
  });
}

function startCurves() {
  curveControls();
  redraws.push(drawCurves);
}
