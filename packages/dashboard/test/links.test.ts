import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { appearancesOf, missingBrowser } from './browser.js';
import { eventually, Rig } from './support/rig.js';

const again = inCampaign('browser');

let rig: Rig;

beforeAll(async () => {
  rig = await Rig.start();
  const { stores } = rig;
  await stores.makeQueue('mail.send');
  await stores.makeQueue('mail.digest');
  await stores.submit('mail.send', 'refuse.welcome', 3);
  await stores.submit('mail.send', 'break.invoice', 2);
  await stores.database('POST', '/v1/people/records', { data: { name: 'Ada', age: 36 } });
  await eventually(async () => expect((await stores.stats('mail.send')).dlq_depth).toBe(5));
}, 240_000);
afterAll(() => rig?.stop());
beforeEach(({ skip }) => skip(!rig.browser, missingBrowser));

const hashOf = (url: string) => new URL(url).hash;

test('search: the text is in the address and survives a reload', () =>
  rig.on('/queues', async (page) => {
    await page.getByRole('link', { name: 'mail.send', exact: true }).waitFor();
    await page.getByRole('searchbox', { name: 'Search queues' }).fill('digest');
    await expect.poll(() => hashOf(page.url())).toBe('#/queues?q=digest');
    await page.reload();
    await page.getByRole('link', { name: 'mail.digest' }).waitFor();
    expect(await page.getByRole('link', { name: 'mail.send', exact: true }).count()).toBe(0);
  }));

again('dead letters: filter and task are in the address; back and forward work', () =>
  rig.on('/dead-letters/mail.send', async (page) => {
    const rows = page.getByRole('table', { name: 'Dead tasks' }).getByRole('row');
    await eventually(async () => expect(await rows.count()).toBe(6));
    await page.getByRole('button', { name: 'HTTP_5XX' }).click();
    await eventually(async () => expect(await rows.count()).toBe(3));
    await expect.poll(() => hashOf(page.url())).toContain('error_type=HTTP_5XX');
    await page.getByRole('button', { name: 'break.invoice' }).first().click();
    await page.getByRole('dialog', { name: 'Dead task' }).waitFor();
    const shared = page.url();
    await page.goBack();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.goBack();
    await eventually(async () => expect(await rows.count()).toBe(6));
    await page.goForward();
    await eventually(async () => expect(await rows.count()).toBe(3));
    await page.goto('about:blank');
    await page.goto(shared);
    await page
      .getByRole('dialog', { name: 'Dead task' })
      .getByText('out of paper')
      .first()
      .waitFor();
  }),
);

again('metrics: the time range is in the address', () =>
  rig.on('/metrics?range=24h', async (page) => {
    await page.getByRole('button', { name: '24 hours', pressed: true }).waitFor();
    await page.getByRole('button', { name: '7 days' }).click();
    await expect.poll(() => hashOf(page.url())).toBe('#/metrics?range=7d');
    await page.goBack();
    await page.getByRole('button', { name: '24 hours', pressed: true }).waitFor();
  }),
);

test('palette: goes to a queue, a task by id and a collection, and runs an action', () =>
  rig.on('/queues', async (page, watched) => {
    await page.getByRole('link', { name: 'mail.send', exact: true }).waitFor();
    await page.keyboard.press('Control+k');
    const box = page.getByRole('combobox', { name: /Search pages, queues, tasks/ });
    await box.fill('digest');
    await page.getByRole('option', { name: /mail\.digest/, selected: true }).waitFor();
    await watched.expectAccessible();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'mail.digest' }).waitFor();

    const { tasks } = await rig.stores.queue('GET', '/v1/queues/mail.send/dlq?limit=1');
    await page.keyboard.press('Control+k');
    await box.fill(tasks[0].id);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: tasks[0].handler_ref }).waitFor();
    await expect.poll(() => hashOf(page.url())).toBe(`#/tasks/${tasks[0].id}`);

    await page.keyboard.press('Control+k');
    await box.fill('people');
    await page.getByRole('option', { name: /people/ }).click();
    await page.getByRole('heading', { name: 'people' }).waitFor();

    await page.keyboard.press('Control+k');
    await box.fill('light and dark');
    await page.keyboard.press('Enter');
    await eventually(async () =>
      expect(await page.evaluate('document.documentElement.dataset.theme')).toBe('dark'),
    );
    await page.evaluate(`localStorage.removeItem('millrace.theme')`);
    await page.keyboard.press('?');
    await page.getByText('Go to a queue, task, agent, collection or action').waitFor();
  }));

again('task page: shows the attempts on a time axis and redrives', () =>
  rig.on('/queues', async (page) => {
    const { tasks } = await rig.stores.queue('GET', '/v1/queues/mail.send/dlq?limit=1');
    const { id } = tasks[0];
    await page.goto(`${rig.daemon.url}/#/tasks/${id}`);
    await page.getByRole('img', { name: /Timeline of \d attempts/ }).waitFor();
    await page.getByRole('group', { name: 'JSON tree' }).getByText('letter').waitFor();
    await page.getByRole('button', { name: 'Hex' }).click();
    await page.getByText(/^00000000 {2}7b 22/).waitFor();
    await page.getByRole('button', { name: 'Redrive' }).click();
    await page.getByText('The task is pending again.').waitFor();
    await eventually(async () => {
      const task = await rig.stores.queue('GET', `/v1/tasks/${id}`);
      expect(task.redrive_count).toBe(1);
    });
  }),
);

again('task page: an unknown id says so', () =>
  rig.on(
    '/tasks/01JD3Z8Q4M7X2N5V9RTBKWCH6E',
    async (page) => {
      await page.getByText('Task 01JD3Z8Q4M7X2N5V9RTBKWCH6E does not exist.').waitFor();
    },
    { allowedErrors: /status of 404/ },
  ),
);

again.each(appearancesOf(import.meta.url))(
  'task page: accessible at $width in $theme',
  async (appearance) => {
    const { tasks } = await rig.stores.queue('GET', '/v1/queues/mail.send/dlq?limit=1');
    await rig.on(
      `/tasks/${tasks[0].id}`,
      async (page, watched) => {
        await page.getByRole('img', { name: /Timeline of/ }).waitFor();
        await watched.expectAccessible();
        await watched.screenshot('task');
      },
      appearance,
    );
  },
);
