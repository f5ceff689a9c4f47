import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { missingBrowser, widths } from './browser.js';
import { eventually, Rig } from './support/rig.js';

const again = inCampaign('browser');

let rig: Rig;

beforeAll(async () => {
  rig = await Rig.start();
  const { stores } = rig;
  await stores.makeQueue('mail.send');
  await stores.makeQueue('mail.held');
  await stores.queue('POST', '/v1/admin/queues/mail.held:pause');
  await stores.submit('mail.held', 'digest', 260);
  await stores.submit('mail.held', 'invoice', 3);
  await stores.submit('mail.send', 'refuse.welcome', 4);
  await stores.submit('mail.send', 'letter', 2);
  await eventually(async () => expect((await stores.stats('mail.send')).dlq_depth).toBe(4));
}, 240_000);
afterAll(() => rig?.stop());
beforeEach(({ skip }) => skip(!rig.browser, missingBrowser));

const pendingId = async () => {
  const path = '/v1/queues/mail.held/tasks?status=PENDING&handler_ref=invoice&limit=1';
  return (await rig.stores.queue('GET', path)).tasks[0].id as string;
};

test('tasks: counted by status, filtered, and fetched page by page', () =>
  rig.on('/queues/mail.held?tab=tasks', async (page) => {
    await page.getByRole('button', { name: 'Pending 263' }).waitFor();
    await page.getByText('200 shown, more as you scroll').waitFor();
    await page.getByLabel('Handler').fill('invoice');
    await page.keyboard.press('Enter');
    await page.getByText('3 shown').waitFor();
    await page.getByRole('button', { name: 'Pending 3', exact: true }).waitFor();
    await page.goto(`${rig.daemon.url}/#/queues/mail.send?tab=tasks&status=SUCCEEDED`);
    await page.getByText('2 shown').waitFor();
    await page.getByRole('button', { name: 'Dead 4' }).click();
    await page.getByText('4 shown').waitFor();
  }));

again('tasks: a year can be typed digit by digit', () =>
  rig.on('/queues/mail.held?tab=tasks', async (page) => {
    const since = page.getByLabel('Submitted since');
    await since.fill('2024-01-15T10:00');
    await expect.poll(() => page.url()).toContain('from=2024');
    await since.focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.type('2025');
    await expect.poll(() => page.url()).toContain('from=2025');
    expect(await since.inputValue()).toBe('2025-01-15T10:00');
    await page.goBack();
    await eventually(async () => expect(await since.inputValue()).toBe('2024-01-15T10:00'));
  }),
);

again('tasks: dead tasks show the error, on a phone too', async () => {
  for (const width of [widths.desktop, widths.phone]) {
    await rig.on(
      '/queues/mail.send?tab=tasks&status=DEAD',
      async (page) => {
        const row = page.getByRole('row').filter({ hasText: 'refuse.welcome' }).first();
        await row.getByText('HTTP_4XX 404').waitFor();
      },
      { width },
    );
  }
});

again('tasks: the tooltip of a row has the whole text and the exact time', async () => {
  const handler = `digest.${'long-name.'.repeat(20)}end`;
  await rig.stores.submit('mail.held', handler, 1);
  await rig.on(`/queues/mail.held?tab=tasks&handler_ref=${handler}`, async (page) => {
    const row = page.locator('.vtable-scroll .vtable-row').first();
    // The link covers the row, so that a pointer over a cell is over the link.
    await row.getByRole('cell').nth(1).hover({ force: true });
    await eventually(async () => expect(await row.getAttribute('title')).toBe(handler));
    await row.getByRole('cell').nth(6).hover({ force: true });
    const exact = await row.locator('time').first().getAttribute('title');
    await eventually(async () => expect(await row.getAttribute('title')).toBe(exact));
  });
  await rig.stores.queue('POST', '/v1/queues/mail.held/tasks:cancel', {
    filter: { status: 'PENDING', handler_ref: handler },
  });
});

test('task: priority, run now and cancel reach the server', async () => {
  const id = await pendingId();
  await rig.on(`/tasks/${id}`, async (page) => {
    await page.getByLabel('Priority').selectOption('9');
    await page.getByText('Priority is 9.').waitFor();
    await page.getByRole('button', { name: 'Run now' }).click();
    await page.getByText('The task is due now.').waitFor();
    expect(await rig.stores.queue('GET', `/v1/tasks/${id}`)).toMatchObject({ priority: 9 });
    await page.getByRole('button', { name: 'Cancel task' }).click();
    await page.getByLabel('Reason').fill('sent by hand');
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel task' }).click();
    await page.getByText('because it was cancelled').waitFor();
  });
  expect(await rig.stores.queue('GET', `/v1/tasks/${id}`)).toMatchObject({
    status: 'DEAD',
    dead_reason: 'CANCELLED',
    last_error: { error_type: 'CANCELLED', message: 'sent by hand' },
  });
});

