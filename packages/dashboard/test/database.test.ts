import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { appearancesOf, missingBrowser } from './browser.js';
import { eventually, Rig, scrollToEnd } from './support/rig.js';

const again = inCampaign('browser');

let rig: Rig;
const names = ['Ada', 'Grace', 'Edsger', 'Barbara'];
const keyOf = (index: number) => `person-${String(index).padStart(4, '0')}`;

beforeAll(async () => {
  rig = await Rig.start();
  const person = (index: number) =>
    rig.stores.database('POST', '/v1/people/keys', {
      key: keyOf(index),
      data: {
        name: names[index % names.length],
        age: 20 + (index % 50),
        tags: ['engine', 'notes'],
        address: { city: 'Oslo', zip: String(1000 + index) },
      },
    });
  for (let index = 0; index < 450; index += 50) {
    await Promise.all(Array.from({ length: 50 }, (_, step) => person(index + step)));
  }
  for (const total of [3.5, 12, 80]) {
    await rig.stores.database('POST', '/v1/orders/records', { data: { total } });
  }
});
afterAll(() => rig.stop());

const read = async (index: number) =>
  (await rig.stores.database('GET', `/v1/people/keys/${keyOf(index)}`)).record;
const patch = (index: number, data: object) =>
  rig.stores.database('PATCH', `/v1/people/keys/${keyOf(index)}`, { data });

