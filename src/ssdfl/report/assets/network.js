// The network: clusters as hulls, links as wide as they are fast, devices as circles.

const FRAME = { left: 44, top: 50, width: 552, height: 466 };

/** The corners of the convex hull of points, in order (Andrew's monotone chain). */
function convexHull(points) {
  const sorted = [...points].sort((p, q) => p[0] - q[0] || p[1] - q[1]);
  const turn = (o, p, q) => (p[0] - o[0]) * (q[1] - o[1]) - (p[1] - o[1]) * (q[0] - o[0]);
  const half = (order) => {
    const chain = [];
    for (const point of order) {
      while (chain.length > 1 && turn(chain.at(-2), chain.at(-1), point) <= 0) chain.pop();
      chain.push(point);
    }
    return chain.slice(0, -1);
  };
  return sorted.length < 3 ? sorted : [...half(sorted), ...half(sorted.reverse())];
}

/** The limits that a device's messages share, as text; empty if there are none. */
function portsOf(net, k) {
  const limits = [["uplink", net.uplink_MBps?.[k]], ["downlink", net.downlink_MBps?.[k]]];
  return limits.filter(([, rate]) => rate != null).map(([kind, rate]) => `${kind} ${short(rate)} MB/s`).join(", ");
}

const deviceTitle = (net, k) =>
  [`${net.names[k]}: ${net.degrees[k]} links`, `${short(net.compute_ms[k])} ms a mini-batch`, portsOf(net, k)].filter(Boolean).join(", ");

/** A name that fits beside or on a device; a long one is cut to its beginning and end. */
const shortName = (name) => (name.length > 15 ? `${name.slice(0, 7)}…${name.slice(-7)}` : name);

/** Notes on how a network's links are drawn. */
function linkNotes(net) {
  const notes = net.links.some(([, , width]) => width !== net.links[0][2]) ? ["Thin: slow link"] : [];
  if (net.links.length < net.num_links) {
    notes.push(`Showing ${net.links.length.toLocaleString("en")} of ${net.num_links.toLocaleString("en")} links`);
  }
  return notes;
}

/** Map a point of the unit square to the drawing. */
const inFrame = ([x, y]) => [FRAME.left + x * FRAME.width, FRAME.top + (1 - y) * FRAME.height];

/** The outline of the world, where devices have coordinates. */
function drawWorld(svg, net) {
  const land = addSvg(svg, "g", {});
  for (const outline of net.world) addSvg(land, "polygon", { points: outline.map((p) => inFrame(p).join(",")).join(" "), class: "land" });
}

/** Draw a network into an SVG; returns functions that colour it. */
function drawNetwork(svg, net) {
  svg.replaceChildren();
  drawWorld(svg, net);
  const place = net.places.map(inFrame);
  const hulls = addSvg(svg, "g", {}), wires = addSvg(svg, "g", {}), dots = addSvg(svg, "g", {}), texts = addSvg(svg, "g", {});
  const count = net.names.length;
  // On a map, or if names do not fit into circles, put them beside small circles; in small type if there are many.
  const named = (net.world.length > 0 && count <= 60) || (count <= 150 && net.names.some((name) => name.length > 3));
  const radius = named || count > 60 ? (count > 600 ? 2.5 : 5) : 14;
  const links = net.links.map(([i, j, width, ms, rate]) => {
    const line = addSvg(wires, "line", { x1: place[i][0], y1: place[i][1], x2: place[j][0], y2: place[j][1], "stroke-width": 1.5 * width });
    addSvg(line, "title", {}, `${net.names[i]} – ${net.names[j]}: ${short(ms)} ms, ${short(rate)} MB/s`);
    return [line, i, j];
  });
  const circles = place.map(([cx, cy], k) => {
    const circle = addSvg(dots, "circle", { cx, cy, r: radius, class: "device" });
    addSvg(circle, "title", {}, deviceTitle(net, k));
    return circle;
  });
  // Put a name to the right, unless another device or the edge is there.
  const edge = FRAME.left + FRAME.width - 50;
  const isTaken = (x, y) => x > edge || place.some(([u, v]) => u > x && u < x + 55 && Math.abs(v - y) < 11);
  const beside = ([x, y]) => (isTaken(x, y) ? { x: x - 8, y: y + 4, "text-anchor": "end" } : { x: x + 8, y: y + 4 });
  const type = count > 60 ? "font-size:5px" : "";
  if (named) place.forEach((at, k) => addSvg(texts, "text", { ...beside(at), class: "place", style: type }, shortName(net.names[k])));
  const names = radius < 6 ? [] : place.map(([x, y], k) => addSvg(texts, "text", { x, y, class: "name" }, net.names[k]));

  /** Hulls, links and rims for a partition. */
  function setClusters(labels) {
    hulls.replaceChildren();
    const members = [];
    labels.forEach((label, k) => (members[label] ??= []).push(place[k]));
    const pad = radius + 11;
    members.forEach((points, label) => {
      if (members.length > 1) {
        const corners = convexHull(points).map((p) => p.join(",")).join(" ");
        addSvg(hulls, "polygon", { points: corners, class: "hull", fill: colourOf(label), stroke: colourOf(label), "stroke-width": 2 * pad });
      }
      if (members.length > 1 && members.length <= 12 && count <= 60) {
        const top = points.reduce((best, p) => (p[1] < best[1] ? p : best));
        addSvg(hulls, "text", { x: top[0], y: top[1] - radius - 15, class: "cluster" }, `cluster ${label}`);
      }
    });
    circles.forEach((circle, k) => circle.setAttribute("stroke", members.length > 1 ? colourOf(labels[k]) : "#fff"));
    for (const [line, i, j] of links) line.setAttribute("class", labels[i] === labels[j] ? "inside" : "across");
  }

  /** Fill every device with a colour. */
  function paint(colour) {
    circles.forEach((circle, k) => {
      circle.setAttribute("fill", colour(k));
      names[k]?.setAttribute("style", `fill:${inkOn(colour(k))}`);
    });
  }

  /** Highlight a device and its links; null highlights nothing. */
  function pick(device) {
    circles.forEach((circle, k) => circle.classList.toggle("picked", k === device));
    for (const [line, i, j] of links) line.classList.toggle("faint", device !== null && i !== device && j !== device);
  }
  return { circles, setClusters, paint, pick };
}
