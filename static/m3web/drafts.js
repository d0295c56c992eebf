// What was typed into a card survives a reload and a look at another card, in this tab alone (R22).

const key = (id) => `m3-draft-${id}`;
const FIELDS = "textarea, select, input:not([type=hidden])";
const ANEW = ["remember", "confirm-rule"]; // what to remember is chosen and confirmed anew each time, knowingly
const kept = (field) => field.name && !ANEW.includes(field.name);

export function startDrafts() {
  document.addEventListener("input", (event) => {
    const form = event.target.closest?.("form[data-draft]");
    const card = form?.closest("[data-round]");
    if (card) save(card);
  });
}

function save(card) {
  const values = {};
  for (const field of card.querySelectorAll(`form[data-draft] :is(${FIELDS})`)) {
    if (!kept(field)) continue;
    const box = field.type === "radio" || field.type === "checkbox";
    (values[field.name] ??= []).push(box ? (field.checked ? [field.value] : []) : field.value);
  }
  try { sessionStorage.setItem(key(card.dataset.round), JSON.stringify(values)); } catch { /* not kept then */ }
}

export function restore(card) {
  let values;
  try { values = JSON.parse(sessionStorage.getItem(key(card.dataset.round)) ?? "null"); } catch { return; }
  if (!values || card.dataset.status !== "waiting") return;
  const seen = {};
  for (const field of card.querySelectorAll(`form[data-draft] :is(${FIELDS})`)) {
    const stored = values[field.name];
    if (!kept(field) || !stored) continue;
    const value = stored[(seen[field.name] = (seen[field.name] ?? -1) + 1)];
    if (Array.isArray(value)) field.checked = value.includes(field.value);
    else if (value !== undefined) field.value = value;
  }
}

export function forget(id) {
  try { sessionStorage.removeItem(key(id)); } catch { /* nothing kept */ }
}
