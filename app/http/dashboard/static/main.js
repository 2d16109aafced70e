// The page: listens to the server, keeps the last it said, and shows it.

import { showBudget, showParameters } from "./budget.js";
import { showHistory } from "./history.js";
import { showNow } from "./now.js";
import { element, setText } from "./page.js";
import { listen } from "./stream.js";
import { timeOfDay } from "./words.js";

const REFUSED = {
  401: "This server did not accept the key. Reload the page and give a key of the role read or admin as the password.",
  403: "This key may not read the budget. Reload the page and give a key of the role read or admin.",
  500: "The release has stopped: something that must hold does not. Its operator finds why in the server's log.",
  503: "The release is being opened…",
};
const LOST = "The server does not answer. The figures are the last it gave; trying again…";

/** The last that the server said, and whether the parameters are still to be asked for. */
const last = { budget: null, outlook: null, asked: false };

function connection(state, text) {
  element("connection").dataset.state = state;
  setText("connection-text", text);
}

function show() {
  if (last.budget === null) return;
  showNow(last.budget, last.outlook);
  showBudget(last.budget, last.outlook);
  if (last.outlook !== null) showHistory(last.budget, last.outlook);
  element("figures").hidden = false;
}

async function askForParameters() {
  const reply = await fetch("parameters", { cache: "no-store" });
  if (reply.ok) showParameters((await reply.json()).parameters);
  else last.asked = false;
}

function heard(name, data) {
  last[name] = data;
  show();
  // A status is spoken: it changes with the connection, not with every figure.
  connection("live", "Live");
  if (last.outlook !== null) element("connection").title = `last told at ${timeOfDay(last.outlook.time)}`;
  if (!last.asked) {
    last.asked = true;
    askForParameters().catch(() => { last.asked = false; });
  }
}

function refused(status, detail) {
  last.asked = false;
  const state = status === 503 ? "connecting" : status === 500 ? "stopped" : "refused";
  connection(state, REFUSED[status] ?? detail);
}

function lost() {
  last.asked = false;
  connection("lost", LOST);
}

const resized = new ResizeObserver(show);
for (const id of ["drain-chart", "time-chart"]) resized.observe(element(id));
listen("budget/events?outlook=true", { event: heard, refused, lost });
