// What an operator looks for first: phase, what is left, for how long, and whether to worry.

import { element, make, replaceIfChanged, setText } from "./page.js";
import { count, duration, moment, percent, perSecond, plural } from "./words.js";

const LAST = "When they are used up, the ensemble stops answering for good.";
const NEAR = 0.2; // of a limit that is left: from here on it is said
const SOON_SECONDS = 3600;
const MEANING = {
  ensemble: "Every new query is answered by a vote and uses the limits below. Asking the same again is free.",
  classifier: "The published classifier answers every query. It is unlimited and spends no more privacy.",
  student: "A student of the answers answers every query. It is unlimited and spends no more privacy.",
  halted: "The budget is used up. Recorded queries get their answers again; new ones are refused (410).",
  switching: "The classifier is being made. New queries wait for it, up to 30 seconds.",
  training: "A student learns from the answers. New queries wait for it, up to 30 seconds.",
};
const THEN = {
  halt: "Then new queries are refused.",
  classifier: "Then a published classifier answers, without limit.",
  student: "Then a student of the answers answers, without limit.",
};
const NAMES = { ensemble: "Ensemble answers", classifier: "Classifier answers", halted: "Halted" };

/** What the cutoff of this release counts. */
export function unitsOf(budget) {
  return budget.with_scores ? { one: "unit", many: "units", title: "Units" } : { one: "unstable answer", many: "unstable answers", title: "Unstable answers" };
}

export function showNow(budget, outlook) {
  setText("release", budget.release.name);
  const title = `${budget.release.name} · Conclave`;
  if (document.title !== title) document.title = title;
  element("hopeless").hidden = !budget.hopeless;
  showPhase(budget);
  const isAnswering = budget.phase === "ensemble";
  const forecast = isAnswering ? outlook?.forecast ?? null : null;
  const levels = { answers: level(budget.queries, isAnswering), unstable: level(budget.unstable, isAnswering) };
  if (isAnswering && outlook?.alarm?.raised) levels.unstable = "alarm";
  showAnswers(budget, forecast, outlook, levels.answers);
  showUnstable(budget, forecast, outlook, levels.unstable);
  showRate(budget, outlook);
  showPace(budget, outlook);
  showNotice(budget, outlook, levels);
}

function showPhase(budget) {
  const key = budget.student && budget.phase === "classifier" ? "student" : budget.phase;
  const waiting = budget.student ? "training" : "switching";
  setText("phase-words", MEANING[budget.switching ? waiting : key] ?? budget.phase);
  const follows = budget.phase === "ensemble" ? [] : [budget.phase];
  replaceIfChanged("stages", [budget.phase, budget.student], () => ["ensemble", ...follows].map((phase) => {
    const name = phase === "classifier" && budget.student ? "Student answers" : NAMES[phase];
    const current = phase === budget.phase ? { "aria-current": "step" } : {};
    return make("li", { "data-phase": phase, ...current }, name);
  }));
}

/** How much cause for worry a limit gives. */
function level({ left, limit, cutoff }, isAnswering) {
  if (!isAnswering) return "done";
  const most = limit ?? cutoff ?? null;
  return most !== null && left <= Math.max(1, NEAR * most) ? "caution" : "calm";
}

function showAnswers(budget, forecast, outlook, worry) {
  const { answered, limit, left } = budget.queries;
  const isOver = worry === "done";
  element("answers-tile").dataset.level = worry;
  setText("answers-title", isOver ? "Answers given" : "Answers left");
  setText("answers-left", isOver ? count(answered) : left === null ? "no limit" : count(left));
  setText("answers-words", limit === null ? `${count(answered)} given` : `of ${count(limit)}${isOver ? " at most" : `; ${count(answered)} given`}`);
  meter("answers-meter", answered, limit);
  setText("answers-forecast", forecast === null ? whyNone(budget) : ahead(forecast.limit, outlook.time, "Used up"));
}

function showUnstable(budget, forecast, outlook, worry) {
  const { count: used, cutoff, left } = budget.unstable;
  const units = unitsOf(budget);
  element("unstable-tile").dataset.level = worry;
  const isOver = worry === "done";
  setText("unstable-title", `${units.title} ${isOver ? "used" : "left"}`);
  setText("unstable-left", cutoff === null ? "no cutoff" : count(isOver ? used : left));
  setText("unstable-words", cutoff === null ? (used ? `${count(used)} so far; no number of them ends the ensemble.` : "Every answer has a label in this release.") : `of ${count(cutoff)}${isOver ? " at most" : `; ${count(used)} used`}`);
  meter("unstable-meter", used, cutoff);
  setText("unstable-forecast", forecast === null || cutoff === null ? "" : cutoffAhead(forecast, outlook.time));
}

