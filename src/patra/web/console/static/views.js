// Saved views: addresses with their filters under a name, in this browser only. The server knows nothing of them.

const VIEWS = "patra_views";
const MAX_VIEWS = 50;
const viewsBox = $("#views");
const viewsButton = $("#views-button");
// A page of a list and a row in it are not kept: they are other ones tomorrow.
const kept = () => {
  const here = new URL(location.href);
  for (const name of ["did", "before", "after", "at"]) here.searchParams.delete(name);
  return here.pathname + here.search;
};
// What stands in the storage may have been written by anything: only addresses of this console are links.
const isOurs = (view) => {
  if (typeof view?.name !== "string" || typeof view.href !== "string") return false;
  try {
    const target = new URL(view.href, location.origin);
    return target.origin === location.origin && target.pathname.startsWith("/console/");
  } catch { return false; }
};
const savedViews = () => {
  try {
    const found = JSON.parse(localStorage.getItem(VIEWS));
    return Array.isArray(found) ? found.filter(isOurs) : [];
  } catch { return []; }
};
const store = (views) => {
  try { localStorage.setItem(VIEWS, JSON.stringify(views)); }
  catch { toast("This browser keeps nothing for this page"); }
  showViews();
};
const readable = (href) => {
  const address = href.replace("/console", "").replaceAll("+", " ");
  try { return decodeURIComponent(address); } catch { return address; } // a lone % is no code of a character
};
const viewRow = (view) => {
  const row = $("#view-row").content.cloneNode(true);
  const link = $("a", row);
  link.textContent = view.name;
  link.href = view.href;
  if (view.href === kept()) link.setAttribute("aria-current", "true");
  $("[data-address]", row).textContent = readable(view.href);
  const forget = $("button", row);
  forget.setAttribute("aria-label", `Forget ${view.name}`);
  forget.addEventListener("click", () => {
    store(savedViews().filter((one) => one.name !== view.name));
    $("input", viewsBox).focus();
  });
  return row;
};
const showViews = () => {
  const found = savedViews();
  $("ul", viewsBox).replaceChildren(...found.map(viewRow));
  $("[data-none]", viewsBox).hidden = found.length > 0;
  $("span", viewsButton).textContent = found.find((one) => one.href === kept())?.name ?? "Views";
};
if (viewsBox) {
  viewsButton.hidden = false;
  showViews();
  $("form", viewsBox).addEventListener("submit", (event) => {
    event.preventDefault();
    const field = $("input", viewsBox);
    const name = field.value.trim();
    if (!name) return;
    const others = savedViews().filter((one) => one.name !== name);
    if (others.length >= MAX_VIEWS) { toast(`${MAX_VIEWS} views are kept at most: forget one first`); return; }
    store([...others, { name, href: kept() }].sort((one, other) => one.name.localeCompare(other.name)));
    field.value = "";
    toast(`Saved as ${name}`);
  });
  viewsBox.addEventListener("toggle", (event) => {
    if (event.newState === "open") (($("a", viewsBox)) ?? $("input", viewsBox)).focus();
  });
  addEventListener("storage", (event) => { if (event.key === VIEWS) showViews(); });
}
