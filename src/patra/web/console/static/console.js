// What a page cannot do with HTML alone: copy, theme, keyboard, dialogs, and live updates that never move what is read.
const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

const toast = (text) => {
  const box = $("#toast");
  box.textContent = text;
  box.hidden = false;
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => { box.hidden = true; }, 2400);
};

// --- copy, rows that are links, dialogs

document.addEventListener("click", async (event) => {
  const copy = event.target.closest("[data-copy]");
  if (copy) {
    const text = copy.dataset.copy.startsWith("/console") ? location.origin + copy.dataset.copy : copy.dataset.copy;
    try { await navigator.clipboard.writeText(text); toast("Copied " + text); }
    catch { toast("The browser does not let this page copy"); }
    return;
  }
  const source = event.target.closest("[data-copy-from]")?.dataset.copyFrom;
  if (source) {
    try { await navigator.clipboard.writeText(document.getElementById(source).innerText); toast("Copied"); }
    catch { toast("The browser does not let this page copy"); }
    return;
  }
  if (event.target.closest("[data-close]")) { dialog.close(); return; }
  const again = event.target.closest("[data-again]");
  if (again) { htmx.ajax("GET", again.dataset.again, { source: dialog, target: dialog, swap: "innerHTML" }); return; }
  const row = event.target.closest("tr[data-href]");
  if (row && !event.target.closest("a, button, input, label")) location.href = row.dataset.href;
});

// On a phone the row of an engine's views scrolls sideways: the open one is brought into sight.
const openView = $(".subnav [aria-current]");
if (openView) {
  const row = openView.parentElement;
  const [box, place] = [row.getBoundingClientRect(), openView.getBoundingClientRect()];
  row.scrollLeft += place.left + place.width / 2 - box.left - box.width / 2;
}

// The navigation is longer than most windows: the entry of the open view is brought into sight.
const openEntry = $(".nav [aria-current]");
if (openEntry) {
  const list = openEntry.closest(".nav");
  const [box, place] = [list.getBoundingClientRect(), openEntry.getBoundingClientRect()];
  if (place.bottom > box.bottom) list.scrollTop += place.top + place.height / 2 - box.top - box.height / 2;
}

const dialog = $("#dialog");
const ready = () => {
  const typed = $("[data-confirm]", dialog);
  const button = $("[data-act]", dialog);
  if (typed && button) button.disabled = typed.value.trim() !== typed.dataset.confirm;
};
const openDialog = () => {
  if (!dialog.open) dialog.showModal();
  inZone(dialog);
  ready();
  const field = "[autofocus], input:not([type=hidden]), textarea, select";
  ($(field, dialog) ?? $("[data-act], [data-again]", dialog))?.focus();
};
const isOfDialog = (ctx) => ctx?.target === dialog;
let loading = null; // the request for the dialog that is under way
document.addEventListener("htmx:before:request", ({ detail }) => { if (isOfDialog(detail.ctx)) loading = detail.ctx; });
document.addEventListener("htmx:finally:request", ({ detail }) => {
  if (detail.ctx !== loading) return;
  loading = null;
  showHeld();
});
document.addEventListener("htmx:after:swap", ({ detail }) => { if (isOfDialog(detail.ctx)) openDialog(); });
// What could not be loaded says so in the dialog, and can be tried again; what is not of this server is not shown.
const sayFailed = (heading, ctx) => {
  dialog.replaceChildren($("#dialog-failed").content.cloneNode(true));
  $("h2", dialog).textContent = heading;
  $("[data-again]", dialog).dataset.again = ctx.request.action;
  openDialog();
};
document.addEventListener("htmx:error", ({ detail }) => {
  if (isOfDialog(detail.ctx)) sayFailed("The server does not answer", detail.ctx);
});
document.addEventListener("htmx:before:response", (event) => {
  const ctx = event.detail.ctx;
  if (!isOfDialog(ctx) || ctx.hx.reswap || ctx.hx.redirect) return;
  event.preventDefault();
  sayFailed(`The server answered ${ctx.response.status}`, ctx);
});
dialog?.addEventListener("input", ready);
dialog?.addEventListener("close", () => {
  loading?.request.abort();
  dialog.replaceChildren();
  showHeld();
});

// A form is sent once: the second click finds its button off. The server takes it for one act in any case.
document.addEventListener("submit", (event) => {
  if (event.target.method !== "post") return;
  setTimeout(() => $$("button[type=submit]", event.target).forEach((button) => { button.disabled = true; }), 0);
});

// A page that the browser kept holds a form that was sent; and what an act did is said once.
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
const address = new URL(location.href);
if (address.searchParams.has("did")) {
  address.searchParams.delete("did");
  history.replaceState(history.state, "", address);
}

