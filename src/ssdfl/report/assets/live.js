// A page that is served during its run: poll for updates, and draw them.

const SHORTEST_PAUSE = 1000, LONGEST_PAUSE = 10000;
let seen = -1, failures = 0, pause = SHORTEST_PAUSE;
const shownParts = {};

/** Replace a part if it has changed; sections that the reader unfolded stay open. */
function showPart(name, html) {
  if (shownParts[name] !== html) document.querySelector(`[data-part="${name}"]`).innerHTML = html;
  shownParts[name] = html;
}

function showNews(news) {
  seen = news.version;
  data = news.data;
  for (const [name, html] of Object.entries(news.parts)) showPart(name, html);
  byId("live-done").max = news.total;
  byId("live-done").value = news.done;
  tell(byId("live-text"), news.text);
  redraw();
}

/** The update: null if there is none, undefined without an answer. The request says when the next one comes. */
async function ask() {
  try {
    const answer = await fetch(`data.json?seen=${seen}&pause=${Math.round(pause)}`);
    failures = 0;
    if (answer.status === 200) return await answer.json();
    if (!answer.ok) tell(byId("live-text"), await answer.text());
    return null;
  } catch {
    failures += 1;
    return undefined;
  }
}

async function refresh() {
  const asked = performance.now(), news = await ask();
  if (failures > 3) {
    tell(byId("live-text"), "The run has stopped answering; this page shows its last state.");
    return;
  }
  if (!news?.ended) setTimeout(refresh, pause);
  if (!news) return;
  showNews(news);
  // A page that takes long to draw polls less often, to leave the processor to the run.
  pause = Math.min(Math.max(SHORTEST_PAUSE, 5 * (performance.now() - asked)), LONGEST_PAUSE);
}

refresh();
