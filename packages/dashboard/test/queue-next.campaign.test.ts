// @module-tag campaign-browser
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { startDaemon, type TestDaemon } from '../../daemon/test/support/daemon.js';
import { buildDashboard } from '../scripts/build.mjs';
import { appearancesOf, missingBrowser, TestBrowser, type OpenOptions } from './browser.js';
import { FakeQueue } from './support/fake-queue.js';

const fake = new FakeQueue(Date.now());
let daemon: TestDaemon;
let browser: TestBrowser | undefined;

beforeAll(async () => {
  const url = await fake.start();
  [browser] = await Promise.all([TestBrowser.start(), buildDashboard()]);
  daemon = await startDaemon({ flags: { 'queue-url': url } });
  for (let index = 1; index <= 450; index++) fake.addTask(index);
  fake.addTask(900, { handler_ref: 'mail.digest', group_key: 'weekly' });
  fake.addTask(901, {
    status: 'IN_FLIGHT',
    lease_expires_at: new Date(Date.now() + 30_000).toISOString(),
    progress: { percent: 40, message: 'page 2 of 5', at: new Date().toISOString() },
  });
  fake.addTask(902, { status: 'SUCCEEDED', result: { sent: true, pages: [1, 2] } });
  fake.jobs.push({
    id: 'JOB1',
    queue: 'mail',
    action: 'redrive',
    status: 'running',
    count: 120,
    created_at: new Date().toISOString(),
    finished_at: null,
  });
}, 240_000);
afterAll(async () => {
  await browser?.close();
  await daemon?.dispose();
  fake.stop();
});
beforeEach(({ skip }) => skip(browser === undefined, missingBrowser));

async function on(
  path: string,
  act: (
    page: Awaited<ReturnType<TestBrowser['open']>>['page'],
    watched: Awaited<ReturnType<TestBrowser['open']>>,
  ) => Promise<void>,
  options: OpenOptions = {},
): Promise<void> {
  const watched = await browser!.open(`${daemon.url}/#${path}`, options);
  await act(watched.page, watched);
  await watched.close();
}

test('tasks: tabs by status with counts, filter in the address', () =>
  on('/queues/mail', async (page) => {
    await page.getByRole('button', { name: 'Tasks', exact: true }).click();
    await page.getByRole('button', { name: 'Pending 451' }).waitFor();
    await page.getByRole('button', { name: 'Succeeded 1' }).waitFor();
    await page.getByLabel('Handler').fill('mail.digest');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Pending 1', exact: true }).waitFor();
    await page.getByText('1 shown').waitFor();
    await expect.poll(() => page.url()).toContain('tab=tasks&handler_ref=mail.digest');
    await page.reload();
    await page.getByRole('link', { name: 'mail.digest' }).click();
    await page.getByRole('heading', { name: 'mail.digest' }).waitFor();
    await page.goBack();
    await page.getByText('1 shown').waitFor();
  }));

test('task: run now, priority, cancel with a reason', () =>
  on(`/tasks/${fake.task(1).id}`, async (page) => {
    await page.getByRole('button', { name: 'Run now' }).click();
    await page.getByText('The task is due now.').waitFor();
    await page.getByLabel('Priority').selectOption('9');
    await page.getByText('Priority is 9.').waitFor();
    expect(fake.task(1).priority).toBe(9);
    await page.getByRole('button', { name: 'Cancel task' }).click();
    await page.getByLabel('Reason').fill('sent by hand');
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel task' }).click();
    await page.getByText('Cancelled the task.').waitFor();
    await page.getByText('because it was cancelled').waitFor();
    expect(fake.task(1).last_error.message).toBe('sent by hand');
    expect(await page.getByRole('button', { name: 'Run now' }).count()).toBe(0);
    await page.getByRole('button', { name: 'Redrive' }).waitFor();
  }));

