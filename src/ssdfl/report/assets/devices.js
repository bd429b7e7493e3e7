// The network device by device: a slider over cycles, a card for the device under the pointer, and all labels.

const view = { seed: 0, method: data.methods[0], paint: "score", place: null, device: 0, pointed: null, player: null };
let drawing = null;

const seedData = () => data.seeds[view.seed];
const scoresShown = () => seedData().scores[view.method] ?? { cycles: [], devices: [] };
const place = () => Math.min(view.place ?? Infinity, scoresShown().cycles.length - 1);

/** The lowest and highest score over devices, methods and cycles of a seed, so that colours can be compared. */
function scoreRange() {
  let low = Infinity, high = -Infinity;
  for (const { devices } of Object.values(seedData().scores)) for (const row of devices) for (const value of row) {
    if (value !== null) { low = Math.min(low, value); high = Math.max(high, value); }
  }
  return low < high ? [low, high] : [0, 1];
}

function options(select, values, value) {
  if (select.options.length !== values.length) {
    select.replaceChildren();
    values.forEach(([key, text]) => add(select, "option", { value: key }, text));
  }
  select.value = value;
}

function drawDevices() {
  for (const part of ["devices", "plan"]) byId(part).hidden = !data.seeds.length;
  if (!data.seeds.length) return;
  options(byId("seed"), data.seeds.map((one, k) => [k, one.seed]), view.seed);
  options(byId("method"), data.methods.map((name) => [name, name]), view.method);
  drawing = drawNetwork(byId("network"), seedData());
  drawing.setClusters(seedData().labels);
  drawing.circles.forEach((circle, k) => {
    circle.addEventListener("pointerenter", () => pickDevice(k));
    circle.addEventListener("click", () => pickDevice(k));
  });
  byId("network").onpointerleave = () => { view.pointed = null; drawing.pick(null); };
  drawing.pick(view.pointed);
  showCycle();
}

/** Colour the devices as they were after the cycle on the slider. */
function showCycle() {
  const found = scoresShown(), at = place(), slider = byId("cycle");
  slider.max = Math.max(found.cycles.length - 1, 0);
  slider.value = at;
  slider.disabled = found.cycles.length < 2;
  tell(byId("cycle-shown"), found.cycles[at] ?? "–");
  slider.setAttribute("aria-valuetext", found.cycles.length ? `cycle ${found.cycles[at]}` : "no cycle yet");
  const [low, high] = scoreRange();
  const values = view.paint === "score" ? found.devices[at] : undefined;
  const shaded = (value) => (value === null ? "#888888" : shade((value - low) / (high - low)));
  drawing.paint((k) => (values ? shaded(values[k]) : colourOf(seedData().labels[k])));
  showLegend(values ? [low, high] : null);
  showDevice();
}

function showLegend(range) {
  const legend = byId("network-legend");
  legend.replaceChildren();
  if (range) {
    const item = add(legend, "span");
    item.append(shownScore(range[0]));
    add(item, "span", { className: "ramp" }).style.background = `linear-gradient(to right, ${data.scale.join(",")})`;
    item.append(shownScore(range[1]), ` test ${data.score.label}`);
  } else add(legend, "span", {}, "Filled with the cluster's colour");
  if (data.reading !== "score") add(legend, "span", {}, "Only the averaged model was tested (evaluate.models = mean)");
  if (seedData().labels.some((label) => label !== seedData().labels[0])) {
    add(legend, "span", {}, "Rim and hull: cluster");
    add(legend, "span", {}, "Solid: link inside a cluster; dashed: between clusters");
  }
  for (const note of linkNotes(seedData())) add(legend, "span", {}, note);
  const left = data.left_out;
  if (left) add(legend, "span", {}, `${left} more seed${left > 1 ? "s are" : " is"} in the run's folder`);
}

function pickDevice(k) {
  view.device = view.pointed = k;
  drawing.pick(k);
  showDevice();
}

/** The card of the device under the pointer. */
function showDevice() {
  const net = seedData(), k = Math.min(view.device, net.names.length - 1), facts = net.devices[k];
  const score = scoresShown().devices[place()]?.[k], card = document.createElement("div");
  add(card, "h3", {}, `Device ${net.names[k]}`);
  const list = add(card, "dl");
  const line = (term, text) => { add(list, "dt", {}, term); add(list, "dd", {}, text); };
  line("cluster", net.labels[k]);
  line(data.score.label, `${shownScore(score)} (${view.method}, cycle ${scoresShown().cycles[place()] ?? "–"})`);
  if (facts) { line("optimizer", facts.optimizer.replace(":", " ")); line("samples", facts.samples); }
  if (facts && facts.liar) line("lies", "yes");
  line("computing", `${short(net.compute_ms[k])} ms a mini-batch`);
  if (portsOf(net, k)) line("shared by its messages", portsOf(net, k));
  line("neighbours", neighboursOf(net, k));
  if (facts?.labels.length) addLabelBars(card, facts);
  // The card is read aloud when it changes.
  if (byId("device").innerHTML !== card.innerHTML) byId("device").replaceChildren(...card.childNodes);
}

