// What was asked in each hour, over all servers and restarts: a chart of bars and its table.

import { drawBars } from "./chart.js";
import { element, make, replaceIfChanged, setText, table } from "./dom.js";
import { axisTime, count, moment, plural } from "./number_format.js";

const HOUR = 3600;
const SHOWN_MIN = 24;
const SHOWN_MAX = 168;
const TABLE_ROWS = 24;
const ROUND_HOURS = [1, 2, 3, 6, 12, 24, 48, 168];
const CLOCK_HOURS = 48; // beyond which the axis tells days
const KINDS = [
  ["new, stable", ({ fresh, unstable }) => fresh - unstable],
  ["new, unstable", ({ unstable }) => unstable],
  ["repeated", ({ repeated }) => repeated],
  ["the classifier's", ({ classified }) => classified],
];
const ORDER = [0, 3, 2, 1]; // of the colours: what is unstable is the warm one

export function showHours({ hours }, now) {
  element("hours-card").hidden = false;
  const end = Math.floor(now / HOUR) * HOUR + HOUR;
  const first = hours.length ? hours[0].time : end - HOUR;
  const start = end - HOUR * Math.min(SHOWN_MAX, Math.max(SHOWN_MIN, (end - first) / HOUR));
  const shown = hours.filter(({ time }) => time >= start);
  const bars = shown.map((each) => ({ x: each.time, width: HOUR, parts: KINDS.map(([, read], place) => [ORDER[place], read(each)]) }));
  const tallest = Math.max(5, ...bars.map(({ parts }) => parts.reduce((sum, [, value]) => sum + value, 0)));
  const given = sum(shown, ({ fresh, repeated, classified }) => fresh + repeated + classified);
  const words = `${plural(given, "answer", "answers")} in the last ${count((end - start) / HOUR)} hours, ${count(sum(shown, ({ unstable }) => unstable))} of them unstable; ${plural(sum(shown, ({ refused }) => refused), "request", "requests")} refused. All servers of the ledger, and all their restarts, written down once a minute.`;
  setText("hours-words", words);
  drawBars(element("hours-chart"), {
    label: `Chart: ${words}`,
    x: { min: start, max: end, rounds: roundsOf((end - start) / HOUR), format: (time) => axisTime(time, end - start) },
    y: { max: tallest * 1.08, format: count },
    bars,
  });
  replaceIfChanged("hours-legend", KINDS.length, () => KINDS.map(([name], place) => make("span", { class: `share-${ORDER[place]}` }, name)));
  const rows = hours.slice(-TABLE_ROWS).reverse();
  replaceIfChanged("hours-table", rows, () => [
    // Five columns, of which none is cut on a phone; what was repeated or classified was free.
    table("Requests by hour, the newest first", ["Hour", "New", "Unstable", "Free", "Refused"], rows.map((each) => [moment(each.time, now), ...[each.fresh, each.unstable, each.repeated + each.classified, each.refused].map(count)])),
  ]);
}

const roundsOf = (span) => ROUND_HOURS.filter((hours) => span < CLOCK_HOURS || hours >= 24).map((hours) => hours * HOUR);
const sum = (hours, read) => hours.reduce((total, each) => total + read(each), 0);
