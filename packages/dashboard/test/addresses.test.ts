import type { Locator } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { collectionNameError } from '../src/pages/database/collection-name.js';
import { missingBrowser, type WatchedPage } from './browser.js';
import { FakeAgents } from './support/fake-agents.js';
import { eventually, Rig } from './support/rig.js';

let rig: Rig;
const agents = new FakeAgents();

beforeAll(async () => {
  rig = await Rig.start();
  const { stores } = rig;
  await stores.makeQueue('mail.send');
  await stores.makeQueue('mail.digest');
  await stores.submit('mail.send', 'refuse.welcome', 2);
  await stores.submit('mail.send', 'break.invoice', 1);
  for (const [key, age] of Object.entries({ ada: 36, grace: 85, linus: 21 })) {
    await stores.database('POST', '/v1/people/keys', { key, data: { age, city: 'Paris' } });
  }
  const session = agents.addSession('retry the upload', 'idle', { branch: 'retry-upload' });
  agents.addSession('port the parser', 'working');
  agents.diff = diffOf(session.id);
  await eventually(async () => expect((await stores.stats('mail.send')).dlq_depth).toBe(3));
}, 240_000);
afterAll(() => rig?.stop());
beforeEach(({ skip }) => skip(!rig.browser, missingBrowser));

type Page = WatchedPage['page'];

interface Case {
  name: string;
  path: string;
  /** The parameter that the control writes. */
  param: string;
  act: (page: Page) => Promise<unknown>;
  /** In the page after the act, after Forward and after a reload; and not before it. */
  after: (page: Page) => Locator;
  /** In the page at first and after Back. */
  before: (page: Page) => Locator;
}

const button = (page: Page, name: string | RegExp) => page.getByRole('button', { name });

/** A row of buttons of which one is pressed. */
const choice = (
  name: string,
  path: string,
  param: string,
  from: string | RegExp,
  to: string | RegExp,
): Case => ({
  name,
  path,
  param,
  act: (page) => page.getByRole('button', { name: to, exact: true }).first().click(),
  after: (page) => page.getByRole('button', { name: to, exact: true, pressed: true }),
  before: (page) => page.getByRole('button', { name: from, exact: true, pressed: true }),
});

const rowsOf = (page: Page, table: string, text: string) =>
  page.getByRole('table', { name: table }).getByRole('row').filter({ hasText: text });

