// What this server was asked since it started, by kind, in every phase.

import { make, replaceIfChanged, setText } from "./dom.js";
import { count, perSecond } from "./number_format.js";

const KINDS = {
  fresh: ["new answers", "of the ensemble; they use the limits"],
  repeated: ["repeated answers", "recorded ones given again, free"],
  classified: ["classifier's answers", "free, without limit"],
  student: ["student's answers", "free, without limit"],
};

export function showRequests(server, budget) {
  const rows = server.answers.map((each) => {
    const kind = each.kind === "classified" && budget.student ? "student" : each.kind;
    const [short, long] = each.pace;
    return { kind, given: count(each.count), short: perSecond(short.answers_per_second), long: perSecond(long.answers_per_second) };
  });
  replaceIfChanged("request-rows", rows, () => rows.map(({ kind, given, short, long }) => {
    const [name, cost] = KINDS[kind];
    return make("tr", {}, make("th", { scope: "row" }, name, make("span", { class: "purpose" }, cost)), cell(given), cell(short), cell(long));
  }));
  const refusals = Object.entries(server.refusals);
  const total = refusals.reduce((sum, [, number]) => sum + number, 0);
  setText("refusals", total === 0 ? "None was refused." : `${count(total)} refused: ${refusals.map(([slug, number]) => `${slug} ${count(number)}`).join(", ")}.`);
}

const cell = (text) => make("td", { class: "number" }, text);
