// Curves: accuracy, loss and consensus against what they cost, with methods and runs to choose.

const COSTS = {
  cycle: ["cycles", 1],
  transmissions: ["messages sent", 1],
  sent_bytes: ["megabytes sent", 1e6],
  time_s: ["simulated seconds", 1],
};
const ACCURACIES = { accuracy: "mean over devices", accuracy_worst: "worst device", average_model_accuracy: "averaged model" };
const LABELS = {
  accuracy: "mean test accuracy",
  accuracy_worst: "test accuracy of the worst device",
  average_model_accuracy: "test accuracy of the averaged model",
  loss: "mean test loss",
  consensus_distance: "distance from the mean",
};
const chosen = { cost: "cycle", accuracy: "accuracy", log: false, off: new Set() };

/** A row of buttons of which one is chosen. */
function choice(parent, legend, name, options, pickOne) {
  const set = add(parent, "fieldset");
  add(set, "legend", {}, legend);
  Object.entries(options).forEach(([value, text], k) => {
    const label = add(set, "label");
    add(label, "input", { type: "radio", name, value, checked: k === 0 }).addEventListener("change", () => pickOne(value));
    label.append(text);
  });
}

/** Boxes to switch methods or runs on and off, each with the stroke it is drawn with. */
function toggles(parent, legend, kind, names, stroke) {
  const set = add(parent, "fieldset");
  add(set, "legend", {}, legend);
  names.forEach((name, k) => {
    const label = add(set, "label");
    const box = add(label, "input", { type: "checkbox", checked: true, value: name });
    box.dataset.kind = kind;
    box.addEventListener("change", () => { chosen.off[box.checked ? "delete" : "add"](`${kind} ${name}`); drawCurves(); });
    const swatch = draw(label, "svg", { class: "swatch", "aria-hidden": "true" });
    const line = draw(swatch, "line", { x1: 0, x2: 26, y1: 5, y2: 5, "stroke-width": 3 });
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
  const costs = Object.fromEntries(Object.entries(COSTS).map(([key, [text]]) => [key, text]));
  choice(first, "Against", "cost", costs, (value) => { chosen.cost = value; drawCurves(); });
  const label = add(first, "label"), log = add(label, "input", { type: "checkbox", id: "log" });
  log.addEventListener("change", () => { chosen.log = log.checked; drawCurves(); });
  label.append("logarithmic");
  const select = byId("accuracy-kind");
  for (const [value, text] of Object.entries(ACCURACIES)) add(select, "option", { value }, text);
  select.addEventListener("change", () => { chosen.accuracy = select.value; drawCurves(); });
  toggles(second, "Methods", "method", data.methods, (k) => [colourOf(k), several() ? "none" : DASH_LENGTHS[DASHES[k % DASHES.length]]]);
  if (several()) toggles(second, "Runs", "run", data.runs, (k) => ["currentColor", DASH_LENGTHS[DASHES[k % DASHES.length]]]);
}

/** A translucent version of a colour, for bands. */
function veil(colour) {
  return colour.startsWith("#") ? `rgba(${channels(colour).join(",")},0.16)` : colour.replace(")", " / 0.16)");
}

/** Band and line of one series. */
function tracesOf(series, quantity, unit, scale) {
  const found = series.curves[quantity], colour = colourOf(colourIndex(series));
  const x = found[chosen.cost].map((v) => v / scale);
  const name = plain(several() ? `${series.method} in ${series.run}` : series.method);
  const share = quantity in ACCURACIES, form = share ? ".1%" : ".4g";
  const band = { x: [...x, ...[...x].reverse()], y: [...found.high, ...[...found.low].reverse()], name: `${name} band`,
    fill: "toself", fillcolor: veil(colour), line: { width: 0 }, mode: "lines", hoverinfo: "skip" };
  const seeds = `(seeds %{customdata[0]:${form}} … %{customdata[1]:${form}})`;
  const line = { x, y: found.mean, customdata: found.low.map((low, k) => [low, found.high[k]]), name,
    mode: x.length < 2 ? "markers" : "lines", line: { color: colour, width: 2.2, dash: dashOf(series) }, marker: { color: colour },
    hovertemplate: `<b>${name}</b> %{y:${form}} ${seeds}<br>%{x:.4~g} ${unit}<extra></extra>` };
  return [band, line];
}

function drawCurve(id, quantity) {
  const [unit, scale] = COSTS[chosen.cost];
  const off = (s) => chosen.off.has(`method ${s.method}`) || chosen.off.has(`run ${s.run}`);
  const shown = data.series.filter((s) => !off(s) && s.curves[quantity].mean.length);
  const share = quantity in ACCURACIES;
  const shapes = quantity === "accuracy" ? [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: data.target, y1: data.target,
    line: { color: dark() ? "#9aa4af" : "#57606a", width: 1.2, dash: "dot" } }] : [];
  const last = (s) => (share ? percent : short)(s.curves[quantity].mean.at(-1));
  const ends = shown.map((s) => `${several() ? `${s.run} ` : ""}${s.method} ${last(s)}`);
  plot(id, shown.flatMap((s) => tracesOf(s, quantity, unit, scale)), {
    xaxis: { title: { text: unit }, type: chosen.log ? "log" : "linear", rangemode: "tozero", exponentformat: "none" },
    yaxis: { title: { text: LABELS[quantity] }, tickformat: share ? ".0%" : "", rangemode: share ? "normal" : "tozero",
      ...(shown.length ? {} : { range: [0, 1] }) },
    shapes, hovermode: "closest", uirevision: `${chosen.cost} ${chosen.log} ${quantity}`,
  }, `${LABELS[quantity]} against ${unit}. At the end: ${ends.join(", ") || "nothing shown"}.`);
}

function drawCurves() {
  drawCurve("chart-accuracy", chosen.accuracy);
  drawCurve("chart-loss", "loss");
  drawCurve("chart-consensus_distance", "consensus_distance");
}

function startCurves() {
  curveControls();
  redraws.push(drawCurves);
}
