// The server's events, read with fetch: an EventSource would not say why it was refused.

const WAIT_MILLISECONDS = 500;
const WAIT_MILLISECONDS_MAX = 10000;
// An outlook comes every few seconds; a connection that is silent for longer is dead.
const SILENCE_MILLISECONDS_MAX = 20000;

/**
 * Listen for ever, with a pause that grows while the server does not answer.
 *
 * @param {string} address of the stream
 * @param {{event: (name: string, data: object) => void, refused: (status: number, detail: string) => void, lost: () => void}} told
 */
export async function listen(address, told) {
  let wait = WAIT_MILLISECONDS;
  for (;;) {
    try {
      const isRefused = await listenOnce(address, told, () => { wait = WAIT_MILLISECONDS; });
      if (!isRefused) told.lost();
    } catch {
      told.lost();
    }
    await new Promise((resolve) => { setTimeout(resolve, wait); });
    wait = Math.min(2 * wait, WAIT_MILLISECONDS_MAX);
  }
}

/** Read one stream to its end; return whether the server refused to give it. */
async function listenOnce(address, told, heard) {
  const giveUp = new AbortController();
  let patience;
  const goOn = () => {
    clearTimeout(patience);
    patience = setTimeout(() => giveUp.abort(), SILENCE_MILLISECONDS_MAX);
  };
  goOn();
  try {
    const reply = await fetch(address, { cache: "no-store", signal: giveUp.signal });
    if (!reply.ok) {
      told.refused(reply.status, await detailOf(reply));
      return true;
    }
    const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ;) {
      const { done, value } = await reader.read();
      if (done) return false;
      goOn();
      const events = (rest + value).split("\n\n");
      rest = events.pop();
      for (const event of events) tell(event, told, heard);
    }
  } finally {
    clearTimeout(patience);
    giveUp.abort();
  }
}

function tell(text, told, heard) {
  const fields = new Map(text.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]));
  if (!fields.has("event")) return; // a comment that keeps the connection open
  heard();
  told.event(fields.get("event"), JSON.parse(fields.get("data")));
}

async function detailOf(reply) {
  try {
    return (await reply.json()).detail ?? "";
  } catch {
    return "";
  }
}
