// The frame around every page: connection state, banner, server notices, CSRF for long-open pages.

import { startAttention } from "./attention.js";
import { startClock } from "./clock.js";
import { reconnectNow, resume, startHints } from "./hints.js";
import { startPreferences } from "./preferences.js";

const byId = (id) => document.getElementById(id);

function state(word, label) {
  const node = byId("live-state");
  if (!node) return;
  node.dataset.state = word;
  node.querySelector("span").textContent = label;
}

function banner(which) {
  for (const id of ["banner-lost", "banner-signed-out"]) { const node = byId(id); if (node) node.hidden = id !== which; }
}

function startConnectionState() {
  document.addEventListener("m3:connected", () => { state("live", "Live"); banner(null); });
  document.addEventListener("m3:lost", () => { state("down", "Not connected"); banner("banner-lost"); });
  document.addEventListener("m3:signed-out", () => { state("down", "Signed out"); banner("banner-signed-out"); });
  byId("reconnect")?.addEventListener("click", reconnectNow);
  document.addEventListener("visibilitychange", () => { if (!document.hidden && !byId("banner-signed-out").hidden) resume(); });
  document.addEventListener("htmx:afterSwap", () => { if (!byId("banner-signed-out").hidden) resume(); });
}

export function toast(node) {
  const close = document.createElement("button");
  close.type = "button";
  close.className = "close";
  close.setAttribute("aria-label", "Dismiss");
  close.textContent = "×";
  close.addEventListener("click", () => node.remove());
  node.append(close);
  byId("toasts").append(node);
}

function sentence(kind, text) {
  const node = document.createElement("div");
  node.className = `notice ${kind}`;
  node.setAttribute("role", "alert");
  const words = document.createElement("div");
  words.textContent = text;
  node.append(words);
  return node;
}

// A refused htmx request leaves the page as it is; what the server said is shown beside it.
function startServerNotices() {
  document.addEventListener("htmx:responseError", (event) => {
    const xhr = event.detail.xhr;
    const page = new DOMParser().parseFromString(xhr.responseText, "text/html");
    const notice = page.querySelector("body > .notice");
    const heading = page.querySelector("main h1")?.textContent;
    const words = heading ? `${heading}. ${page.querySelector("main h1 + p")?.textContent ?? ""}` : "The server could not do that. Nothing was changed. Try again.";
    toast(notice ? document.adoptNode(notice) : sentence("error", words));
  });
  document.addEventListener("htmx:sendError", () => {
    toast(sentence("error", "Not sent: the server cannot be reached. Nothing was decided, and nothing will be sent by itself. Try again."));
  });
}

// A request that was sent to the login page has found nobody signed in; the page stays as it is.
function startSignedOut() {
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (new URL(event.detail.xhr.responseURL, location.href).pathname !== "/login") return;
    event.detail.shouldSwap = false;
    document.dispatchEvent(new CustomEvent("m3:signed-out"));
  });
}

// Signing in again, in another tab, renews the token; forms of this page must send the new one.
function startFreshTokens() {
  document.addEventListener("htmx:configRequest", (event) => {
    const token = document.cookie.match(/(?:^|; )csrftoken=([^;]+)/)?.[1];
    if (token && event.detail.verb !== "get") {
      event.detail.parameters.csrfmiddlewaretoken = token;
      event.detail.headers["X-CSRFToken"] = token;
    }
  });
}

startPreferences();
startClock();
startServerNotices();
startSignedOut();
startFreshTokens();
if (document.body.dataset.signedIn) {
  startAttention();
  startConnectionState();
  startHints();
}
