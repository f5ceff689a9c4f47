import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { startDaemon, type TestDaemon } from '../../daemon/test/support/daemon.js';
import { buildDashboard } from '../scripts/build.mjs';
import { missingBrowser, TestBrowser } from './browser.js';

/** A server in a process of its own, so that SIGSTOP can freeze it. */
const program = `
  const server = require('node:http').createServer((request, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(request.url.includes('/admin/queues') ? '[]' : '{"status":"ok"}');
  });
  server.listen(0, '127.0.0.1', () => console.log(server.address().port));
`;

class Freezable {
  private constructor(
    readonly url: string,
    readonly process: ChildProcess,
  ) {}

  static async start(): Promise<Freezable> {
    const child = spawn(process.execPath, ['-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = (await once(child.stdout!, 'data')) as [Buffer];
    return new Freezable(`http://127.0.0.1:${String(line).trim()}`, child);
  }
}

let queue: Freezable;
let database: Freezable;
let daemon: TestDaemon;
let browser: TestBrowser | undefined;

beforeAll(async () => {
  [queue, database, browser] = await Promise.all([
    Freezable.start(),
    Freezable.start(),
    TestBrowser.start(),
    buildDashboard(),
  ]);
  daemon = await startDaemon({ flags: { 'queue-url': queue.url, 'database-url': database.url } });
}, 240_000);
afterAll(async () => {
  await browser?.close();
  await daemon?.dispose();
  for (const server of [queue, database]) server?.process.kill('SIGKILL');
});
beforeEach(({ skip }) => skip(browser === undefined, missingBrowser));

/** Twice the 3 seconds of an idle machine. */
const maxShownMs = 6_000;

/** The page's own time until a text is there. */
const measure = (to: string) => `new Promise((resolve) => {
  const start = performance.now();
  const look = () => {
    const { textContent } = document.querySelector('.nav');
    if (textContent.includes(${JSON.stringify(to)})) resolve(performance.now() - start);
    else setTimeout(look, 50);
  };
  look();
})`;

test('servers: each has its own state, and a frozen one is named within 3 seconds', async () => {
  const watched = await browser!.open(`${daemon.url}/#/settings`);
  const { page } = watched;
  const servers = page.getByRole('list', { name: 'Servers' }).getByRole('listitem');
  await page.getByText('Live', { exact: true }).waitFor();
  await expect
    .poll(() => servers.allInnerTexts(), { timeout: 30_000 })
    .toEqual([
      expect.stringMatching(/^Daemon\s+live$/),
      expect.stringMatching(/^Queue\s+live$/),
      expect.stringMatching(/^Database\s+live$/),
    ]);

  queue.process.kill('SIGSTOP');
  const shownMs = await page.evaluate<number>(measure('Queue not answering'));
  expect(shownMs).toBeLessThan(maxShownMs);
  expect(await page.getByText('Live', { exact: true }).count()).toBe(0);
  await page.getByText(/no answer, data \d+ s old/).waitFor();
  expect(await servers.nth(2).innerText()).toMatch(/Database\s+live/);

  queue.process.kill('SIGCONT');
  await page.getByText('Live', { exact: true }).waitFor();

  database.process.kill('SIGSTOP');
  await page.getByText('Database not answering').waitFor();
  database.process.kill('SIGCONT');
  await page.getByText('Live', { exact: true }).waitFor();
  await watched.close();
});

test('skeleton: ends in a message with a retry while the server is frozen', async () => {
  queue.process.kill('SIGSTOP');
  const watched = await browser!.open(`${daemon.url}/#/queues`);
  const { page } = watched;
  await page
    .getByRole('alert')
    .getByText(/Queue: no answer/)
    .waitFor();
  await page.getByRole('button', { name: 'Retry' }).click();
  await page.getByRole('alert').waitFor({ state: 'detached' });
  await page.getByRole('alert').waitFor();
  queue.process.kill('SIGCONT');
  await page.getByText('No queues yet.').waitFor();
  await watched.close();
});

test('daemon: one that is frozen is never live', async () => {
  const watched = await browser!.open(`${daemon.url}/#/settings`);
  const { page } = watched;
  await page.getByText('Live', { exact: true }).waitFor();
  // The daemon runs in this process, so its answers are held back in the browser.
  await page.route('**/api/v1/servers', () => undefined);
  const shownMs = await page.evaluate<number>(measure('Daemon not answering'));
  expect(shownMs).toBeLessThan(maxShownMs);
  const states = await page.getByRole('list', { name: 'Servers' }).innerText();
  expect(states).not.toMatch(/\blive\b/);
  await page.unroute('**/api/v1/servers');
  await page.getByText('Live', { exact: true }).waitFor();
  await watched.close();
});
