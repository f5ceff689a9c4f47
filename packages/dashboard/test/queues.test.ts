import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { looks, missingBrowser } from './browser.js';
import { eventually, Rig } from './support/rig.js';

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

describe('the queues', () => {
  beforeEach(({ skip }) => skip(!rig.browser, missingBrowser));

  test('each one stands in the list with its figures, and is found by its name', () =>
    rig.on('/queues', async (page) => {
      const row = page.getByRole('row').filter({ hasText: 'mail.digest' });
      await row.getByText('paused').waitFor();
      expect(await row.getByRole('cell').allInnerTexts()).toEqual(
        expect.arrayContaining(['mail.digest', '37', rig.stores.callbackUrl]),
      );
      await page.getByRole('searchbox', { name: 'Find a queue' }).fill('pay');
      await row.waitFor({ state: 'detached' });
      await page.getByRole('link', { name: 'payments.capture' }).click();
      await page.getByRole('heading', { name: 'payments.capture' }).waitFor();
      await page.getByText('when 70% of at least 10 fail within 30 s').waitFor();
    }));

  test('the count of the dead leads to them', () =>
    rig.on('/queues', async (page) => {
      await page.getByRole('link', { name: '12 dead letters of mail.send' }).click();
      await page.getByRole('heading', { name: 'Dead letters of mail.send' }).waitFor();
    }));

  test('a queue is paused and resumed', async () => {
    const isPaused = async () =>
      (await rig.stores.queue('GET', '/v1/admin/queues/mail.send/config')).paused;
    await rig.on('/queues/mail.send', async (page) => {
      await page.getByRole('button', { name: 'Pause' }).click();
      await page.getByText('mail.send is paused.').waitFor();
      expect(await isPaused()).toBe(true);
      await page.getByRole('button', { name: 'Resume' }).click();
      await page.getByText('mail.send runs again.').waitFor();
      expect(await isPaused()).toBe(false);
    });
  });

  test('a test task is submitted and followed to its end', () =>
    rig.on('/queues/mail.send', async (page) => {
      await page.getByRole('button', { name: 'Submit a test task' }).click();
      await page.getByLabel('Handler').fill('letter');
      await page.getByRole('textbox', { name: 'Payload' }).fill('{"to":"Ada ♥"}');
      await page.getByRole('button', { name: 'Submit', exact: true }).click();
      const panel = page.getByRole('region', { name: 'Task' });
      await panel.getByText('succeeded').first().waitFor();
      const id = await page.getByLabel('Id of a task').inputValue();
      const task = await rig.stores.queue('GET', `/v1/tasks/${id}`);
      expect(task).toMatchObject({ status: 'SUCCEEDED', handler_ref: 'letter', priority: 4 });
      expect(Buffer.from(task.payload, 'base64').toString()).toBe('{"to":"Ada ♥"}');
      expect(task.payload_content_type).toBe('application/json');
    }));

  test('a task that waits says why', () =>
    rig.on('/queues/mail.digest', async (page) => {
      await page.getByRole('button', { name: 'Submit a test task' }).click();
      await page.getByRole('button', { name: 'Submit', exact: true }).click();
      await page.getByText('Its queue is paused').waitFor();
    }));

  test('a task that waits for the circuit breaker says so, and the queue shows it open', async () => {
    const breaker = { enabled: true, min_requests: 2, open_ms: 600_000 };
    await rig.stores.makeQueue('payments.refund', { circuit_breaker: breaker });
    await rig.stores.submit('payments.refund', 'break.card', 8);
    await rig.on('/queues/payments.refund', async (page) => {
      await eventually(async () => {
        const { pending, in_flight } = await rig.stores.stats('payments.refund');
        expect([pending > 0, in_flight]).toEqual([true, 0]);
      });
      await page.getByRole('button', { name: 'Submit a test task' }).click();
      await page.getByRole('button', { name: 'Submit', exact: true }).click();
      await page.getByText('The circuit breaker is open').waitFor();
      await page.locator('.figure', { hasText: 'Breaker' }).getByText('open').waitFor();
    });
  });

  test('the callback is tested without a task', () =>
    rig.on('/queues/mail.send', async (page) => {
      const before = await rig.stores.stats('mail.send');
      await page.getByRole('button', { name: 'Test the callback' }).click();
      await page.getByText(/The callback answered 200 in/).waitFor();
      expect(await rig.stores.stats('mail.send')).toEqual(before);
    }));

  test('a queue that is not there is told so, with how to make it', () =>
    rig.on(
      '/queues/nosuch',
      async (page) => {
        await page.getByText('There is no such queue.').waitFor();
        await page.getByText('ctl queue config set nosuch nosuch.json').waitFor();
        expect(await page.getByRole('alert').count()).toBe(0);
      },
      { allowedErrors: /status of 404/ },
    ));

  test('a task that is not there is told so', () =>
    rig.on(
      '/queues/mail.send',
      async (page) => {
        await page.getByLabel('Id of a task').fill('01JD3Z8Q4M7X2N5V9RTBKWCH6E');
        await page.getByRole('button', { name: 'Look up' }).click();
        await page.getByRole('alert').getByText('01JD3Z8Q4M7X2N5V9RTBKWCH6E').waitFor();
      },
      { allowedErrors: /status of 404/ },
    ));

  test('a server that is gone is named with what to do, and comes back by itself', () =>
    rig.on(
      '/queues',
      async (page) => {
        await page.getByRole('link', { name: 'mail.send', exact: true }).waitFor();
        const { host } = new URL(rig.stores.queueUrl);
        await rig.stores.stopQueue();
        await page.getByRole('alert').getByText('Start it with `ctl up`').waitFor();
        await rig.stores.startQueue(host);
        await page.getByRole('alert').waitFor({ state: 'detached' });
        await page.getByRole('link', { name: 'mail.send', exact: true }).waitFor();
      },
      { allowedErrors: /status of 502/ },
    ));

  test('a read-only token looks but changes nothing', async () => {
    const guarded = await Rig.start({ 'read-only-token': readOnlyToken });
    await guarded.stores.makeQueue('mail.send');
    await guarded.on(
      '/queues/mail.send',
      async (page) => {
        await page.evaluate(`sessionStorage.setItem('millrace.token', '${readOnlyToken}')`);
        await page.reload();
        await page.getByRole('button', { name: 'Pause' }).click();
        await page.getByText('The read-only token cannot change anything').waitFor();
        const config = await guarded.stores.queue('GET', '/v1/admin/queues/mail.send/config');
        expect(config.paused).toBe(false);
      },
      { allowedErrors: /status of 40[13]/ },
    );
    await guarded.stop();
  });

  test.each(looks)('they can be used at $width px in the $theme', async (look) => {
    await rig.on(
      '/queues',
      async (page, watched) => {
        await page.getByRole('link', { name: 'payments.capture' }).waitFor();
        await watched.expectAccessible();
        await watched.screenshot('queues');
      },
      look,
    );
    await rig.on(
      '/queues/mail.digest',
      async (page, watched) => {
        await page.getByText('kept until purged').waitFor();
        await page.getByRole('img', { name: /Tasks of the queue/ }).waitFor();
        await watched.expectAccessible();
        await watched.screenshot('queue');
        await page.getByRole('button', { name: 'Submit a test task' }).click();
        await page.getByLabel('Handler').waitFor();
        await watched.expectAccessible();
      },
      look,
    );
  });
});
