// Put into every page of a benchmark before its own scripts: notes when hints arrive and when something stands in the
// DOM, in milliseconds since 1970 on the clock of this machine.
(() => {
  const now = () => performance.timeOrigin + performance.now();
  const GIVE_UP = 60000; // ms
  const QUIET = 400;     // ms without a hint or a change, longer than any pause that a page makes on purpose
  let connected = false, last = 0, hints = [], look = () => {};

  const happened = () => { last = now(); };
  document.addEventListener("m3:connected", () => { connected = true; happened(); });
  document.addEventListener("m3:hint", (event) => { happened(); hints.push({ ...event.detail, at: now() }); });
  new MutationObserver(() => { happened(); look(); }).observe(document, { childList: true, subtree: true });

  const within = (what, promise) => Promise.race([
    promise,
    new Promise((_, refuse) => setTimeout(() => refuse(new Error(`waited for ${what}`)), GIVE_UP)),
  ]);

  let shown = null;
  window.bench = {
    now,
    // The page has its socket and has been still for a while.
    settled: () => within("a quiet page", new Promise((resolve) => {
      const timer = setInterval(() => {
        if (connected && now() - last > QUIET) { clearInterval(timer); resolve(true); }
      }, 50);
    })),
    // From now on, wait for a node that matches, has the text in it, and was not there before.
    arm: (selector, text) => {
      const before = new Set(document.querySelectorAll(selector));
      hints = [];
      shown = new Promise((resolve) => {
        look = () => {
          const found = [...document.querySelectorAll(selector)].find((node) => !before.has(node) && node.textContent.includes(text));
          if (found) { const at = now(); look = () => {}; resolve({ at, round: found.dataset.round ?? null }); }
        };
      });
    },
    shown: async () => ({ ...(await within("a node to appear", shown)), hints }),
    // Open the card of a row as a click does, and wait until it stands there.
    open: async (round) => {
      const from = now();
      window.bench.arm(`#round-card[data-round="${round}"]`, "");
      document.querySelector(`#rows [data-round="${round}"] a`).click();
      return (await window.bench.shown()).at - from;
    },
    // One message to a bare echo and back; the socket stays open.
    echo: async (address, text) => {
      window.socket ??= await new Promise((resolve, refuse) => {
        const socket = new WebSocket(address);
        socket.onopen = () => resolve(socket);
        socket.onerror = () => refuse(new Error("no echo"));
      });
      const from = performance.now();
      await within("an echo", new Promise((resolve) => { window.socket.onmessage = resolve; window.socket.send(text); }));
      return performance.now() - from;
    },
  };
})();