// --- theme: kept in a cookie, so that the server draws the first paint right

const themeNow = () => document.documentElement.dataset.theme
  || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
$("#theme")?.addEventListener("click", () => {
  const next = themeNow() === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  document.cookie = `patra_theme=${next}; path=/console; max-age=31536000; samesite=strict`;
});

// --- zone: times are UTC; another zone is the browser's, is named beside them, and lasts as long as the tab

const ZONE = "patra_zone";
const ownZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const zone = $("#zone");
const isLocal = () => sessionStorage.getItem(ZONE) === "local";
const two = (number) => String(number).padStart(2, "0");
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const localText = (at, seconds, fraction = false) => {
  const now = new Date();
  const second = `:${two(at.getSeconds())}${fraction ? `.${String(at.getMilliseconds()).padStart(3, "0")}` : ""}`;
  const clock = `${two(at.getHours())}:${two(at.getMinutes())}${seconds ? second : ""}`;
  if (at.toDateString() === now.toDateString()) return clock;
  const year = at.getFullYear() === now.getFullYear() ? "" : ` ${at.getFullYear()}`;
  return `${at.getDate()} ${MONTHS[at.getMonth()]}${year} ${clock}`;
};
// Both zones stand in the tooltip; the one that is shown is the one that was chosen. In a drawing, an instant is a tspan.
const inZone = (root) => {
  for (const time of $$("time[datetime], tspan[data-at]", root)) {
    const at = new Date(time.dateTime ?? time.dataset.at);
    if (Number.isNaN(at.getTime())) continue;
    time.dataset.utc ??= time.textContent;
    if (time.dateTime) time.title = `${time.title.split(";")[0]}; ${localText(at, true)} ${ownZone}`;
    time.textContent = isLocal() ? localText(at, time.dataset.utc.split(":").length > 2, time.dataset.utc.includes(".")) : time.dataset.utc;
  }
  return root;
};
const showZone = () => {
  if (zone) {
    zone.textContent = isLocal() ? ownZone : "UTC";
    zone.setAttribute("aria-pressed", String(isLocal()));
  }
  inZone(document);
};
zone?.addEventListener("click", () => {
  if (isLocal()) sessionStorage.removeItem(ZONE); else sessionStorage.setItem(ZONE, "local");
  showZone();
});
showZone();

// --- live: new rows wait behind a button, pause freezes everything until it is ended by hand

const content = $("#content");
const live = $("#live");
const pill = $("#newrows");
const CONNECT_AGAIN_MS = 2000;
let paused = false;
let pressed = false; // between press and release a click must find what it was aimed at
let brushing = false; // a span of time is being taken
let held = false; // `latest` is not shown
let latest = null;
let isGap = false; // more rows came at once than a page holds
let since = null;

const parsed = (html) => {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content;
};
// Rows keep their identity: the one with the focus never becomes another.
const identified = (root) => {
  for (const row of $$("[data-rows][id] > [data-key]:not([id])", root)) row.id = `${row.parentElement.id} ${row.dataset.key}`;
  return root;
};
const keysOf = (list) => new Set($$(":scope > [data-key]", list).map((row) => row.dataset.key));

// Keep the rows that are on the page where they are; give back how many new ones wait.
const withoutNewRows = (fragment) => {
  let waiting = 0;
  isGap = false;
  for (const list of $$("[data-rows][id]", fragment)) {
    const shown = document.getElementById(list.id);
    if (!shown) continue;
    const known = keysOf(shown);
    if (!known.size) continue;
    const fresh = new Map($$(":scope > [data-key]", list).map((row) => [row.dataset.key, row]));
    const added = [...fresh.keys()].filter((key) => !known.has(key)).length;
    if (!added) continue;
    waiting += added;
    // None of the rows that are shown is among them, and the list goes on: there may be more in between.
    isGap ||= added === fresh.size && $("a[data-to=next]", fragment) !== null;
    const kept = $$(":scope > *", shown).map((row) => fresh.get(row.dataset.key) ?? row.cloneNode(true));
    for (const row of kept) row.classList.toggle("old", !fresh.has(row.dataset.key));
    list.replaceChildren(...kept);
  }
  return waiting;
};
const setWaiting = (count) => {
  pill.hidden = count === 0;
  const rows = count === 1 ? "1 new row" : `${count} new rows`;
  $("button", pill).textContent = count && isGap ? `${rows} or more; the next page has those in between` : rows;
};
const setCounts = (fragment) => {
  for (const count of $$("data", $("#counts", fragment)?.content ?? fragment)) {
    for (const shown of $$(`[data-count="${count.value}"]`)) {
      shown.hidden = count.textContent === "0";
      $("span", shown).textContent = count.textContent;
    }
  }
};
// What a message shows: the page with its rows where they are, or with all rows.
const arranged = (html, { all }) => {
  const fragment = inZone(identified(parsed(html)));
  identified(content);
  setWaiting(all ? 0 : withoutNewRows(fragment));
  return fragment;
};
const textOf = (fragment) => {
  const box = document.createElement("div");
  box.append(fragment);
  return box.innerHTML;
};
const show = (all) => {
  if (latest === null) return;
  held = false;
  const fragment = arranged(latest, { all });
  setCounts(fragment);
  htmx.swap({ text: textOf(fragment), sourceElement: content, target: content, swap: "innerMorph" });
};
const isHeld = () => paused || pressed || brushing || loading !== null || Boolean(dialog?.open);
const showHeld = () => { if (held && !isHeld()) show(false); };
pill?.addEventListener("click", () => show(true));
let release = 0; // the release that waits until the click it belongs to is handled
document.addEventListener("pointerdown", (event) => {
  clearTimeout(release);
  pressed = event.button === 0 && content.contains(event.target);
}, true);
const released = () => {
  clearTimeout(release);
  release = setTimeout(() => { pressed = false; showHeld(); });
};
// A context menu, another window or another tab may keep the release for itself.
for (const type of ["pointerup", "pointercancel", "contextmenu", "visibilitychange"]) document.addEventListener(type, released, true);
window.addEventListener("blur", released);

