// Many devices: clusters as bubbles, one of which opens to show its devices; and panning, zooming and searching.

const MANY_DEVICES = 150;
const GOLDEN_ANGLE = Math.PI * (3 - Math.sqrt(5));

/** Draw a network with clusters as bubbles; returns the same functions as drawNetwork. */
function drawBubbles(svg, net, onOpen) {
  svg.replaceChildren();
  drawWorld(svg, net);
  const place = net.places.map(inFrame);
  const count = net.names.length, unit = Math.sqrt((0.22 * FRAME.width * FRAME.height) / (Math.PI * count));
  const wires = addSvg(svg, "g", {}), bubbles = addSvg(svg, "g", {}), inner = addSvg(svg, "g", {});
  let clusters = [], labels = [], opened = null, picked = null;

  /** The position of a device inside its cluster's bubble. */
  function spot(device) {
    const { x, y, r, members } = clusters[labels[device]], k = members.indexOf(device);
    const out = 0.93 * r * Math.sqrt((k + 0.5) / members.length);
    return [x + out * Math.cos(k * GOLDEN_ANGLE), y + out * Math.sin(k * GOLDEN_ANGLE)];
  }

  function setClusters(given) {
    labels = given;
    opened = picked = null;
    clusters = [];
    labels.forEach((label, k) => {
      const one = (clusters[label] ??= { members: [], x: 0, y: 0 });
      one.members.push(k);
      one.x += place[k][0];
      one.y += place[k][1];
    });
    for (const one of clusters) {
      const size = one.members.length;
      Object.assign(one, { x: one.x / size, y: one.y / size, r: Math.max(unit * Math.sqrt(size), 1.5) });
    }
    drawWires();
    drawAll();
    onOpen(null);
  }

  function drawWires() {
    wires.replaceChildren();
    const number = new Map();
    for (const [i, j] of net.links) {
      if (labels[i] === labels[j]) continue;
      const key = Math.min(labels[i], labels[j]) * clusters.length + Math.max(labels[i], labels[j]);
      number.set(key, (number.get(key) ?? 0) + 1);
    }
    for (const [key, links] of number) {
      const a = clusters[Math.floor(key / clusters.length)], b = clusters[key % clusters.length];
      const line = addSvg(wires, "line", { x1: a.x, y1: a.y, x2: b.x, y2: b.y, class: "across", "stroke-width": 0.5 + 0.4 * Math.log2(1 + links) });
      addSvg(line, "title", {}, `${links} links between cluster ${labels[a.members[0]]} and cluster ${labels[b.members[0]]}`);
    }
  }

  function drawAll() {
    bubbles.replaceChildren();
    clusters.forEach((one, label) => {
      const text = `cluster ${label}: ${one.members.length} devices`;
      const circle = addSvg(bubbles, "circle", { cx: one.x, cy: one.y, r: one.r, class: "bubble", fill: colourOf(label), tabindex: clusters.length <= 60 ? 0 : -1, role: "button", "aria-label": text });
      addSvg(circle, "title", {}, text);
      circle.addEventListener("click", () => open(label));
      circle.addEventListener("keydown", (event) => { if (event.key === "Enter") open(label); });
      one.circle = circle;
      if (one.r > 10) addSvg(bubbles, "text", { x: one.x, y: one.y, class: "name", style: `fill:${inkOn(colourOf(label))}` }, label);
    });
    inner.replaceChildren();
  }

  /** Show the devices and the links inside a cluster. */
  function open(label) {
    opened = label;
    inner.replaceChildren();
    const one = clusters[label], radius = Math.min(0.4 * one.r / Math.sqrt(one.members.length), 6);
    addSvg(inner, "circle", { cx: one.x, cy: one.y, r: one.r, class: "opened" });
    const spots = new Map(one.members.map((k) => [k, spot(k)]));
    for (const [i, j] of net.links) {
      if (labels[i] !== label || labels[j] !== label) continue;
      const [a, b] = [spots.get(i), spots.get(j)];
      addSvg(inner, "line", { x1: a[0], y1: a[1], x2: b[0], y2: b[1], class: "inside", "stroke-width": radius / 6 });
    }
    for (const [k, [cx, cy]] of spots) {
      const dot = addSvg(inner, "circle", { cx, cy, r: radius, class: k === picked ? "device picked" : "device", fill: colourOf(label), stroke: "var(--paper)", "data-device": k });
      dot.style.strokeWidth = radius / 4;
      addSvg(dot, "title", {}, deviceTitle(net, k));
      const text = addSvg(inner, "text", { x: cx, y: cy, class: "name" }, shortName(net.names[k]));
      text.style.fontSize = `${radius * 0.55}px`;
      text.style.fill = inkOn(colourOf(label));
    }
    onOpen({ label, members: one.members });
  }

  /** Open a device's cluster and mark the device; returns where it is and how far to zoom. */
  function locate(device) {
    picked = device;
    open(labels[device]);
    const [x, y] = spot(device), one = clusters[labels[device]];
    return [x, y, Math.max(6 * one.r / Math.sqrt(one.members.length), 8)];
  }
  const frameOf = (label) => [clusters[label].x, clusters[label].y, clusters[label].r];
  return { setClusters, paint() {}, locate, frameOf, open, isOpen: () => opened };
}

