// Small steps on the document. Whatever the server says is text and never markup.

export const element = (id) => document.getElementById(id);

/** Set a text, and leave the document alone where it is that text already. */
export function setText(id, text) {
  const found = element(id);
  if (found.textContent !== text) found.textContent = text;
}

/** Make an element of texts and elements. */
export function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** Make a table with a row of headings; the first cell of a row heads it. */
export function table(caption, headings, rows) {
  const head = make("tr", {}, ...headings.map((text, place) => make("th", { scope: "col", ...(place ? { class: "number" } : {}) }, text)));
  const body = rows.map(([first, ...rest]) => make("tr", {}, make("th", { scope: "row" }, first), ...rest.map((text) => make("td", { class: "number" }, text))));
  return make("table", {}, make("caption", { class: "unseen" }, caption), make("thead", {}, head), make("tbody", {}, ...body));
}

/** Replace the children of an element where what they would be has changed. */
export function replaceIfChanged(id, key, build) {
  const place = element(id);
  const text = JSON.stringify(key);
  if (place.dataset.shown === text) return;
  place.dataset.shown = text;
  place.replaceChildren(...build());
}
