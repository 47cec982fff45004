// SPDX-License-Identifier: Apache-2.0
// The page of shmviewctl web in a browser: every page, what other processes change, deaths, edits,
// restarts of the daemon and of the server, what must be refused, and accessibility.

import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import path from "node:path";

import { WAIT_MS, ctl, end, endAll, require, start, startBrowser, startDaemon, startServer, until } from "./processes.mjs";
import { viewTests } from "./views.mjs";

const { SCRATCH, SHMVIEWCTL, SHMVIEW_BUILD_DIR } = process.env;
const AXE = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const MARKUP = "<img src=x onerror=alert(1)>";
const N_SEGMENTS = 120;
const FIRST_PAGE_BYTES = 100 * 1024;

// --- The browser -------------------------------------------------------------

let server, daemon, browser, context;

async function open(hash, options = {}) {
  const page = await context.newPage();
  page.setDefaultTimeout(WAIT_MS);
  page.on("dialog", () => assert.fail("markup of a name has run"));
  page.on("pageerror", (error) => { throw error; });
  if (options.size) await page.setViewportSize(options.size);
  await page.emulateMedia({ colorScheme: options.dark ? "dark" : "light" });
  await page.goto(`http://127.0.0.1:${server.port}/${hash}`);
  return page;
}

async function expectText(page, selector, text) {
  await page.locator(selector).filter({ hasText: text }).first().waitFor();
}

/** Lets axe look at a page in each size and colour. */
async function axe(hash, ready) {
  for (const options of [{ size: { width: 1280, height: 800 } }, { size: { width: 390, height: 844 }, dark: true }]) {
    const page = await open(hash, options);
    await page.locator(ready).first().waitFor();
    const client = await page.context().newCDPSession(page);
    await client.send("Runtime.evaluate", { expression: AXE });
    const { result } = await client.send("Runtime.evaluate", {
      expression: "axe.run().then((all) => JSON.stringify(all.violations.map((one) => [one.id, one.nodes.map((node) => node.html).slice(0, 3)])))",
      awaitPromise: true, returnByValue: true,
    });
    assert.equal(result.value, "[]", `axe on ${hash}`);
    await page.close();
  }
}

// --- Tests -------------------------------------------------------------------

const VIEW = "#/view?segment=data&layout=l&view=a";

