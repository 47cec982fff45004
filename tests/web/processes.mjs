// SPDX-License-Identifier: Apache-2.0
// The processes of a script that opens the page in a browser: the daemon, the server, the browser, and
// others. A script must call endAll() at its end.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { createRequire } from "node:module";
import path from "node:path";

const { CHROMIUM, MODULES, SHMVIEWCTL, SHMVIEWD, SHMVIEW_SOCKET, SHMVIEW_WITH_PARENT } = process.env;
/** require() for what npm has installed. */
export const require = createRequire(path.join(MODULES, "node_modules", "x.js"));
const { chromium } = require("playwright-core");

export const WAIT_MS = 30000;
const children = new Set();

/** Runs shmviewctl, and returns its output. */
export function ctl(...words) {
  return execFileSync(SHMVIEWCTL, words, { encoding: "utf8" });
}

/** Starts a program, which ends with this process where setpriv is there (browser.sh). Its output is
 * collected in .text, and .ended is a promise. */
export function start(program, words) {
  const command = [...(SHMVIEW_WITH_PARENT ? ["setpriv", "--pdeathsig", "INT"] : []), program, ...words];
  const child = spawn(command[0], command.slice(1), { stdio: ["ignore", "pipe", "pipe"] });
  child.text = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => { child.text += data; });
  children.add(child);
  child.ended = new Promise((resolve) => child.on("exit", resolve)).then(() => children.delete(child));
  return child;
}

/** Waits until condition() is true, and returns its value. */
export async function until(condition, what) {
  const end = Date.now() + WAIT_MS;
  for (;;) {
    const value = await condition();
    if (value) return value;
    assert.ok(Date.now() < end, `${what} has not come`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export async function startDaemon() {
  const daemon = start(SHMVIEWD, ["--socket", SHMVIEW_SOCKET]);
  await until(() => daemon.text.includes(", listening on "), "the daemon");
  return daemon;
}

/** Starts the server. Returns it with its port and the newest link. */
export async function startServer(port = 0, ...options) {
  const server = start(SHMVIEWCTL, ["web", "--port", String(port), "--allow-changes", ...options]);
  server.link = () => server.text.match(/http:\/\/\S+token=\S+/g)?.pop();
  await until(server.link, "the link");
  server.port = Number(new URL(server.link()).port);
  return server;
}

export async function end(child, signal = "SIGINT") {
  child.kill(signal);
  await child.ended;
}

/** Ends all processes that still run. */
export async function endAll() {
  for (const child of children) child.kill("SIGINT");
  await Promise.all([...children].map((child) => child.ended));
}

/** Starts Chromium without a window. */
export function startBrowser() {
  return chromium.launch({ executablePath: CHROMIUM, args: process.getuid() ? [] : ["--no-sandbox"] });
}