const cases: readonly Case[] = [
  choice('fleet: view', '/', 'view=board', 'Table', 'Board'),
  choice('fleet: status', '/', 'status=', /^All /, /^Working /),
  choice('agent: tab', '/agents/S00000', 'tab=changes', 'Output', 'Changes'),
  choice(
    'agent: layout of the changes',
    '/agents/S00000?tab=changes',
    'diff=split',
    'Unified',
    'Side by side',
  ),
  {
    name: 'agent: base of the changes',
    path: '/agents/S00000?tab=changes',
    param: 'base=next',
    act: async (page) => {
      await page.getByLabel('Compare with').fill('next');
      await page.getByLabel('Compare with').press('Enter');
    },
    after: (page) => page.locator('input[name=base][value=next]'),
    before: (page) => page.locator('input[name=base][value=""]'),
  },
  {
    name: 'agent: file of the changes',
    path: '/agents/S00000?tab=changes',
    param: 'file=NOTES.md',
    act: (page) => button(page, 'NOTES.md').click(),
    after: (page) => page.locator('button[aria-current]', { hasText: 'NOTES.md' }),
    before: (page) => page.getByRole('group', { name: 'Changes' }),
  },
  choice('inbox: all notes', '/inbox', 'show=all', /^Unread/, 'All'),
  {
    name: 'backends: those that are not installed',
    path: '/backends',
    param: 'show=all',
    act: (page) => button(page, /not installed$/).click(),
    after: (page) => button(page, 'Show installed only'),
    before: (page) => button(page, /not installed$/),
  },
  choice('spend: time range of savings', '/spend', 'range=30d', '7 days', '30 days'),
  ...['Tasks', 'Schedules', 'Workers', 'Jobs'].map((tab) =>
    choice(`queue: tab ${tab}`, '/queues/mail.send', `tab=${tab.toLowerCase()}`, 'Overview', tab),
  ),
  choice('queue: time range', '/queues/mail.send', 'range=7d', '1 h', '7 d'),
  choice('tasks: status', '/queues/mail.send?tab=tasks', 'status=DEAD', /^Pending /, /^Dead /),
  {
    name: 'tasks: handler',
    path: '/queues/mail.send?tab=tasks&status=DEAD',
    param: 'handler_ref=break.invoice',
    act: async (page) => {
      await page.getByLabel('Handler').fill('break.invoice');
      await page.getByLabel('Handler').press('Enter');
    },
    after: (page) => page.getByText('1 shown', { exact: true }),
    before: (page) => page.getByText('3 shown', { exact: true }),
  },
  {
    name: 'tasks: order',
    path: '/queues/mail.send?tab=tasks&status=DEAD',
    param: 'order=oldest',
    act: (page) => page.getByLabel('Order').selectOption('oldest'),
    after: (page) => page.locator('select:has(option[value=oldest]:checked)'),
    before: (page) => page.locator('select:has(option[value=newest]:checked)'),
  },
  {
    name: 'dead letters of all queues: filter',
    path: '/dead-letters',
    param: 'error_type=HTTP_5XX',
    act: (page) => page.getByLabel('Error').selectOption('HTTP_5XX'),
    after: (page) => page.getByText('1 dead task in 1 group'),
    before: (page) => page.getByText('3 dead tasks in 2 groups'),
  },
  {
    name: 'dead letters of a queue: task',
    path: '/dead-letters/mail.send',
    param: 'task=',
    act: (page) => button(page, 'break.invoice').first().click(),
    after: (page) => page.getByRole('dialog', { name: 'Dead task' }),
    before: (page) => rowsOf(page, 'Dead tasks', 'break.invoice'),
  },
  ...[['Aggregate', 'aggregate'] as const, ['Schema', 'schema'] as const].map(([title, tab]) =>
    choice(`collection: tab ${title}`, '/database/people', `tab=${tab}`, 'Records 3', title),
  ),
  {
    name: 'collection: watch',
    path: '/database/people',
    param: 'watch=on',
    act: (page) => button(page, 'Watch live').click(),
    after: (page) => button(page, 'Stop watching'),
    before: (page) => button(page, 'Watch live'),
  },
  {
    name: 'collection: query',
    path: '/database/people',
    param: 'limit=2',
    act: async (page) => {
      await page.getByLabel('Limit').fill('2');
      await page.getByRole('button', { name: 'Run', exact: true }).click();
    },
    after: (page) => page.getByText(/^2 shown/),
    before: (page) => page.getByText(/^3 shown/),
  },
  {
    name: 'collection: sort',
    path: '/database/people',
    param: 'sort=age',
    act: (page) =>
      page.getByRole('columnheader', { name: 'age' }).getByRole('button').first().click(),
    after: (page) => page.locator('[role=columnheader][aria-sort=ascending]', { hasText: 'age' }),
    before: (page) => rowsOf(page, 'Records', 'ada'),
  },
  {
    name: 'collection: record',
    path: '/database/people',
    param: 'record=',
    act: (page) => button(page, 'ada').click(),
    after: (page) => page.getByRole('dialog', { name: 'ada' }),
    before: (page) => rowsOf(page, 'Records', 'ada'),
  },
  choice('metrics: part', '/metrics', 'part=queue', 'Machine and agents', 'Queue'),
  choice('metrics: time range', '/metrics', 'range=24h', '1 hour', '24 hours'),
  {
    name: 'metrics: queue',
    path: '/metrics?part=queue&queue=mail.send',
    param: 'queue=mail.digest',
    act: (page) => page.getByRole('combobox', { name: /^Queue/ }).selectOption('mail.digest'),
    after: (page) => page.getByRole('link', { name: 'Open mail.digest' }),
    before: (page) => page.getByRole('link', { name: 'Open mail.send' }),
  },
];

test.each(cases)('$name: back, forward and reload restore it', (one) =>
  rig.on(
    one.path,
    async (page) => {
      const { before, after } = one;
      await before(page).first().waitFor();
      await one.act(page);
      await after(page).first().waitFor();
      await expect.poll(() => decodeURIComponent(new URL(page.url()).hash)).toContain(one.param);
      await page.goBack();
      await before(page).first().waitFor();
      expect(new URL(page.url()).hash).toBe(`#${one.path}`);
      await eventually(async () => expect(await after(page).count()).toBe(0));
      await page.goForward();
      await after(page).first().waitFor();
      await page.reload();
      await after(page).first().waitFor();
    },
    // A collection without a schema answers 404.
    { prepare: agents.install, ...(one.param === 'tab=schema' && { allowedErrors: /of 404/ }) },
  ),
);