/** Let a drawing be panned and zoomed, by pointer, wheel, keys and buttons. */
function zoomable(svg) {
  const [left, top, width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  const whole = svg.whole ?? (svg.whole = { x: left, y: top, w: width, h: height });
  const view = svg.view ?? (svg.view = { ...whole });
  const apply = () => svg.setAttribute("viewBox", `${view.x} ${view.y} ${view.w} ${view.h}`);
  const at = (event) => {
    const box = svg.getBoundingClientRect();
    return [view.x + ((event.clientX - box.left) / box.width) * view.w, view.y + ((event.clientY - box.top) / box.height) * view.h];
  };
  const zoom = (factor, [x, y] = [view.x + view.w / 2, view.y + view.h / 2]) => {
    const w = Math.min(Math.max(view.w * factor, whole.w / 400), whole.w * 3), share = w / view.w;
    Object.assign(view, { x: x - (x - view.x) * share, y: y - (y - view.y) * share, w, h: view.h * share });
    apply();
  };
  const reset = () => { Object.assign(view, whole); apply(); };
  const goTo = (x, y, r) => {
    const w = Math.min(Math.max(3 * r * (whole.w / whole.h), whole.w / 400), whole.w), h = (w * whole.h) / whole.w;
    Object.assign(view, { x: x - w / 2, y: y - h / 2, w, h });
    apply();
  };
  if (!svg.isZoomable) {
    svg.isZoomable = true;
    svg.addEventListener("wheel", (event) => { event.preventDefault(); zoom(event.deltaY > 0 ? 1.2 : 1 / 1.2, at(event)); }, { passive: false });
    let held = null;
    svg.addEventListener("pointerdown", (event) => { held = at(event); });
    addEventListener("pointerup", () => { held = null; });
    svg.addEventListener("pointermove", (event) => {
      if (!held || !event.buttons) return;
      const [x, y] = at(event);
      view.x += held[0] - x;
      view.y += held[1] - y;
      apply();
    });
    svg.addEventListener("keydown", (event) => {
      const pan = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (pan) { view.x += pan[0] * view.w * 0.1; view.y += pan[1] * view.h * 0.1; apply(); }
      else if (event.key === "+") zoom(1 / 1.4);
      else if (event.key === "-") zoom(1.4);
      else if (event.key === "0") reset();
      else return;
      event.preventDefault();
    });
  }
  return { zoom, reset, goTo };
}

/** Devices whose names contain a text, starting with those that begin with it. */
function searchDevices(names, text, most = 12) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return [];
  const found = names.map((name, k) => [name.toLowerCase().indexOf(wanted), name.length, k]).filter(([where]) => where >= 0);
  return found.sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2]).slice(0, most).map(([, , k]) => k);
}

/** Draw a plan's network, as bubbles if it is large, with buttons, search and the list of an opened cluster. */
function drawPlanNetwork(net) {
  const svg = byId("plan-network"), many = net.names.length > MANY_DEVICES;
  const view = zoomable(svg);
  const showOpened = (opened) => {
    byId("plan-opened").replaceChildren();
    if (!opened) return;
    add(byId("plan-opened"), "h3", {}, `Cluster ${opened.label}: ${opened.members.length} devices`);
    add(byId("plan-opened"), "p", { className: "names" }, opened.members.map((k) => net.names[k]).join(", "));
  };
  const drawing = many ? drawBubbles(svg, net, (opened) => {
    showOpened(opened);
    if (opened) view.goTo(...drawing.frameOf(opened.label));
  }) : drawNetwork(svg, net);
  showOpened(null);
  const locate = (k) => {
    if (many) view.goTo(...drawing.locate(k));
    else { drawing.pick(k); const [x, y] = inFrame(net.places[k]); view.goTo(x, y, 90); }
  };
  byId("plan-search").oninput = () => {
    const list = byId("plan-found");
    list.replaceChildren();
    for (const k of searchDevices(net.names, byId("plan-search").value)) {
      add(add(list, "li"), "button", { type: "button", onclick: () => locate(k) }, net.names[k]);
    }
  };
  byId("plan-search").onkeydown = (event) => {
    const [first] = searchDevices(net.names, byId("plan-search").value, 1);
    if (event.key === "Enter" && first !== undefined) locate(first);
  };
  byId("plan-in").onclick = () => view.zoom(1 / 1.5);
  byId("plan-out").onclick = () => view.zoom(1.5);
  byId("plan-whole").onclick = () => { view.reset(); if (!many) drawing.pick(null); };
  return drawing;
}
