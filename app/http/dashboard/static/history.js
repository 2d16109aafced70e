// The two charts and their tables.

import { draw } from "./chart.js";
import { element, make, replaceIfChanged, setText, table } from "./dom.js";
import { axisTime, count, moment, timeOfDay, unitsOf } from "./number_format.js";

const TABLE_ROWS = 12;
const ROUND_SECONDS = [1, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 604800];
const HEADROOM = 1.08;

export function showHistory(budget, outlook) {
  showDrain(budget, outlook);
  showTime(budget, outlook);
}

/** Units of the cutoff by answers given: the slope is what drains the budget. */
function showDrain(budget, outlook) {
  const { answered, limit } = budget.queries;
  const { count: used, cutoff } = budget.unstable;
  element("drain-figure").hidden = cutoff === null || !limit;
  if (cutoff === null || !limit) return;
  const units = unitsOf(budget);
  const known = outlook.over_answers ?? { answers: [], unstable: [] };
  const steps = [[0, 0], ...known.answers.map((answers, place) => [answers, known.unstable[place]])];
  if (steps.at(-1)[0] < answered) steps.push([answered, used]);
  const reach = Math.min(limit, Math.max(answered * 1.25, 20));
  const isWhole = reach >= 0.6 * limit;
  const right = isWhole ? limit : reach;
  setText("drain-title", `${units.title} used`);
  const words = `${count(used)} of ${count(cutoff)} after ${count(answered)} answers, since the first entry of the ledger.`;
  setText("drain-words", words);
  // The rise of the even pace is what the eye compares with, so both are seen from the start.
  const top = Math.min(cutoff, Math.max(used * 1.5, (cutoff * right) / limit, 4));
  const showsLimit = top >= 0.6 * cutoff;
  draw(element("drain-chart"), {
    label: `Chart: ${words} An even pace would be ${count(Math.floor((cutoff * answered) / limit))} by now.`,
    x: { min: 0, max: right, format: count },
    y: { max: (showsLimit ? cutoff : top) * HEADROOM, format: count },
    steps,
    dashed: [[0, 0], [right, (cutoff * right) / limit]],
    limit: showsLimit ? cutoff : null,
    limitLabel: `cutoff ${count(cutoff)}`,
  });
  legend("drain-legend", [["", `${units.many} used, by answers given`], ["even", "even pace to both limits"], ...(showsLimit ? [["limit", "cutoff"]] : [])]);
  replaceIfChanged("drain-table", steps, () => [table(`${units.title} used by answers given`, ["Answers given", `${units.title} used`], thinned(steps).map(([answers, unstable]) => [count(answers), count(unstable)]))]);
}

/** Answers by time, and where the present rate leads. */
function showTime(budget, outlook) {
  element("time-figure").hidden = false;
  const { limit } = budget.queries;
  const { times, answered, unstable } = outlook.over_time;
  const now = outlook.time;
  const steps = [...times.map((time, place) => [time, answered[place]]), [now, budget.queries.answered]];
  const start = times[0];
  const rate = outlook.forecast?.answers_per_second ?? 0;
  const ahead = rate > 0 ? Math.max(30, (now - start) * 0.35) : 0;
  const right = Math.max(now + ahead, start + 60);
  const expected = Math.min(budget.queries.answered + rate * (right - now), limit ?? Infinity);
  const top = Math.max(expected, 5);
  const showsLimit = limit !== null && limit > 0 && top >= 0.6 * limit;
  setText("time-words", `${count(budget.queries.answered)} since the release began; seen here since this server opened it at ${moment(start, now)}.`);
  draw(element("time-chart"), {
    label: `Chart: ${count(answered[0])} answers at ${timeOfDay(start)}, ${count(budget.queries.answered)} at ${timeOfDay(now)}.`,
    x: { min: start, max: right, rounds: ROUND_SECONDS, format: (time) => axisTime(time, right - start) },
    y: { max: (showsLimit ? Math.max(limit, top) : top) * HEADROOM, format: count },
    steps,
    dashed: rate > 0 ? forecastLine(budget, now, rate, right) : [],
    limit: showsLimit ? limit : null,
    limitLabel: `limit ${count(limit ?? 0)}`,
  });
  legend("time-legend", [["", "answers given"], ...(rate > 0 ? [["even", "at the present rate"]] : []), ...(showsLimit ? [["limit", "limit of answers"]] : [])]);
  const rows = times.map((time, place) => [time, answered[place], unstable[place]]);
  const units = unitsOf(budget);
  replaceIfChanged("time-table", rows, () => [table("Answers by time", ["Time", "Answers given", `${units.title} used`], thinned(rows).map(([time, given, used]) => [timeOfDay(time), count(given), count(used)]))]);
}

function forecastLine(budget, now, rate, right) {
  const { answered, left } = budget.queries;
  const end = left === null ? right : Math.min(right, now + left / rate);
  return [[now, answered], [end, answered + rate * (end - now)]];
}

/** Some of many rows, the first and the last among them. */
function thinned(rows) {
  if (rows.length <= TABLE_ROWS) return rows;
  return Array.from({ length: TABLE_ROWS }, (_, place) => rows[Math.round((place * (rows.length - 1)) / (TABLE_ROWS - 1))]);
}

function legend(id, entries) {
  replaceIfChanged(id, entries, () => entries.map(([kind, text]) => make("span", kind ? { class: kind } : {}, text)));
}
