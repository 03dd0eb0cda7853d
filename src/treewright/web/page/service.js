/** Requests to the service; responses are cached, and requests are retried if it is busy. */

const MAX_RETRIES = 8;
const MAX_KEPT = 60;
const kept = new Map();

/** An error of the service or the connection; `sentences` are those of a request that lacks tags. */
export class ServiceError extends Error {
  constructor(message, sentences = null) {
    super(message);
    this.sentences = sentences;
  }
}

/** Request the list of models. */
export async function askModels() {
  const reply = await send("models", {});
  return (await read(reply)).models;
}

/** Request the descriptions of relations, tags and labels. */
export async function askMeanings() {
  return read(await send("meanings", {}));
}

/** Send a request; `onBusy` is called with the seconds to wait if the service is busy. */
export async function ask(route, body, { signal, onBusy }) {
  const key = `${route} ${JSON.stringify(body)}`;
  if (!kept.has(key)) {
    const answer = await askUntilFree(route, body, signal, onBusy);
    if (kept.size >= MAX_KEPT) kept.delete(kept.keys().next().value);
    kept.set(key, answer);
  }
  return kept.get(key);
}

async function askUntilFree(route, body, signal, onBusy) {
  for (let attempt = 0; ; attempt += 1) {
    const reply = await send(route, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
      signal,
    });
    if (reply.status !== 503 || attempt === MAX_RETRIES) return read(reply, signal);
    const seconds = Math.min(30, Math.max(1, Number(reply.headers.get("Retry-After")) || 1));
    onBusy(seconds);
    await pause(seconds, signal);
  }
}

async function send(route, options) {
  try {
    return await fetch(route, options);
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    throw new ServiceError("The service does not answer; is it still running?");
  }
}

async function read(reply, signal) {
  const answer = await reply.json().catch(() => null);
  signal?.throwIfAborted();
  if (reply.ok && answer !== null) return answer;
  const reason = answer?.error ?? `The service returned the status ${reply.status} without a message.`;
  throw new ServiceError(reason, answer?.sentences);
}

function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, 1000 * seconds);
    signal.addEventListener("abort", stop, { once: true });
  });
}
