// The one socket of a page. It carries hints ("look again"), never data and never decisions (R45).
//
// Other modules listen on document:
//   m3:hint       detail = {type: "pause" | "run", ...} as in runs/push.py
//   m3:connected  detail = {first: boolean}; on a reconnect everything shown must be fetched again
//   m3:lost       the line is down for longer than GRACE
//   m3:signed-out the server closed with 4401

const SIGNED_OUT = 4401;
const NOT_YOURS = 4404;
const GRACE = 3000;          // ms without a line before the banner appears; R45 allows 5 s
const PING_EVERY = 20000;    // ms
const PONG_WITHIN = 4000;    // ms; a line that is silent for longer is treated as lost
const RETRY = [500, 1000, 2000, 4000, 8000, 15000];

const tell = (name, detail) => document.dispatchEvent(new CustomEvent(name, { detail }));

let socket = null, attempts = 0, everOpen = false, graceTimer = null, pongTimer = null, retryTimer = null, over = false;

export function startHints() {
  connect();
  setInterval(ping, PING_EVERY);
  window.addEventListener("online", reconnectNow);
  window.addEventListener("offline", () => { if (socket) socket.close(); });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) ping(); });
}

export function reconnectNow() {
  if (over || (socket && socket.readyState <= WebSocket.OPEN)) return;
  clearTimeout(retryTimer);
  connect();
}

// After signing in again elsewhere: a new socket finds out who we are now.
export function resume() {
  over = false;
  if (socket && socket.readyState <= WebSocket.OPEN) socket.close();
  else reconnectNow();
}

function connect() {
  const run = document.body.dataset.run;
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  socket = new WebSocket(`${scheme}//${location.host}/ws/hints/${run ? `?run=${encodeURIComponent(run)}` : ""}`);
  socket.addEventListener("message", received);
  socket.addEventListener("close", closed);
}

function received(event) {
  clearTimeout(pongTimer);
  const hint = JSON.parse(event.data);
  if (hint.type === "hello") {
    clearTimeout(graceTimer);
    graceTimer = null;
    attempts = 0;
    tell("m3:connected", { first: !everOpen });
    everOpen = true;
  }
  if (hint.type === "hello" || hint.type === "pause") tell("m3:count", { pending: hint.pending_count });
  if (hint.type === "pause" || hint.type === "run") tell("m3:hint", hint);
}

function closed(event) {
  clearTimeout(pongTimer);
  if (event.code === SIGNED_OUT) { over = true; clearTimeout(graceTimer); tell("m3:signed-out"); return; }
  if (event.code === NOT_YOURS) { over = true; tell("m3:lost"); return; }
  if (graceTimer === null) graceTimer = setTimeout(() => tell("m3:lost"), GRACE);
  retryTimer = setTimeout(connect, RETRY[Math.min(attempts++, RETRY.length - 1)]);
}

function ping() {
  if (!socket || socket.readyState !== WebSocket.OPEN) { reconnectNow(); return; }
  socket.send('{"type":"ping"}');
  clearTimeout(pongTimer);
  pongTimer = setTimeout(() => { socket.close(); }, PONG_WITHIN);
}