const searches = [
  ['/', 'Search agents', 'parser', 'port the parser', 'retry the upload'],
  ['/queues', 'Search queues', 'digest', 'mail.digest', 'mail.send'],
  ['/settings', 'Search settings', 'tokens.warn', 'tokens.warn', 'api_docs'],
] as const;

test.each(searches)('search on %s: a reload keeps it', (path, label, text, found, hidden) =>
  rig.on(
    path,
    async (page) => {
      await page.getByText(hidden, { exact: true }).first().waitFor();
      await page.getByLabel(label).fill(text);
      await expect.poll(() => new URL(page.url()).hash).toBe(`#${path}?q=${text}`);
      await page.reload();
      await page.getByText(found, { exact: true }).first().waitFor();
      expect(await page.getByText(hidden, { exact: true }).count()).toBe(0);
    },
    { prepare: agents.install },
  ),
);

test('palette: goes to an agent, and to an action of the page', () =>
  rig.on(
    '/database',
    async (page) => {
      await page.getByRole('link', { name: 'people' }).waitFor();
      await page.keyboard.press('Control+k');
      const box = page.getByRole('combobox', { name: /Search pages, queues, tasks/ });
      await box.fill('new collection');
      await page.getByRole('option', { name: /New collection/, selected: true }).waitFor();
      await page.keyboard.press('Enter');
      await page.getByRole('dialog', { name: 'New collection' }).waitFor();
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      await page.keyboard.press('Control+k');
      await box.fill('upload');
      await page.getByRole('option', { name: /Agent retry the upload/, selected: true }).waitFor();
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: 'retry the upload', level: 1 }).waitFor();
      expect(new URL(page.url()).hash).toBe('#/agents/S00000');
    },
    { prepare: agents.install },
  ));

test.each(['a', 'x'.repeat(64), 'x'.repeat(65), 'A-1_b.c', '1st', '_x', 'two words', 'ä'])(
  'collection name: %j is judged as the server does',
  async (name) => {
    const find = rig.stores.database('POST', `/v1/${encodeURIComponent(name)}/records:find`, {});
    const isAccepted = await find.then(
      () => true,
      (error: unknown) => {
        expect(String(error)).toContain('BAD_COLLECTION');
        return false;
      },
    );
    expect(collectionNameError(name, []) === undefined).toBe(isAccepted);
  },
);

test('new collection: checks the name as the server, and goes there', () =>
  rig.on('/database', async (page, watched) => {
    const names = async (): Promise<string[]> => {
      const path = '/v1/admin/replication?include_collections=true';
      const { collections } = await rig.stores.database('GET', path);
      return collections.map(({ name }: { name: string }) => name);
    };
    await page.getByRole('button', { name: 'New collection' }).click();
    const dialog = page.getByRole('dialog', { name: 'New collection' });
    const create = dialog.getByRole('button', { name: 'Create' });
    await create.click();
    await dialog.getByText('A name is required.').waitFor();
    await dialog.getByLabel('Name').fill('1st');
    await dialog.getByLabel('Data').fill('{"total": ');
    await create.click();
    await dialog.getByText(/starts with a letter/).waitFor();
    await dialog.getByText(/^Invalid JSON/).waitFor();
    await watched.expectAccessible();
    await dialog.getByLabel('Name').fill('people');
    await dialog.getByLabel('Data').fill('{"total": 3}');
    await create.click();
    await dialog.getByText('The collection people exists already.').waitFor();
    expect(await names()).not.toContain('orders');
    await dialog.getByLabel('Name').fill('orders');
    await dialog.getByLabel('Name').press('Enter');
    await page.getByRole('heading', { name: 'orders', level: 1 }).waitFor();
    expect(new URL(page.url()).hash).toBe('#/database/orders');
    expect(await names()).toContain('orders');
    await page.getByText('1 shown', { exact: false }).waitFor();
  }));

function diffOf(id: string): object {
  const file = (path: string) => ({
    path,
    old_path: null,
    status: 'added',
    old_mode: null,
    new_mode: '100644',
    binary: false,
    additions: 1,
    deletions: 0,
    hunks: [
      { old_start: 0, old_lines: 0, new_start: 1, new_lines: 1, heading: '', lines: ['+new'] },
    ],
  });
  return {
    session_id: id,
    branch: 'retry-upload',
    head: 'a1b2c3d',
    base: 'main',
    base_commit: 'd4c3b2a',
    file_count: 2,
    additions: 2,
    deletions: 0,
    truncated: false,
    files: [file('src/upload.ts'), file('NOTES.md')],
  };
}
