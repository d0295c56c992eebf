// How a page asks for attention without shouting: title, favicon badge, one polite live region, notifications (R44, R46).

import { notificationsOn } from "./preferences.js";

const SAY_EVERY = 5000; // ms between two sentences in the live region
const baseTitle = document.title.replace(/^\(\d+\) /, "");
let pending = 0, fresh = 0, lastSaid = 0, sayTimer = null;
const shown = new Map();

export function startAttention() {
  pending = Number(document.body.dataset.pending || 0);
  document.addEventListener("m3:count", (event) => setPending(event.detail.pending));
  draw();
}

export function setPending(count) {
  if (count > pending) fresh += count - pending;
  const changed = count !== pending;
  pending = count;
  draw();
  if (changed) scheduleSay();
}

function draw() {
  document.title = pending ? `(${pending}) ${baseTitle}` : baseTitle;
  for (const badge of document.querySelectorAll("[data-pending-count]")) badge.textContent = pending || "";
  drawIcon();
}

// "2 new requests, 5 waiting": at most once per SAY_EVERY, and the last word is never swallowed.
function scheduleSay() {
  if (sayTimer !== null) return;
  sayTimer = setTimeout(say, Math.max(0, lastSaid + SAY_EVERY - Date.now()));
}

function say() {
  sayTimer = null;
  lastSaid = Date.now();
  const waiting = pending === 0 ? "nothing is waiting" : `${pending} waiting`;
  const news = fresh === 0 ? "" : fresh === 1 ? "1 new request, " : `${fresh} new requests, `;
  fresh = 0;
  announce(news + waiting);
}

export function announce(sentence) {
  const region = document.getElementById("live");
  if (region) region.textContent = sentence;
}

function drawIcon() {
  const link = document.querySelector('link[rel="icon"]');
  if (!link) return;
  if (!link.dataset.plain) link.dataset.plain = link.href;
  if (!pending) { link.href = link.dataset.plain; return; }
  const image = new Image();
  image.addEventListener("load", () => {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = 64;
    const pen = canvas.getContext("2d");
    if (!pen) return;
    pen.drawImage(image, 0, 0, 64, 64);
    pen.fillStyle = "#d92d20";
    pen.beginPath();
    pen.arc(46, 18, 18, 0, 2 * Math.PI);
    pen.fill();
    pen.fillStyle = "#fff";
    pen.font = "bold 26px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.fillText(pending > 9 ? "9+" : String(pending), 46, 20);
    link.href = canvas.toDataURL("image/png");
  });
  image.src = link.dataset.plain;
}

// Only while the page is hidden, and only if the switch in the menu is on.
export function notify(id, headline, open) {
  if (!document.hidden || !notificationsOn()) return;
  const note = new Notification("A request is waiting", { body: headline, tag: id });
  shown.set(id, note);
  note.addEventListener("click", () => { window.focus(); note.close(); open(); });
}

export function unnotify(id) {
  const note = shown.get(id);
  if (note) { note.close(); shown.delete(id); }
}
