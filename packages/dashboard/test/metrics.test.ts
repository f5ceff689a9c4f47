import { afterAll, beforeAll, beforeEach, test } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { appearancesOf, missingBrowser } from './browser.js';
import { Rig } from './support/rig.js';

const again = inCampaign('browser');

let rig: Rig;

beforeAll(async () => {
  rig = await Rig.start();
  const { stores } = rig;
  for (const name of ['mail.send', 'mail.idle']) await stores.makeQueue(name);
  await stores.queue('POST', '/v1/admin/queues/mail.send:pause');
  await stores.submit('mail.send', 'fine.welcome', 30);
  await stores.database('POST', '/v1/people/records', { data: { name: 'Ada' } });
}, 240_000);
afterAll(() => rig?.stop());
beforeEach(({ skip }) => skip(!rig.browser, missingBrowser));

test('queue: totals, and the history of a chosen queue in the address', () =>
  rig.on('/metrics', async (page) => {
    await page.getByRole('button', { name: 'Queue', exact: true }).click();
    await page.getByRole('link', { name: 'Open mail.send' }).waitFor();
    await page.locator('.figure').filter({ hasText: 'Pending' }).getByText('30').first().waitFor();
    await page.getByRole('img', { name: /^Tasks in the queue/ }).waitFor();
    await page.locator('main').getByRole('combobox').selectOption('mail.idle');
    await page.reload();
    await page.getByRole('link', { name: 'Open mail.idle' }).waitFor();
  }));

test('database: size and commit rate', () =>
  rig.on('/metrics?part=database', async (page) => {
    await page.getByText('leader').waitFor();
    await page.getByRole('img', { name: /^Commits per second/ }).waitFor();
  }));

again.each(appearancesOf(import.meta.url))('accessible at $width in $theme', (appearance) =>
  rig.on(
    '/metrics?part=queue',
    async (page, watched) => {
      await page.getByRole('img', { name: /^Tasks in the queue/ }).waitFor();
      await watched.expectAccessible();
      await watched.screenshot('metrics-queue');
      await page.getByRole('button', { name: 'Database', exact: true }).click();
      await page.getByRole('img', { name: /^Commits per second/ }).waitFor();
      await watched.expectAccessible();
      await watched.screenshot('metrics-database');
    },
    appearance,
  ),
);
