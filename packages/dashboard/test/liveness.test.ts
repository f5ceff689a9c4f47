import type { DaemonSchema } from '@millrace/contract/daemon';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { buildDashboard } from '../scripts/build.mjs';
import { missingBrowser, TestBrowser, type WatchedPage } from './browser.js';
import { ServerProcesses, type ServerName } from './support/server-processes.js';

const again = inCampaign('browser');
const servers = new ServerProcesses();
let browser: TestBrowser | undefined;

beforeAll(async () => {
  // The daemon looks for the site when it starts.
  await buildDashboard();
  [browser] = await Promise.all([TestBrowser.start(), servers.start()]);
}, 300_000);
afterAll(async () => {
  await browser?.close();
  servers.stop();
});
beforeEach(({ skip }) => skip(browser === undefined, missingBrowser));
afterEach(() => {
  for (const name of names) servers.signal(name, 'SIGCONT');
});

const names: readonly ServerName[] = ['daemon', 'queue', 'database'];
const titles: Readonly<Record<ServerName, string>> = {
  daemon: 'Daemon',
  queue: 'Queue',
  database: 'Database',
};

/** From the last answer of a server. */
const maxShownMs = 3_000;
/** A round trip includes up to 250 ms in which the daemon waits for a check. */
const maxTripMs = 300;
const tickMs = 50;

/** What the page has seen, by its own clock. */
interface Seen {
  answers: { sentAt: number; at: number; body: DaemonSchema<'ServerStates'> }[];
  /** The state of all servers, each time that its text changed. */
  states: { at: number; text: string }[];
  /** How late the page's own timers were. */
  stalls: { at: number; ms: number }[];
}

/** Runs in the page before its scripts. */
const recorder = `{
  const seen = { answers: [], states: [], stalls: [] };
  window.seen = seen;
  const send = window.fetch;
  window.fetch = async (input, init) => {
    const sentAt = performance.now();
    const response = await send(input, init);
    if (String(input.url ?? input).endsWith('/api/v1/servers') && response.ok) {
      const body = await response.clone().json();
      seen.answers.push({ sentAt, at: performance.now(), body });
    }
    return response;
  };
  let before = performance.now();
  setInterval(() => {
    const at = performance.now();
    const ms = at - before - ${tickMs};
    if (ms > ${tickMs}) seen.stalls.push({ at, ms });
    before = at;
    const sign = document.querySelector('.nav-top [role=status]')?.textContent;
    const list = [...document.querySelectorAll('.servers li')].map((item) => item.textContent);
    const text = [sign, ...list].join(', ');
    if (text !== seen.states.at(-1)?.text) seen.states.push({ at, text });
  }, ${tickMs});
}`;

const seenBy = (page: WatchedPage['page']) => page.evaluate<Seen>('window.seen');

async function openPage(path: string): Promise<WatchedPage> {
  return browser!.open(`${servers.url}/#${path}`, {
    needsOwnTab: true,
    prepare: async (page) => {
      await page.addInitScript(recorder);
    },
  });
}

/** When the page last began to show a server as not live. */
function shownAt({ states }: Seen, name: ServerName): number {
  const live = `${titles[name]} live`;
  const last = states.findLastIndex(({ text }) => text.startsWith('Live') || text.includes(live));
  return states[last + 1]!.at;
}

/** The page's time of the last answer of a server, or of the end of a pause of the page itself. */
function lastAnswer({ answers, stalls }: Seen, name: ServerName, before: number): number {
  const answered = answers.map(({ at, body }) =>
    name === 'daemon' ? at : at - body[name].answered_ms_ago!,
  );
  const paused = stalls.filter(({ ms }) => ms > 1_000).map(({ at }) => at);
  return Math.max(...[...answered, ...paused].filter((at) => at <= before));
}

/** How late page and daemon were on a machine that is busy with other things. */
function lagBetween({ answers, stalls }: Seen, from: number, to: number): number {
  const late = stalls.filter(({ at }) => at > from && at <= to).map(({ ms }) => ms);
  const slow = answers
    .filter(({ at }) => at > from && at <= to)
    .map(({ sentAt, at }) => Math.max(0, at - sentAt - maxTripMs));
  return [...late, ...slow].reduce((sum, ms) => sum + ms, 0);
}

const title = (name: string) =>
  `${name}: SIGSTOP shows within 3 seconds, never as live, until SIGCONT`;

test(title('queue'), () => stopAndContinue('queue'));
again(title('daemon'), () => stopAndContinue('daemon'));
again(title('database'), () => stopAndContinue('database'));

async function stopAndContinue(name: ServerName): Promise<void> {
  const watched = await openPage('/settings');
  const { page } = watched;
  const live = page.getByText('Live', { exact: true });
  await live.waitFor();
  const list = page.getByRole('list', { name: 'Servers' });
  for (const title of Object.values(titles)) {
    await list.getByText(`${title} live`, { exact: true }).waitFor();
  }

  servers.signal(name, 'SIGSTOP');
  await list.getByText(new RegExp(`^${titles[name]} no answer, data \\d+ s old$`)).waitFor();
  // Longer than a check is given, so that a second one has to fail too.
  await page.waitForTimeout(5_000);
  const seen = await seenBy(page);
  const shown = shownAt(seen, name);
  const answered = lastAnswer(seen, name, shown);
  expect(shown - answered - lagBetween(seen, answered, shown)).toBeLessThan(maxShownMs);
  expect(await live.count()).toBe(0);

  servers.signal(name, 'SIGCONT');
  await live.waitFor();
  await list.getByText(`${titles[name]} live`, { exact: true }).waitFor();
  await watched.close();
}

test('frozen server: a message with a retry in place of the skeleton, actions disabled', async () => {
  servers.signal('queue', 'SIGSTOP');
  const watched = await openPage('/queues');
  const { page } = watched;
  await page
    .getByRole('alert')
    .getByText(/Queue: no answer/)
    .waitFor();
  const create = page.getByRole('button', { name: 'New queue' });
  await expect.poll(() => create.isDisabled()).toBe(true);
  await page.getByRole('button', { name: 'Retry' }).click();
  await page.getByRole('alert').waitFor({ state: 'detached' });
  await page.getByRole('alert').waitFor();
  servers.signal('queue', 'SIGCONT');
  await page.getByText('No queues yet.').waitFor();
  await expect.poll(() => create.isEnabled()).toBe(true);
  await watched.close();
});
