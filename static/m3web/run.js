// A run's timeline grows, and the list of runs follows, while the page is open. Hints say "look again"; what is
// shown always comes from a GET. Rows are replaced one by one, never under somebody's hands.

import { tell } from "./clock.js";

const COALESCE = 150; // ms; several hints of one step cause one look
const AGAIN = 3000; // ms until the next try where the server could not answer
const ENDED = { completed: "The run is completed.", failed: "The run has failed.", cancelled: "The run is cancelled.", timed_out: "The run has timed out." };

const timeline = document.querySelector("#timeline[data-url]:not([data-still])");
const list = document.querySelector("#run-rows[data-live='1']");
let timer = null, busy = false, again = false;

if (timeline || list) {
  document.addEventListener("m3:hint", (event) => { if (concerns(event.detail)) schedule(); });
  // Hints of a run that was written to before the socket stood are lost; so the first connection looks, too.
  document.addEventListener("m3:connected", schedule);
}

// The row of a child run shows the child's state, so the child's hints count, too.
function concerns(hint) {
  return list !== null || String(hint.run_id) === document.body.dataset.run || timeline.querySelector(`[data-child="${Number(hint.run_id)}"]`) !== null;
}

function schedule() {
  if (timer === null) timer = setTimeout(() => { timer = null; look(); }, COALESCE);
}

async function look() {
  if (busy) { again = true; return; }
  busy = true;
  try {
    await (timeline ? growTimeline() : followList());
  } catch (error) {
    // No answer, or no database behind it. The socket may stand all the while, and no other hint need come.
    if (!(error instanceof Refused)) setTimeout(schedule, AGAIN);
  } finally {
    busy = false;
    if (again) { again = false; schedule(); }
  }
}

// Asking again would not help: signed out, or no such run any more.
class Refused extends Error {}

async function fetched(url) {
  const response = await fetch(url, { headers: { Accept: "text/html" }, redirect: "manual" });
  if (!response.ok) throw response.status < 500 ? new Refused() : new Error();
  return new DOMParser().parseFromString(await response.text(), "text/html");
}

async function growTimeline() {
  const news = await fetched(`${timeline.dataset.url}?after=${timeline.dataset.seq}`);
  const fresh = news.getElementById("timeline");
  for (const row of [...fresh.children]) place(document.adoptNode(row));
  timeline.dataset.seq = fresh.dataset.seq;
  const before = document.getElementById("run-head")?.dataset.outcome;
  replace(news, "run-head");
  replace(news, "run-foot");
  sayEnd(before);
}

function place(row) {
  tell(row);
  const old = document.getElementById(row.id);
  if (old) {
    if (old.dataset.version === row.dataset.version || inUse(old)) return;
    const open = [...old.querySelectorAll("details")].map((node) => node.open);
    [...row.querySelectorAll("details")].forEach((node, index) => { node.open = open[index] ?? false; });
    old.replaceWith(row);
  } else {
    const next = [...timeline.children].find((node) => node.dataset.order > row.dataset.order);
    timeline.insertBefore(row, next ?? null);
  }
  row.classList.add("changed");
}

// A row or part with the focus, or with a selection, waits for the next look.
function inUse(node) {
  const selection = document.getSelection();
  return node.contains(document.activeElement) || (selection && !selection.isCollapsed && node.contains(selection.anchorNode));
}

function replace(news, id) {
  const old = document.getElementById(id), next = news.getElementById(id);
  if (!old || !next || inUse(old) || [...old.querySelectorAll("textarea")].some((box) => box.value)) return;
  tell(next);
  old.replaceWith(document.adoptNode(next));
}

function sayEnd(before) {
  const head = document.getElementById("run-head");
  if (!head || head.dataset.outcome === before) return;
  const tools = document.getElementById("run-tools");
  if (tools) tools.hidden = head.dataset.status === "finished";
  document.getElementById("live").textContent = ENDED[head.dataset.outcome] ?? "";
}

async function followList() {
  const rows = (await fetched(location.href)).getElementById("run-rows");
  if (!rows) return;
  const focused = list.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  tell(rows);
  list.replaceChildren(...document.adoptNode(rows).childNodes);
  if (focused) list.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}
