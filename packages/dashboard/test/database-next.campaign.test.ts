// @module-tag campaign-browser
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { appearancesOf, missingBrowser } from './browser.js';
import { eventually, Rig } from './support/rig.js';

let rig: Rig;

/** A full scan; it counts as slow, because the test's servers call 1 ms slow. */
const scan = () =>
  rig.stores.database('POST', '/v1/people/records:find', {
    filter: { and: [byCity, { field: 'height', op: 'gt', value: 100 }] },
  });
const byCity = { field: 'city', op: 'eq', value: 'nowhere' };

const indexNames = async (): Promise<string[]> => {
  const { collections } = await rig.stores.database(
    'GET',
    '/v1/admin/replication?include_collections=true',
  );
  const people = collections.find(({ name }: { name: string }) => name === 'people');
  return people.indexes.map(({ name }: { name: string }) => name);
};

beforeAll(async () => {
  rig = await Rig.start({}, { slow_query_ms: 1 });
  const { stores } = rig;
  for (let n = 0; n < 6_000; n += 500) {
    const operations = Array.from({ length: 500 }, (_, index) => ({
      insert: { data: { name: `person ${n + index}`, city: `city ${index % 7}`, height: 170 } },
    }));
    await stores.database('POST', '/v1/people/records:bulk', { operations });
  }
  await stores.database('POST', '/v1/people/keys', { key: 'ada', data: { city: 'London' } });
  const schema = { type: 'object', required: ['name'] };
  const body = { schema, validate: 'warn', force: true };
  await stores.database('PUT', '/v1/admin/schemas/people', body);
  await stores.database('POST', '/v1/people/keys', { key: 'eve', data: { city: 'Paris' } });
  await eventually(async () => {
    await scan();
    const { advice } = await stores.database('GET', '/v1/admin/index-advice');
    expect(advice).not.toEqual([]);
  });
}, 240_000);
afterAll(() => rig?.stop());
beforeEach(({ skip }) => skip(!rig.browser, missingBrowser));

test.each(appearancesOf(import.meta.url))('accessible at $width in $theme', (appearance) =>
  rig.on(
    '/database/people?tab=indexes',
    async (page, watched) => {
      await page.getByRole('row').filter({ hasText: 'city, height' }).waitFor();
      await watched.expectAccessible();
      await watched.screenshot('indexes');
      await page.getByRole('button', { name: 'Drop age' }).click();
      await page.getByRole('dialog').waitFor();
      await watched.expectAccessible();
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: 'Schema' }).click();
      await page.getByText('warn: stores writes').waitFor();
      await watched.expectAccessible();
      await watched.screenshot('schema-set');
    },
    appearance,
  ),
);

test('indexes: advice from slow queries, created by one click and dropped again', () =>
  rig.on('/database/people?tab=indexes', async (page) => {
    const advised = page.getByRole('region', { name: 'Advice' }).getByRole('row');
    const row = advised.filter({ hasText: 'city, height' });
    await row.getByRole('button', { name: 'Create' }).click();
    await page.getByText('Created the index city, height.').waitFor();
    await row.waitFor({ state: 'detached' });
    expect(await indexNames()).toEqual(['age', 'city,height']);
    await page.getByRole('button', { name: 'Drop city,height' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Drop index' }).click();
    await page.getByText('Dropped the index city,height.').waitFor();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(await indexNames()).toEqual(['age']);
  }));

test('indexes: a form creates one, and refuses one that exists', () =>
  rig.on('/database/people?tab=indexes', async (page) => {
    const fields = page.getByLabel('Fields of the new index');
    const create = page.getByRole('button', { name: 'Create index' });
    await fields.fill('age');
    await page.getByText('The index age exists already.').waitFor();
    expect(await create.isDisabled()).toBe(true);
    await fields.fill('name');
    await page.getByLabel('Unique').check();
    await page.getByLabel('Sparse').check();
    await create.click();
    await page.getByText('Created the index name.').waitFor();
    const row = page.getByRole('group', { name: 'Indexes' }).getByRole('row');
    await row.filter({ hasText: 'name' }).getByText('ready').waitFor();
    expect(await indexNames()).toEqual(['age', 'name']);
  }));

test('indexes: a refusal of the server stays in the form and in the dialog', () =>
  rig.on(
    '/database/people?tab=indexes',
    async (page) => {
      await page.getByLabel('Fields of the new index').fill('a..b');
      await page.getByRole('button', { name: 'Create index' }).click();
      await page.getByRole('alert').filter({ hasText: 'a..b' }).first().waitFor();
      // The config of the server declares it.
      await page.getByRole('button', { name: 'Drop age' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByRole('button', { name: 'Drop index' }).click();
      await dialog.getByRole('alert').getByText('settings').waitFor();
      expect(await indexNames()).toContain('age');
    },
    { allowedErrors: /status of 400/ },
  ));

test('indexes: a server that gives no advice says so, and lists its indexes', () =>
  rig.on(
    '/database/people?tab=indexes',
    async (page) => {
      const advice = page.getByRole('region', { name: 'Advice' });
      await advice.getByText('There is no such path.').waitFor();
      await page.getByRole('button', { name: 'Drop age' }).waitFor();
    },
    {
      allowedErrors: /status of 404/,
      prepare: async (page) => {
        await page.route('**/proxy/db/v1/admin/index-advice', (route) =>
          route.fulfill({
            status: 404,
            json: { code: 'NOT_FOUND', detail: 'There is no such path.' },
          }),
        );
      },
    },
  ));

test('schema: the rules of the server, its violations, and the fields of the records', () =>
  rig.on('/database/people?tab=schema', async (page) => {
    await page.getByText('warn: stores writes').waitFor();
    await page.getByText('1 since the start of the server').waitFor();
    await page.getByLabel('JSON Schema').getByText('"required"').waitFor();
    await page.getByRole('rowheader', { name: 'city' }).waitFor();
  }));

test('search: words find records, with scores and hits', async () => {
  const definition = { search: ['name'], language: 'none' };
  await rig.stores.database('POST', '/v1/admin/collections/people/indexes', definition);
  await rig.on('/database/people', async (page, watched) => {
    await page.getByLabel('Search words').fill('person 42');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByRole('columnheader', { name: 'Score' }).waitFor();
    const hits = page.locator('mark');
    await eventually(async () => expect(await hits.allTextContents()).toEqual(['person', '42']));
    expect(page.url()).toMatch(/[?&]q=person(?:\+|%20)42/);
    await watched.expectAccessible();
  });
});