/** A device's neighbours and the costs of its links, as far as the page has them. */
function neighboursOf(net, k) {
  const listed = net.links.filter(([i, j]) => i === k || j === k);
  const texts = listed.map(([i, j, , ms, rate]) => `${net.names[i === k ? j : i]} (${short(ms)} ms, ${short(rate)} MB/s)`);
  const more = net.degrees[k] - listed.length;
  return (texts.join(", ") + (more ? ` … and ${more} more` : "")).trim() || "none";
}

/** The number of samples of each label on a device. */
function addLabelBars(card, facts) {
  add(card, "div", { className: "note" }, "samples of each label");
  const bars = add(card, "div", { className: "bars" }), most = Math.max(...facts.labels, 1);
  bars.setAttribute("role", "img");
  bars.setAttribute("aria-label", facts.labels.map((count, label) => `label ${label}: ${count}`).join(", "));
  facts.labels.forEach((count, label) => {
    const bar = add(bars, "div", { title: `label ${label}: ${count}` });
    add(bar, "i").style.height = `${(46 * count) / most}px`;
    bar.append(label);
  });
}

/** Samples of each label on each device, clusters side by side. */
function drawLabels() {
  const net = data.seeds.length ? seedData() : null;
  const known = Boolean(net?.devices[0]?.labels.length);
  byId("labels").hidden = !known;
  document.querySelector('nav a[href="#labels"]').hidden = !known;
  if (!known) return;
  const order = net.names.map((_, k) => k).sort((a, b) => net.labels[a] - net.labels[b] || a - b);
  const classes = net.devices[0].labels.map((_, label) => label);
  const z = classes.map((label) => order.map((k) => net.devices[k].labels[label]));
  const breaks = order.flatMap((k, at) => (at && net.labels[k] !== net.labels[order[at - 1]] ? [at - 0.5] : []));
  const few = order.length <= 60;
  const ticks = few ? { tickvals: order.map((_, at) => at), ticktext: order.map((k) => plain(net.names[k])) } : { showticklabels: false };
  const colorscale = dark() ? [[0, "#1f242a"], [1, "#56b4e9"]] : [[0, "#f0f3f6"], [1, "#0072b2"]];
  const border = { type: "line", yref: "paper", y0: 0, y1: 1, line: { color: dark() ? "#e6e8eb" : "#1b1f24", width: 1.5 } };
  plot("chart-labels", [{ type: "heatmap", z, y: classes, zmin: 0, colorscale,
    customdata: classes.map(() => order.map((k) => [plain(net.names[k]), net.labels[k]])), xgap: few ? 1 : 0, ygap: 1,
    hovertemplate: "device %{customdata[0]}, cluster %{customdata[1]}<br>label %{y}: %{z} samples<extra></extra>",
    colorbar: { title: { text: "samples" }, thickness: 12, outlinewidth: 0 } }], {
    xaxis: { title: { text: "device" }, showgrid: false, zeroline: false, ...ticks },
    yaxis: { title: { text: "label" }, tickvals: classes.length <= 20 ? classes : undefined, showgrid: false, zeroline: false },
    shapes: breaks.map((x) => ({ ...border, x0: x, x1: x })),
  }, `Samples of each of ${classes.length} labels on each of ${order.length} devices, clusters side by side.`);
}

/** Network, labels and plan of the chosen seed. */
function drawSeed() {
  drawDevices();
  drawLabels();
  for (const part of document.querySelectorAll("[data-seed]")) part.hidden = part.dataset.seed !== String(seedData()?.seed);
  if (data.seeds.length) showPlan(seedData());
}

function showPlayer(text, label) {
  byId("play").textContent = text;
  byId("play").setAttribute("aria-label", label);
}

function play() {
  if (view.player) {
    clearInterval(view.player);
    view.player = null;
    showPlayer("▶", "Play the cycles");
    return;
  }
  const last = () => scoresShown().cycles.length - 1;
  if (place() >= last()) view.place = 0;
  showPlayer("⏸", "Pause");
  showCycle();
  view.player = setInterval(() => {
    if (place() >= last()) { play(); return; }
    view.place = place() + 1;
    showCycle();
  }, 250);
}

function startDevices() {
  byId("seed").addEventListener("change", (event) => { view.seed = Number(event.target.value); drawSeed(); });
  byId("method").addEventListener("change", (event) => { view.method = event.target.value; showCycle(); });
  byId("cycle").addEventListener("input", (event) => { view.place = Number(event.target.value); showCycle(); });
  byId("play").addEventListener("click", play);
  for (const box of document.getElementsByName("paint")) box.addEventListener("change", () => { view.paint = box.value; showCycle(); });
  byId("network").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    pickDevice((view.device + step + seedData().names.length) % seedData().names.length);
  });
  redraws.push(drawSeed);
}