test('task: shows progress and result', async () => {
  await on(`/tasks/${fake.task(901).id}`, async (page) => {
    await page.getByText('page 2 of 5').waitFor();
    await page.getByText('40%').waitFor();
  });
  await on(`/tasks/${fake.task(902).id}`, async (page) => {
    const result = page.getByRole('region', { name: 'Result' });
    await result.getByText('"sent": true').waitFor();
  });
});

test('tasks: cancel a selection after a dry run', () =>
  on('/queues/mail?tab=tasks', async (page) => {
    const box = (index: number) => page.getByLabel(`Select ${fake.task(index).id}`);
    await box(2).check();
    await box(3).check();
    await page.getByRole('button', { name: 'Cancel 2 selected…' }).click();
    await page.getByRole('button', { name: 'Cancel 2 tasks' }).click();
    await page.getByText('Cancelled 2 tasks.').waitFor();
    expect([fake.task(2).status, fake.task(3).status, fake.task(4).status]).toEqual([
      'DEAD',
      'DEAD',
      'PENDING',
    ]);
    expect(fake.calls.some((call) => call.includes('"dry_run":true'))).toBe(true);
  }));

test('schedules: create, pause, run now, delete', () =>
  on('/queues/mail?tab=schedules', async (page) => {
    await page.getByText('No schedules.').waitFor();
    await page.getByRole('button', { name: 'New schedule…' }).click();
    await page.getByLabel('Name').fill('nightly');
    await page.getByLabel('Cron').fill('0 3 * * *');
    await page.getByLabel('Time zone').fill('Europe/Oslo');
    await page.getByLabel('Handler').fill('mail.digest');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('0 3 * * * in Europe/Oslo').waitFor();
    expect(fake.schedules.get('nightly').task).toMatchObject({ handler_ref: 'mail.digest' });
    const row = page.getByRole('row').filter({ hasText: 'nightly' });
    await row.getByRole('button', { name: 'Pause' }).click();
    await row.getByRole('button', { name: 'Resume' }).waitFor();
    await row.getByRole('button', { name: 'Run now' }).click();
    await page.getByText('Submitted a task of nightly.').waitFor();
    await row.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByText('No schedules.').waitFor();
    expect(fake.schedules.size).toBe(0);
  }));

test('jobs and workers: listed, and a running job can be cancelled', async () => {
  await on('/queues/mail?tab=jobs', async (page) => {
    await page.getByRole('button', { name: 'Cancel job' }).click();
    await page.getByRole('cell', { name: 'cancelled' }).waitFor();
  });
  await on('/queues/mail?tab=workers', async (page) => {
    await page.getByRole('rowheader', { name: 'box-1' }).waitFor();
    await page.getByText('1,190').waitFor();
  });
});

test('list: shows the last hour of each queue', () =>
  on('/queues', async (page) => {
    await page.getByRole('img', { name: /Pending in the last hour: \d+ to \d+/ }).waitFor();
  }));

test('charts: from the history of the server, so that a reload shows them at once', () =>
  on('/queues/mail?range=6h', async (page) => {
    const depth = page.getByRole('img', { name: /Tasks in the queue\. pending: latest \d+/ });
    await depth.waitFor();
    await page.getByRole('img', { name: /Wait time\. p50/ }).waitFor();
    await page.getByRole('button', { name: '6 h', pressed: true }).waitFor();
    await page.reload();
    await depth.waitFor();
  }));

test.each(appearancesOf(import.meta.url))('accessible at $width in $theme', async (appearance) => {
  for (const [path, text, name] of [
    ['/queues/mail', 'Throughput per second', 'queue-history'],
    ['/queues/mail?tab=tasks', /\d+ shown/, 'queue-tasks'],
    ['/queues/mail?tab=workers', 'box-1', 'queue-workers'],
  ] as const) {
    await on(
      path,
      async (page, watched) => {
        await page.getByText(text).first().waitFor();
        await watched.expectAccessible();
        await watched.screenshot(name);
      },
      appearance,
    );
  }
});
