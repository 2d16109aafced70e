// What the operator alone sees: the keys and what each has used, and the ledger's machine.

import { ANSWER_BYTES } from "./notice.js";
import { element, make, replaceIfChanged, setText } from "./dom.js";
import { ago, bytes, count, moment, plural, roundly, timeOfDay, unitsOf } from "./number_format.js";

export function showKeys(keys, budget) {
  element("keys-card").hidden = keys === null;
  if (keys === null) return;
  const units = unitsOf(budget);
  setText("keys-unit", units.title);
  setText("keys-words", keys.length === 0 ? "This server has no keys: whoever can connect may do everything." : "New answers of this release; a repeated one counts for nobody.");
  element("keys-table").hidden = keys.length === 0;
  replaceIfChanged("key-rows", keys, () => keys.map((key) => make(
    "tr",
    {},
    make("th", { scope: "row" }, key.name),
    used(key.answers, key.limit),
    used(key.unstable, key.unstable_limit),
  )));
}

function used(number, limit) {
  const isOver = limit !== null && number >= limit;
  return make("td", { class: "number", ...(isOver ? { "data-level": "alarm" } : {}) }, limit === null ? count(number) : `${count(number)} of ${count(limit)}`);
}

export function showMachine(storage, now, newest) {
  element("machine").hidden = storage === null;
  if (storage === null) return;
  setText("backup", backupOf(storage.backup, newest, now));
  setText("head-file", headFileOf(storage));
  setText("disk", storage.bytes_free === null ? "unknown: the database is on a server" : `${bytes(storage.bytes_free)} free, for about ${roundly(storage.bytes_free / ANSWER_BYTES)} answers`);
}

function backupOf(backup, sequence, now) {
  if (backup === null) return "unknown: none by conclave ledger backup is noted here";
  const behind = sequence - backup.sequence;
  return `${ago(Math.max(0, now - backup.made_at))} (${moment(backup.made_at, now)}), ${behind > 0 ? `${plural(behind, "entry", "entries")} behind` : "with every entry"}`;
}

/** What is noted, against the entry that was the newest when it was asked for. */
function headFileOf({ noted_sequence: noted, sequence, asked_at: asked }) {
  if (noted === null) return "none is kept, or none was written since the start";
  return noted >= sequence ? `notes entry ${count(noted)}, the newest at ${timeOfDay(asked)}` : `notes entry ${count(noted)}, ${count(sequence - noted)} behind`;
}
