// The privacy budget by mechanism, the ledger, and the parameters in words.

import { element, make, replaceIfChanged, setText } from "./dom.js";
import { cost, count, timeOfDay } from "./number_format.js";

const ORDER = ["relabel", "answers", "classifier", "statistics"];
const PURPOSE = {
  relabel: "relabelling of the records",
  answers: "answers of the ensemble",
  classifier: "published classifier",
  statistics: "statistics table",
  left: "neither charged nor reserved",
};
const WHOLE_LIFE = "Epsilon says how much one person's record can change what anyone sees; it is promised for the whole life of the release. A share is charged once, whole, before a record is read for it: queries do not add to it.";

export function showBudget(budget, outlook, isStopped) {
  setText("budget-words", WHOLE_LIFE);
  const rows = rowsOf(budget);
  replaceIfChanged("budget-stack", rows, () => rows.map(bar));
  replaceIfChanged("budget-rows", [rows, budget.epsilon, budget.delta], () => [...rows.map(row), total(budget)]);
  showComposed(budget);
  showLedger(budget, outlook, isStopped);
}

function rowsOf(budget) {
  const named = (shares, state) => shares.map((share) => ({ ...share, state }));
  const known = [...named(budget.charged, "charged"), ...named(budget.reserved, "reserved")];
  known.sort((one, other) => ORDER.indexOf(one.mechanism) - ORDER.indexOf(other.mechanism));
  return [...known, { mechanism: "left", ...budget.left, state: "left" }];
}

const kind = (share) => (share.state === "left" ? "share-left" : `share-${Math.max(0, ORDER.indexOf(share.mechanism))}`);

function bar(share) {
  const made = make("span", { class: kind(share), "data-state": share.state });
  made.style.flex = `${share.epsilon} 1 0`;
  made.hidden = share.epsilon === 0;
  return made;
}

function row(share) {
  const name = share.state === "left" ? "left over" : share.mechanism;
  const purpose = make("span", { class: "purpose" }, PURPOSE[share.mechanism] ?? "");
  const heading = make("th", { scope: "row" }, make("span", { class: `swatch ${kind(share)}`, "aria-hidden": "true" }), name, purpose);
  return make("tr", {}, heading, number(share.epsilon), number(share.delta), make("td", {}, share.state === "left" ? "free" : share.state));
}

function total(budget) {
  return make("tr", { class: "total" }, make("th", { scope: "row" }, "promised"), number(budget.epsilon), number(budget.delta), make("td", {}));
}

const number = (value) => make("td", { class: "number" }, cost(value));

function showComposed({ composed }) {
  element("composed").hidden = composed === null;
  if (composed === null) return;
  setText("composed", `The ${count(composed.releases)} releases of this ledger promise together epsilon ${cost(composed.epsilon)}, delta ${cost(composed.delta)}, about a person whose record is in each.`);
}

function showLedger(budget, outlook, isStopped) {
  const { sequence, head } = budget.ledger;
  setText("sequence", count(sequence));
  setText("head", head);
  if (isStopped) {
    element("chain").dataset.state = "failed";
    setText("chain", "Not verified: the release has stopped");
    setText("chain-words", "What this server read before says nothing of why it stopped: conclave verify --config FILE does.");
    return;
  }
  const chain = outlook?.chain ?? null;
  const isWhole = chain !== null && chain.complete;
  element("chain").dataset.state = isWhole ? "checked" : "reading";
  setText("chain", isWhole ? `Verified from entry 1 to entry ${count(chain.checked_to)}` : `Checking: ${count(chain?.checked_to ?? 0)} of ${count(sequence)} entries so far`);
  setText("chain-words", isWhole ? `This server read every entry again at ${timeOfDay(chain.checked_at)}: each hash follows from the entry and the hash before it, and the counts add up.` : "This server reads every entry again, from the first.");
}

export function showParameters(parameters) {
  replaceIfChanged("parameters", parameters, () => parameters.map(({ name, value, meaning, formula }) => make(
    "div",
    {},
    make("h3", {}, name),
    make("p", { class: "value" }, value),
    make("p", {}, meaning),
    make("details", {}, make("summary", {}, "Formula", make("span", { class: "unseen" }, ` of ${name}`)), make("p", {}, make("code", {}, formula))),
  )));
}
