import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { appearancesOf, missingBrowser } from './browser.js';
import { eventually, Rig } from './support/rig.js';

const again = inCampaign('browser');

const token = 'full-token-of-the-queues-test';
const readOnlyToken = 'reading-token-of-the-queues-test';
let rig: Rig;

beforeAll(async () => {
  rig = await Rig.start();
  const { stores } = rig;
  await stores.makeQueue('mail.send');
  await stores.makeQueue('mail.digest', { description: 'One letter a day to whom it concerns.' });
  await stores.makeQueue('payments.capture', { circuit_breaker: { enabled: true } });
  await stores.queue('POST', '/v1/admin/queues/mail.digest:pause');
  await stores.submit('mail.digest', 'digest', 37);
  await stores.submit('mail.send', 'refuse.welcome', 12);
  await eventually(async () => expect((await stores.stats('mail.send')).dlq_depth).toBe(12));
});
afterAll(() => rig.stop());

describe('queues', () => {
  beforeEach(({ skip }) => skip(!rig.browser, missingBrowser));

  again('list: shows figures of each queue and is searchable', () =>
    rig.on('/queues', async (page) => {
      const row = page.getByRole('row').filter({ hasText: 'mail.digest' });
      await row.getByText('paused').waitFor();
      expect(await row.getByRole('cell').allInnerTexts()).toEqual(
        expect.arrayContaining(['mail.digest', '37', rig.stores.callbackUrl]),
      );
      await page.getByRole('searchbox', { name: 'Search queues' }).fill('pay');
      await row.waitFor({ state: 'detached' });
      await page.getByRole('link', { name: 'payments.capture' }).click();
      await page.getByRole('heading', { name: 'payments.capture' }).waitFor();
      await page.getByText('at 70% failures of at least 10 calls in 30 s').waitFor();
    }),
  );

  again('list: the dead count links to the dead letters', () =>
    rig.on('/queues', async (page) => {
      await page.getByRole('link', { name: '12 dead letters of mail.send' }).click();
      await page.getByRole('heading', { name: 'Dead letters of mail.send' }).waitFor();
    }),
  );

  test('queue: pause and resume', async () => {
    const isPaused = async () =>
      (await rig.stores.queue('GET', '/v1/admin/queues/mail.send/config')).paused;
    await rig.on('/queues/mail.send', async (page) => {
      await page.getByRole('button', { name: 'Pause' }).click();
      await page.getByText('Paused mail.send.').waitFor();
      expect(await isPaused()).toBe(true);
      await page.getByRole('button', { name: 'Resume' }).click();
      await page.getByText('Resumed mail.send.').waitFor();
      expect(await isPaused()).toBe(false);
    });
  });

  test('config: create a queue with a form, and review what changes before saving', async () => {
    const url = rig.stores.callbackUrl;
    await rig.on(
      '/queues',
      async (page, watched) => {
        await page.getByRole('button', { name: 'New queue' }).click();
        const dialog = page.getByRole('dialog');
        await dialog.getByLabel('Name').fill('orders.ship');
        await dialog.getByLabel('URL').fill(url);
        await dialog.getByLabel('Attempts').fill('0');
        await dialog.getByRole('button', { name: 'Review' }).click();
        await dialog.getByRole('alert').getByText('retry.max_attempts').waitFor();
        await dialog.getByLabel('Attempts').fill('7');
        await dialog.getByRole('button', { name: 'Review' }).click();
        await dialog.getByRole('rowheader', { name: 'retry.max_attempts' }).waitFor();
        await watched.expectAccessible();
        await dialog.getByRole('button', { name: 'Create' }).click();
        await page.getByRole('heading', { name: 'orders.ship' }).waitFor();
        await page.getByRole('button', { name: 'Edit…' }).click();
        await dialog.getByLabel('In flight').fill('3');
        await dialog.getByRole('button', { name: 'Review' }).click();
        const row = dialog.getByRole('row').filter({ hasText: 'limits.max_in_flight' });
        await row.getByRole('cell', { name: '3', exact: true }).waitFor();
        expect(await dialog.getByRole('rowheader').count()).toBe(1);
        await dialog.getByRole('button', { name: 'Save' }).click();
        await page.getByText('Saved orders.ship.').waitFor();
      },
      { allowedErrors: /status of 422/ },
    );
    const config = await rig.stores.queue('GET', '/v1/admin/queues/orders.ship/config');
    expect(config).toMatchObject({
      version: 2,
      callback: { url },
      retry: { max_attempts: 7 },
      limits: { max_in_flight: 3 },
    });
  });

  test('config: an edit of a config that changed meanwhile is refused', async () => {
    await rig.stores.makeQueue('orders.pack');
    await rig.on(
      '/queues/orders.pack',
      async (page) => {
        await page.getByRole('button', { name: 'Edit…' }).click();
        const dialog = page.getByRole('dialog');
        await dialog.getByLabel('In flight').fill('3');
        await dialog.getByRole('button', { name: 'Review' }).click();
        await dialog.getByRole('button', { name: 'Save' }).waitFor();
        await rig.stores.makeQueue('orders.pack', { description: 'changed' });
        await dialog.getByRole('button', { name: 'Save' }).click();
        await page
          .locator('.toast')
          .getByText(/version/)
          .waitFor();
      },
      { allowedErrors: /status of 412/ },
    );
    const config = await rig.stores.queue('GET', '/v1/admin/queues/orders.pack/config');
    expect([config.description, config.limits.max_in_flight === 3]).toEqual(['changed', false]);
  });

  test('test task: submit and follow until it succeeds', () =>
    rig.on('/queues/mail.send', async (page) => {
      await page.getByRole('button', { name: 'Submit test task' }).click();
      await page.getByLabel('Handler').fill('letter');
      await page.getByRole('textbox', { name: 'Payload' }).fill('{"to":"Ada ♥"}');
      await page.getByRole('button', { name: 'Submit', exact: true }).click();
      const panel = page.getByRole('region', { name: 'Task' });
      await panel.getByText('succeeded').first().waitFor();
      const id = await page.getByLabel('Task id').inputValue();
      const task = await rig.stores.queue('GET', `/v1/tasks/${id}`);
      expect(task).toMatchObject({ status: 'SUCCEEDED', handler_ref: 'letter', priority: 4 });
      expect(Buffer.from(task.payload, 'base64').toString()).toBe('{"to":"Ada ♥"}');
      expect(task.payload_content_type).toBe('application/json');
    }));

  again('task: shows why it is pending', () =>
    rig.on('/queues/mail.digest', async (page) => {
      await page.getByRole('button', { name: 'Submit test task' }).click();
      await page.getByRole('button', { name: 'Submit', exact: true }).click();
      await page.getByText('The queue is paused').waitFor();
    }),
  );

  again('task: an open circuit breaker shows on the task and the queue', async () => {
    const breaker = { enabled: true, min_requests: 2, open_ms: 600_000 };
    await rig.stores.makeQueue('payments.refund', { circuit_breaker: breaker });
    await rig.stores.submit('payments.refund', 'break.card', 8);
    await rig.on('/queues/payments.refund', async (page) => {
      await eventually(async () => {
        const { pending, in_flight } = await rig.stores.stats('payments.refund');
        expect([pending > 0, in_flight]).toEqual([true, 0]);
      });
      await page.getByRole('button', { name: 'Submit test task' }).click();
      await page.getByLabel('Handler').fill('break.card');
      await page.getByRole('button', { name: 'Submit', exact: true }).click();
      await page.getByText('The circuit breaker is open').waitFor();
      await page.locator('.figure', { hasText: 'Breaker' }).getByText('open').waitFor();
    });
  });

  again('callback test: delivers without a task', () =>
    rig.on('/queues/mail.send', async (page) => {
      const before = await rig.stores.stats('mail.send');
      await page.getByRole('button', { name: 'Test callback' }).click();
      await page.getByText(/The callback returned HTTP 200 in/).waitFor();
      expect(await rig.stores.stats('mail.send')).toEqual(before);
    }),
  );

  again('an unknown queue shows how to create it', () =>
    rig.on(
      '/queues/nosuch',
      async (page) => {
        await page.getByText('This queue does not exist.').waitFor();
        await page.getByText('ctl queue config set nosuch nosuch.json').waitFor();
        expect(await page.getByRole('alert').count()).toBe(0);
      },
      { allowedErrors: /status of 404/ },
    ),
  );

  again('an unknown task shows an error', () =>
    rig.on(
      '/queues/mail.send',
      async (page) => {
        await page.getByLabel('Task id').fill('01JD3Z8Q4M7X2N5V9RTBKWCH6E');
        await page.getByRole('button', { name: 'Look up' }).click();
        await page.getByRole('alert').getByText('01JD3Z8Q4M7X2N5V9RTBKWCH6E').waitFor();
      },
      { allowedErrors: /status of 404/ },
    ),
  );

  again('an unreachable queue server shows how to start it, and recovers', () =>
    rig.on(
      '/queues',
      async (page) => {
        await page.getByRole('link', { name: 'mail.send', exact: true }).waitFor();
        const { host } = new URL(rig.stores.queueUrl);
        await rig.stores.stopQueue();
        await page
          .getByRole('alert')
          .getByText(/Start it with/)
          .waitFor();
        await rig.stores.startQueue(host);
        await page.getByRole('alert').waitFor({ state: 'detached' });
        await page.getByRole('link', { name: 'mail.send', exact: true }).waitFor();
      },
      { allowedErrors: /status of 502/ },
    ),
  );

  again('read-only token: cannot pause a queue', async () => {
    const guarded = await Rig.start({ token, 'read-only-token': readOnlyToken });
    await guarded.stores.makeQueue('mail.send');
    await guarded.on(
      '/queues/mail.send',
      async (page) => {
        await page.evaluate(`sessionStorage.setItem('millrace.token', '${readOnlyToken}')`);
        await page.reload();
        await page.getByRole('button', { name: 'Pause' }).click();
        await page.getByText(/read-only token/i).waitFor();
        const config = await guarded.stores.queue('GET', '/v1/admin/queues/mail.send/config');
        expect(config.paused).toBe(false);
      },
      { allowedErrors: /status of 40[13]/ },
    );
    await guarded.stop();
  });

  again.each(appearancesOf(import.meta.url))(
    'accessible at $width in $theme',
    async (appearance) => {
      await rig.on(
        '/queues',
        async (page, watched) => {
          await page.getByRole('link', { name: 'payments.capture' }).waitFor();
          await watched.expectAccessible();
          await watched.screenshot('queues');
          await watched.visit('/queues/mail.digest');
          await page.getByText('until purged').waitFor();
          await page.getByRole('img', { name: /Tasks in the queue/ }).waitFor();
          await watched.expectAccessible();
          await watched.screenshot('queue');
          await page.getByRole('button', { name: 'Submit test task' }).click();
          await page.getByLabel('Handler').waitFor();
          await watched.expectAccessible();
        },
        appearance,
      );
    },
  );
});
