// A plan: every candidate, by a slider over the number of clusters.

/** A curve against S with a mark per candidate; returns a function that moves its cursor. */
function planChart(id, net, curves, low, high, show) {
  const svg = byId(id), left = 52, right = 408, top = 14, bottom = 196;
  svg.replaceChildren();
  const sizes = net.candidates.map((c) => c.num_clusters), last = sizes.at(-1), log = last > 60;
  const x = (s) => left + (right - left) * (log ? Math.log(s) / Math.log(last) : (s - 1) / Math.max(last - 1, 1));
  if (low === high) [low, high] = [0.9 * low, 1.1 * high || 1];
  const y = (v) => bottom - ((bottom - top) * (v - low)) / (high - low);
  addSvg(svg, "line", { x1: left, y1: bottom, x2: right, y2: bottom, class: "axis" });
  addSvg(svg, "line", { x1: left, y1: top, x2: left, y2: bottom, class: "axis" });
  const write = (at, height, anchor, text) => addSvg(svg, "text", { x: at, y: height, "text-anchor": anchor }, text);
  write((left + right) / 2, 224, "middle", log ? "clusters S (logarithmic)" : "clusters S");
  for (const s of new Set([sizes[0], sizes[Math.floor(sizes.length / 2)], last])) write(x(s), 210, "middle", s);
  for (const v of [low, (low + high) / 2, high]) write(left - 6, y(v) + 4, "end", Number(v.toPrecision(3)));
  const points = (get) => net.candidates.filter((c) => get(c) !== null).map((c) => `${x(c.num_clusters)},${y(get(c))}`);
  for (const { kind, get, upper } of curves) {
    if (kind === "band") addSvg(svg, "polygon", { points: [...points(get), ...points(upper).reverse()].join(" "), class: "band" });
    else addSvg(svg, "polyline", { points: points(get).join(" "), class: kind });
  }
  const main = curves[0].get;
  net.candidates.forEach((c, k) => {
    if (main(c) === null) return;
    const dot = addSvg(svg, "circle", { cx: x(c.num_clusters), cy: y(main(c)), r: k === net.chosen ? 6 : 3.2, class: "mark",
      fill: c.feasible ? "#009E73" : "#999", stroke: k === net.chosen ? "var(--ink)" : "none" });
    addSvg(dot, "title", {}, `S = ${c.num_clusters}: ${short(main(c))}, ${c.feasible ? "feasible" : "not feasible"}`);
    dot.addEventListener("click", () => show(k));
  });
  const cursor = addSvg(svg, "line", { y1: top, y2: bottom, class: "cursor" });
  return (c) => { cursor.setAttribute("x1", x(c.num_clusters)); cursor.setAttribute("x2", x(c.num_clusters)); };
}

// The candidate and seed that the reader looks at; kept when the page is drawn again.
const looked = { seed: null, place: null };

/** Show a network's plan and the alternatives to it. */
function showPlan(net) {
  byId("plan-view").hidden = !net.candidates.length;
  if (!net.candidates.length) return;
  const slider = byId("plan-slider"), drawing = drawPlanNetwork(net);
  const phi = (c) => (c.exact ? short(c.upper) : `${short(c.lower)} … ${short(c.upper)}`);
  byId("plan-score-name").textContent = net.score;
  byId("plan-links").textContent = linkNotes(net).map((note) => `${note}. `).join("");
  const scores = net.candidates.map((c) => c.score).filter((v) => v !== null);
  const [least, most] = scores.length ? [Math.min(...scores), Math.max(...scores)] : [0, 1];
  const highest = Math.max(...net.candidates.map((c) => Math.max(c.upper, c.threshold)));
  const moves = [
    planChart("plan-score", net, [{ kind: "curve", get: (c) => c.score }], least, most, show),
    planChart("plan-conductance", net, [
      { kind: "curve", get: (c) => c.upper },
      { kind: "band", get: (c) => c.lower, upper: (c) => c.upper },
      { kind: "threshold", get: (c) => c.threshold },
    ], 0, highest, show),
  ];
  const body = document.querySelector("#plan-candidates tbody");
  body.replaceChildren();
  const rows = net.candidates.map((c, k) => {
    const row = body.insertRow();
    const cells = [c.num_clusters, short(c.score), phi(c), short(c.threshold), c.feasible ? "yes" : "no", c.rule, c.sizes];
    for (const text of cells) row.insertCell().textContent = text;
    if (k === net.chosen) row.className = "chosen";
    row.addEventListener("click", () => show(k));
    return row;
  });

  function show(k) {
    const c = net.candidates[k];
    Object.assign(looked, { seed: net.seed, place: k });
    slider.value = k;
    slider.setAttribute("aria-valuetext", `${c.num_clusters} clusters`);
    tell(byId("plan-size"), c.num_clusters);
    drawing.setClusters(c.labels);
    drawing.paint((device) => colourOf(c.labels[device]));
    tell(byId("plan-facts"),
      `S = ${c.num_clusters}${k === net.chosen ? " (the plan)" : ""}: score ${short(c.score)}; ` +
      `least conductance ${phi(c)} against the threshold ${short(c.threshold)}: ` +
      `${c.feasible ? "feasible" : "not feasible"}. Made by ${c.rule}. Cluster sizes: ${c.sizes}.`);
    moves.forEach((move) => move(c));
    rows.forEach((row, other) => row.classList.toggle("now", other === k));
  }
  slider.max = net.candidates.length - 1;
  slider.oninput = () => show(Number(slider.value));
  byId("plan-back").onclick = () => show(net.chosen ?? 0);
  show((looked.seed === net.seed ? looked.place : null) ?? net.chosen ?? 0);
}
