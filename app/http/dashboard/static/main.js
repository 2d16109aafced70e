// The page: listens to the server, keeps the last it said, and shows it.

import { showBudget, showParameters } from "./budget.js";
import { showHistory } from "./history.js";
import { showHours } from "./hours.js";
import { showRefusal } from "./notice.js";
import { showNow, STOPPED_STATUS } from "./overview.js";
import { showKeys, showMachine } from "./operator_view.js";
import { element, setText } from "./dom.js";
import { showRequests } from "./requests.js";
import { listen } from "./stream.js";
import { timeOfDay } from "./number_format.js";

const REFUSED = {
  401: "This server did not accept the key. Reload the page and give a key of the role read or admin as the password.",
  403: "This key may not read the budget. Reload the page and give a key of the role read or admin.",
  500: "The release has stopped: something that must hold does not. Its operator finds why in the server's log.",
  503: "The release is being opened…",
};
const LOST = "The server does not answer. The figures are the last it gave; trying again…";

/** How long what is asked for, and not told, may be old. */
const OPERATOR_MILLISECONDS = 5000;
/** How long what is asked for, and hardly changes, may be old. */
const HISTORY_MILLISECONDS = 10000;

/** The last that the server said, and whether the parameters are still to be asked for. */
const last = { budget: null, outlook: null, server: null, history: null, keys: null, storage: null, asked: false, refusal: null };

function connection(state, text) {
  element("connection").dataset.state = state;
  setText("connection-text", text);
}

function show() {
  if (last.budget === null) return;
  showNow(last);
  showBudget(last.budget, last.outlook, last.refusal === STOPPED_STATUS);
  if (last.outlook !== null) showHistory(last.budget, last.outlook);
  if (last.history !== null) showHours(last.history, last.outlook?.time ?? Date.now() / 1000);
  if (last.server !== null) showServer();
  element("figures").hidden = false;
}

function showServer() {
  setText("version", last.server.version);
  if (last.budget === null) return;
  showRequests(last.server, last.budget);
  showKeys(last.keys, last.budget);
  showMachine(last.storage, now(), last.budget.ledger.sequence);
  const isPublished = last.budget.charged.some((share) => share.mechanism === "classifier") || last.budget.student;
  element("classifier-link").hidden = !isPublished || last.budget.switching || !(isAdmin() || last.server.roles.includes("query"));
}

const isAdmin = () => last.server?.roles.includes("admin") ?? false;

async function ask(path) {
  const reply = await fetch(path, { cache: "no-store" });
  return reply.ok ? reply.json() : null;
}

async function askForParameters() {
  const reply = await ask("parameters");
  if (reply !== null) showParameters(reply.parameters);
  else last.asked = false;
}

/** The server's time where it is known, in seconds. */
function now() {
  return last.outlook?.time ?? Date.now() / 1000;
}

/** Ask what is not told by events; the operator's routes only where the role opens them. */
async function askServer() {
  last.server = await ask("server");
  if (Date.now() - askServer.historyAt > HISTORY_MILLISECONDS) {
    askServer.historyAt = Date.now();
    last.history = await ask("budget/history") ?? last.history;
  }
  if (isAdmin() && Date.now() - askServer.operatorAt > OPERATOR_MILLISECONDS) {
    askServer.operatorAt = Date.now();
    // What is noted is compared with the entry that was the newest before it was asked for.
    const sequence = last.budget?.ledger.sequence ?? 0;
    const asked = now();
    const [usage, storage] = await Promise.all([ask("keys/usage"), ask("ledger/storage")]);
    last.keys = usage?.keys ?? null;
    last.storage = storage && { ...storage, sequence, asked_at: asked };
  }
  show();
}
askServer.operatorAt = 0;
askServer.historyAt = 0;

function heard(name, data) {
  last[name] = data;
  last.refusal = null;
  show();
  if (name === "outlook") askServer().catch(() => {}); // the connection is told of by the events
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
  last.refusal = status;
  show();
  showRefusal(status);
  if (status === 503) ask("server").then((server) => { last.server = server; if (server !== null) showServer(); }, () => {});
}

function lost() {
  last.asked = false;
  connection("lost", LOST);
}

const resized = new ResizeObserver(show);
for (const id of ["drain-chart", "time-chart", "hours-chart"]) resized.observe(element(id));
listen("budget/events?outlook=true", { event: heard, refused, lost });