const tests = {
  async "a wrong token and a missing session are refused"() {
    const stranger = await browser.newContext();
    const page = await stranger.newPage();
    for (const place of ["/", "/?token=0123456789abcdef0123456789abcdef", "/app.js"]) {
      const response = await page.goto(`http://127.0.0.1:${server.port}${place}`);
      assert.equal(response.status(), 401, place);
    }
    await stranger.close();
  },

  async "a page of another origin gets nothing"() {
    // the same host with another port: the browser sends the cookie along
    const other = await startServer();
    const page = await context.newPage();
    await page.goto(other.link());
    await page.waitForURL(`http://127.0.0.1:${other.port}/`);
    const failed = await page.evaluate((port) => fetch(`http://127.0.0.1:${port}/api/daemon`, { credentials: "include" })
      .then(() => false, () => true), server.port);
    assert.ok(failed);
    await page.close();
    await end(other);
    await enter();
  },

  async "a page of the permitted origin shows it in a frame, and no other one"() {
    // the "notebook": another server, whose page has the address of the frame after "?"
    const notebook = http.createServer((request, response) => {
      response.setHeader("Content-Type", "text/html");
      const source = decodeURIComponent(request.url.split("?")[1] || "").replaceAll("&", "&amp;");
      response.end(`<title>notebook</title><iframe id="f" width="900" height="600" src="${source}"></iframe>`);
    });
    await new Promise((resolve) => notebook.listen(0, "127.0.0.1", resolve));
    const { port } = notebook.address();
    const framed = await startServer(0, "--frame", `http://localhost:${port}`);
    const closed = await startServer();
    const user = await browser.newContext();
    /** Shows an address in a frame of the notebook at a host. Returns the page and the frame. */
    async function show(host, address) {
      const page = await user.newPage();
      page.setDefaultTimeout(WAIT_MS);
      await page.goto(`http://${host}:${port}/?${encodeURIComponent(address)}`);
      return [page, await (await page.waitForSelector("#f")).contentFrame()];
    }
    async function refused(host, address) {
      const [page, frame] = await show(host, address);
      await until(() => frame.url().startsWith("chrome-error:"), "the refusal");
      await page.close();
    }
    try {
      const place = "/segment?name=data";
      const at = `&at=${encodeURIComponent(place)}#${place}`;
      const [page, frame] = await show("localhost", framed.link() + at);
      await expectText(frame, "h1", "data");
      await expectText(frame, "#connection", "connected"); // the cookie reaches the frame's requests
      await page.reload(); // the token is used, the session stays, and so does the place
      const again = await (await page.waitForSelector("#f")).contentFrame();
      await expectText(again, "h1", "data");
      assert.equal(await page.evaluate(() => document.getElementById("f").contentDocument), null); // it cannot look inside
      await page.close();
      for (const path of ["/", "/api/daemon", "/app.js"]) await refused("127.0.0.1", `http://localhost:${framed.port}${path}`);
      const [other, shown] = await show("localhost", `http://127.0.0.1:${framed.port}/`); // another site: no cookie
      await expectText(shown, "body", "Open the link");
      await other.close();
      await refused("localhost", closed.link().replace("127.0.0.1", "localhost"));
      await refused("localhost", closed.link());
    } finally {
      await user.close();
      notebook.close();
      notebook.closeAllConnections();
      await end(framed);
      await end(closed);
    }
  },

  async "a download arrives, or the page shows why not"() {
    const page = await open(VIEW);
    const save = page.getByRole("button", { name: "Save as npy" });
    const [download] = await Promise.all([page.waitForEvent("download"), save.click()]);
    assert.equal(download.suggestedFilename(), "data-a.npy");
    assert.equal(fs.readFileSync(await download.path()).subarray(1, 6).toString(), "NUMPY");
    await page.route("**/api/npy*", (route) => route.fulfill({
      status: 503, headers: { "Retry-After": "1" }, contentType: "application/json", body: '{"error": "others are under way"}',
    }));
    await save.click();
    await expectText(page, "[role=alert]", "others are under way");
    await page.unrouteAll();
    await Promise.all([page.waitForEvent("download"), save.click()]);
    assert.equal(await page.locator("[role=alert]").innerText(), "");
    await expectText(page, "#connection", "connected");
    await page.close();
  },

  async "the first page is small and asks nobody else"() {
    const page = await context.newPage();
    let bytes = 0;
    page.on("response", async (response) => {
      assert.equal(new URL(response.url()).hostname, "127.0.0.1");
      if (!response.url().includes("/api/")) bytes += Number(response.headers()["content-length"] || 0);
    });
    await page.goto(`http://127.0.0.1:${server.port}/`);
    await expectText(page, "tbody", "data");
    assert.ok(bytes > 0 && bytes < FIRST_PAGE_BYTES, `${bytes} bytes`);
    const late = await page.evaluate(() => { // modules that the browser learns of from other modules
      const named = new Set([...document.querySelectorAll("link, script")].map((one) => one.href || one.src));
      return performance.getEntriesByType("resource").map((one) => one.name).filter((name) => name.endsWith(".js") && !named.has(name));
    });
    assert.deepEqual(late, []);
    await page.close();
  },

  async "the table has elements for visible rows only, and filters and sorts"() {
    const page = await open("#/");
    await expectText(page, "p.soft", `${N_SEGMENTS + 1} segments`);
    assert.ok(await page.locator("tbody tr").count() < 60);
    await page.getByRole("searchbox").fill("seg-7");
    await expectText(page, "p.soft", "11 of");
    await page.getByRole("searchbox").fill("");
    await page.getByRole("button", { name: "Size" }).click();
    await expectText(page, "tbody tr:nth-child(2)", "data");
    assert.equal(await page.locator("th[aria-sort=descending]").count(), 1);
    await page.getByRole("button", { name: "Name" }).click();
    await expectText(page, "tbody tr:nth-child(5)", "seg-2"); // numbers sort by their value
    await page.getByRole("button", { name: "Name" }).click();
    await expectText(page, "tbody tr:nth-child(2)", "seg-119");
    await page.getByRole("button", { name: "Size" }).click();
    await page.locator(".scroll").first().evaluate((element) => { element.scrollTop = element.scrollHeight; });
    await expectText(page, "tbody", "seg-119");
    await page.close();
  },

  async "the list comes without late columns, and gets them for visible rows or to sort by them"() {
    const page = await open("#/", { size: { width: 1700, height: 700 } });
    await expectText(page, "p.soft", /segments$/); // the list of this load does not count
    const lists = [];
    page.on("request", (request) => {
      const query = new URL(request.url()).searchParams;
      if (request.url().includes("/api/segments") && !query.has("name")) lists.push(query.get("brief"));
    });
    await page.reload();
    await expectText(page, "tbody tr:nth-child(2) td:nth-child(4)", "KiB"); // resident, of the details
    await page.locator(".scroll").first().evaluate((element) => { element.scrollTop = element.scrollHeight; });
    await expectText(page, "tbody tr:has-text('seg-119') td:nth-child(4)", "4 KiB");
    assert.equal(await page.locator("tr.changed").count(), 0, "details are no change");
    assert.deepEqual(lists, ["1"]);
    let release;
    await page.route(/brief=0/, async (route) => {
      await new Promise((resolve) => { release = resolve; });
      await route.continue();
    });
    await page.getByRole("button", { name: "Created" }).click();
    await expectText(page, "p.soft", "Created is not known of all yet");
    await until(() => release, "the request for all columns");
    release();
    await expectText(page, "p.soft", /segments$/);
    await page.locator(".scroll").first().evaluate((element) => { element.scrollTop = 0; });
    await expectText(page, "tbody tr:nth-child(2)", "seg-119");
    assert.deepEqual(lists, ["1", "0"]);
    await page.close();
  },

  async "the list is asked for before the other modules are there, and only for the overview"() {
    for (const [place, isAsked] of [["#/", true], ["#/segment?name=data", false]]) {
      const page = await open("#/");
      let [lists, release] = [[], null];
      await page.goto("about:blank");
      await page.route(/app\.js$/, async (route) => {
        await new Promise((resolve) => { release = resolve; });
        await route.continue();
      });
      page.on("request", (request) => { if (request.url().includes("/api/segments?limit")) lists.push(request.url()); });
      const asked = isAsked ? page.waitForRequest(/api\/segments\?limit/) : page.waitForResponse(/early\.js$/);
      page.goto(`http://127.0.0.1:${server.port}/${place}`).catch(() => {});
      await asked;
      await until(() => release, "the request for the last module");
      release();
      await expectText(page, isAsked ? "tbody" : "main", "data");
      assert.equal(lists.length, Number(isAsked), place);
      await page.close();
    }
  },

  async "a segment that is removed while its list is under way does not stay in the table"() {
    ctl("create", "brief", "64");
    const page = await open("#/");
    await page.route(/api\/segments\?limit/, async (route) => {
      const response = await route.fetch();
      ctl("remove", "brief");
      await expectText(page, ".events", "brief");
      await route.fulfill({ response });
    });
    await page.reload();
    await expectText(page, "main [role=status]", "segment");
    assert.ok(!(await page.locator("tbody").innerText()).includes("brief"));
    await page.close();
  },

  async "many rows stay in order and are filtered while they come, change and go"() {
    const page = await open("#/");
    const faults = await page.evaluate(async () => {
      const { Order } = await import("/order.js");
      const [found, n] = [[], 50000];
      let ready = () => {};
      let wanted = (row) => row;
      const all = new Set();
      const order = new Order({ rows: () => all, ready: () => ready(), onBusy: () => {} });
      const put = (list) => {
        for (const row of list) all.add(row);
        order.put(list);
      };
      const remove = (row) => {
        all.delete(row);
        order.remove(row);
      };
      const rows = Array.from({ length: n }, (_, i) => ({ id: i, order: null, name: `Row${(i * 7919) % n}`, size: i % 7 }));
      const next = () => new Promise((resolve) => { ready = () => { if (!order.coming.size && !order.going.size) resolve(); }; });
      const number = (row) => Number(row.name.slice(3));
      function check(what, less) {
        const list = [...all].filter(wanted).sort(less);
        if (order.count !== list.length || !order.shown.length || order.shown.some((row, i) => row !== list[i])) found.push(what);
      }
      const byName = (a, b) => number(a) - number(b) || a.id - b.id;
      order.sortBy("name", false, false);
      order.isGrowing = true;
      for (let i = 0; i < n; i += 9000) put(rows.slice(i, i + 9000));
      rows[3].name = "row7"; // changes and goes while others come
      put(rows.slice(3, 5));
      remove(rows[0]);
      check("the first rows while others come", byName);
      let ended = next();
      order.settle();
      await ended;
      if (order.shown.length !== n - 1) found.push("all rows");
      check("sorted by name", byName);
      ended = next();
      order.sortBy("size", true, true);
      for (const row of rows.slice(1, 5000)) row.name = `row${number(row) + n}`; // while it sorts
      put(rows.slice(1, 5000));
      for (const row of rows.slice(4000, 9000)) remove(row);
      await ended;
      check("sorted by size", (a, b) => b.size - a.size || a.id - b.id);
      ended = next();
      order.sortBy("name", false, false);
      wanted = (row) => row.size === 3;
      order.filterBy(wanted);
      await ended;
      check("sorted by name and filtered", byName);
      return found;
    });
    assert.deepEqual(faults, []);
    await page.close();
  },

  async "segments appear and vanish, with markup as text"() {
    const page = await open("#/", { size: { width: 1700, height: 900 } });
    await expectText(page, "tbody", "data");
    ctl("create", "aaa", "4096", "--label", MARKUP);
    await expectText(page, "tbody", "aaa");
    await expectText(page, "tbody td", MARKUP);
    assert.equal(await page.locator("main img").count(), 0);
    ctl("remove", "aaa");
    await page.locator("tbody a", { hasText: "aaa" }).waitFor({ state: "detached" });
    await expectText(page, ".events", "the name was removed");
    await page.close();
  },

  async "a killed holder appears"() {
    const holder = start(SHMVIEWCTL, ["lock", "data", "sleep", "100"]);
    const page = await open("#/segment?name=data");
    await expectText(page, "dd", `(${holder.pid})`);
    await expectText(page, "table.plain td", "holds it exclusive");
    await end(holder, "SIGKILL");
    await expectText(page, "dd.bad", "1");
    await expectText(page, ".events .bad", "died while it held the lock");
    await page.goto(`http://127.0.0.1:${server.port}/${VIEW}`);
    await expectText(page, "main p.bad", "half written");
    await expectText(page, "main p.bad", String(holder.pid));
    ctl("lock", "data", "--owner-died", "repair", "true");
    await expectText(page, "main p.good", "read in order");
    await page.close();
  },

  async "a deadlock of two processes is named, and ends"() {
    const packages = path.join(SHMVIEW_BUILD_DIR, "python");
    if (!fs.existsSync(packages)) return;
    const lockTwo = (held, wanted) => start("/usr/bin/env", [`PYTHONPATH=${packages}`, "/usr/bin/python3", "-c",
      `import shmview, time; a, b = map(shmview.attach, ("${held}", "${wanted}")); a.lock()
while b.trylock(): b.unlock(); time.sleep(0.01)
b.lock(timeout=600)`]);
    const [a, b] = [lockTwo("seg-1", "seg-2"), lockTwo("seg-2", "seg-1")];
    await axe("#/segment?name=seg-1", ".waits li strong.bad");
    const page = await open("#/segment?name=seg-1");
    await expectText(page, "[role=alert] p.bad", /^Deadlock: python3 \(\d+\) waits for seg-1 held by python3 \(\d+\), python3 \(\d+\) waits for seg-2 held by/);
    await expectText(page, ".waits > ul > li", /waits for seg-1, exclusive, for [\d.]+ (ms|s|min)/);
    await expectText(page, ".waits li li", "which closes the circle");
    const link = page.locator(".waits a").first();
    await link.focus(); // it stays while the times change
    const text = await page.locator(".waits").textContent();
    await until(async () => await page.locator(".waits").textContent() !== text, "another time");
    assert.equal(await link.evaluate((element) => element === document.activeElement), true);
    await page.keyboard.press("Enter");
    await expectText(page, "h1", "seg-2");
    await end(a, "SIGTERM");
    await page.locator(".waits li").first().waitFor({ state: "hidden" });
    await end(b, "SIGTERM");
    await page.close();
  },

  async "an answer that breaks off ends no updates"() {
    for (const [hash, path] of [["#/segment?name=data", "/api/segment?"], [VIEW, "/api/line?"]]) {
      const page = await open(hash);
      await expectText(page, "#connection", "connected");
      await page.evaluate((path) => {
        const real = window.fetch;
        let isBroken = false;
        window.wholeAnswers = 0; // after the broken one
        window.fetch = async (address, options) => {
          const response = await real(address, options);
          if (!address.startsWith(path)) return response;
          window.wholeAnswers += Number(isBroken);
          if (isBroken) return response;
          isBroken = true;
          return new Response(new ReadableStream({ pull: (body) => body.error(new TypeError("network error")) }));
        };
      }, path);
      await page.waitForFunction(() => window.wholeAnswers > 1);
      await expectText(page, "#connection", "connected");
      await page.close();
    }
  },

  async "a page whose modules do not come can be loaded again"() {
    const page = await open("#/");
    await expectText(page, "tbody", "data");
    await page.route("**/memory.js", (route) => route.abort()); // a module of another module
    await page.locator("tbody").getByRole("link", { name: "data", exact: true }).click();
    await expectText(page, "[role=alert]", "cannot be loaded");
    await page.unrouteAll();
    await page.getByRole("button", { name: "Load again" }).click();
    await expectText(page, "h1", "data");
    await page.close();
  },

  ...viewTests({ open, expectText, VIEW }),

  async "axe finds nothing"() {
    await axe("#/", "tbody a");
    await axe("#/segment?name=data", ".memory a");
    await axe(VIEW, "canvas[aria-label*='a line of']");
    await axe("#/view?segment=data&layout=l&view=m", "canvas[aria-label*='an image of']");
    await axe("#/view?segment=data&layout=l&view=t", "canvas[aria-label*='an image of']");
    await axe("#/view?segment=data&layout=l&view=c", "canvas[aria-label*='in colours of']");
    await axe(`${VIEW}&kind=numbers`, ".grid td");
    await axe(`${VIEW}&kind=histogram`, "canvas[aria-label*='a histogram of']");
  },

  async "the page survives the daemon and its server"() {
    const page = await open("#/");
    await expectText(page, "#connection", "connected");
    await end(daemon, "SIGKILL");
    await page.locator("#connection.bad").waitFor();
    daemon = await startDaemon();
    await page.locator("#connection.good").waitFor();
    await expectText(page, "tbody", "data");
    const { port } = server;
    await end(server, "SIGKILL");
    await page.locator("#connection.bad").waitFor();
    server = await startServer(port);
    await expectText(page, "#connection", "no session");
    await enter();
    await page.locator("#connection.good").waitFor();
    await page.close();
  },
};

/** Uses the link. */
async function enter() {
  const page = await context.newPage();
  await page.goto(server.link());
  await page.waitForURL(`http://127.0.0.1:${server.port}/`);
  await page.close();
}

async function run() {
  daemon = await startDaemon();
  ctl("create", "data", "--layout", "l: a=f4[1000] m=f8[40,50]@4000 t=i2[3,4,5]@20000 c=u1[6,7,3]@20200");
  for (let i = 0; i < N_SEGMENTS; i++) ctl("create", `seg-${i}`, "4096");
  server = await startServer();
  browser = await startBrowser();
  context = await browser.newContext();
  await enter();
  for (const [name, test] of Object.entries(tests)) {
    if (process.argv[2] && !name.includes(process.argv[2])) continue;
    const begun = Date.now();
    try {
      await test();
    } catch (error) {
      console.log(`FAILED: ${name}`);
      await context.pages().at(-1)?.screenshot({ path: path.join(SCRATCH, "failed.png") }).catch(() => {});
      throw error;
    }
    console.log(`passed: ${name} (${Date.now() - begun} ms)`);
  }
}

try {
  await run();
} finally {
  await browser?.close();
  await endAll();
}
