// SPDX-License-Identifier: Apache-2.0
// Tests of the pages of single views, for browser.mjs: values, edits, pictures and slices.

import assert from "node:assert/strict";

import { ctl, until } from "./processes.mjs";

/** open(hash) opens a page, expectText(page, selector, text) waits for a text, and VIEW is the hash of
 * data/l:a, which has a thousand float32. */
export const viewTests = ({ open, expectText, VIEW }) => ({
  async "a value that another process sets appears"() {
    const page = await open(`${VIEW}&kind=numbers`);
    const updates = new Set(); // that are under way
    page.on("request", (request) => request.url().includes("/api/grid") && updates.add(request));
    for (const end of ["requestfinished", "requestfailed"]) page.on(end, (request) => updates.delete(request));
    await expectText(page, ".grid", "0");
    ctl("set", "data/a[7]", "41.5");
    await expectText(page, ".grid td", "41.5");
    await page.getByRole("button", { name: "Pause" }).click();
    assert.match(page.url(), /paused=1/);
    await until(() => updates.size === 0, "the end of the last update");
    ctl("set", "data/a[7]", "42.5");
    await new Promise((resolve) => setTimeout(resolve, 600));
    assert.equal(await page.locator(".grid td", { hasText: "42.5" }).count(), 0);
    await page.getByRole("button", { name: "Step" }).click();
    await expectText(page, ".grid td", "42.5");
    await page.close();
  },

  async "an element is edited by keyboard, under the lock"() {
    const page = await open(`${VIEW}&kind=numbers`);
    const cell = page.locator(".grid td").nth(3);
    await cell.focus();
    await page.keyboard.press("Enter");
    await page.keyboard.type("x");
    await page.keyboard.press("Enter");
    await expectText(page, "p[role=alert]", "no number");
    await page.keyboard.press("Control+A");
    await page.keyboard.type("-2.25");
    await page.keyboard.press("Enter");
    await until(() => ctl("get", "data/a[3]").includes("-2.25"), "the change");
    await page.close();
  },

  async "frames of a stream are not changed, nor read under its lock"() {
    ctl("stream", "create", "cam", "--mode", "latest", "a=f4[4]");
    const page = await open("#/view?segment=cam&layout=frame&view=a&kind=numbers&lock=1");
    await expectText(page, "p[role=status]", "stream 'cam' has no frame");
    assert.equal(await page.getByLabel("Read").count(), 0);
    await page.close();
    ctl("remove", "cam");
  },

  async "a line, an image and a histogram are drawn"() {
    for (const [hash, selector] of [[`${VIEW}&rate=20`, "canvas[aria-label*='a line of']"],
      ["#/view?segment=data&layout=l&view=m", "canvas[aria-label*='an image of 40 rows']"],
      ["#/view?segment=data&layout=l&view=c", "canvas[aria-label*='in colours of 6 rows and 7 columns']"],
      [`${VIEW}&kind=histogram`, "canvas[aria-label*='a histogram of']"]]) {
      const page = await open(hash);
      await page.locator(selector).waitFor();
      await page.close();
    }
  },

  async "a link restores the colours and the scale of an image"() {
    ctl("set", "data/l:m[0,0:2]", "0", "8");
    const page = await open("#/view?segment=data&layout=l&view=m");
    await page.locator("canvas[aria-label*='values 0 to 8']").waitFor();
    await page.getByLabel("Colours").selectOption("grey");
    await page.getByLabel("keep the scale").check();
    const hash = await page.evaluate(() => location.hash);
    await page.close();
    ctl("set", "data/l:m[0,1]", "100");
    const again = await open(hash);
    await again.locator("canvas[aria-label*='values 0 to 8']").waitFor();
    assert.equal(await again.getByLabel("Colours").inputValue(), "grey");
    assert.equal(await again.getByLabel("keep the scale").isChecked(), true);
    await again.getByLabel("keep the scale").uncheck();
    await again.locator("canvas[aria-label*='values 0 to 100']").waitFor();
    assert.doesNotMatch(again.url(), /scale=/);
    ctl("set", "data/l:m[0,1]", "0");
    await again.locator("canvas[aria-label*='values 0 to 0']").waitFor();
    await again.getByLabel("keep the scale").check();
    const single = await open(await again.evaluate(() => location.hash));
    await single.locator("canvas[aria-label*='values 0 to 0']").waitFor();
    assert.equal(await single.getByLabel("keep the scale").isChecked(), true);
    await single.close();
    await again.close();
  },

  async "a slider moves through the first dimension"() {
    ctl("set", "data/l:t[1,2,3]", "7");
    const page = await open("#/view?segment=data&layout=l&view=t");
    await page.locator("canvas[aria-label*='4 rows and 5 columns, values 0 to 0']").waitFor();
    await page.getByLabel("Index of dimension 0").focus();
    await page.keyboard.press("ArrowRight");
    await page.locator("canvas[aria-label*='values 0 to 7']").waitFor();
    assert.equal(await page.getByLabel("Slice").inputValue(), "1,:,:");
    assert.equal(await page.locator("main output").count(), 0); // it would be read beside the slider's value
    assert.match(await page.getByLabel("Index of dimension 0").evaluate((input) => input.labels[0].textContent), /1$/);
    const link = page.url();
    await page.getByLabel("Slice").fill("::2,0");
    await page.keyboard.press("Enter");
    await page.getByLabel("Index of dimension 1").waitFor();
    assert.equal(await page.getByLabel("Index of dimension 0").count(), 0);
    await page.close();
    const again = await open(link.slice(link.indexOf("#")));
    await again.locator("canvas[aria-label*='values 0 to 7']").waitFor();
    assert.equal(await again.getByLabel("Index of dimension 0").inputValue(), "1");
    await again.close();
  },

  async "a line of any numbers is drawn, with an axis"() {
    for (const [a, b] of [["0.3", "0.30000000000000004"], ["1.7e308", "-1.7e308"], ["5e-324", "0"], ["7", "7"], ["nan", "inf"]]) {
      ctl("set", "data/l:m[0,0:2]", a, b);
      const page = await open("#/view?segment=data&layout=l&view=m&kind=line&slice=0,0:2");
      await page.locator("canvas[aria-label*='a line of 2 elements']").waitFor();
      await page.close();
    }
    ctl("set", "data/l:m[0,0:2]", "0", "0");
  },

  async "the line shows values at the cursor, and a part of it when the user drags"() {
    ctl("set", "data/a[500]", "5");
    const page = await open(`${VIEW}&slice=:800:2`);
    const over = page.locator(".u-over");
    await over.waitFor();
    const box = await over.boundingBox();
    const at = (element) => Math.ceil(box.x + (element / 798) * box.width);
    await page.mouse.move(at(500), box.y + 20);
    await expectText(page, ".legend", /Element:?\s*500/);
    await expectText(page, ".legend", /Value:?\s*5/);
    await page.mouse.move(at(400), box.y + 20);
    await page.mouse.down();
    await page.mouse.move(at(600), box.y + 30, { steps: 4 });
    await page.mouse.up();
    await page.locator("canvas[aria-label$='elements from 0 to 5']:not([aria-label*=' 400 '])").waitFor();
    const slice = await page.getByLabel("Slice").inputValue();
    const [first, last, step] = slice.split(":").map(Number);
    assert.ok(Math.abs(first - 400) <= 4 && Math.abs(last - 600) <= 4 && step === 2, slice);
    assert.ok(page.url().endsWith(`slice=${encodeURIComponent(slice)}`), page.url());
    await over.dblclick();
    await page.locator("canvas[aria-label*='a line of 1,000 elements']").waitFor();
    await page.getByLabel("Slice").fill("-600:-100");
    await page.keyboard.press("Enter");
    await page.locator("canvas[aria-label*='a line of 500 elements from 0 to 5']").waitFor();
    await page.mouse.move(Math.ceil(box.x + (100 / 499) * box.width), box.y + 20);
    await expectText(page, ".legend", /Element:?\s*500/);
    await expectText(page, ".legend", /Value:?\s*5/);
    ctl("set", "data/a[500]", "0");
    await page.close();
  },

  async "the histogram shows the bar at the pointer"() {
    const page = await open(`${VIEW}&kind=histogram&slice=:2`);
    const over = page.locator(".u-over");
    await over.waitFor();
    const box = await over.boundingBox();
    const legend = page.locator(".legend");
    async function shownAt(bar) { // the bar whose number is the whole part
      await page.mouse.move(Math.round(box.x + (bar / 64) * box.width), box.y + 20);
      await page.evaluate(() => new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); }));
      return legend.textContent();
    }
    const shown = await shownAt(3.1);
    assert.match(shown, /Values.*to.*Elements/);
    assert.equal(await shownAt(3.9), shown);
    assert.notEqual(await shownAt(4.1), shown);
    await page.close();
  },

  async "without uPlot the page explains what is missing"() {
    const page = await open("#/");
    let isMissing = true;
    await page.route("**/uplot.js*", (route) => (isMissing ? route.fulfill({ status: 404, body: "{}" }) : route.continue()));
    await page.evaluate((hash) => { location.hash = hash; }, VIEW);
    await expectText(page, "main p.bad", "need uPlot, which this build of shmview-web lacks");
    isMissing = false; // as after a new build
    await page.locator("canvas[aria-label*='a line of']").waitFor();
    await page.close();
  },
});
