// Runs before the first paint, where a person has chosen no theme: the system's.
if (document.documentElement.dataset.theme === "auto") {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const follow = () => { document.documentElement.dataset.theme = dark.matches ? "dark" : "light"; };
  follow();
  dark.addEventListener("change", follow);
}
