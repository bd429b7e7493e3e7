// What was measured beside the published and the rigorous bound, one chart for each statement.

const BOUND_KINDS = ["measured", "published", "rigorous"];
let boundMethod = null;

function drawBounds() {
  const parent = byId("bound-charts");
  parent.replaceChildren();
  if (!data.bounds.length) return;
  const methods = [...new Set(data.bounds.map((one) => one.method))];
  boundMethod = methods.includes(boundMethod) ? boundMethod : methods[0];
  const controls = add(parent, "div", { className: "controls key" }), label = add(controls, "label");
  label.append("Method ");
  const select = add(label, "select", { id: "bound-method" });
  for (const method of methods) add(select, "option", { value: method }, method);
  select.value = boundMethod;
  select.addEventListener("change", () => { boundMethod = select.value; drawBounds(); });
  const key = add(controls, "div", { className: "legend" });
  BOUND_KINDS.forEach((kind, k) => {
    const item = add(key, "span"), svg = draw(item, "svg", { class: "swatch", "aria-hidden": "true" });
    draw(svg, "line", { x1: 0, x2: 26, y1: 5, y2: 5, "stroke-width": 3, stroke: colourOf(k), "stroke-dasharray": DASH_LENGTHS[DASHES[k]] });
    item.append(` ${kind}`);
  });
  const row = add(parent, "div", { className: "pair three" });
  for (const one of data.bounds.filter((one) => one.method === boundMethod)) drawStatement(row, one);
}

function drawStatement(row, one) {
  const figure = add(row, "figure"), id = `chart-${one.statement.replace(" ", "-")}`;
  const silent = BOUND_KINDS.filter((kind) => !one[kind].some((value) => value > 0));
  add(figure, "h3", {}, `${one.statement}: ${one.meaning}`);
  add(figure, "div", { className: "chart", id }).setAttribute("role", "img");
  if (silent.length) add(figure, "figcaption", {}, `Not drawn: ${silent.join(", ")}, which says nothing of some cluster or seed.`);
  const traces = BOUND_KINDS.map((kind, k) => ({ x: one.cycles, y: one[kind].map((value) => (value > 0 ? value : null)), name: kind,
    mode: "lines", line: { color: colourOf(k), dash: DASHES[k], width: 2.2 }, hovertemplate: `<b>${kind}</b> %{y:.4g}<br>cycle %{x}<extra></extra>` }));
  plot(id, traces, { xaxis: { title: { text: "cycles" } }, yaxis: { type: "log", nticks: 5, exponentformat: "power" } },
    `${one.statement}, ${one.method}: measured, published and rigorous against cycles.`);
}

redraws.push(drawBounds);
