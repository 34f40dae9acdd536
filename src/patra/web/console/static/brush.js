// A span of an axis of time is taken by dragging or with the keyboard, and the list shows it: its ends are written into the
// address as instants, so that the link means the same later. Live updates wait while a span is being taken.

let brush = null; // the current one: its element, the part where the span began and the one where it ends
const partsOf = (element) => Number(element.dataset.parts);
const instantOf = (element, part) => {
  const [begin, end] = [Date.parse(element.dataset.begin), Date.parse(element.dataset.end)];
  return new Date(begin + ((end - begin) * part) / partsOf(element));
};
const endsOf = ({ element, from, to }) => [instantOf(element, Math.min(from, to)), instantOf(element, Math.max(from, to) + 1)];
const clockOf = (at) => (isLocal() ? localText(at, true) : `${at.toISOString().slice(5, 19).replace("T", " ")} UTC`);
const drawBrush = () => {
  const { element, from, to } = brush;
  const [rect, text] = [$(".brush-over rect", element), $(".brush-text", element)];
  const share = 100 / partsOf(element);
  rect.setAttribute("x", `${Math.min(from, to) * share}%`);
  rect.setAttribute("width", `${(Math.abs(to - from) + 1) * share}%`);
  const said = endsOf(brush).map(clockOf).join(" to ");
  text.textContent = `${said}: ${brush.pointer === null ? "Enter shows it, Esc leaves it" : "let go to show it"}`;
  text.hidden = false;
  element.setAttribute("aria-valuenow", to);
  element.setAttribute("aria-valuetext", said);
};
const leaveBrush = () => {
  if (!brush) return;
  $(".brush-over rect", brush.element).setAttribute("width", 0);
  $(".brush-text", brush.element).hidden = true;
  brush.element.setAttribute("aria-valuetext", "no span is taken");
  brush = null;
  brushing = false;
  showHeld();
};
const takeBrush = (element, part, pointer) => {
  if (brush && brush.element !== element) leaveBrush();
  brush = { element, from: part, to: part, pointer };
  brushing = true;
  drawBrush();
};
const showBrushed = () => {
  const [first, last] = endsOf(brush);
  const address = new URL(brush.element.dataset.href, location.origin);
  address.searchParams.set("from", first.toISOString());
  address.searchParams.set("to", last.toISOString());
  location.href = address;
};
const partAt = (element, x) => {
  const box = element.getBoundingClientRect();
  return Math.max(0, Math.min(partsOf(element) - 1, Math.floor(((x - box.left) / box.width) * partsOf(element))));
};

const MIN_DRAG_PX = 5;
document.addEventListener("pointerdown", (event) => {
  const element = event.target.closest("[data-brush]");
  if (!element || event.button !== 0) return;
  takeBrush(element, partAt(element, event.clientX), event.pointerId);
  brush.x = event.clientX;
  try { element.setPointerCapture(event.pointerId); } catch { /* the pointer is gone by now */ }
});
document.addEventListener("pointermove", (event) => {
  if (!brush || brush.pointer !== event.pointerId) return;
  brush.to = partAt(brush.element, event.clientX);
  drawBrush();
});
document.addEventListener("pointerup", (event) => {
  if (!brush || brush.pointer !== event.pointerId) return;
  if (Math.abs(event.clientX - brush.x) >= MIN_DRAG_PX) showBrushed(); else leaveBrush();
});
document.addEventListener("pointercancel", (event) => { if (brush && brush.pointer === event.pointerId) leaveBrush(); });
document.addEventListener("focusout", (event) => { if (brush?.pointer === null && event.target === brush.element) leaveBrush(); });

document.addEventListener("keydown", (event) => {
  if (!event.target.matches("[data-brush]") || event.metaKey || event.ctrlKey || event.altKey) return;
  const element = event.target;
  const last = partsOf(element) - 1;
  const at = brush?.element === element ? brush.to : null;
  const to = {
    ArrowLeft: at === null ? last : Math.max(at - 1, 0),
    ArrowRight: at === null ? 0 : Math.min(at + 1, last),
    Home: 0,
    End: last,
  }[event.key];
  if (to === undefined && (at === null || !["Enter", "Escape"].includes(event.key))) return;
  event.preventDefault();
  event.stopPropagation();
  if (event.key === "Enter") showBrushed();
  else if (event.key === "Escape") leaveBrush();
  else if (event.shiftKey && at !== null) { brush.to = to; drawBrush(); }
  else takeBrush(element, to, null);
}, true);
