// Rows of a list are chosen by their boxes, and one act is asked about all of them in one dialog. Boxes belong to a form
// (`form="…"`), so that choosing works without script, too; what is here counts them, and keeps them while the page is live.

const choices = new Map(); // by the id of the form: the values that are chosen
const choiceForms = () => $$("form[data-choose]");
const boxesOf = (form) => $$(`tbody input[type="checkbox"][form="${form.id}"]`);
const chosenOf = (form) => {
  if (!choices.has(form.id)) choices.set(form.id, new Set(boxesOf(form).filter((box) => box.checked).map((box) => box.value)));
  return choices.get(form.id);
};
// Each is only written where it differs: an observer looks at what is written here.
const setIf = (element, name, value) => { if (element[name] !== value) element[name] = value; };
const showChoice = (form) => {
  const boxes = boxesOf(form);
  const there = new Set(boxes.map((box) => box.value));
  const chosen = chosenOf(form);
  for (const value of chosen) if (!there.has(value)) chosen.delete(value); // gone by an act elsewhere
  for (const box of boxes) {
    setIf(box, "checked", chosen.has(box.value));
    setIf(box.closest("tr"), "ariaSelected", box.checked ? "true" : null);
  }
  const all = $("[data-choose-all]", form);
  setIf(all, "checked", boxes.length > 0 && chosen.size === boxes.length);
  setIf(all, "indeterminate", chosen.size > 0 && chosen.size < boxes.length);
  setIf($("[data-chosen]", form), "textContent", chosen.size ? `${chosen.size} of ${boxes.length} chosen` : "none chosen");
  for (const button of $$("button", form)) setIf(button, "disabled", chosen.size === 0);
};
const choose = (form, values, on) => {
  for (const value of values) if (on) chosenOf(form).add(value); else chosenOf(form).delete(value);
  showChoice(form);
};

let lastBox = null; // where a choice with the shift key began
document.addEventListener("click", (event) => {
  const box = event.target.closest?.('tbody input[type="checkbox"][form]');
  const form = box?.form;
  if (!form?.matches("[data-choose]")) return;
  const boxes = boxesOf(form);
  const [from, to] = [boxes.indexOf(event.shiftKey && lastBox ? lastBox : box), boxes.indexOf(box)];
  const span = from < 0 ? [box] : boxes.slice(Math.min(from, to), Math.max(from, to) + 1);
  choose(form, span.map((one) => one.value), box.checked);
  lastBox = box;
});
document.addEventListener("change", (event) => {
  if (!event.target.matches("[data-choose-all]")) return;
  const form = event.target.form;
  choose(form, boxesOf(form).map((box) => box.value), event.target.checked);
});
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.matches("[data-choose]")) return;
  event.preventDefault();
  const asked = new URL(event.submitter.formAction);
  asked.search = new URLSearchParams(new FormData(form));
  htmx.ajax("GET", asked.pathname + asked.search, { source: dialog, target: dialog, swap: "innerHTML" });
});
// `x` on a row, and `r` and `d` for what is chosen.
const chooseRow = (row) => { const box = row && $('input[type="checkbox"][form]', row); if (box) box.click(); };
const actOfChosen = (word) => {
  const form = choiceForms().find((one) => chosenOf(one).size);
  const button = form && $$("button", form).find((one) => one.textContent.startsWith(word));
  button?.click();
  return Boolean(button);
};

const showChoices = () => choiceForms().forEach(showChoice);
showChoices();
if (content) {
  new MutationObserver(showChoices).observe(content, { childList: true, subtree: true, attributeFilter: ["disabled", "aria-selected"] });
}
