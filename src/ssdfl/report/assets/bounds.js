// Measurements with the published and the rigorous bound, one chart per statement.

const BOUND_KINDS = ["measured", "published", "rigorous"];

/** The choice of a method and the key; created once, so that keyboard focus is kept. */
function boundControls(parent) {
  const controls = add(parent, "div", { className: "controls key" }), label = add(controls, "label");
  label.append("Method ");
  const select = add(label, "select", { id: "bound-method" });
  for (const method of new Set(data.bounds.map((one) => one.method))) add(select, "option", { value: method }, method);
  select.addEventListener("change", drawBounds);
  const key = add(controls, "div", { className: "legend" });
  BOUND_KINDS.forEach((kind, k) => {
    const item = add(key, "span"), svg = addSvg(item, "svg", { class: "swatch", "aria-hidden": "true" });
    addSvg(svg, "line", { x1: 0, x2: 26, y1: 5, y2: 5, "stroke-width": 3, stroke: colourOf(k), "stroke-dasharray": DASH_LENGTHS[DASHES[k]] });
    item.append(` ${kind}`);
  });
  add(parent, "div", { className: "pair three", id: "bound-statements" });
}

function drawBounds() {
  if (!data.bounds.length) return;
  if (!byId("bound-method")) boundControls(byId("bound-charts"));
  const row = byId("bound-statements");
  row.replaceChildren();
  for (const one of data.bounds.filter((one) => one.method === byId("bound-method").value)) drawStatement(row, one);
}

/** Why some values are not drawn: null is a bound that says nothing, and 0 has no logarithm. */
function notDrawn(kind, values) {
  const times = (count) => (count === values.length ? "" : ` in ${count} of ${values.length} cycles`);
  const silent = values.filter((value) => value === null).length, zero = values.filter((value) => value === 0).length;
  return [
    ...(silent ? [`${kind} says nothing of some cluster or seed${times(silent)}`] : []),
    ...(zero ? [`${kind} is 0${times(zero)}, which a logarithmic axis cannot show`] : []),
  ];
}

function drawStatement(row, one) {
  const figure = add(row, "figure"), id = `chart-${one.statement.replace(" ", "-")}`;
  add(figure, "h3", {}, `${one.statement}: ${one.meaning}`);
  add(figure, "div", { className: "chart", id }).setAttribute("role", "img");
  const reasons = BOUND_KINDS.flatMap((kind) => notDrawn(kind, one[kind]));
  if (reasons.length) add(figure, "figcaption", {}, `Not drawn: ${reasons.join("; ")}.`);
  const traces = BOUND_KINDS.map((kind, k) => ({ x: one.cycles, y: one[kind].map((value) => (value > 0 ? value : null)), name: kind,
    mode: "lines", line: { color: colourOf(k), dash: DASHES[k], width: 2.2 },
    hovertemplate: `<b>${kind}</b> %{y:.4g}<br>cycle %{x}<extra></extra>` }));
  plot(id, traces, { xaxis: { title: { text: "cycles" } }, yaxis: { type: "log", nticks: 5, exponentformat: "power" } },
    `${one.statement}, ${one.method}: measured, published and rigorous against cycles.`);
}

redraws.push(drawBounds);
