// @module-tag campaign-browser
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { isFullCampaign } from '../../../test/support/campaign.js';
import { collectionNameError } from '../src/pages/database/collection-name.js';
import { missingBrowser } from './browser.js';
import { addressCases } from './support/address-cases.js';
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
  await stores.makeQueue('mail.held', { callback: { protocol: 'pull' } });
  for (const group_key of ['ada', 'linus']) {
    const task = { handler_ref: 'send', payload: '', group_key };
    await stores.queue('POST', '/v1/queues/mail.held/tasks', task);
  }
  const session = agents.addSession('retry the upload', 'idle', { branch: 'retry-upload' });
  agents.addSession('port the parser', 'working');
  agents.diff = diffOf(session.id);
  agents.pipelines.push(pipeline);
  agents.spend = spend;
  await eventually(async () => expect((await stores.stats('mail.send')).dlq_depth).toBe(3));
}, 240_000);
afterAll(() => rig?.stop());
beforeEach(({ skip }) => skip(!rig.browser, missingBrowser));

/** `npm run test:campaigns` tries them all. */
const cases = addressCases.filter((_, at) => isFullCampaign || at % 4 === 0);

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

const at = '2026-01-15T09:30:00.000Z';

const pipeline = {
  id: 'P1',
  name: 'Release check',
  repo: null,
  status: 'pending',
  created_at: at,
  updated_at: at,
  jobs: ['build', 'ship'].map((id) => ({
    id,
    prompt: `Do the ${id} step.`,
    depends_on: [],
    run_if: 'success',
    status: 'pending',
    backend: null,
    session_id: null,
    output: null,
  })),
};

const spendRows = (key: string) => [{ key, input_tokens: 900, output_tokens: 100, usd: 1.5 }];

const spend = {
  total_usd: 1.5,
  daily_usd: 0,
  weekly_usd: 1.5,
  week_usd: 1.5,
  cache_usd: 0,
  input_tokens: 900,
  output_tokens: 100,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
  by_agent: spendRows('S00000'),
  by_repo: spendRows('/src/mill'),
  by_day: spendRows('2026-01-15'),
  by_model: spendRows('claude-opus-4-5'),
  by_backend: spendRows('claude'),
  basis: 'EXACT',
};

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