function whyNone(budget) {
  return budget.phase === "ensemble" ? "" : "The ensemble has given its last answer.";
}

/** One moment ahead, in words. */
function ahead(point, now, verb) {
  if (point === null) return "";
  if (point.seconds === undefined) return "Nothing new was asked in the last five minutes: no forecast.";
  return `${verb} in ${duration(point.seconds)} at the present rate${atMoment(point.seconds, now)}.`;
}

function cutoffAhead({ cutoff: { earliest, expected, latest }, first }, now) {
  if (earliest === null || earliest.seconds === undefined) return "";
  const after = first === "limit" ? " The answers run out first." : "";
  if (expected === null) return `None so far: not used up before ${duration(earliest.seconds)} have passed (95 % sure).${after}`;
  return `Used up in ${duration(expected.seconds)} at the present rate${atMoment(expected.seconds, now)}; ${range(earliest, latest)} (90 % sure).${after}`;
}

function range(earliest, latest) {
  const isAtOnce = earliest.seconds < 60;
  if (latest === null) return isAtOnce ? "perhaps within a minute" : `not before ${duration(earliest.seconds)}`;
  return isAtOnce ? `within ${duration(latest.seconds)}` : `between ${duration(earliest.seconds)} and ${duration(latest.seconds)}`;
}

function atMoment(seconds, now) {
  return seconds < 365 * 86400 ? ` (${moment(now + seconds, now)})` : "";
}

function showRate(budget, outlook) {
  const { cutoff } = budget.unstable;
  const units = unitsOf(budget);
  const rate = cutoff === null ? null : outlook?.unstable_rate ?? null;
  setText("rate-title", budget.with_scores ? "Units per answer" : "Unstable rate");
  setText("rate", rate === null ? "–" : percent(rate.mean));
  setText("rate-words", rate === null ? "No answer yet to judge by." : `95 % band: ${percent(rate.lower)} to ${percent(rate.upper)}`);
  const allowed = outlook?.alarm?.pace_allowed ?? null;
  setText("rate-allowed", allowed === null ? "" : `${percent(allowed)} uses up ${units.many} and answers together.`);
  const isRaised = budget.phase === "ensemble" && outlook?.alarm?.raised;
  element("rate-tile").dataset.level = isRaised ? "alarm" : "calm";
  showBand(rate, allowed);
}

function showBand(rate, allowed) {
  const band = element("rate-band");
  band.hidden = rate === null;
  if (rate === null) return;
  const most = Math.max(rate.upper, 1.5 * (allowed ?? 0), 1e-9);
  const place = (value) => `${Math.min(100, (100 * value) / most)}%`;
  const [range, mean, mark] = band.children;
  range.style.left = place(rate.lower);
  range.style.width = place(rate.upper - rate.lower);
  mean.style.left = place(rate.mean);
  mark.hidden = allowed === null;
  if (allowed !== null) mark.style.left = place(allowed);
}

function showPace(budget, outlook) {
  const [short, long] = outlook?.pace ?? [];
  setText("pace", short === undefined ? "–" : perSecond(short.answers_per_second));
  setText("pace-words", long === undefined ? "" : `last ${short.window_seconds} s; ${perSecond(long.answers_per_second)} over 5 min`);
  const isFree = budget.phase === "classifier";
  setText("pace-note", isFree ? "Only the ensemble's answers are counted: the classifier's are free." : "New answers only: repeated queries are free and not counted.");
}

function meter(id, used, limit) {
  element(id).hidden = limit === null;
  if (limit !== null) element(id).firstElementChild.style.width = `${limit === 0 ? 100 : Math.min(100, (100 * used) / limit)}%`;
}

/** One notice at most, the worst; it is spoken when it appears, and not with every figure. */
function showNotice(budget, outlook, levels) {
  const notice = noticeOf(budget, outlook, levels);
  replaceIfChanged("alert", notice, () => (notice === null ? [] : [
    make("p", { class: "notice", "data-level": notice.level }, make("strong", {}, notice.title), notice.text),
  ]));
}

function noticeOf(budget, outlook, levels) {
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
  return endsSoon(budget, outlook);
}

function endsSoon(budget, outlook) {
  const forecast = outlook?.forecast ?? null;
  const ends = [forecast?.limit, forecast?.cutoff.expected].map((point) => point?.seconds ?? Infinity);
  if (Math.min(...ends) > SOON_SECONDS) return null;
  const [what, then] = ends[0] <= ends[1] ? ["answers", budget.follows.limit] : [unitsOf(budget).many, budget.follows.cutoff];
  return { level: "caution", title: "Less than an hour left at the present rate", text: `The ${what} run out first. ${THEN[then]}` };
}
