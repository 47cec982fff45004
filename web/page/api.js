// SPDX-License-Identifier: Apache-2.0
// Requests to the page's server, and whether it and the daemon can be reached.

const RETRY_MS = 1000;
const listeners = new Set();
let state = { kind: "", text: "connecting" };

/** An answer that is an error. status 0: the server cannot be reached. mayRetry: the server has too
 * much to do, and names a time. */
export class ApiError extends Error {
  constructor(status, text, mayRetry = false) {
    super(text);
    this.status = status;
    this.mayRetry = mayRetry;
  }
}

/** Calls listener({kind, text}) now and whenever the connection changes. kind is "good", "bad" or
 * "warn". */
export function onConnection(listener) {
  listeners.add(listener);
  listener(state);
}

function report(kind, text) {
  if (state.kind === kind && state.text === text) return;
  state = { kind, text };
  for (const listener of listeners) listener(state);
}

function note(error) {
  if (error.status === 0) report("bad", "the page's server is gone: trying again");
  else if (error.status === 401) report("bad", "no session: open the link that shmviewctl web has printed");
  else if (error.status === 503 && !error.mayRetry) report("bad", "no daemon answers: trying again");
  else if (error.mayRetry || error.status === 429) report("warn", error.message);
}

/** The path with parameters. A value that is an array is repeated; null is left out. */
export function url(path, parameters = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    for (const one of [value].flat()) {
      if (one !== null && one !== undefined && one !== "") query.append(name, one);
    }
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

function unanswered() {
  return new ApiError(0, "the page's server does not answer");
}

async function request(address, options) {
  let response;
  try {
    response = await fetch(address, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw unanswered();
  }
  if (response.ok) {
    report("good", "connected");
    return response;
  }
  let text = response.statusText;
  try {
    text = (await response.json()).error;
  } catch { /* no JSON: the status line must do */ }
  throw new ApiError(response.status, text, response.headers.has("Retry-After"));
}

async function noted(address, options, read) {
  try {
    return await read(await request(address, options));
  } catch (error) {
    if (error.name === "AbortError") throw error;
    // The connection can end inside the body, for which browsers have errors of several kinds.
    const failure = error instanceof ApiError ? error : unanswered();
    note(failure);
    throw failure;
  }
}

/** Gets JSON. */
export function get(path, parameters, signal) {
  return noted(url(path, parameters), { signal }, (response) => response.json());
}

/** Gets bytes. */
export function getBytes(path, parameters, signal) {
  return noted(url(path, parameters), { signal }, (response) => response.arrayBuffer());
}

/** Sends JSON, and gets JSON. */
export function post(path, body) {
  return noted(path, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  }, (response) => response.json());
}

/** Calls handle(event) for each event, from after the serial `after` on. Pauses while the page is
 * not visible, and then continues where it was. Returns a function that ends it. */
export function events({ names = [], after = 0, handle }) {
  let source = null;
  let last = after;
  let timer = 0;
  function close() {
    clearTimeout(timer);
    source?.close();
    source = null;
  }
  function open() {
    close();
    source = new EventSource(url("/api/events", { name: names, after: last || null }));
    source.onmessage = (message) => {
      const event = JSON.parse(message.data);
      if (event.serial) last = event.serial;
      if (event.kind === "away") report("bad", "the daemon is gone: waiting for the next one");
      else report("good", "connected");
      handle(event);
    };
    source.onerror = () => {
      // A browser gives up after some errors; this page does not.
      if (source?.readyState === EventSource.CLOSED) timer = setTimeout(open, RETRY_MS);
    };
  }
  function look() {
    if (document.hidden) close();
    else if (!source) open();
  }
  document.addEventListener("visibilitychange", look);
  look();
  return () => {
    document.removeEventListener("visibilitychange", look);
    close();
  };
}

/** Calls work() now, and again ms after it has returned, while the page is visible. An error waits
 * RETRY_MS at least. Returns a function that ends it. */
export function repeat(ms, work) {
  let timer = 0;
  let ended = false;
  let running = false;
  async function turn() {
    clearTimeout(timer);
    if (ended || running || document.hidden) return;
    running = true;
    let pause = ms;
    try {
      await work();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      pause = Math.max(ms, RETRY_MS);
    } finally {
      running = false;
    }
    if (!ended) timer = setTimeout(turn, pause);
  }
  document.addEventListener("visibilitychange", turn);
  turn();
  return () => {
    ended = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", turn);
  };
}
