// The one open card. It is never drawn anew under somebody's hands: when its pause ends elsewhere it gets a bar and
// its buttons stop working, while focus and typed text stay (R6, R17).

import { announce } from "./attention.js";
import { tell } from "./clock.js";
import { forget, restore, startDrafts } from "./drafts.js";
import { startShortcuts } from "./shortcuts.js";

const GUARD = 500; // ms in which a new card ignores clicks and keys (R17)
const place = () => document.getElementById("card");
let address = location.pathname + location.search;
let guardTimer = null;

export const cardNode = () => document.getElementById("round-card");
const open = () => { const card = cardNode(); return card && card.dataset.status === "waiting" && !card.classList.contains("closed"); };
export const ready = () => open() && cardNode().hasAttribute("data-ready");

export function openCard(href) {
  const url = new URL(href, location.href);
  window.htmx.ajax("GET", `${url.pathname}card${url.search}`, { target: "#card", swap: "innerHTML" });
}

// A card is new: guard it, restore what was typed, show its address.
function arrived() {
  const card = cardNode();
  clearTimeout(guardTimer);
  if (card) {
    restore(card);
    guardTimer = setTimeout(() => { card.setAttribute("data-ready", ""); }, GUARD);
    planCountdown(card);
  }
  document.dispatchEvent(new CustomEvent("m3:card"));
}

function showAddress() {
  const next = cardNode()?.dataset.url ?? `/${document.getElementById("main").dataset.filters}`;
  if (next !== address) history.pushState({}, "", next);
  address = next;
}

// Where to look after a swap: the mistakes, else who was faster, else the new card's heading (R46).
function focusAfterSwap() {
  const target = document.getElementById("error-summary") ?? document.getElementById("conflict")
    ?? place().querySelector("[data-next-request]") ?? document.getElementById("card-title");
  target?.focus({ preventScroll: true });
  target?.scrollIntoView({ block: target.id === "card-title" ? "center" : "start" });
}

function startSwaps() {
  place().addEventListener("htmx:beforeRequest", (event) => {
    const form = event.target.closest("form.decision");
    if (!form || event.detail.requestConfig.verb !== "post") return;
    form.classList.add("sending");
  });
  place().addEventListener("htmx:afterRequest", (event) => {
    event.target.closest?.("form.decision")?.classList.remove("sending");
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target !== place()) return;
    trimReceipts();
    forgetDecided(event.detail);
    arrived();
    showAddress();
    focusAfterSwap();
  });
  window.addEventListener("popstate", () => {
    if (location.pathname + location.search !== address) location.reload();
  });
}

// What was typed is kept until the pause it belongs to is decided; a saved part of it is no decision.
function forgetDecided({ pathInfo, xhr }) {
  const id = pathInfo.requestPath.match(/\/rounds\/([^/]+)\/decide/)?.[1];
  if (id && xhr.status === 200 && cardNode()?.dataset.round !== id) forget(id);
}

// Clicks and submits during the guard, and on a card that is over, do nothing.
function startGuard() {
  const stop = (event) => {
    const card = cardNode();
    if (!card || !card.contains(event.target) || !event.target.closest("form.decision")) return;
    const button = event.type === "submit" || event.target.closest(".act .b");
    if (button && !ready()) { event.preventDefault(); event.stopImmediatePropagation(); }
  };
  for (const type of ["click", "submit"]) document.addEventListener(type, stop, true);
}

// A hint about some pause; null after a reconnect, when anything may have happened.
export async function hinted(hint) {
  for (const receipt of document.querySelectorAll("[data-receipt]")) {
    if (!hint || hint.pause_id === receipt.dataset.receipt) swapEnding(receipt, receipt.dataset.receipt);
  }
  const card = cardNode();
  if (!card || (hint && (hint.pause_id !== card.dataset.round || hint.version <= Number(card.dataset.version)))) return;
  const page = await ending(card.dataset.round);
  const found = page?.querySelector("[data-ending]");
  if (!found || cardNode() !== card || card.querySelector("form.sending")) return;
  if (found.dataset.status === "waiting") { if (hint) changed(card); return; }
  close(card, document.adoptNode(found));
}

async function ending(id) {
  const response = await fetch(`/rounds/${encodeURIComponent(id)}/ending`, { headers: { "HX-Request": "true" } });
  return response.ok && !response.redirected ? new DOMParser().parseFromString(await response.text(), "text/html") : null;
}

async function swapEnding(receipt, id) {
  const found = (await ending(id))?.querySelector("[data-ending]");
  if (!found) return;
  const node = document.adoptNode(found);
  tell(node);
  receipt.querySelector("[data-ending]")?.replaceWith(node);
}

function close(card, bar) {
  tell(bar);
  const first = !card.classList.contains("closed") && card.dataset.status === "waiting";
  document.getElementById("card-bar").replaceChildren(bar);
  card.dataset.status = bar.dataset.status;
  if (!first) return;
  card.classList.add("closed");
  // aria-disabled and not disabled: a disabled button would drop the focus that somebody has on it.
  for (const button of card.querySelectorAll(".act .b, .link-button")) button.setAttribute("aria-disabled", "true");
}

function changed(card) {
  const note = document.createElement("div");
  note.className = "notice info";
  const link = document.createElement("a");
  link.href = card.dataset.url;
  link.textContent = "Show it as it is now";
  const words = document.createElement("div");
  words.append("This request has changed since you opened it. What you typed stays. ", link);
  note.append(words);
  document.getElementById("card-bar").replaceChildren(note);
}

// The time that is left is said at most twice: at five minutes and at one (R32).
let spoken = [];
function planCountdown(card) {
  for (const timer of spoken) clearTimeout(timer);
  spoken = [];
  if (!card.dataset.deadline) return;
  const left = new Date(card.dataset.deadline) - Date.now();
  const then = "goesOn" in card.dataset ? " Then the run goes on by itself." : "";
  for (const [minutes, words] of [[5, "5 minutes"], [1, "1 minute"]]) {
    const wait = left - minutes * 60000;
    if (wait > 0 && wait < 86400000) spoken.push(setTimeout(() => { if (open()) announce(`${words} left for this request.${then}`); }, wait));
  }
}

function trimReceipts() {
  const all = document.querySelectorAll("#receipts > .receipt");
  for (const old of [...all].slice(2)) old.remove();
}

export function startCard() {
  startGuard();
  startSwaps();
  startDrafts();
  startShortcuts(cardNode, ready);
  arrived();
  const mistakes = document.getElementById("error-summary") ?? document.getElementById("conflict");
  mistakes?.focus();
}