describe('database', () => {
  beforeEach(({ skip }) => skip(!rig.browser, missingBrowser));

  test('collections: listed with size and indexes', () =>
    rig.on('/database', async (page) => {
      const row = page.getByRole('row').filter({ hasText: 'people' });
      await row.getByText('450').waitFor();
      await row.getByText('age').waitFor();
      await page.getByText('leader').waitFor();
      await page.getByRole('link', { name: 'orders' }).click();
      await page.getByText('3 shown').waitFor();
    }));

  again('collections: an unknown one says that it does not exist', () =>
    rig.on('/database/nosuch', async (page) => {
      await page.getByText('This collection does not exist.').waitFor();
    }),
  );

  again('records: fetched page by page while scrolling', () =>
    rig.on('/database/people', async (page) => {
      await page.getByText('200 shown, more as you scroll').waitFor();
      const scroller = page.locator('.db-results .vtable-scroll');
      await eventually(async () => {
        await scrollToEnd(page, '.db-results .vtable-scroll');
        expect(await page.getByText('450 shown').count()).toBe(1);
      });
      expect(await scroller.getByRole('row').count()).toBeLessThan(60);
    }),
  );

  test('query: conditions, sort and limit, with the plan shown', () =>
    rig.on('/database/people', async (page) => {
      await page.getByRole('button', { name: 'Add condition' }).click();
      await page.getByLabel('Field').fill('age');
      await page.getByLabel('Operator').selectOption('gt');
      await page.getByLabel('Value').fill('60');
      await page.getByRole('button', { name: 'Run', exact: true }).click();
      const filter = { field: 'age', op: 'gt', value: 60 };
      const found = { filter, count_only: true };
      const { count } = await rig.stores.database('POST', '/v1/people/records:find', found);
      await page.getByText(`${count} shown`).waitFor();
      await page.getByText('index age').waitFor();

      await page.getByRole('button', { name: 'Add condition' }).click();
      const second = page.getByRole('group', { name: 'Condition 2' });
      await second.getByLabel('Field').fill('address.zip');
      await second.getByLabel('Value').fill('"1041"');
      await page.getByRole('button', { name: 'Run', exact: true }).click();
      await page.getByText('1 shown').waitFor();
      await page.getByLabel('Match').selectOption('any');
      await page.getByLabel('Sort by').fill('age');
      await page.getByLabel('Descending').check();
      await page.getByLabel('Limit').fill('7');
      await page.getByRole('button', { name: 'Run', exact: true }).click();
      await page.getByText('7 shown').waitFor();
      const first = page.getByRole('table', { name: 'Records' }).getByRole('row').nth(1);
      await first.getByRole('button', { name: 'age: 69' }).waitFor();
      // The whole query is in the address.
      await page.reload();
      await first.getByRole('button', { name: 'age: 69' }).waitFor();
      expect(await page.getByLabel('Value').count()).toBe(2);
      await page.goBack();
      await page.getByText('1 shown; 1 in total').waitFor();
      expect(await page.getByLabel('Sort by').inputValue()).toBe('');
    }));

  again('query: an invalid row shows its error', () =>
    rig.on(
      '/database/people',
      async (page) => {
        await page.getByRole('button', { name: 'Add condition' }).click();
        await page.getByRole('button', { name: 'Run', exact: true }).click();
        await page.getByText('Enter a field name, or remove the row.').waitFor();
        await page.getByLabel('Field').fill('name');
        await page.getByLabel('Operator').selectOption('regex');
        await page.getByLabel('Value').fill('(');
        await page.getByRole('button', { name: 'Run', exact: true }).click();
        await page.getByRole('alert').waitFor();
        await page.getByRole('button', { name: 'Remove condition' }).click();
        await page.getByRole('button', { name: 'Run', exact: true }).click();
        await page.getByText('200 shown').waitFor();
      },
      { allowedErrors: /status of 400/ },
    ),
  );

  test('record: edit', async () => {
    await rig.on('/database/people', async (page) => {
      await page.getByRole('button', { name: keyOf(1), exact: true }).click();
      const data = page.getByRole('textbox', { name: 'Data' });
      await data.fill('{"name": "Grace",');
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByText('Invalid JSON').waitFor();
      await data.fill('{"name": "Grace Hopper", "age": 79}');
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByText('Saved as revision 2.').waitFor();
      await page.getByRole('button', { name: 'name: Grace Hopper' }).waitFor();
    });
    expect(await read(1)).toMatchObject({ rev: 2, data: { name: 'Grace Hopper', age: 79 } });
  });

  again('record: Escape does not lose what was typed', () =>
    rig.on('/database/people', async (page) => {
      await page.getByRole('button', { name: keyOf(4), exact: true }).click();
      const data = page.getByRole('textbox', { name: 'Data' });
      await data.fill('{"name": "Barbara Liskov"}');
      await page.keyboard.press('Escape');
      await page.getByRole('heading', { name: 'Discard your changes?' }).waitFor();
      await page.getByRole('button', { name: 'Cancel' }).click();
      expect(await data.inputValue()).toBe('{"name": "Barbara Liskov"}');
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: 'Discard', exact: true }).click();
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      expect(await read(4)).toMatchObject({ rev: 1 });
    }),
  );

  test('record: a revision conflict shows the current version and offers a choice', async () => {
    const conflicting = async (index: number, choice: string) =>
      rig.on(
        '/database/people',
        async (page) => {
          await page.getByRole('button', { name: keyOf(index), exact: true }).click();
          const data = page.getByRole('textbox', { name: 'Data' });
          await data.fill('{"name": "mine"}');
          await patch(index, { name: 'theirs' });
          await page.getByRole('button', { name: 'Save' }).click();
          await page.getByText('This record changed while you edited it').waitFor();
          expect(await read(index)).toMatchObject({ rev: 2, data: { name: 'theirs' } });
          await page.getByRole('button', { name: choice }).click();
          await page.getByRole('button', { name: 'Save' }).click();
          await page.getByText('Saved as revision 3.').waitFor();
        },
        { allowedErrors: /status of 409/ },
      );
    await conflicting(2, 'Overwrite with mine');
    expect((await read(2)).data).toEqual({ name: 'mine' });
    await conflicting(3, 'Discard my changes');
    expect((await read(3)).data).toMatchObject({ name: 'theirs', age: 23 });
  });

  test('record: insert with a key, delete', () =>
    rig.on(
      '/database/orders',
      async (page) => {
        const key = '/v1/orders/keys/a%2Fb%3Ac';
        await page.getByRole('button', { name: 'New record' }).click();
        await page.getByLabel('Key').fill('a/b:c');
        await page.getByRole('textbox', { name: 'Data' }).fill('{"total": 1}');
        await page.getByRole('button', { name: 'Insert' }).click();
        await page.getByText('Inserted a/b:c.').waitFor();
        expect((await rig.stores.database('GET', key)).record.data).toEqual({ total: 1 });
        await page.getByRole('button', { name: 'a/b:c' }).click();
        await page.getByRole('button', { name: 'Delete' }).click();
        await page.getByText('This cannot be undone.').waitFor();
        await page.getByRole('button', { name: 'Delete' }).click();
        await page.getByText('Deleted a/b:c.').waitFor();
        await page.getByText('3 shown').waitFor();
        await expect(rig.stores.database('GET', key)).rejects.toThrow('404');
      },
      {},
    ));

  again('columns: from the data, chosen, and sorted by their headers', () =>
    rig.on('/database/people', async (page) => {
      const table = page.getByRole('table', { name: 'Records' });
      await table.getByRole('columnheader', { name: 'address' }).waitFor();
      // Where columns are as narrow as they get.
      const { height } = page.viewportSize()!;
      await page.setViewportSize({ width: 900, height });
      const tracks = await table.getByRole('row').evaluateAll((rows) => {
        return rows.map((row) => getComputedStyle(row).gridTemplateColumns);
      });
      // The header has the columns of the rows, though its font is smaller.
      expect(new Set(tracks).size).toBe(1);
      await page.setViewportSize({ width: 1280, height });
      await page.locator('.db-column-choice summary').click();
      await page.getByRole('checkbox', { name: 'address' }).uncheck();
      await table.getByRole('columnheader', { name: 'address' }).waitFor({ state: 'detached' });
      await table.getByRole('button', { name: 'age', exact: true }).click();
      await table
        .getByRole('columnheader', { name: 'age', exact: false })
        .and(page.locator('[aria-sort=ascending]'))
        .waitFor();
      await table.getByRole('button', { name: 'age', exact: true }).click();
      await table
        .getByRole('row')
        .nth(1)
        .getByRole('button', { name: /^age: [67]9$/ })
        .waitFor();
      await expect.poll(() => page.url()).toContain('sort=-age');
      await page.getByText('200 shown, more as you scroll; ').waitFor();
    }),
  );

  again('inline edit: keeps the type, refuses what is no JSON, checks the revision', () =>
    rig.on(
      '/database/people?sort=%24key',
      async (page) => {
        const row = page.getByRole('row').filter({ hasText: keyOf(20) });
        const cell = (field: string) => row.getByRole('button', { name: new RegExp(`^${field}:`) });
        const input = (field: string) => row.getByLabel(`Edit ${field}`);
        await cell('age').dblclick();
        await input('age').fill('many');
        await page.keyboard.press('Enter');
        expect(await input('age').getAttribute('aria-invalid')).toBe('true');
        await input('age').fill('41');
        await page.keyboard.press('Enter');
        await page.getByText('Saved as revision 2.').waitFor();
        expect((await read(20)).data).toMatchObject({ age: 41, tags: ['engine', 'notes'] });
        await cell('name').focus();
        await page.keyboard.press('Enter');
        await input('name').fill('18');
        await patch(20, { age: 42 });
        await page.keyboard.press('Enter');
        await page.getByText(`${keyOf(20)} changed meanwhile.`).waitFor();
        expect((await read(20)).data).toMatchObject({ name: 'Ada', age: 42 });
      },
      { allowedErrors: /status of 409/ },
    ),
  );

  again('plan: a tree, and no tick beside a full scan that drops rows', () =>
    rig.on('/database/people?where=name+eq+Ada', async (page) => {
      await page.getByText('Full scan of people').first().waitFor();
      const summary = page.locator('.db-plan summary');
      expect(await summary.innerText()).toContain('▲');
      await summary.click();
      await page.locator('.db-plan-tree').getByText('Filter').waitFor();
    }),
  );

  again('indexes: listed on a tab of their own', () =>
    rig.on('/database/people?tab=indexes', async (page, watched) => {
      await page.getByRole('rowheader', { name: 'age' }).waitFor();
      await watched.expectAccessible();
    }),
  );

  again('aggregate: groups with bars, and the records of a group', () =>
    rig.on('/database/people?tab=aggregate', async (page, watched) => {
      await page.getByLabel('Group by').fill('name');
      await page.getByLabel('Compute').selectOption('avg');
      await page.getByRole('button', { name: 'Compute', exact: true }).click();
      await page.getByText('Enter the field to compute with.').waitFor();
      const form = page.getByRole('form', { name: 'Aggregate' });
      await form.getByLabel('Field').fill('age');
      await page.getByRole('button', { name: 'Compute', exact: true }).click();
      const groups = page.getByRole('region', { name: 'Average of age by name' });
      const row = groups
        .getByRole('row')
        .filter({ has: page.getByRole('button', { name: 'Grace', exact: true }) });
      const body = {
        group_by: ['name'],
        aggregates: [{ name: 'age', op: 'avg', field: 'age' }],
      };
      const { groups: all } = await rig.stores.database(
        'POST',
        '/v1/people/records:aggregate',
        body,
      );
      const grace = all.find(({ key }: any) => key.name === 'Grace');
      await row
        .getByText(String(Number(grace.values.age.toPrecision(6))), { exact: true })
        .waitFor();
      expect(await groups.getByRole('img').count()).toBeGreaterThan(3);
      expect(await page.getByLabel('Sort by').count()).toBe(0);
      await watched.expectAccessible();
      await watched.screenshot('aggregate');
      await page.reload();
      await row.getByRole('button').click();
      await page.getByText(`${grace.count} in total`).waitFor();
    }),
  );

  again('schema: the fields of the records with their types', () =>
    rig.on(
      '/database/people',
      async (page, watched) => {
        await page.getByRole('button', { name: 'Schema' }).click();
        await page.getByText('No schema: every JSON object is accepted.').waitFor();
        const row = page.getByRole('row').filter({ hasText: 'address.city' });
        await row.getByText('string').waitFor();
        await watched.expectAccessible();
        await watched.screenshot('schema');
      },
      // The server says with a 404 that the collection has no schema.
      { allowedErrors: /status of 404/ },
    ),
  );

  again('columns: resized by dragging and by keys, kept after a reload', () =>
    rig.on('/database/people', async (page) => {
      const header = page.getByRole('columnheader', { name: 'name' });
      const handle = page.getByRole('separator', { name: 'Width of name' });
      await handle.waitFor();
      const width = async () => Math.round((await header.boundingBox())!.width);
      const before = await width();
      await handle.focus();
      await page.keyboard.press('ArrowLeft');
      await eventually(async () => expect(await width()).toBe(before - 16));
      const box = (await handle.boundingBox())!;
      await page.mouse.move(box.x + 4, box.y + 4);
      await page.mouse.down();
      await page.mouse.move(box.x - 6, box.y + 4);
      await page.mouse.up();
      await eventually(async () => expect(await width()).toBe(before - 26));
      await page.reload();
      await handle.waitFor();
      expect(await width()).toBe(before - 26);
      await handle.dblclick();
      await eventually(async () => expect(await width()).toBe(before));
    }),
  );

  again('export and import: the records of one collection in another', () =>
    rig.on(
      '/database/orders',
      async (page) => {
        await page.getByText('3 shown').waitFor();
        const [file] = await Promise.all([
          page.waitForEvent('download'),
          page.getByRole('button', { name: 'Export' }).click(),
        ]);
        expect(file.suggestedFilename()).toBe('orders.jsonl');
        const path = await file.path();
        await page.goto(`${rig.daemon.url}/#/database/copies`);
        await page.getByText('This collection does not exist.').waitFor();
        await page.getByRole('button', { name: 'Import…' }).click();
        await page.getByLabel('File').setInputFiles(path);
        await page.getByRole('button', { name: 'Import', exact: true }).click();
        await page.getByText('Inserted 3 records.').waitFor();
        const found = { order_by: [{ field: 'total', desc: false }] };
        const { records } = await rig.stores.database('POST', '/v1/copies/records:find', found);
        expect(records.map(({ data }: any) => data.total)).toEqual([3.5, 12, 80]);
      },
      {},
    ),
  );

  again('watch: changes appear in the list and in the rows until it is stopped', () =>
    rig.on('/database/people', async (page) => {
      await page.getByRole('button', { name: 'Watch live' }).click();
      await page.getByRole('status').getByText(/live$/).waitFor();
      await patch(10, { name: 'Changed by another' });
      await page.getByRole('button', { name: 'name: Changed by another' }).waitFor();
      const changes = page.getByRole('list', { name: 'Changes, newest first' });
      await changes.getByText('updated').waitFor();
      await rig.stores.database('DELETE', `/v1/people/keys/${keyOf(11)}`);
      await changes.getByText('deleted').waitFor();
      const row = page.getByRole('table', { name: 'Records' }).getByText(keyOf(11));
      await row.waitFor({ state: 'detached' });
      await rig.stores.database('POST', '/v1/people/records', { data: { name: 'New' } });
      await page.getByRole('button', { name: 'Run again to show 1 new' }).waitFor();
      await page.getByRole('button', { name: 'Stop watching' }).click();
      await patch(12, { name: 'After the watch' });
      await changes.waitFor({ state: 'detached' });
      expect(await page.getByText('After the watch').count()).toBe(0);
    }),
  );

  again.each(appearancesOf(import.meta.url))(
    'accessible at $width in $theme',
    async (appearance) => {
      await rig.on(
        '/database',
        async (page, watched) => {
          await page.getByRole('link', { name: 'people' }).waitFor();
          await watched.expectAccessible();
          await watched.screenshot('database');
          await watched.visit('/database/people');
          await page.getByRole('button', { name: 'Add condition' }).click();
          await page.getByLabel('Field').fill('age');
          await page.getByLabel('Operator').selectOption('gt');
          await page.getByLabel('Value').fill('60');
          await page.getByRole('button', { name: 'Run', exact: true }).click();
          await page.getByText('index age').waitFor();
          await page.getByRole('button', { name: 'Watch live' }).click();
          await page.getByRole('status').getByText(/live$/).waitFor();
          await watched.expectAccessible();
          await watched.screenshot('collection');
          await page.locator('.db-results .row-link').first().click();
          await page.getByRole('textbox', { name: 'Data' }).waitFor();
          await watched.expectAccessible();
          await watched.screenshot('record');
        },
        appearance,
      );
    },
  );

  again('an unreachable database shows how to start it', () =>
    rig.on(
      '/database',
      async (page) => {
        await page.getByRole('link', { name: 'people' }).waitFor();
        await rig.stores.stopDatabase();
        await page
          .getByRole('alert')
          .getByText(/Start it with/)
          .waitFor();
      },
      { allowedErrors: /status of 502/ },
    ),
  );
});
