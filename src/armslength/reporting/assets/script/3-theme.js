// Light or dark: as the system, until the button is pressed. Paper is always light.
const root = document.documentElement;
const systemIsDark = window.matchMedia("(prefers-color-scheme: dark)");
const whenRecolored = [];
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : systemIsDark.matches);
const token = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();

function recolor() {
  byId("theme").setAttribute("aria-pressed", String(isDark()));
  for (const listener of whenRecolored) listener();
}
byId("theme").addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  recolor();
});
systemIsDark.addEventListener("change", recolor);
recolor();

let themeOnScreen;
window.addEventListener("beforeprint", () => {
  themeOnScreen = root.dataset.theme;
  root.dataset.theme = "light";
  recolor();
});
window.addEventListener("afterprint", () => {
  if (themeOnScreen === undefined) delete root.dataset.theme;
  else root.dataset.theme = themeOnScreen;
  recolor();
});
