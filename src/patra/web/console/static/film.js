// The bar of shots below a film: a shot is played from its beginning, the one that plays is marked, and `,` `.` go from one
// to the next. The address says which shot, so that a link leads to it; without script its links open the film there.

const film = () => $("#film");
const shotLinks = () => $$("#shotbar a[data-start]");
const startOf = (link) => Number(link.dataset.start) / 1000;
const ENDS_S = 0.05; // a seek may end a frame before the place that was asked for
const shotNow = () => shotLinks().findLastIndex((link) => startOf(link) <= film().currentTime + ENDS_S);
const markShot = () => {
  const at = shotNow();
  for (const [number, link] of shotLinks().entries()) {
    const picture = document.getElementById(`shot-${link.dataset.shot}`);
    for (const one of [link, picture]) {
      if (number !== at) one?.removeAttribute("aria-current");
      else if (one && !one.hasAttribute("aria-current")) one.setAttribute("aria-current", "true");
    }
  }
};
const playShot = (number) => {
  const link = shotLinks()[number];
  if (!link) return;
  film().currentTime = startOf(link);
  const address = new URL(location.href);
  address.searchParams.set("shot", number + 1);
  history.replaceState(history.state, "", address);
  markShot();
};
const stepShot = (step) => { if (film() && shotLinks().length) playShot(Math.max(shotNow() + step, 0)); };
const playOrPause = () => { const it = film(); if (it) { if (it.paused) it.play().catch(() => {}); else it.pause(); } };
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-start], a[data-of-shot]");
  if (!link || !film()) return;
  event.preventDefault();
  playShot(shotLinks().findIndex((one) => one.dataset.shot === (link.dataset.ofShot ?? link.dataset.shot)));
  film().scrollIntoView({ block: "nearest" });
});
for (const type of ["timeupdate", "seeked"]) {
  document.addEventListener(type, (event) => { if (event.target === film()) markShot(); }, true);
}
if (film() && content) {
  const asked = Number(address.searchParams.get("shot"));
  if (asked > 0) {
    const begin = () => playShot(asked - 1);
    if (film().readyState > 0) begin(); else film().addEventListener("loadedmetadata", begin, { once: true });
  }
  new MutationObserver(markShot).observe(content, { childList: true, subtree: true, attributeFilter: ["aria-current"] });
}