document.addEventListener("htmx:sse:before:message", (event) => {
  const detail = event.detail;
  if (detail.message.event) return;
  latest = detail.message.data;
  const fragment = arranged(latest, { all: false });
  held = isHeld();
  if (held) { detail.cancelled = true; event.preventDefault(); return; }
  setCounts(fragment);
  detail.message.data = textOf(fragment);
});
const STALE = "(stale) ";
const STALE_TITLE_MS = 60_000;
const sayLive = () => { if (live) $(".live", live).textContent = paused ? "Paused" : since ? "Not live" : "Live"; };
const stale = (is, why = "the server does not answer") => {
  const banner = $("#stale");
  if (!is) {
    banner.hidden = true;
    since = null;
    document.body.classList.remove("stale-page");
    clearTimeout(stale.timer);
    document.title = document.title.replace(STALE, "");
    sayLive();
    return;
  }
  if (!since) stale.timer = setTimeout(() => { document.title = STALE + document.title.replace(STALE, ""); }, STALE_TITLE_MS);
  since ??= new Date();
  const time = since.toISOString().slice(11, 19);
  $("#stale-text").textContent = `Since ${time} UTC ${why}. The page keeps trying; figures are of then.`;
  banner.hidden = false;
  document.body.classList.add("stale-page");
  sayLive();
};
document.addEventListener("htmx:sse:after:connection", () => stale(false));
document.addEventListener("htmx:sse:error", ({ detail }) => { if (detail.status === 401) location.reload(); else stale(true); });
document.addEventListener("signed-out", () => { location.reload(); });
// The extension comes back only to a stream that it once had: a first connection that failed or was refused is ours to repeat.
const connectAgain = (why) => {
  stale(true, why);
  setTimeout(() => htmx.ajax("GET", content.getAttribute("hx-sse:connect"), { source: content }), CONNECT_AGAIN_MS);
};
document.addEventListener("htmx:error", (event) => {
  if (event.target === content && event.detail.ctx) connectAgain();
});
document.addEventListener("htmx:before:response", (event) => {
  if (event.target !== content || event.detail.ctx.response.status === 200) return;
  if (event.detail.ctx.hx.redirect) return; // the session has ended
  event.preventDefault(); // the page keeps what it shows
  connectAgain(event.detail.ctx.response.status === 503 ? "the server has no stream left for this page" : undefined);
});

live?.addEventListener("click", () => {
  paused = !paused;
  live.setAttribute("aria-pressed", String(!paused));
  document.body.classList.toggle("paused", paused);
  sayLive();
  if (!paused) show(true);
});

// --- keyboard: never while typing, and not at all where single keys are turned off (speech input would fire them)

const KEYS_OFF = "patra_keys_off";
const keysAreOff = () => localStorage.getItem(KEYS_OFF) !== null;
const singleKeys = $("#single-keys");
const showSingleKeys = () => {
  if (!singleKeys) return;
  singleKeys.setAttribute("aria-pressed", String(!keysAreOff()));
  singleKeys.textContent = keysAreOff() ? "Single keys are off" : "Single keys are on";
};
singleKeys?.addEventListener("click", () => {
  if (keysAreOff()) localStorage.removeItem(KEYS_OFF); else localStorage.setItem(KEYS_OFF, "1");
  showSingleKeys();
});
showSingleKeys();

