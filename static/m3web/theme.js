// Loaded before the first paint, so that a chosen theme never flashes. Classic script on purpose: modules are deferred.
(function () {
  "use strict";
  try {
    var chosen = localStorage.getItem("m3-theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch { /* storage is switched off: the system's wish applies */ }
  document.documentElement.classList.add("js");
})();
