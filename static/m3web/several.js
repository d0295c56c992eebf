// The page that allows several calls: its button says how many are chosen, and a refusal takes the focus (R46).

const form = document.getElementById("several");
const button = form?.querySelector("[data-chosen]");

function count() {
  const chosen = form.querySelectorAll("input[name=call]:checked").length;
  button.textContent = chosen ? `Allow the ${chosen} chosen ${chosen === 1 ? "call" : "calls"}` : button.dataset.chosen;
}

if (button) {
  form.addEventListener("change", count);
  addEventListener("pageshow", count); // a page that came back from history has its boxes ticked again
}
document.getElementById("error-summary")?.focus();
