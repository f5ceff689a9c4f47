import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { appearancesOf, missingBrowser } from './browser.js';
import { eventually, Rig } from './support/rig.js';

const again = inCampaign('browser');

/** Rendered of 1,000: what fits on a page, and what is near it. */
const maxNodes = 250;
const frames = 60;
/** 12 ms on a slow machine. */
const maxFrameMs = 50;

let rig: Rig;
let parent: string;
let small: string;
let large: string;

const call = (path: string, body: unknown) => rig.stores.queue('POST', path, body);
const claim = async (handler: string) => {
  const request = { worker: 'w', wait_ms: 10_000, handlers: [handler] };
  return (await call('/v1/queues/orders/tasks:claim', request)).tasks[0];
};
const task = (key: string, ...depends_on: string[]) => {
  return { key, queue: 'orders', handler_ref: key, depends_on };
};

beforeAll(async () => {
  rig = await Rig.start();
  await rig.stores.queue('PUT', '/v1/admin/queues/orders/config', {
    callback: { protocol: 'pull' },
  });
  parent = (await call('/v1/queues/orders/tasks', { handler_ref: 'order.ship' })).id;
  const { lease_token } = await claim('order.ship');
  const link = { parent_id: parent, parent_lease_token: lease_token };
  await call('/v1/queues/orders/tasks', { handler_ref: 'pack.item', ...link });
  const until = Date.now() - 1_000;
  const steps = [
    { name: 'charge', result: { id: 'ch_1' }, started_at: new Date(until - 9_000).toISOString() },
    { name: 'cool-down', result: { until } },
    { name: 'label', error: { type: 'PRINTER', message: 'no paper' } },
  ];
  await call(`/v1/tasks/${parent}/steps`, { lease_token, steps });
  const suspend = { signals: ['approved', 'refused'] };
  await call(`/v1/tasks/${parent}:complete`, { lease_token, suspend });
  const tasks = [task('build'), task('test', 'build'), task('lint'), task('ship', 'test', 'lint')];
  small = (await call('/v1/flows', { tasks })).flow_id;
  await call(`/v1/tasks/${(await claim('build')).id}:cancel`, {});
  const lint = await claim('lint');
  await call(`/v1/tasks/${lint.id}:complete`, { lease_token: lint.lease_token });
  const layers = Array.from({ length: 1_000 }, (_, i) =>
    task(`n${i}`, ...[i - 40, i - 41].filter((k) => k >= 0).map((k) => `n${k}`)),
  );
  large = (await call('/v1/flows', { tasks: layers })).flow_id;
}, 240_000);
afterAll(() => rig?.stop());
beforeEach(({ skip }) => skip(rig.browser === undefined, missingBrowser));

test.each(appearancesOf(import.meta.url))(
  'task: time line, children, at $width in $theme',
  (appearance) =>
    rig.on(
      `/tasks/${parent}`,
      async (page, watched) => {
        const rows = page.getByRole('list', { name: /Timeline of/ }).getByRole('listitem');
        await eventually(async () => expect(await rows.count()).toBe(5));
        const names = await rows.locator('.timeline-name').allTextContents();
        expect(new Set(names)).toEqual(
          new Set(['charge', 'cool-down', 'label', 'pack.item', 'Waits for approved, refused']),
        );
        const children = page.getByRole('region', { name: 'Children' });
        await children.getByRole('link', { name: 'pack.item' }).waitFor();
        await watched.expectAccessible();
        await page.getByRole('form', { name: 'Signal' }).scrollIntoViewIfNeeded();
        await watched.screenshot('flow-task');
      },
      appearance,
    ),
);

test('task: the form sends the signal it waits for, and the page follows', () =>
  rig.on(`/tasks/${parent}`, async (page) => {
    const form = page.getByRole('form', { name: 'Signal' });
    await form.getByLabel('Name').selectOption('refused');
    await form.getByLabel('JSON payload').fill('{"by":');
    await form.getByRole('button', { name: 'Send signal' }).click();
    await form.getByRole('alert').getByText('is not JSON').waitFor();
    await form.getByLabel('JSON payload').fill('{"by": "ada"}');
    await form.getByRole('button', { name: 'Send signal' }).click();
    await page.getByText('Sent refused.').waitFor();
    await form.waitFor({ state: 'detached' });
    const woken = await claim('order.ship');
    expect(woken.signals).toMatchObject([{ name: 'refused', payload: { by: 'ada' } }]);
    const child = await claim('pack.item');
    await call(`/v1/tasks/${child.id}:complete`, { lease_token: child.lease_token });
    await call(`/v1/tasks/${parent}:complete`, { lease_token: woken.lease_token });
    const rows = page.getByRole('list', { name: /Timeline of/ }).getByRole('listitem');
    await rows.filter({ hasText: 'Attempt 1' }).waitFor();
    await rows.filter({ hasText: 'pack.item' }).getByText('succeeded').waitFor();
  }));

test.each(appearancesOf(import.meta.url))('flow: the graph at $width in $theme', (appearance) =>
  rig.on(
    `/flows/${small}`,
    async (page, watched) => {
      const graph = page.getByRole('group', { name: 'Tasks and their dependencies' });
      const node = (key: string) => graph.getByRole('button', { name: new RegExp(`^${key}`) });
      await node('build').filter({ hasText: 'dead' }).waitFor();
      await node('ship').filter({ hasText: 'dead' }).waitFor();
      await node('lint').filter({ hasText: 'succeeded' }).click();
      await page.getByRole('region', { name: 'Task lint' }).getByText('in orders').waitFor();
      await watched.expectAccessible();
      await watched.screenshot('flow');
    },
    appearance,
  ),
);

again('flow: of 1,000 nodes only those near the visible part are rendered', () =>
  rig.on(`/flows/${large}`, async (page, watched) => {
    const nodes = page.locator('.graph-node');
    await nodes.filter({ hasText: /^n0\b/ }).waitFor();
    expect(await nodes.count()).toBeLessThan(maxNodes);
    await watched.screenshot('flow-large');
    const browser = await page.context().newCDPSession(page);
    // CPU time of the page's thread, which does not depend on the load of the machine.
    await browser.send('Performance.enable', { timeDomain: 'threadTicks' });
    const cpuMs = async () => {
      const { metrics } = await browser.send('Performance.getMetrics');
      return metrics.find(({ name }) => name === 'TaskDuration')!.value * 1_000;
    };
    const before = await cpuMs();
    await page.evaluate(`(async () => {
      for (let frame = 1; frame <= ${frames}; frame++) {
        document.querySelector('.graph').scrollTo(frame * 80, frame * 40);
        await new Promise((done) => requestAnimationFrame(done));
      }
    })()`);
    expect(((await cpuMs()) - before) / frames).toBeLessThan(maxFrameMs);
    await nodes.filter({ hasText: /^n999/ }).waitFor();
    expect(await nodes.count()).toBeLessThan(maxNodes);
    await nodes.filter({ hasText: /^n999/ }).click();
    await page.getByRole('link', { name: 'Open task' }).click();
    await page.getByRole('link', { name: large }).waitFor();
  }),
);

again('flow: one that does not exist says so', () =>
  rig.on(
    '/flows/01JD3Z8Q4M7X2N5V9RTBKWCH6E',
    (page) => page.getByText('Flow 01JD3Z8Q4M7X2N5V9RTBKWCH6E does not exist.').waitFor(),
    { allowedErrors: /status of 404/ },
  ),
);
