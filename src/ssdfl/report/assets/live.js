// A page that is served while its run goes on: ask for what is new, and draw it.

let seen = -1, failures = 0;
const shownParts = {};

/** Put a part in its place, if it has changed: what the reader unfolded stays so. */
function showPart(name, html) {
  if (shownParts[name] !== html) document.querySelector(`[data-part="${name}"]`).innerHTML = html;
  shownParts[name] = html;
}

function showStatus(status) {
  byId("live-done").max = status.total;
  byId("live-done").value = status.done;
  byId("live-text").textContent = status.text;
}

async function refresh() {
  const asked = performance.now();
  try {
    const answer = await fetch(`data.json?seen=${seen}`);
    failures = 0;
    if (answer.status === 200) {
      const news = await answer.json();
      seen = news.version;
      data = news.data;
      for (const [name, html] of Object.entries(news.parts)) showPart(name, html);
      showStatus(news);
      redraw();
      if (news.ended) return;
    }
  } catch {
    failures += 1;
    if (failures > 3) { byId("live-text").textContent = "The run is no longer there; this is the last that was heard of it."; return; }
  }
  // A page that takes long to draw asks less often, so that the run keeps its processor.
  setTimeout(refresh, Math.max(1000, 5 * (performance.now() - asked)));
}

refresh();
