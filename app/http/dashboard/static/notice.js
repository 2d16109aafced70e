// The one notice at the top: what is wrong, what is still to be had, and what to type.

import { make, replaceIfChanged } from "./dom.js";
import { cost, count, plural, roundly, unitsOf } from "./number_format.js";

const LAST = "Once none is left, the ensemble stops answering for good.";
const SOON_SECONDS = 3600;
// What the ledger grows by with an answer, at most: docs/operations.md.
export const ANSWER_BYTES = 370;
const THEN = {
  halt: "Then new queries are refused.",
  classifier: "Then a published classifier answers, without limit.",
  student: "Then a student of the answers answers, without limit.",
};
const OPENING = {
  level: "plain",
  title: "The release is being opened",
  text: "The records are read and the ensemble is made. Queries are refused until then (503); this page goes on by itself.",
};
const STOPPED = {
  level: "alarm",
  title: "The release has stopped",
  text: "Something that must hold does not, and nothing more is answered. The server's log says what; look at the ledger before you start it again:",
  command: "conclave verify --config FILE",
};

/** One notice at most, the worst; it is spoken when it appears, and not with every figure. */
export function showNotice(notice) {
  replaceIfChanged("alert", notice, () => (notice === null ? [] : [
    make("div", { class: "notice", "data-level": notice.level }, make("strong", {}, notice.title), ...partsOf(notice)),
  ]));
}

export function showRefusal(status) {
  if (status === 500) showNotice(STOPPED);
  if (status === 503) showNotice(OPENING);
}

function partsOf({ text, command, offers = [] }) {
  const parts = [make("p", {}, text)];
  if (command !== undefined) parts.push(typed(command));
  if (offers.length > 0) parts.push(make("ul", {}, ...offers.map((offer) => make("li", {}, offer.text, ...(offer.command === undefined ? [] : [typed(offer.command)])))));
  return parts;
}

const typed = (command) => make("code", { class: "command" }, command);

export function noticeOf(budget, outlook, storage, levels) {
  if (budget.phase === "halted") return halted(budget);
  const short = shortOfRoom(budget, storage);
  const danger = quorumInDanger(budget);
  if (danger !== null) return danger;
  if (budget.phase !== "ensemble") return null;
  const units = unitsOf(budget);
  if (levels.unstable === "alarm") {
    return {
      level: "alarm",
      title: "The budget is draining unusually fast",
      text: `${plural(budget.unstable.left, units.one, units.many)} left. ${units.title} come faster than the limits allow, and by more than chance explains: `
        + `the cutoff will come long before the limit of answers. ${THEN[budget.follows.cutoff]} `
        + "Look at what clients ask; "
        + "queries unlike the training records are answered with less agreement. "
        + "(A release that keeps to its pace sees this alarm with a chance of 1 % in its whole life.)",
    };
  }
  if (levels.unstable === "caution") {
    return { level: "caution", title: `${plural(budget.unstable.left, units.one, units.many)} left`, text: `${LAST} ${THEN[budget.follows.cutoff]}` };
  }
  if (levels.answers === "caution") {
    return { level: "caution", title: `${plural(budget.queries.left, "answer", "answers")} left`, text: `${LAST} ${THEN[budget.follows.limit]}` };
  }
  return endsSoon(budget, outlook) ?? short;
}

/** Whether generations that vote may soon be fewer than the quorum, or are; one with a last unstable answer is as good as gone. */
function quorumInDanger({ generations, quorum, phase }) {
  if (quorum === null || !["ensemble", "waiting"].includes(phase)) return null;
  const lasting = generations.filter(({ state, unstable }) => state === "active" && unstable.left > 1);
  const waiting = generations.filter(({ state }) => state === "waiting");
  if (lasting.length >= quorum) return null;
  const joins = waiting.length > 0 ? `${plural(waiting.length, "generation waits", "generations wait")} to join.` : "None waits to join.";
  const text = `Below the quorum of ${count(quorum)} new queries get 503 and use nothing. ${joins} A generation that is appended now joins at the second tick.`;
  const title = phase === "waiting"
    ? "Fewer generations vote than the quorum"
    : lasting.length === 0 && waiting.length === 0 ? "No generation may vote soon" : "The quorum is in danger";
  return { level: phase !== "waiting" && lasting.length === 0 && waiting.length === 0 ? "alarm" : "caution", title, text, command: "conclave append --config FILE SOURCE" };
}

/** Why it halted, and what it can still give. */
function halted(budget) {
  const { queries, unstable } = budget;
  const isUsedUp = queries.left === 0 || unstable.left === 0;
  const title = isUsedUp ? "Halted: new queries are refused" : "Halted, with answers left";
  // A closed ledger draws nothing, whatever is set aside in it.
  if (budget.closed !== null) return { level: "alarm", title, ...CLOSED[budget.closed] };
  if (!isUsedUp) {
    return {
      level: "alarm",
      title,
      text: "A failure was contained, or the records are not those that it was opened on: the server's log says which. Recorded queries get their answers again.",
      command: "conclave verify --config FILE",
    };
  }
  const units = unitsOf(budget);
  const why = unstable.left === 0
    ? `All ${count(unstable.cutoff)} ${units.many} are used up.`
    : `All ${count(queries.limit)} answers are given.`;
  return {
    level: "alarm",
    title,
    text: `${why} Recorded queries get their answers again. ${budget.reserved.length > 0 ? "Still to be had:" : ""}`,
    offers: [...budget.reserved.map(offerOf), ...(budget.reserved.length > 0 ? [] : [NEW_RELEASE])],
  };
}

const CLOSED = {
  backup: {
    text: "This ledger is a backup: it answers no new query and draws nothing, since the ledger that it was made of may have gone on. Recorded queries get their answers again. Its line says what it holds:",
    command: "conclave verify --config FILE",
  },
  retired: {
    text: "This ledger was retired: it answers no new query and draws nothing any more. Recorded queries get their answers again. Its line says what it holds:",
    command: "conclave verify --config FILE",
  },
};

const NEW_RELEASE = {
  text: "Nothing is set aside any more. New answers need a new release, whose promise adds to this one's:",
  command: "conclave plan --config FILE",
};

function offerOf(share) {
  const aside = `epsilon ${cost(share.epsilon)} is set aside for it, and not charged yet`;
  if (share.mechanism === "statistics") return { text: `The table of statistics, after the classifier where one is set aside; ${aside}:`, command: "conclave statistics --config FILE HYPOTHESES" };
  return { text: `A published classifier, which answers without limit; ${aside}:`, command: "conclave learn --config FILE" };
}

function endsSoon(budget, outlook) {
  const forecast = outlook?.forecast ?? null;
  const ends = [forecast?.limit, forecast?.cutoff.expected].map((point) => point?.seconds ?? Infinity);
  if (Math.min(...ends) > SOON_SECONDS) return null;
  const [what, then] = ends[0] <= ends[1] ? ["answers", budget.follows.limit] : [unitsOf(budget).many, budget.follows.cutoff];
  return { level: "caution", title: "Less than an hour left at the present rate", text: `The ${what} run out first. ${THEN[then]}` };
}

function shortOfRoom(budget, storage) {
  const free = storage?.bytes_free ?? null;
  const left = budget.queries.left;
  if (free === null || left === null || left * ANSWER_BYTES <= free) return null;
  return {
    level: "caution",
    title: "The disk may be full before the answers run out",
    text: `There is room for about ${roundly(free / ANSWER_BYTES)} answers, and ${roundly(left)} are left. While its disk is full a release answers nothing new.`,
  };
}
