// What an operator looks for first: phase, what is left, for how long, and whether to worry.

import { element, make, replaceIfChanged, setText } from "./dom.js";
import { showGenerations } from "./generations.js";
import { noticeOf, showNotice } from "./notice.js";
import { count, duration, inLarge, moment, perHundred, perSecond, plural, unitsOf } from "./number_format.js";

const NEAR = 0.2; // of a limit that is left: from here on it is said
const MEANING = {
  growing: "Every new query is answered by a vote and uses what the generations below have left. Asking the same again is free.",
  ensemble: "Every new query is answered by a vote and uses the limits below. Asking the same again is free.",
  classifier: "The published classifier answers every query. It is unlimited and spends no more privacy.",
  student: "A student of the answers answers every query. It is unlimited and spends no more privacy.",
  waiting: "Fewer generations of records vote than the quorum. New queries get 503 and use nothing; recorded ones get their answers again.",
  halted: "Recorded queries get their answers again; new ones are refused (410).",
  switching: "The classifier is being made. New queries wait for it, up to 30 seconds.",
  training: "A student learns from the answers. New queries wait for it, up to 30 seconds.",
};
const ANSWERING = { ensemble: "fresh", waiting: "repeated", classifier: "classified", halted: "repeated" };
const PACE = {
  fresh: ["New answers per second", "Repeated queries are free and not counted here."],
  classified: ["Classifier's answers per second", "They are free: nothing is used up by them."],
  student: ["Student's answers per second", "They are free: nothing is used up by them."],
  repeated: ["Repeated answers per second", "They are free: recorded answers given again."],
};
export const STOPPED_STATUS = 500;
const STOPPED_WORDS = "Nothing is answered any more. These are the last figures that were told.";
const ANSWERED = "answered"; // the ensemble, in a phase that is over
const NAMES = {
  answered: "Ensemble answered",
  ensemble: "Ensemble answers",
  waiting: "Waiting for generations",
  classifier: "Classifier answers",
  halted: "Halted",
  stopped: "Stopped",
};
const ENDS = { halted: "Halted: ", stopped: "Stopped: " };

/** The figures of this moment; those of the server and its machine are null until they are known. */
export function showNow({ budget, outlook, server, storage, refusal }) {
  setText("release", budget.release.name);
  const isStopped = refusal === STOPPED_STATUS;
  const phase = isStopped ? "stopped" : budget.phase;
  const title = `${ENDS[phase] ?? ""}${budget.release.name} · Conclave`;
  if (document.title !== title) document.title = title;
  element("hopeless").hidden = !budget.hopeless;
  showPhase(budget, phase);
  showGenerations(budget, outlook?.time ?? Date.now() / 1000);
  const isAnswering = phase === "ensemble";
  const forecast = isAnswering ? outlook?.forecast ?? null : null;
  const levels = { answers: level(budget.queries, phase), unstable: level(budget.unstable, phase) };
  if (isAnswering && outlook?.alarm?.raised) levels.unstable = "alarm";
  showAnswers(budget, forecast, outlook, levels.answers);
  showUnstable(budget, forecast, outlook, levels.unstable);
  showRate(budget, outlook);
  showPace(budget, outlook, server);
  // While the server refuses its figures, the notice says why; a page that changes its size shows them again.
  if (refusal === null) showNotice(noticeOf(budget, outlook, storage, levels));
}

/** The phase, after that of the ensemble where it has given answers and gives none any more. */
function showPhase(budget, phase) {
  setText("phase-words", meaningOf(budget, phase));
  const isAfter = ["classifier", "halted"].includes(phase) && budget.queries.answered > 0;
  replaceIfChanged("stages", [phase, isAfter, budget.student], () => [...(isAfter ? [ANSWERED] : []), phase].map((each) => {
    const name = each === "classifier" && budget.student ? "Student answers" : NAMES[each];
    const current = each === phase ? { "aria-current": "step" } : {};
    return make("li", { "data-phase": each, ...current }, name);
  }));
}

function meaningOf(budget, phase) {
  if (phase === "stopped") return STOPPED_WORDS;
  if (budget.switching) return MEANING[budget.student ? "training" : "switching"];
  if (budget.quorum !== null && phase === "ensemble") return MEANING.growing;
  return MEANING[budget.student && phase === "classifier" ? "student" : phase] ?? phase;
}

/** How much cause for worry a limit gives. */
function level({ left, limit, cutoff }, phase) {
  if (phase === "halted" && left === 0) return "over";
  if (phase !== "ensemble") return "done";
  const most = limit ?? cutoff ?? null;
  return most !== null && left <= Math.max(1, NEAR * most) ? "caution" : "calm";
}