again('tasks: cancel all that match a filter', () =>
  rig.on('/queues/mail.held?tab=tasks&handler_ref=invoice', async (page) => {
    await page.getByRole('button', { name: 'Cancel matching…' }).click();
    await page.getByRole('button', { name: 'Cancel 2 tasks' }).click();
    await page.getByText('Cancelled 2 tasks.').waitFor();
    await page.getByText('No pending task matches the filter.').waitFor();
    expect((await rig.stores.stats('mail.held')).pending).toBe(260);
  }),
);

test('schedules: create, pause, run now, delete', () =>
  rig.on('/queues/mail.held?tab=schedules', async (page) => {
    await page.getByRole('button', { name: 'New schedule…' }).click();
    await page.getByLabel('Name').fill('nightly');
    await page.getByLabel('Cron').fill('0 3 * * *');
    await page.getByLabel('Time zone').fill('Europe/Oslo');
    await page.getByLabel('Handler').fill('digest.nightly');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('0 3 * * * in Europe/Oslo').waitFor();
    const row = page.getByRole('row').filter({ hasText: 'nightly' });
    await row.getByRole('button', { name: 'Run now' }).click();
    await page.getByText('Submitted a task of nightly.').waitFor();
    await row.getByRole('button', { name: 'Pause' }).click();
    await row.getByRole('button', { name: 'Resume' }).waitFor();
    const path = '/v1/queues/mail.held/schedules/nightly';
    expect(await rig.stores.queue('GET', path)).toMatchObject({
      paused: true,
      last_task_id: expect.any(String),
    });
    await row.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByText('No schedules.').waitFor();
  }));

again('schedules: an edit shows a refusal at its field and keeps the other settings', async () => {
  const path = '/v1/queues/mail.held/schedules/weekly';
  const task = { handler_ref: 'digest.weekly', payload: 'eyJ3ZWVrIjoxfQ==' };
  await rig.stores.queue('PUT', path, { cron: '0 3 * * 1', overlap: 'allow', task });
  await rig.on(
    '/queues/mail.held?tab=schedules',
    async (page, watched) => {
      const row = page.getByRole('row').filter({ hasText: 'weekly' });
      await row.getByRole('button', { name: 'Edit…' }).click();
      const dialog = page.getByRole('dialog', { name: 'Edit the schedule weekly' });
      await dialog.getByLabel('Cron').fill('never');
      await dialog.getByRole('button', { name: 'Save' }).click();
      await dialog.getByRole('alert').getByText('must have 5 fields').waitFor();
      await watched.expectAccessible();
      await dialog.getByRole('button', { name: 'Interval' }).click();
      await dialog.getByLabel('Every (seconds)').fill('90');
      await dialog.getByLabel('Every (seconds)').press('Enter');
      await dialog.waitFor({ state: 'detached' });
      const saved = await rig.stores.queue('GET', path);
      expect(saved).toMatchObject({ every_ms: 90_000, overlap: 'allow', task });
      expect(saved.cron ?? null).toBeNull();
    },
    { allowedErrors: /status of 422/ },
  );
  await rig.stores.queue('DELETE', path);
});

again('jobs: a redrive in the background is listed', () =>
  rig.on('/dead-letters/mail.send', async (page) => {
    await page.getByRole('button', { name: 'Redrive all…' }).click();
    await page.getByRole('button', { name: 'Redrive in the background' }).click();
    await page.getByText('Started job').waitFor();
    await page.goto(`${rig.daemon.url}/#/queues/mail.send?tab=jobs`);
    await page.getByRole('cell', { name: 'done' }).waitFor();
    await page.getByRole('rowheader', { name: /redrive/ }).waitFor();
  }),
);

test('workers and charts: read from the server', async () => {
  await rig.on('/queues/mail.send?tab=workers', async (page) => {
    await page.getByText('No worker in the last 10 minutes.').waitFor();
  });
  await eventually(async () => {
    const { points } = await rig.stores.queue('GET', '/v1/queues/mail.send/metrics?since=1h');
    expect(points.length).toBeGreaterThan(0);
  });
  await rig.on('/queues/mail.send', async (page) => {
    await page.getByRole('img', { name: /Throughput per second\. submitted: latest/ }).waitFor();
    await page.getByRole('img', { name: /Tasks in the queue\. pending: latest/ }).waitFor();
  });
});
