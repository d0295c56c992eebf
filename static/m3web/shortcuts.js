// A, D and E press the buttons that say so: only while focus is in the card and in no field, and only if the switch
// in the menu is on (R17). If the buttons are out of sight, the first press shows them and the second decides (R18).

import { announce } from "./attention.js";
import { shortcutsOn } from "./preferences.js";

const FIELD = "input, textarea, select, [contenteditable]";
const ARMED_FOR = 5000; // ms
let armed = null;

export function startShortcuts(cardNode, ready) {
  document.addEventListener("keydown", (event) => {
    const card = cardNode();
    if (!card || !shortcutsOn() || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (!card.contains(event.target) || event.target.matches(FIELD)) return;
    const button = card.querySelector(`[data-key="${CSS.escape(event.key.toLowerCase())}"]`);
    if (!button) return;
    event.preventDefault();
    if (!ready()) return;
    const title = card.querySelector("#card-title");
    if (armed?.button !== button && !(inSight(button) && inSight(title))) { arm(button, title); return; }
    disarm();
    button.click();
  });
}

function inSight(node) {
  const box = node.getBoundingClientRect();
  return box.top >= 0 && box.bottom <= innerHeight;
}

function arm(button, title) {
  disarm();
  armed = { button, timer: setTimeout(disarm, ARMED_FOR) };
  button.classList.add("armed");
  (inSight(button) ? title : button).scrollIntoView({ block: "center" });
  announce(`Press ${button.dataset.key.toUpperCase()} again: ${button.firstChild.textContent.trim()}.`);
}

function disarm() {
  if (!armed) return;
  clearTimeout(armed.timer);
  armed.button.classList.remove("armed");
  armed = null;
}
