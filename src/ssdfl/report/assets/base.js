// Shared by all pages: data, elements, colours, numbers, the theme, and charts.

let data = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);

/** A new SVG element inside a parent. */
function addSvg(parent, name, attributes, text) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  parent.appendChild(node);
  return node;
}

/** A new HTML element inside a parent; texts are never read as HTML. */
function add(parent, name, properties = {}, text) {
  const node = Object.assign(document.createElement(name), properties);
  if (text !== undefined) node.textContent = text;
  parent.appendChild(node);
  return node;
}

/** Set a text that is read aloud, only if it has changed. */
function tell(node, text) {
  if (node.textContent !== String(text)) node.textContent = text;
}

const dark = () => getComputedStyle(document.body).backgroundColor !== "rgb(255, 255, 255)";

/** The k-th of the colours that colour-blind people can tell apart; black turns white on dark paper. */
function colourOf(k) {
  if (k >= data.colours.length) return `hsl(${(k * 137.508) % 360} 55% 45%)`;
  return data.colours[k] === "#000000" && dark() ? "#ffffff" : data.colours[k];
}

const channels = (hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));

/** A colour between the ends of the scale, for a share in [0, 1]. */
function shade(share) {
  const at = Math.min(Math.max(share, 0), 1) * (data.scale.length - 1);
  const k = Math.min(Math.floor(at), data.scale.length - 2);
  const [low, high] = [channels(data.scale[k]), channels(data.scale[k + 1])];
  return "#" + low.map((v, c) => Math.round(v + (at - k) * (high[c] - v)).toString(16).padStart(2, "0")).join("");
}

/** Black or white, whichever is easier to read on a colour. */
function inkOn(colour) {
  if (!colour.startsWith("#")) return "#ffffff";
  const [r, g, b] = channels(colour);
  return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#000000" : "#ffffff";
}

const short = (value) => (value === null ? "∞" : Number(value.toPrecision(5)).toString());
/** A value of the run's score, in its unit. */
const shownScore = (value) => {
  if (value === null || value === undefined) return "–";
  return data.score.unit === "%" ? percent(value) : `${short(value / data.score.scale)} ${data.score.unit}`.trim();
};
const percent = (value) => (value === null || value === undefined ? "–" : `${(100 * value).toFixed(1)} %`);

// Charts. Plotly reads a few tags in texts, so names are escaped.
const plain = (text) => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;");
const DASHES = ["solid", "dash", "dashdot", "dot", "longdash", "longdashdot"];
// By default Plotly offers to upload a chart to its makers; turn that off.
const CHART_CONFIG = { responsive: true, displaylogo: false, showSendToCloud: false, plotlyServerURL: "", displayModeBar: "hover",
  modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };

const PAPER_WIDTH = 690;
let beforePrint = null;

/** Draw a chart into an element, in the page's colours; a redraw keeps the reader's zoom. */
function plot(id, traces, layout, description) {
  const ink = getComputedStyle(document.body).color;
  const grid = dark() ? "#30363d" : "#e3e6ea";
  const axis = { gridcolor: grid, linecolor: grid, zerolinecolor: grid, automargin: true };
  const themed = { ...layout };
  for (const key of Object.keys(layout)) if (/^[xy]axis/.test(key)) themed[key] = { ...axis, ...layout[key] };
  byId(id).setAttribute("aria-label", description);
  return Plotly.react(id, traces, {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", uirevision: "kept",
    font: { family: "system-ui, sans-serif", size: 13, color: ink },
    hoverlabel: { font: { family: "system-ui, sans-serif", size: 13 } },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: "#8b949e", activecolor: ink },
    margin: { l: 60, r: 14, t: 30, b: 48 }, showlegend: false,
    autosize: !beforePrint, ...(beforePrint ? { width: PAPER_WIDTH } : {}), ...themed,
  }, CHART_CONFIG);
}

// Redraw everything that contains colours when the theme changes.
const redraws = [];
function redraw() { for (const again of redraws) again(); }
function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  redraw();
}
byId("theme").addEventListener("click", () => setTheme(dark() ? "light" : "dark"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

// On paper everything is light, nothing is folded away, and charts fit the page.
addEventListener("beforeprint", () => {
  const folded = [...document.querySelectorAll("details:not([open])")];
  beforePrint = { theme: document.documentElement.dataset.theme, folded };
  for (const part of folded) part.open = true;
  setTheme("light");
});
addEventListener("afterprint", () => {
  const { theme, folded } = beforePrint;
  beforePrint = null;
  for (const part of folded) part.open = false;
  setTheme(theme);
});
