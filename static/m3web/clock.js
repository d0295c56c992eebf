// Times in words that stay true while a page is open: ages, time left, and local clock times.

const TICK = 10000; // ms
const URGENT = 300; // seconds; below this a deadline is marked

export function startClock() {
  tell(document);
  setInterval(() => tell(document), TICK);
  document.addEventListener("htmx:afterSettle", (event) => tell(event.target));
}

export function tell(root) {
  for (const node of root.querySelectorAll("time[data-show]")) node.textContent = words(node, node.dataset.show);
}

function words(node, how) {
  const at = new Date(node.dateTime);
  const seconds = (at - Date.now()) / 1000;
  if (how === "age") return length(-seconds);
  if (how === "left") {
    node.classList.toggle("due", seconds < URGENT);
    return seconds > 0 ? `${length(seconds)} left` : "time is up";
  }
  const sameDay = at.toDateString() === new Date().toDateString();
  const clock = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  return sameDay ? clock : `${at.toLocaleDateString([], { day: "numeric", month: "short" })}, ${clock}`;
}

// The same steps as approvals.cards.length_words, so that nothing jumps when the script takes over.
function length(seconds) {
  if (seconds < 60) return "under 1 min";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}
