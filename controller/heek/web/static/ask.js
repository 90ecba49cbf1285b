/** Asks the table something: JSON there, JSON back, and a refusal in words that may be shown as they are. */

/** What was asked for was not done; the message is for people. `answered`: the table itself has said so. */
export class Refused extends Error {
  constructor(words, answered = false) {
    super(words);
    this.answered = answered;
  }
}

const PATIENCE_MS = 4000;

/**
 * POST `body` to `path`, GET without one; gives the answer.
 *
 * Raises Refused with words for people, also when nothing came back in time.
 */
export async function ask(path, body, { patience_ms = PATIENCE_MS, keepalive = false } = {}) {
  let response;
  try {
    response = await fetch(path, {
      method: body === undefined ? "GET" : "POST",
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.timeout(patience_ms),
      cache: "no-store",
      keepalive,
    });
  } catch {
    throw new Refused("The table does not answer; try again.");
  }
  let answer = null;
  try {
    answer = await response.json();
  } catch {
    // Not ours; said below.
  }
  if (response.ok && answer !== null) return answer;
  if (typeof answer?.error === "string") throw new Refused(sentence(answer.error), true);
  throw new Refused("Something else than the table answers at this address.");
}

const sentence = (words) => `${words.charAt(0).toUpperCase()}${words.slice(1)}${/[.!?]$/.test(words) ? "" : "."}`;
