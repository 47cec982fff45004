// SPDX-License-Identifier: Apache-2.0
// The page of shmviewctl web with very many segments, in Chromium: how long until all of them are
// listed, and for how long the page's thread is blocked while the user sorts and filters. `make
// bench-web` runs it; README.md explains the rows.

import { execFileSync } from "node:child_process";
import os from "node:os";

import { ctl, end, endAll, start, startBrowser, startDaemon, startServer } from "../tests/web/processes.mjs";

const N = Number(process.env.N_SEGMENTS || 100000);
const ROUNDS = Number(process.env.ROUNDS || 7);
const SIZE = 4096;
const WAIT_MS = 120000;

/** Makes the segments by one process for each processor. Their names come in no order. */
const FILL = `
import random, shmview, sys
part, parts, n = map(int, sys.argv[1:])
numbers = list(range(n))
random.Random(1).shuffle(numbers)
for i in numbers[part::parts]:
    shmview.create(f"segment{i}", ${SIZE}, lifetime="manual", label=f"frame {i * 7919 % 1000}").close()
`;

async function fill() {
  const parts = os.availableParallelism();
  const children = Array.from({ length: parts }, (_, i) => start("/usr/bin/python3", ["-c", FILL, String(i), String(parts), String(N)]));
  await Promise.all(children.map((child) => child.ended));
  const failed = children.find((child) => child.exitCode);
  if (failed) throw new Error(failed.text);
}

// --- In the page -------------------------------------------------------------

/** Runs before the page's own scripts. Notes when what is looked for was drawn, and long tasks. */
function observe(n) {
  const notes = { long: [] };
  window.notes = notes;
  new PerformanceObserver((list) => notes.long.push(...list.getEntries().map((entry) => [entry.startTime, entry.duration])))
    .observe({ type: "longtask", buffered: true });
  const drawn = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(() => resolve(performance.now()))));
  // Asks after changes of the page, because asking before each frame would make the browser draw all of them.
  notes.until = (condition) => new Promise((resolve) => {
    const observer = new MutationObserver(look);
    function look() {
      if (!condition()) return;
      observer.disconnect();
      resolve(drawn());
    }
    observer.observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
    look();
  });
  const text = () => document.querySelector("main [role=status]")?.textContent || "";
  const all = `${n.toLocaleString("en")} segments`;
  notes.first = notes.until(() => document.querySelector("tbody a"));
  notes.listed = notes.until(() => text() === all && document.querySelector("tbody a"));
  notes.isQuiet = () => !document.querySelector(".scroll [aria-busy=true]");
  notes.text = text;
  /** Does something, and returns the time until it is drawn and the longest task. */
  notes.measure = async (work, condition) => {
    await new Promise((resolve) => setTimeout(resolve, 300));
    notes.long.length = 0;
    const begun = performance.now();
    work();
    const ended = await notes.until(() => notes.isQuiet() && condition());
    await new Promise((resolve) => setTimeout(resolve, 300));
    const tasks = notes.long.filter(([at]) => at < ended).map(([, ms]) => ms);
    return { ms: ended - begun, longest: Math.max(0, ...tasks) };
  };
}

const listed = (page) => page.evaluate(async () => {
  const [first, all] = [await notes.first, await notes.listed];
  return { first, all, longest: Math.max(0, ...notes.long.map(([, ms]) => ms)) };
});

const sortBy = (page, title) => page.evaluate((title) => {
  const button = [...document.querySelectorAll("thead button")].find((one) => one.textContent === title);
  return notes.measure(() => button.click(), () => button.closest("th").hasAttribute("aria-sort"));
}, title);

const filterBy = (page, word) => page.evaluate((word) => {
  const input = document.getElementById("filter");
  const before = notes.text();
  return notes.measure(() => {
    input.value = word;
    input.dispatchEvent(new Event("input"));
  }, () => notes.text() !== before && notes.text().endsWith("segments"));
}, word);

// --- The rows ----------------------------------------------------------------

const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];

function show(what, list) {
  const values = list.map((x) => Math.round(x));
  console.log(`${what.padEnd(52)} ${String(median(values)).padStart(6)} ms  ${Math.min(...values)}..${Math.max(...values)}`);
}

function seconds(pid) {
  const fields = execFileSync("cat", [`/proc/${pid}/stat`], { encoding: "utf8" }).replace(/.*\) /, "").split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

async function run() {
  const daemon = await startDaemon();
  await fill();
  const server = await startServer();
  const browser = await startBrowser();
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  context.setDefaultTimeout(WAIT_MS);
  const address = `http://127.0.0.1:${server.port}/`;
  const page = await context.newPage();
  await page.goto(server.link());
  await page.waitForURL(address);
  await page.close();
  await context.addInitScript(observe, N);
  const rows = { opened: [], reloaded: [] };
  const spent = { daemon: [], server: [] };
  let last;
  for (let i = 0; i < ROUNDS; i++) {
    await last?.close();
    await new Promise((resolve) => { setTimeout(resolve, 1000); }); // its memory is given back
    last = await context.newPage();
    const before = [seconds(daemon.pid), seconds(server.pid)];
    await last.goto(address);
    rows.opened.push(await listed(last));
    spent.daemon.push((seconds(daemon.pid) - before[0]) * 1000);
    spent.server.push((seconds(server.pid) - before[1]) * 1000);
    await last.reload();
    rows.reloaded.push(await listed(last));
  }
  console.log(`${N} segments, Chromium ${browser.version()}`);
  for (const [how, list] of Object.entries(rows)) {
    show(`page ${how}: first rows`, list.map((one) => one.first));
    show(`page ${how}: all segments listed`, list.map((one) => one.all));
    show(`page ${how}: longest task`, list.map((one) => one.longest));
  }
  for (const [who, list] of Object.entries(spent)) show(`page opened: processor time of the ${who}`, list);
  for (const title of ["Size", "Lock", "Label", "Name"]) {
    const list = [];
    for (let i = 0; i < ROUNDS; i++) list.push(await sortBy(last, title));
    show(`sorted by ${title}`, list.map((one) => one.ms));
    show(`sorted by ${title}: longest task`, list.map((one) => one.longest));
  }
  for (const word of ["9", "segment77", "frame 7"]) {
    const list = [];
    for (let i = 0; i < ROUNDS; i++) {
      list.push(await filterBy(last, word));
      list.push(await filterBy(last, ""));
    }
    show(`filtered by ${word}, and without`, list.map((one) => one.ms));
    show(`filtered by ${word}, and without: longest task`, list.map((one) => one.longest));
  }
  const list = [];
  for (let i = 0; i < ROUNDS; i++) {
    const measured = last.evaluate(() => notes.measure(() => {}, () => document.querySelector(".events")?.textContent.includes("more-is-gone")));
    ctl("create", `more${i}`, SIZE);
    ctl("remove", `more${i}`);
    ctl("create", "more-is-gone", SIZE);
    ctl("remove", "more-is-gone");
    list.push(await measured);
  }
  show("segments come and go: longest task", list.map((one) => one.longest));
  await browser.close();
  await end(server);
}

try {
  await run();
} finally {
  await endAll();
}