function showAnswers(budget, forecast, outlook, worry) {
  const { answered, limit, left } = budget.queries;
  const isOver = budget.phase !== "ensemble";
  const labels = labelsOf(budget);
  element("answers-tile").dataset.level = worry;
  setText("answers-title", isOver ? (labels === null ? "Answers given" : "Labels given") : "Answers left");
  setText("answers-left", isOver ? inLarge(labels ?? answered) : left === null ? "no limit" : inLarge(left));
  setText("answers-words", isOver ? givenInAll(budget, labels) : `${limit === null ? "" : `of ${count(limit)}; `}${given(budget, labels)}`);
  meter("answers-meter", answered, limit);
  setText("answers-forecast", forecast === null ? whyNone(budget) : ahead(forecast.limit, outlook.time, "Used up"));
}

/** Answers that the learners agreed on; with scores, units do not tell how many. */
function labelsOf({ queries, unstable, with_scores: withScores }) {
  return withScores ? null : queries.answered - unstable.count;
}

function given({ queries: { answered } }, labels) {
  if (labels === null) return `${count(answered)} given`;
  return `${plural(labels, "label", "labels")} given, ${count(answered - labels)} unstable`;
}

function givenInAll({ queries: { answered, limit } }, labels) {
  const most = limit === null ? [] : [`of ${count(limit)} at most`];
  const given = labels === null ? [] : [`in ${plural(answered, "answer", "answers")}`];
  return [...given, ...most].join(", ");
}

function showUnstable(budget, forecast, outlook, worry) {
  const { count: used, cutoff, left } = budget.unstable;
  const units = unitsOf(budget);
  element("unstable-tile").dataset.level = worry;
  const isOver = budget.phase !== "ensemble";
  setText("unstable-title", `${units.title} ${isOver ? "used" : "left"}`);
  setText("unstable-left", isOver ? inLarge(used) : cutoff === null ? "no cutoff" : inLarge(left));
  setText("unstable-words", cutoff === null ? withoutCutoff(budget) : `of ${count(cutoff)}${isOver ? " at most" : `; ${count(used)} used`}`);
  meter("unstable-meter", used, cutoff);
  setText("unstable-forecast", forecast === null || cutoff === null ? "" : cutoffAhead(forecast, outlook.time));
}

/** What is said of unstable answers where no number of them ends the ensemble. */
function withoutCutoff({ unstable: { count: used }, quorum }) {
  if (quorum !== null) return `${used ? count(used) : "None"} so far; each generation has a cutoff of its own.`;
  return used ? `${count(used)} so far; no number of them ends the ensemble.` : "Every answer has a label in this release.";
}

function whyNoRate({ unstable: { cutoff }, quorum }, outlook) {
  if (cutoff === null && quorum === null) return "Nothing runs out by it in this release.";
  return outlook === null ? "" : "No answer yet to judge by.";
}

function whyNone(budget) {
  return budget.quorum !== null || budget.phase === "ensemble" ? "" : "The ensemble answers nothing new any more.";
}

/** One moment ahead, in words. */
function ahead(point, now, verb) {
  if (point === null) return "";
  if (point.seconds === undefined) return "Fewer than ten new answers in the last five minutes: no forecast.";
  return `${verb} in ${duration(point.seconds)} at the present rate${atMoment(point.seconds, now)}.`;
}

function cutoffAhead({ cutoff: { earliest, expected, latest }, first }, now) {
  if (earliest === null || earliest.seconds === undefined) return "";
  const after = first === "limit" ? " The answers run out first." : "";
  if (expected === null) return `None so far: not used up within ${duration(earliest.seconds)} (95 % sure).${after}`;
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
  const rate = cutoff === null && budget.quorum === null ? null : outlook?.unstable_rate ?? null;
  setText("rate-title", `${budget.with_scores ? "Units" : "Unstable"} per 100 answers`);
  setText("rate", rate === null ? "–" : perHundred(rate.mean));
  setText("rate-words", rate === null ? whyNoRate(budget, outlook) : `95 % band: ${perHundred(rate.lower)} to ${perHundred(rate.upper)}`);
  const allowed = outlook?.alarm?.pace_allowed ?? null;
  setText("rate-allowed", allowed === null ? "" : `${perHundred(allowed)} uses up ${units.many} and answers together.`);
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

/** The rate of what answers now: new answers of the ensemble, then the classifier's, then repeated ones. */
function showPace(budget, outlook, server) {
  const kind = ANSWERING[budget.phase];
  const pace = kind === "fresh" ? outlook?.pace : server?.answers.find((each) => each.kind === kind)?.pace;
  const [short, long] = pace ?? [];
  const [title, note] = PACE[budget.student && kind === "classified" ? "student" : kind];
  setText("pace-title", title);
  setText("pace", short === undefined ? "–" : perSecond(short.answers_per_second));
  setText("pace-words", long === undefined ? "" : `over ${short.window_seconds} s; ${perSecond(long.answers_per_second)} over 5 min`);
  setText("pace-note", note);
}

function meter(id, used, limit) {
  element(id).hidden = limit === null;
  if (limit !== null) element(id).firstElementChild.style.width = `${limit === 0 ? 100 : Math.min(100, (100 * used) / limit)}%`;
}
