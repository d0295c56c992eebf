// The live list. Hints touch single rows and the counts; the open card is left alone (see card.js).

import { announce, notify, unnotify } from "./attention.js";
import { tell } from "./clock.js";
import { cardNode, hinted, openCard, startCard } from "./card.js";

const WIDE = matchMedia("(min-width: 1001px)");
const main = document.getElementById("main");
const rows = () => document.getElementById("rows");
const rowOf = (id) => rows().querySelector(`[data-row][data-round="${CSS.escape(id)}"]`);
const filters = () => main.dataset.filters;

async function fragment(url) {
  const response = await fetch(url, { headers: { "HX-Request": "true" }, credentials: "same-origin" });
  if (response.redirected) { document.dispatchEvent(new CustomEvent("m3:signed-out")); return null; }
  if (!response.ok) return null;
  return new DOMParser().parseFromString(await response.text(), "text/html");
}

// One hint, one GET: the row as it is now, or nothing if it no longer belongs here, and the counts.
async function refreshRow(id) {
  const page = await fragment(`/rounds/${encodeURIComponent(id)}/row${filters()}`);
  if (!page) return;
  swapHead(page);
  const fresh = page.querySelector("[data-row]");
  const old = rowOf(id);
  if (!fresh) { removeRow(id, old); return; }
  const node = document.adoptNode(fresh);
  tell(node);
  if (old) keepingFocus(old, () => old.replaceWith(node), () => node);
  else {
    node.classList.add("fresh");
    insertInOrder(node);
    notify(id, node.querySelector("b").textContent, () => openCard(node.querySelector("a").href));
  }
  mark();
}

function removeRow(id, old) {
  unnotify(id);
  if (old) keepingFocus(old, () => old.remove(), () => rows().querySelector("[data-row]"));
  mark();
}

// The order of the list: nearest deadline first, then oldest first.
function insertInOrder(node) {
  const key = (row) => {
    const time = row.querySelector("time");
    return [time.dataset.show === "left" ? 0 : 1, time.dateTime];
  };
  const [group, at] = key(node);
  const after = [...rows().children].find((row) => { const [g, t] = key(row); return g > group || (g === group && t > at); });
  rows().insertBefore(node, after ?? null);
}

function keepingFocus(old, change, successor) {
  const had = old.contains(document.activeElement);
  change();
  if (had) successor()?.querySelector("a")?.focus();
}

function swapHead(page) {
  const fresh = page.getElementById("inbox-head");
  const old = document.getElementById("inbox-head");
  // Somebody who is choosing a filter keeps their form; only what follows from the numbers is brought up to date.
  for (const part of [".chips", ".several-link"]) {
    const shown = old.querySelector(part);
    if (!shown.contains(document.activeElement)) shown.replaceWith(document.adoptNode(fresh.querySelector(part)));
  }
}

async function refreshList() {
  const page = await fragment(document.getElementById("inbox-list").dataset.listUrl);
  if (!page) return;
  swapHead(page);
  const focused = document.activeElement?.closest?.("[data-row]")?.dataset.round;
  rows().replaceWith(document.adoptNode(page.getElementById("rows")));
  tell(rows());
  if (focused) rowOf(focused)?.querySelector("a").focus();
  mark();
}

// The open card is marked in the list, and an empty list says so.
function mark() {
  const open = cardNode()?.dataset.round;
  for (const row of rows().children) {
    const link = row.querySelector("a");
    if (row.dataset.round === open) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
  const waiting = rows().children.length > 0;
  document.getElementById("list-empty").hidden = waiting;
  const news = document.getElementById("card-news"); // only beside an empty card: it is offered, never opened by itself
  if (news) {
    news.hidden = !waiting;
    document.getElementById("card-title").hidden = waiting;
  }
}

function startRows() {
  document.getElementById("inbox-list").addEventListener("click", (event) => {
    const link = event.target.closest("[data-row] a");
    // Without the second column, or with a modifier key, it is a plain link to the card's own page.
    if (!link || !WIDE.matches || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    openCard(link.href);
  });
  document.addEventListener("m3:card", mark);
}

// Hints for one pause that arrive together are one look. A row whose pause is over goes at once; only the counts are
// still to be fetched, and pages that all heard it at the same moment do so over half a second.
const SPREAD = 500; // ms
const due = new Map();
function lookAt(hint) {
  const over = hint.status !== "pending";
  if (over) removeRow(hint.pause_id, rowOf(hint.pause_id));
  clearTimeout(due.get(hint.pause_id));
  const wait = 30 + (over ? Math.random() * SPREAD : 0);
  due.set(hint.pause_id, setTimeout(() => { due.delete(hint.pause_id); refreshRow(hint.pause_id); }, wait));
}

document.addEventListener("m3:hint", (event) => {
  if (event.detail.type !== "pause") return;
  lookAt(event.detail);
  hinted(event.detail);
});
document.addEventListener("m3:connected", (event) => {
  refreshList();
  hinted(null);
  if (!event.detail.first) announce("Connected again; the list is up to date.");
});
document.addEventListener("m3:count", (event) => {
  for (const node of document.querySelectorAll("[data-total]")) node.textContent = event.detail.pending;
});

startCard();
startRows();
mark();
