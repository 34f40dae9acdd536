// Keys on the windows of a source. The next one beside, and the next that is neither done nor cancelled.

const windowsOf = (root) => $$(".strips a:has(> .w)", root);
const nextHole = () => {
  const windows = windowsOf(document);
  if (!windows.length) return;
  const isHole = (one) => !$(".w-done, .w-ahead, .w-off", one);
  const after = windows.slice(windows.indexOf(document.activeElement) + 1);
  const hole = after.find(isHole) ?? windows.find(isHole);
  if (hole) hole.focus(); else toast("Every window is done");
};
document.addEventListener("keydown", (event) => {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const windows = step && event.target.matches(".strips a") ? windowsOf(event.target.closest("svg").parentElement) : [];
  const next = windows[windows.indexOf(event.target) + step];
  if (!next) return;
  event.preventDefault();
  next.focus();
});