// The next thing of a story that went wrong; a button of a row by what it says.
const problem = (step) => {
  const found = $$("#story-entries .tl-r:has(.tl-k.bad, .tl-k.warn) summary, #story-entries .pend.bad");
  const at = found.indexOf(document.activeElement);
  const next = found[at < 0 ? (step > 0 ? 0 : found.length - 1) : at + step];
  if (!next) { toast(found.length ? "There is no other problem" : "Nothing went wrong here"); return; }
  next.tabIndex = 0;
  next.focus();
  next.scrollIntoView({ block: "center" });
};
const actOfRow = (row, word) => $$("a.btn", row ?? $(".head") ?? undefined).find((one) => one.textContent.startsWith(word))?.click();
const nextTab = () => {
  const tabs = $$(".tabs a");
  if (tabs.length) tabs[(tabs.findIndex((tab) => tab.hasAttribute("aria-current")) + 1) % tabs.length].click();
};
const rows = () => $$("[data-rows] > [tabindex]");
const places = {
  o: "/console/", s: "/console/story", e: "/console/attribution/events", i: "/console/ingest",
  d: "/console/bus/dead-letters", u: "/console/studio", a: "/console/audit",
};
let wentG = false;
document.addEventListener("keydown", (event) => {
  if (event.target.matches("input:not([type=checkbox]), textarea, select") || event.metaKey || event.ctrlKey || event.altKey) return;
  if (dialog?.open || $(":popover-open") || keysAreOff()) return;
  if (wentG && places[event.key]) { location.href = places[event.key]; return; }
  if (wentG && event.key === "v") { wentG = false; event.preventDefault(); $("#views")?.togglePopover(); return; }
  if (wentG && event.key === "z") { wentG = false; zone?.click(); return; }
  wentG = event.key === "g";
  const list = rows();
  const at = list.indexOf(document.activeElement.closest("[data-rows] > [tabindex]"));
  const row = list[at];
  const keys = {
    "/": () => $("#q").focus(),
    p: () => live?.click(),
    t: () => $("#theme").click(),
    j: () => list[Math.min(at + 1, list.length - 1)]?.focus(),
    k: () => list[Math.max(at - 1, 0)]?.focus(),
    Enter: () => { const href = row?.dataset.href ?? (row && $("a", row)?.href); if (href) location.href = href; },
    c: () => { if (row) $("[data-copy]", row)?.click(); },
    s: () => { const key = row && $("[data-copy]", row)?.dataset.copy; if (key) location.href = "/console/story?key=" + encodeURIComponent(key); },
    f: () => $(":is(.filterform input:not([type=hidden]), .filterform select):not(details *)")?.focus(),
    "[": () => ($("a[data-to=earlier]") ?? $("a[data-to=newest]"))?.click(),
    "]": () => ($("a[data-to=later]") ?? $("a[data-to=next]"))?.click(),
    n: () => problem(1),
    N: () => problem(-1),
    e: () => { const all = $$("#story-entries details"); const open = all.some((one) => !one.open); for (const one of all) one.open = open; },
    x: () => chooseRow(row),
    r: () => actOfChosen("Replay") || actOfRow(row, "Replay"),
    d: () => actOfChosen("Discard") || actOfRow(row, "Discard"),
    Home: () => $("a[data-to=newest]").click(),
    v: () => nextTab(),
    h: () => nextHole(),
    ",": () => stepShot(-1),
    ".": () => stepShot(1),
    " ": () => playOrPause(),
    Escape: () => $("[data-leave]").click(),
    "?": () => { location.href = "/console/keys"; },
  };
  const nth = /^[1-9]$/.test(event.key) ? $$("#todo > li")[Number(event.key) - 1] : null;
  if (nth) { event.preventDefault(); $("a", nth).click(); return; }
  if (event.key === "Enter" && (!row || event.target.closest("a, button, input, label, summary"))) return;
  // What the key does in every page is only taken from it where there is something of ours to do.
  if (event.key === "Home" && !$("a[data-to=newest]")) return;
  if (event.key === "Escape" && !$("[data-leave]")) return;
  if (event.key === " " && (!film() || event.target.matches("button, a, summary, video, input, [tabindex]:not(main)"))) return;
  if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
});

// How long a text is, in characters as the server counts them, and that it is too long before it is sent.
document.addEventListener("input", ({ target }) => {
  if (!target.matches("[data-counted]")) return;
  const [count, most] = [[...target.value].length, Number(target.dataset.most)];
  const line = $("[data-length]", target.parentElement);
  line.textContent = `${count.toLocaleString("en")} of at most ${most.toLocaleString("en")} characters`;
  line.classList.toggle("wrong", count > most);
  target.setCustomValidity(count > most ? "The chapter is too long." : "");
});
