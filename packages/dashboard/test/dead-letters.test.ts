import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { appearancesOf, missingBrowser } from './browser.js';
import { eventually, Rig, scrollToEnd } from './support/rig.js';

const again = inCampaign('browser');

let rig: Rig;

beforeAll(async () => {
  rig = await Rig.start();
  const { stores } = rig;
  for (const queue of ['mail.send', 'mail.mass', 'mail.fine']) await stores.makeQueue(queue);
  await stores.submit('mail.send', 'refuse.welcome', 40);
  await stores.submit('mail.send', 'break.receipt', 12);
  // They expire, which is faster than as many failed calls.
  await stores.queue('POST', '/v1/admin/queues/mail.mass:pause');
  await stores.submit('mail.mass', 'flyer', 2_000, 5_000);
  await dead('mail.send', 52);
  await dead('mail.mass', 2_000);
});
afterAll(() => rig.stop());

const dead = (queue: string, depth: number) =>
  eventually(async () => expect((await rig.stores.stats(queue)).dlq_depth).toBe(depth));

describe('dead letters', () => {
  beforeEach(({ skip }) => skip(!rig.browser, missingBrowser));

  test('overview: lists queues with dead tasks, most first', () =>
    rig.on('/dead-letters', async (page) => {
      const table = page.getByRole('table', { name: 'Queues with dead letters' });
      await table.getByRole('link', { name: 'mail.send' }).waitFor();
      expect(await table.getByRole('link').allInnerTexts()).toEqual(['mail.mass', 'mail.send']);
    }));

  again('all queues: one filter over the failures of all, opens the group in its queue', () =>
    rig.on('/dead-letters', async (page, watched) => {
      const failures = page.getByRole('table', { name: 'Failures of all queues' });
      await page.getByText('2,052 dead tasks in 3 groups').waitFor();
      await watched.expectAccessible();
      await watched.screenshot('dead-letters-all');
      await page.getByLabel('Error').selectOption('HTTP_5XX');
      await page.getByText('12 dead tasks in 1 group').waitFor();
      await page.reload();
      await page.getByText('12 dead tasks in 1 group').waitFor();
      await failures.getByRole('link', { name: 'HTTP_5XX 500' }).click();
      await page.getByRole('heading', { name: 'Dead letters of mail.send' }).waitFor();
      await page.getByText('12 shown').waitFor();
      expect(await page.getByLabel('Handler').inputValue()).toBe('break.receipt');
    }),
  );

  again('empty state of a queue without dead tasks', () =>
    rig.on('/dead-letters/mail.fine', async (page) => {
      await page.getByText('This queue has no dead tasks.').waitFor();
      expect(await page.getByRole('button', { name: 'Redrive all…' }).isDisabled()).toBe(true);
    }),
  );

  again('filter: by group and by each field', () =>
    rig.on('/dead-letters/mail.send', async (page) => {
      await page.getByText('52 shown').waitFor();
      // The response of the handler, not only the status.
      await page.getByText('no such mailbox').first().waitFor();
      await page.getByRole('button', { name: 'HTTP_5XX' }).click();
      await page.getByText('12 shown').waitFor();
      expect(await page.getByLabel('Handler').inputValue()).toBe('break.receipt');
      await page.getByRole('button', { name: 'Clear' }).click();
      await page.getByLabel('HTTP status').fill('404');
      await page.getByText('40 shown').waitFor();
      await page.getByLabel('HTTP status').fill('418');
      await page.getByText('No dead task matches the filter.').waitFor();
      await page.getByRole('button', { name: 'Clear' }).click();
      await page.getByLabel('Dead before').fill('2020-01-01T00:00');
      await page.getByText('No dead task matches the filter.').waitFor();
    }),
  );

  again('task: shows payload and attempts', () =>
    rig.on('/dead-letters/mail.send', async (page) => {
      await page.getByRole('button', { name: 'break.receipt' }).first().click();
      const dialog = page.getByRole('dialog', { name: 'Dead task' });
      await dialog.getByText('"letter":').waitFor();
      await dialog.getByText('after its last attempt').waitFor();
      const attempts = dialog.getByRole('listitem');
      expect(await attempts.count()).toBe(2);
      expect(await attempts.first().innerText()).toMatch(/HTTP 500[^]*out of paper/);
    }),
  );

  test('purge: does nothing until confirmed', () =>
    rig.on('/dead-letters/mail.send', async (page) => {
      await page.getByRole('button', { name: 'Purge all…' }).click();
      await page.getByText('52 tasks (all dead tasks of the queue) will be deleted').waitFor();
      await page.getByRole('button', { name: 'Cancel' }).click();
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      expect((await rig.stores.stats('mail.send')).dlq_depth).toBe(52);
    }));

  test('purge: only the selected tasks', () =>
    rig.on('/dead-letters/mail.send', async (page) => {
      await page.getByRole('button', { name: 'HTTP_4XX' }).click();
      await page.getByText('40 shown').waitFor();
      const boxes = page.getByRole('checkbox');
      const names: string[] = [];
      for (const index of [0, 2]) {
        const box = boxes.nth(index);
        await box.check();
        names.push((await box.getAttribute('aria-label'))!.replace('Select ', ''));
      }
      await page.getByRole('button', { name: 'Purge 2 selected…' }).click();
      await page.getByText('2 tasks (the selected tasks) will be deleted').waitFor();
      await page.getByRole('button', { name: 'Purge 2', exact: true }).click();
      await page.getByText('2 tasks purged.').waitFor();
      await page.getByText('38 shown').waitFor();
      for (const id of names) {
        const gone = rig.stores.queue('GET', `/v1/tasks/${id}`);
        await expect(gone).rejects.toThrow('TASK_NOT_FOUND');
      }
      expect((await rig.stores.stats('mail.send')).dlq_depth).toBe(50);
    }));

  again('task page: submit again with changes, and purge it', async () => {
    const { stores } = rig;
    await stores.queue('PUT', '/v1/admin/queues/one.dead/config', {
      callback: { protocol: 'pull' },
    });
    const payload = btoa('{"to":"ada"}');
    const task = { handler_ref: 'greet', payload, payload_content_type: 'application/json' };
    const { id } = await stores.queue('POST', '/v1/queues/one.dead/tasks', task);
    await stores.queue('POST', `/v1/tasks/${id}:cancel`, {});
    const act = async (page: Page) => {
      await page.getByRole('button', { name: 'Submit again…' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByLabel('Payload').first().fill('{"to":"bob"}');
      await dialog.getByRole('button', { name: 'Submit', exact: true }).click();
      // The text is in the dialog too.
      await page.waitForURL((url) => !url.hash.includes(id));
      await page.getByText('"bob"').waitFor();
      await page.goBack();
      await page.getByRole('button', { name: 'Purge task…' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Purge', exact: true }).click();
      await page.getByText('Purged the task.').waitFor();
    };
    // The page may read the task once more while it is purged.
    await rig.on(`/tasks/${id}`, act, { allowedErrors: /status of 404/ });
    await expect(stores.queue('GET', `/v1/tasks/${id}`)).rejects.toThrow('TASK_NOT_FOUND');
  });

  test('redrive: a group runs again after its handler was fixed', async () => {
    const { stores } = rig;
    stores.healthyHandlers.add('break.receipt');
    const { tasks } = await stores.queue('GET', '/v1/queues/mail.send/dlq?error_type=HTTP_5XX');
    expect(tasks).toHaveLength(12);
    await rig.on('/dead-letters/mail.send', async (page) => {
      await page.getByRole('button', { name: 'HTTP_5XX' }).click();
      await page.getByRole('button', { name: 'Redrive matching…' }).click();
      await page.getByText(/12 tasks \(dead tasks with error HTTP_5XX/).waitFor();
      await page.getByLabel('Tasks per second').fill('0');
      await page.getByRole('button', { name: 'Redrive 12', exact: true }).click();
      await page.getByText('12 tasks redriven.').waitFor();
      await page.getByRole('button', { name: 'HTTP_5XX' }).waitFor({ state: 'detached' });
    });
    await dead('mail.send', 38);
    await eventually(async () => {
      const task = await stores.queue('GET', `/v1/tasks/${tasks[0].id}`);
      expect(task).toMatchObject({ status: 'SUCCEEDED', redrive_count: 1 });
    });
  });

  again('redrive: one task from its dialog', () =>
    rig.on('/dead-letters/mail.send', async (page) => {
      rig.stores.healthyHandlers.add('refuse.welcome');
      await page.getByRole('button', { name: 'refuse.welcome' }).first().click();
      const dialog = page.getByRole('dialog', { name: 'Dead task' });
      await dialog.getByText('"letter":').waitFor();
      await dialog.getByRole('button', { name: 'Redrive' }).click();
      await page.getByRole('button', { name: 'Redrive 1', exact: true }).click();
      await page.getByText('1 task redriven.').waitFor();
      // The handler stays healthy until the task has run: it would die again otherwise.
      await eventually(async () => {
        const done = '/v1/queues/mail.send/tasks?status=SUCCEEDED&handler_ref=refuse.welcome';
        expect((await rig.stores.queue('GET', done)).tasks).toHaveLength(1);
      });
      rig.stores.healthyHandlers.delete('refuse.welcome');
      await dead('mail.send', 37);
    }),
  );

  again('list: renders only the visible rows of two thousand', () =>
    rig.on('/dead-letters/mail.mass', async (page) => {
      await page.getByText('200 shown').waitFor();
      const scroller = page.locator('.dead-list .vtable-scroll');
      const rows = scroller.getByRole('row');
      await expect
        .poll(
          async () => {
            await scrollToEnd(page, '.dead-list .vtable-scroll');
            return page.getByText('2,000 shown').count();
          },
          { timeout: 120_000, interval: 50 },
        )
        .toBe(1);
      expect(await rows.count()).toBeLessThan(60);
      await scrollToEnd(page, '.dead-list .vtable-scroll');
      const last = scroller.locator('[aria-rowindex="2001"]');
      await last.waitFor();
      // Scrolls from start to end in steps. The median frame, because single frames take longer on a
      // loaded machine.
      const { maxRows, frameMs } = await page.evaluate<{
        maxRows: number;
        frameMs: number;
      }>(`(async () => {
        const element = document.querySelector('.dead-list .vtable-scroll');
        const frames = [];
        let maxRows = 0;
        for (let step = 0; step <= 60; step++) {
          const from = performance.now();
          element.scrollTo(0, (element.scrollHeight * step) / 60);
          await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
          frames.push(performance.now() - from);
          maxRows = Math.max(maxRows, element.querySelectorAll('[role=row]').length);
        }
        return { maxRows, frameMs: frames.sort((a, b) => a - b)[30] };
      })()`);
      expect(frameMs).toBeLessThan(1_000);
      expect(maxRows).toBeLessThan(60);
    }),
  );

  again.each(appearancesOf(import.meta.url))(
    'accessible at $width in $theme',
    async (appearance) => {
      await rig.on(
        '/dead-letters/mail.send',
        async (page, watched) => {
          await page.getByText('37 shown').waitFor();
          await watched.expectAccessible();
          await watched.screenshot('dead-letters');
          await page.getByRole('button', { name: 'refuse.welcome' }).first().click();
          await page.getByRole('dialog').getByText('no such mailbox').waitFor();
          await watched.expectAccessible();
          await watched.screenshot('dead-task');
        },
        appearance,
      );
    },
  );
});
