// What a person may switch for themselves in this browser: theme, shortcuts, notifications (R17, R44).

const read = (name, fallback) => { try { return localStorage.getItem(`m3-${name}`) ?? fallback; } catch { return fallback; } };
const write = (name, value) => { try { localStorage.setItem(`m3-${name}`, value); } catch { /* not kept then */ } };

export const shortcutsOn = () => read("shortcuts", "on") === "on";
export const notificationsOn = () =>
  read("notifications", "off") === "on" && "Notification" in window && Notification.permission === "granted";

const THEMES = ["system", "light", "dark"];

function applyTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

const controls = {
  theme: {
    value: () => read("theme", "system"),
    next: () => {
      const theme = THEMES[(THEMES.indexOf(read("theme", "system")) + 1) % THEMES.length];
      write("theme", theme);
      applyTheme(theme);
    },
  },
  shortcuts: {
    value: () => read("shortcuts", "on"),
    next: () => {
      write("shortcuts", shortcutsOn() ? "off" : "on");
      document.documentElement.classList.toggle("no-shortcuts", !shortcutsOn());
    },
  },
  notifications: {
    value: () => ("Notification" in window ? (notificationsOn() ? "on" : "off") : "not supported"),
    // Permission is asked for here and nowhere else: only because somebody pressed the switch.
    next: async () => {
      if (!("Notification" in window)) return;
      if (notificationsOn()) { write("notifications", "off"); return; }
      if ((await Notification.requestPermission()) === "granted") write("notifications", "on");
    },
  },
};

export function startPreferences() {
  document.documentElement.classList.toggle("no-shortcuts", !shortcutsOn());
  for (const button of document.querySelectorAll("button[data-preference]")) {
    const control = controls[button.dataset.preference];
    const show = () => { button.querySelector(".v").textContent = control.value(); };
    button.hidden = false;
    show();
    button.addEventListener("click", async () => { await control.next(); show(); });
  }
  closeMenus();
}

function closeMenus() {
  document.addEventListener("click", (event) => {
    for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  });
}
