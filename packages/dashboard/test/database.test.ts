import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { looks, missingBrowser } from './browser.js';
import { eventually, Rig, scrollToEnd } from './support/rig.js';

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

describe('the database browser', () => {
  beforeEach(({ skip }) => skip(!rig.browser, missingBrowser));

  test('the collections are listed with their sizes and indexes', () =>
    rig.on('/database', async (page) => {
      const row = page.getByRole('row').filter({ hasText: 'people' });
      await row.getByText('450').waitFor();
      await row.getByText('age').waitFor();
      await page.getByText('leader').waitFor();
      await page.getByRole('link', { name: 'orders' }).click();
      await page.getByText('3 shown').waitFor();
    }));

  test('records are read on as one scrolls', () =>
    rig.on('/database/people', async (page) => {
      await page.getByText('200 shown, more as you scroll').waitFor();
      const scroller = page.locator('.db-results .vtable-scroll');
      await eventually(async () => {
        await scrollToEnd(page, '.db-results .vtable-scroll');
        expect(await page.getByText('450 shown').count()).toBe(1);
      });
      expect(await scroller.getByRole('row').count()).toBeLessThan(60);
    }));

  test('a query is built of rows, sorted and limited, and tells how it was carried out', () =>
    rig.on('/database/people', async (page) => {
      await page.getByRole('button', { name: 'Add a condition' }).click();
      await page.getByLabel('Field').fill('age');
      await page.getByLabel('Comparison').selectOption('gt');
      await page.getByLabel('Value').fill('60');
      await page.getByRole('button', { name: 'Run', exact: true }).click();
      const filter = { field: 'age', op: 'gt', value: 60 };
      const found = { filter, count_only: true };
      const { count } = await rig.stores.database('POST', '/v1/people/records:find', found);
      await page.getByText(`${count} shown`).waitFor();
      await page.getByText('index age').waitFor();

      await page.getByRole('button', { name: 'Add a condition' }).click();
      const second = page.getByRole('group', { name: 'Condition 2' });
      await second.getByLabel('Field').fill('address.zip');
      await second.getByLabel('Value').fill('"1041"');
      await page.getByRole('button', { name: 'Run', exact: true }).click();
      await page.getByText('1 shown').waitFor();
      await page.getByLabel('Match').selectOption('any');
      await page.getByLabel('Sort by').fill('age');
      await page.getByLabel('High to low').check();
      await page.getByLabel('Limit').fill('7');
      await page.getByRole('button', { name: 'Run', exact: true }).click();
      await page.getByText('7 shown').waitFor();
      const first = page.getByRole('table', { name: 'Records' }).getByRole('row').nth(1);
      await first.getByText('"age":69').waitFor();
    }));

  test('a query that makes no sense is told so beside its row', () =>
    rig.on(
      '/database/people',
      async (page) => {
        await page.getByRole('button', { name: 'Add a condition' }).click();
        await page.getByRole('button', { name: 'Run', exact: true }).click();
        await page.getByText('Name a field, or remove the row.').waitFor();
        await page.getByLabel('Field').fill('name');
        await page.getByLabel('Comparison').selectOption('regex');
        await page.getByLabel('Value').fill('(');
        await page.getByRole('button', { name: 'Run', exact: true }).click();
        await page.getByRole('alert').waitFor();
        await page.getByRole('button', { name: 'Remove the condition' }).click();
        await page.getByRole('button', { name: 'Run', exact: true }).click();
        await page.getByText('200 shown').waitFor();
      },
      { allowedErrors: /status of 400/ },
    ));

  test('a record is changed', async () => {
    await rig.on('/database/people', async (page) => {
      await page.getByRole('button', { name: keyOf(1), exact: true }).click();
      const data = page.getByRole('textbox', { name: 'Data' });
      await data.fill('{"name": "Grace",');
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByText('This is not JSON').waitFor();
      await data.fill('{"name": "Grace Hopper", "age": 79}');
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByText('Saved as revision 2.').waitFor();
      await page.getByText('"name":"Grace Hopper"').waitFor();
    });
    expect(await read(1)).toMatchObject({ rev: 2, data: { name: 'Grace Hopper', age: 79 } });
  });

  test('who comes second sees what the first wrote, and decides', async () => {
    const conflicting = async (index: number, choice: string) =>
      rig.on(
        '/database/people',
        async (page) => {
          await page.getByRole('button', { name: keyOf(index), exact: true }).click();
          const data = page.getByRole('textbox', { name: 'Data' });
          await data.fill('{"name": "mine"}');
          await patch(index, { name: 'theirs' });
          await page.getByRole('button', { name: 'Save' }).click();
          await page.getByText('Somebody else changed this record').waitFor();
          expect(await read(index)).toMatchObject({ rev: 2, data: { name: 'theirs' } });
          await page.getByRole('button', { name: choice }).click();
          await page.getByRole('button', { name: 'Save' }).click();
          await page.getByText('Saved as revision 3.').waitFor();
        },
        { allowedErrors: /status of 409/ },
      );
    await conflicting(2, 'Keep mine, on top of theirs');
    expect((await read(2)).data).toEqual({ name: 'mine' });
    await conflicting(3, 'Take theirs');
    expect((await read(3)).data).toMatchObject({ name: 'theirs', age: 23 });
  });

  test('a record is made under a key and deleted', () =>
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

  test('changes show as they are made, also in the rows, until the watch is stopped', () =>
    rig.on('/database/people', async (page) => {
      await page.getByRole('button', { name: 'Watch live' }).click();
      await page.getByRole('status').getByText(/live$/).waitFor();
      await patch(10, { name: 'Changed by another' });
      await page.getByText('"name":"Changed by another"').waitFor();
      const changes = page.getByRole('list', { name: 'Changes, newest first' });
      await changes.getByText('changed').waitFor();
      await rig.stores.database('DELETE', `/v1/people/keys/${keyOf(11)}`);
      await changes.getByText('deleted').waitFor();
      const row = page.getByRole('table', { name: 'Records' }).getByText(keyOf(11));
      await row.waitFor({ state: 'detached' });
      await rig.stores.database('POST', '/v1/people/records', { data: { name: 'New' } });
      await page.getByRole('button', { name: 'Run again for 1 new' }).waitFor();
      await page.getByRole('button', { name: 'Stop watching' }).click();
      await patch(12, { name: 'Nobody looks' });
      await changes.waitFor({ state: 'detached' });
      expect(await page.getByText('Nobody looks').count()).toBe(0);
    }));

  test.each(looks)('it can be used at $width px in the $theme', async (look) => {
    await rig.on(
      '/database',
      async (page, watched) => {
        await page.getByRole('link', { name: 'people' }).waitFor();
        await watched.expectAccessible();
        await watched.screenshot('database');
      },
      look,
    );
    await rig.on(
      '/database/people',
      async (page, watched) => {
        await page.getByRole('button', { name: 'Add a condition' }).click();
        await page.getByLabel('Field').fill('age');
        await page.getByLabel('Comparison').selectOption('gt');
        await page.getByLabel('Value').fill('60');
        await page.getByRole('button', { name: 'Run', exact: true }).click();
        await page.getByText('index age').waitFor();
        await page.getByRole('button', { name: 'Watch live' }).click();
        await page.getByRole('status').getByText(/live$/).waitFor();
        await watched.expectAccessible();
        await watched.screenshot('collection');
        await page.getByRole('table', { name: 'Records' }).getByRole('button').first().click();
        await page.getByRole('textbox', { name: 'Data' }).waitFor();
        await watched.expectAccessible();
        await watched.screenshot('record');
      },
      look,
    );
  });

  test('a database that is gone is named with what to do', () =>
    rig.on(
      '/database',
      async (page) => {
        await page.getByRole('link', { name: 'people' }).waitFor();
        await rig.stores.stopDatabase();
        await page.getByRole('alert').getByText('Start it with `ctl up`').waitFor();
      },
      { allowedErrors: /status of 502/ },
    ));
});
