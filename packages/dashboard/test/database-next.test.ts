import type { Page, Route } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { appearances, missingBrowser } from './browser.js';
import { Rig } from './support/rig.js';

let rig: Rig;
const created: unknown[] = [];

beforeAll(async () => {
  rig = await Rig.start();
  const data = { name: 'Ada', city: 'London' };
  await rig.stores.database('POST', '/v1/people/keys', { key: 'ada', data });
}, 240_000);
afterAll(() => rig?.stop());
beforeEach(({ skip }) => skip(!rig.browser, missingBrowser));

const advice = {
  collection: 'people',
  fields: ['city', 'age'],
  query_count: 37,
  total_ms: 5200,
  max_ms: 410,
  rows_scanned: 185_000,
  rows_returned: 74,
  filter: 'city eq ?, age gt ?',
};
const schema = {
  schema: { type: 'object', required: ['name'] },
  validate: 'strict',
  updated_at: '2026-01-15T09:28:00.000Z',
  violation_count: 3,
};

/** A database server with schemas and index advice, in front of the real one. */
async function newServer(page: Page): Promise<void> {
  const operations = [
    ['/v1/admin/schemas/{collection}', 'get'],
    ['/v1/admin/index-advice', 'get'],
    ['/v1/admin/collections/{collection}/indexes', 'post'],
  ];
  const paths = operations.map(([path, method]) => `  ${path}:\n    ${method}:\n`).join('');
  const answer = (pattern: string, run: (route: Route) => Promise<void>) =>
    page.route(`**/api/v1/proxy/db/${pattern}`, run);
  await answer('openapi.yaml', (route) => route.fulfill({ body: `paths:\n${paths}` }));
  await answer('v1/admin/index-advice', (route) =>
    route.fulfill({ json: { advice: [advice, { ...advice, collection: 'orders' }] } }),
  );
  await answer('v1/admin/schemas/people', (route) => route.fulfill({ json: { schema } }));
  await answer('v1/admin/collections/people/indexes', (route) => {
    created.push(route.request().postDataJSON());
    return route.fulfill({ json: { seq: 2 } });
  });
}

test('indexes: advice of this collection, created by one click', () =>
  rig.on(
    '/database/people?tab=indexes',
    async (page) => {
      const row = page.getByRole('row').filter({ hasText: 'city, age' });
      await row.getByText('185,000').waitFor();
      expect(await row.count()).toBe(1);
      await row.getByRole('button', { name: 'Create' }).click();
      await page.getByText('Created the index city, age.').waitFor();
      await page.getByLabel('Fields of the new index').fill('name');
      await page.getByRole('button', { name: 'Create index' }).click();
      await page.getByText('Created the index name.').waitFor();
      expect(created).toEqual([{ fields: ['city', 'age'] }, { fields: ['name'] }]);
    },
    { prepare: newServer },
  ));

test('indexes: a server without advice shows how to add one', () =>
  rig.on(
    '/database/people?tab=indexes',
    async (page) => {
      await page.getByText('Indexes are part of the database config.').waitFor();
      expect(await page.getByRole('region', { name: 'Advice' }).count()).toBe(0);
    },
    {
      prepare: (page) =>
        page.route('**/proxy/db/openapi.yaml', (route) => route.fulfill({ body: 'paths:\n' })),
    },
  ));

test('schema: the rules that writes must match, with violations', () =>
  rig.on(
    '/database/people?tab=schema',
    async (page) => {
      await page.getByText('strict: refuses a write').waitFor();
      await page.getByText('3 since the start of the server').waitFor();
      await page.getByLabel('JSON Schema').getByText('"required"').waitFor();
      await page.getByRole('rowheader', { name: 'city' }).waitFor();
    },
    { prepare: newServer },
  ));

test.each(appearances)('accessible at $width in $theme', (appearance) =>
  rig.on(
    '/database/people?tab=indexes',
    async (page, watched) => {
      await page.getByText('185,000').waitFor();
      await watched.expectAccessible();
      await watched.screenshot('indexes');
      await page.getByRole('button', { name: 'Schema' }).click();
      await page.getByText('strict: refuses a write').waitFor();
      await watched.expectAccessible();
      await watched.screenshot('schema-set');
    },
    { prepare: newServer, ...appearance },
  ),
);
