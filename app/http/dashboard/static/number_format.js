// Numbers, times and durations as people read them.

const counts = new Intl.NumberFormat("en");
const roundCounts = new Intl.NumberFormat("en", { notation: "compact", compactDisplay: "long", maximumSignificantDigits: 3 });
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const clockSeconds = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export const count = (number) => counts.format(number);
export const roundly = (number) => roundCounts.format(number);

/** A count in large figures: rounded where a tile has no room for all of it, which a line below has. */
export const inLarge = (number) => (number < 1e7 ? count(number) : roundly(number));

/** A privacy parameter: plain where that is short, else with its power of ten. */
export function cost(number) {
  if (number === 0) return "0";
  const rounded = Number(number.toPrecision(3));
  return Math.abs(rounded) < 1e-3 ? rounded.toExponential().replace("-", "\u2212") : String(rounded);
}

/** A count per answer as one per hundred answers, with two digits that count. */
export function perHundred(rate) {
  const value = rate * 100;
  if (value === 0 || value >= 99.95) return String(Math.round(value));
  return String(value >= 10 ? Number(value.toFixed(1)) : Number(value.toPrecision(2)));
}

export function perSecond(rate) {
  if (rate === 0) return "0";
  return rate >= 100 ? count(Math.round(rate)) : String(Number(rate.toPrecision(2)));
}

export const timeOfDay = (seconds) => clockSeconds.format(new Date(seconds * 1000));

/** A moment, with its day where that is not today. */
export function moment(seconds, now) {
  const date = new Date(seconds * 1000);
  const isToday = date.toDateString() === new Date(now * 1000).toDateString();
  return isToday ? clock.format(date) : `${day.format(date)}, ${clock.format(date)}`;
}

/** The axis of a chart that spans `span` seconds. */
export function axisTime(seconds, span) {
  const date = new Date(seconds * 1000);
  if (span < 10 * MINUTE) return clockSeconds.format(date);
  return span < 2 * DAY ? clock.format(date) : day.format(date);
}

export function duration(seconds) {
  if (seconds < MINUTE) return "a minute";
  if (seconds < HOUR) return `${Math.round(seconds / MINUTE)} min`;
  if (seconds < DAY) return hoursAndMinutes(Math.round(seconds / MINUTE));
  const days = seconds / DAY;
  return days < 365 ? `${Number(days.toPrecision(2))} days` : "over a year";
}

function hoursAndMinutes(minutes) {
  const rest = minutes % 60;
  return rest === 0 ? `${minutes / 60} h` : `${Math.floor(minutes / 60)} h ${rest} min`;
}

export function bytes(number) {
  const units = ["bytes", "kB", "MB", "GB", "TB", "PB"];
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(number, 1)) / 3));
  return `${Number((number / 1000 ** power).toPrecision(3))} ${units[power]}`;
}

export const ago = (seconds) => (seconds < MINUTE ? "less than a minute ago" : `${duration(seconds)} ago`);

/** What the cutoff of this release counts. */
export function unitsOf(budget) {
  return budget.with_scores ? { one: "unit", many: "units", title: "Units" } : { one: "unstable answer", many: "unstable answers", title: "Unstable answers" };
}

export const plural = (number, one, many) => `${count(number)} ${number === 1 ? one : many}`;
