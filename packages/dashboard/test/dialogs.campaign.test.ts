// @module-tag campaign-browser
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { missingBrowser, widths, type WatchedPage } from './browser.js';
import { eventually, Rig } from './support/rig.js';

let rig: Rig;

beforeAll(async () => {
  rig = await Rig.start();
  const { stores } = rig;
  await stores.makeQueue('mail.send');
  await stores.makeQueue('held');
  await stores.queue('POST', '/v1/admin/queues/held:pause');
  await stores.submit('held', 'mail.later', 2);
  await stores.submit('mail.send', 'break.invoice', 3);
  await stores.queue('PUT', '/v1/queues/mail.send/schedules/nightly', {
    cron: '0 3 * * *',
    timezone: 'Europe/Berlin',
    task: { handler_ref: 'mail.digest' },
  });
  await eventually(async () => expect((await stores.stats('mail.send')).dlq_depth).toBe(3));
}, 240_000);
afterAll(() => rig?.stop());
beforeEach(({ skip }) => skip(!rig.browser, missingBrowser));

const isInSight = async (page: WatchedPage['page'], button: string): Promise<boolean> => {
  const box = (await page.getByRole('button', { name: button, exact: true }).boundingBox())!;
  return box.y >= 0 && box.y + box.height <= page.viewportSize()!.height;
};

test.each([widths.phone, widths.desktop])(
  'dialog: its buttons stay in sight while a long form scrolls, %i px',
  (width) =>
    rig.on(
      '/queues',
      async (page, watched) => {
        await page.getByRole('button', { name: 'New queue' }).click();
        await page.getByLabel('Keep dead (ms)').waitFor();
        expect(await isInSight(page, 'Review')).toBe(true);
        await page.getByLabel('Keep dead (ms)').focus();
        expect(await isInSight(page, 'Close')).toBe(true);
        expect(await isInSight(page, 'Review')).toBe(true);
        await watched.expectAccessible();
        await page.keyboard.press('Escape');
        await page.getByRole('dialog').waitFor({ state: 'detached' });
      },
      { width },
    ),
);

test('new queue: a pull queue needs no address and has no callback to test', () =>
  rig.on('/queues', async (page) => {
    await page.getByRole('button', { name: 'New queue' }).click();
    await page.getByLabel('Name').fill('pull.work');
    await page.getByLabel('Protocol').selectOption('pull');
    expect(await page.getByLabel('URL').count()).toBe(0);
    await page.getByRole('button', { name: 'Review' }).click();
    await page.getByText('The server will write').waitFor();
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    const { callback } = await rig.stores.queue('GET', '/v1/admin/queues/pull.work/config');
    expect(callback.protocol).toBe('pull');
    await page.goto(`${rig.daemon.url}/#/queues/pull.work`);
    await page.getByRole('button', { name: 'Edit…' }).waitFor();
    await page.getByRole('button', { name: 'Submit test task' }).waitFor();
    expect(await page.getByRole('button', { name: 'Test callback' }).count()).toBe(0);
  }));

test('confirm: Enter in a field confirms, and Close is not called Cancel', async () => {
  const { tasks } = await rig.stores.queue('GET', '/v1/queues/held/tasks?status=PENDING&limit=1');
  const { id } = tasks[0];
  await rig.on(`/tasks/${id}`, async (page) => {
    await page.getByRole('button', { name: 'Cancel task' }).click();
    const dialog = page.getByRole('dialog');
    expect(await dialog.getByRole('button', { name: 'Cancel', exact: true }).count()).toBe(0);
    await page.getByLabel('Reason').fill('sent by hand');
    await page.keyboard.press('Enter');
    await page.getByText('Cancelled the task.').waitFor();
    const task = await rig.stores.queue('GET', `/v1/tasks/${id}`);
    expect(task.last_error.message).toBe('sent by hand');
  });
});

test('tasks: dead ones are selected and redriven', async () => {
  rig.stores.healthyHandlers.add('break.invoice');
  await rig.on('/queues/mail.send?tab=tasks&status=DEAD', async (page) => {
    await page.getByText('HTTP_5XX 500').first().waitFor();
    const boxes = page.getByRole('checkbox', { name: /^Select / });
    expect(await page.getByRole('button', { name: 'Redrive 0 selected…' }).isDisabled()).toBe(true);
    await page.getByLabel('Select all').check();
    await page.getByRole('button', { name: 'Redrive 3 selected…' }).waitFor();
    await page.getByLabel('Select all').uncheck();
    await boxes.nth(1).check();
    await boxes.nth(2).check();
    await page.getByRole('button', { name: 'Redrive 2 selected…' }).click();
    await page.getByRole('button', { name: 'Redrive 2', exact: true }).click();
    await page.getByText('2 tasks redriven.').waitFor();
    await eventually(async () => expect((await rig.stores.stats('mail.send')).dlq_depth).toBe(1));
  });
});

test('schedules: every action is reachable on a phone', () =>
  rig.on(
    '/queues/mail.send?tab=schedules',
    async (page, watched) => {
      await page.getByText('0 3 * * * in Europe/Berlin').waitFor();
      const box = (await page.getByRole('button', { name: 'Delete' }).boundingBox())!;
      expect(box.x + box.width).toBeLessThanOrEqual(widths.phone);
      await watched.expectAccessible();
    },
    { width: widths.phone },
  ));
