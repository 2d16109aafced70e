// Generations of a release that takes them: which vote, what each has left, when the next joins.

import { element, make, replaceIfChanged, setText } from "./dom.js";
import { count, moment } from "./number_format.js";

const SHOWN_MAX = 24;

export function showGenerations({ generations, quorum, tick }, now) {
  element("generations-card").hidden = quorum === null;
  if (quorum === null) return;
  const active = generations.filter(({ state }) => state === "active");
  const waiting = generations.filter(({ state }) => state === "waiting");
  const gone = generations.length - active.length - waiting.length;
  const told = [`${count(active.length)} vote`, `${count(waiting.length)} wait`, `${count(gone)} retired`];
  setText("generations", `${told.join(", ")}; the quorum is ${count(quorum)}.`);
  const shown = [...active, ...waiting].slice(0, SHOWN_MAX);
  replaceIfChanged("generation-rows", shown, () => shown.map(row));
  setText("generations-next", nextWords(waiting, tick, now));
}

function row({ number, state, unstable }) {
  const fill = make("span");
  fill.style.width = state === "active" ? `${(100 * unstable.left) / Math.max(1, unstable.cutoff)}%` : "0";
  const left = state === "active" ? `${count(unstable.left)} of ${count(unstable.cutoff)} left` : "waits";
  const level = unstable.left <= 1 ? "caution" : "calm";
  return make("li", { "data-state": state, "data-level": level }, make("strong", {}, `${number}`), make("div", { class: "meter", "aria-hidden": "true" }, fill), make("span", {}, left));
}

function nextWords(waiting, tick, now) {
  const known = waiting.filter(({ joins_at }) => joins_at !== null);
  if (known.length === 0) return "None waits: append rows, and they join at the second tick from then.";
  const next = known.reduce((first, each) => (each.joins_at < first.joins_at ? each : first));
  return `Generation ${next.number} joins at the tick of ${moment(next.joins_at, now)}; a tick comes every ${tickWords(tick)}.`;
}

function tickWords(seconds) {
  for (const [name, length] of [["day", 86400], ["hour", 3600], ["minute", 60]]) {
    if (seconds % length === 0) return seconds === length ? name : `${count(seconds / length)} ${name}s`;
  }
  return `${count(seconds)} seconds`;
}
