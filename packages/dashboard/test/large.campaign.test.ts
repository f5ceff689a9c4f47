// @module-tag campaign-browser
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { missingBrowser, type OpenOptions } from './browser.js';
import { FakeAgents } from './support/fake-agents.js';
import { eventually, Rig } from './support/rig.js';

const agentCount = 10_000;
/** What fits on a page, with the rows that are rendered ahead. */
const maxRows = 60;

let rig: Rig;
const agents = new FakeAgents();

beforeAll(async () => {
  rig = await Rig.start();
  for (let index = 0; index < agentCount; index++) agents.addSession(`agent ${index}`, 'done');
}, 240_000);
afterAll(() => rig?.stop());
beforeEach(({ skip }) => skip(rig.browser === undefined, missingBrowser));

const on = (act: Parameters<Rig['on']>[1], options: OpenOptions = {}) =>
  rig.on('/', act, { prepare: agents.install, ...options });

/** Runs a step in the page and returns how many elements it added. */
const addedBy = (step: string) => `(async () => {
  let added = 0;
  const observer = new MutationObserver((records) => {
    for (const { addedNodes } of records) {
      for (const node of addedNodes) {
        if (node instanceof Element) added += 1 + node.querySelectorAll('*').length;
      }
    }
  });
  observer.observe(document.querySelector('main'), { childList: true, subtree: true });
  ${step};
  for (let frame = 0; frame < 5; frame++) await new Promise((done) => requestAnimationFrame(done));
  observer.disconnect();
  return added;
})()`;

test('ten thousand agents: a jump renders one page of rows, not all', () =>
  on(async (page) => {
    await page.getByText(`All ${agentCount}`).waitFor();
    const rows = page.getByRole('table', { name: 'Agents' }).getByRole('row');
    await rows.nth(5).waitFor();
    expect(await rows.count()).toBeLessThan(maxRows);
    const cells = await page.locator('.vtable-scroll *').count();
    const added = await page.evaluate<number>(
      addedBy(`document.querySelector('.vtable-scroll').scrollTo(0, 200_000)`),
    );
    expect(await rows.count()).toBeLessThan(maxRows);
    // Some are added twice, when the list is measured between two frames.
    expect(added).toBeGreaterThan(0);
    expect(added).toBeLessThan(3 * cells);
  }));

test('ten thousand agents: a search finds one of them', () =>
  on(async (page) => {
    await page.getByLabel('Search agents').fill('agent 9876');
    const names = page.getByRole('row').getByRole('link');
    await eventually(async () => expect(await names.allTextContents()).toEqual(['agent 9876']));
  }));

test('density: compact shows more rows, kept after a reload', () =>
  on(async (page, watched) => {
    const height = async () =>
      Math.round((await page.locator('.vtable-scroll .vtable-row').first().boundingBox())!.height);
    await page.getByText(`All ${agentCount}`).waitFor();
    expect(await height()).toBe(40);
    await page.getByLabel('Density').selectOption('compact');
    await eventually(async () => expect(await height()).toBe(28));
    await page.reload();
    await page.getByText(`All ${agentCount}`).waitFor();
    expect(await height()).toBe(28);
    await watched.expectAccessible();
    await watched.screenshot('compact');
    await page.getByLabel('Density').selectOption('comfortable');
    await eventually(async () => expect(await height()).toBe(40));
  }));
