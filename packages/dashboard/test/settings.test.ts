import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { appearancesOf, missingBrowser, type WatchedPage } from './browser.js';
import { Fleet } from './support/fleet.js';

const again = inCampaign('browser');

let fleet: Fleet;
let file: string;

beforeAll(async () => {
  fleet = await Fleet.start();
  file = join(fleet.daemon.home, 'config.yaml');
}, 240_000);
afterAll(async () => fleet?.stop());
beforeEach(({ skip }) => skip(fleet.browser === undefined, missingBrowser));
afterEach(async () => {
  rmSync(file, { force: true });
  await fleet.daemon.api.ok('PATCH', '/api/v1/config', {});
});

/** Statuses of refusals, which the browser logs as errors. */
const allowedErrors = /status of 4(00|09)/;

type Page = WatchedPage['page'];

async function openForm(page: Page) {
  await page.getByRole('button', { name: 'Edit settings' }).click();
  const dialog = page.getByRole('dialog', { name: 'Edit settings' });
  const field = (key: string) => dialog.getByLabel(key, { exact: true });
  const press = (name: string) => dialog.getByRole('button', { name, exact: true }).click();
  const changes = async () => {
    await dialog.getByRole('region', { name: 'Changes' }).waitFor();
    return dialog.locator('.changes tbody tr').allInnerTexts();
  };
  return { dialog, field, press, changes };
}

const rowOf = (page: Page, key: string) =>
  page.getByRole('row').filter({ has: page.getByRole('rowheader', { name: key, exact: true }) });

test('settings form: every kind of input is saved after its difference is shown', async () => {
  await fleet.on('/settings', async (page) => {
    const { dialog, field, press, changes } = await openForm(page);
    await field('tokens.warn').fill('150k');
    await field('tokens.budget_daily_usd').fill('12.5');
    await field('tokens.guard').click();
    await field('drivers.default').selectOption('headless');
    await field('permissions.policy').fill('[{"tool": "Read", "action": "allow"}]');
    // What was changed back is no change.
    await field('notify.stuck_after').fill('2h');
    await field('notify.stuck_after').fill('30m');
    await press('Review');
    expect((await changes()).map((row) => row.split(/\s*\t\s*/))).toEqual([
      ['drivers.default', 'auto', 'headless'],
      ['permissions.policy', '[]', '[{"tool":"Read","action":"allow"}]'],
      ['tokens.budget_daily_usd', '0', '12.5'],
      ['tokens.guard', 'on', 'off'],
      ['tokens.warn', '200k', '150k'],
    ]);
    await press('Back');
    expect(await field('tokens.warn').inputValue()).toBe('150k');
    await press('Review');
    await press('Save');
    await dialog.waitFor({ state: 'detached' });
    await page.getByText('Settings saved and applied.').waitFor();
    await rowOf(page, 'tokens.warn').getByText('150k').waitFor();
    const text = readFileSync(file, 'utf8');
    expect(text).toContain('  warn: 150k\n');
    expect(text).toContain('  budget_daily_usd: 12.5\n');
    expect(text).toContain('  guard: false\n');
    expect(text).not.toContain('stuck_after');

    // An empty field restores the default.
    const again = await openForm(page);
    await again.field('tokens.warn').fill('');
    await again.press('Review');
    expect(await again.changes()).toHaveLength(1);
    await again.press('Save');
    await rowOf(page, 'tokens.warn').getByText('200k').waitFor();
    expect(readFileSync(file, 'utf8')).not.toContain('warn:');
  });
});

test('settings form: a refused value is named at its field, and nothing is written', async () => {
  writeFileSync(file, 'insights: true\n');
  await fleet.on(
    '/settings',
    async (page, watched) => {
      const { dialog, field, press } = await openForm(page);
      await field('tokens.warn').fill('many');
      await press('Review');
      await dialog.getByRole('alert').getByText('tokens.warn: must be a count').waitFor();
      expect(await field('tokens.warn').getAttribute('aria-invalid')).toBe('true');
      await watched.expectAccessible();
      await watched.screenshot('settings-errors');
      await field('tokens.warn').fill('200k');
      // The browser keeps a list that is none.
      await field('permissions.policy').fill('[');
      await press('Review');
      await dialog.getByText('Write a JSON list').waitFor();
      expect(await dialog.getByRole('button', { name: 'Save' }).count()).toBe(0);
      await press('Cancel');
      expect(readFileSync(file, 'utf8')).toBe('insights: true\n');
    },
    { allowedErrors },
  );
});

again('settings form: a conflict is shown, and a reload keeps the changes', async () => {
  await fleet.on(
    '/settings',
    async (page, watched) => {
      const { dialog, field, press, changes } = await openForm(page);
      await field('tokens.warn').fill('150k');
      await press('Review');
      await changes();
      const other = { values: { 'tokens.warn': '120k', 'tokens.critical': '300k' } };
      await fleet.daemon.api.ok('PATCH', '/api/v1/config', other);
      await press('Save');
      await dialog.getByText('The config file changed since you opened this form.').waitFor();
      await watched.expectAccessible();
      await watched.screenshot('settings-conflict');
      await press('Reload and keep my changes');
      await expect.poll(() => field('tokens.critical').inputValue()).toBe('300k');
      expect(await field('tokens.warn').inputValue()).toBe('150k');
      await press('Review');
      expect((await changes()).map((row) => row.split(/\s*\t\s*/))).toEqual([
        ['tokens.warn', '120k', '150k'],
      ]);
      await press('Save');
      await dialog.waitFor({ state: 'detached' });
      expect(readFileSync(file, 'utf8')).toBe('tokens:\n  warn: 150k\n  critical: 300k\n');
    },
    { allowedErrors },
  );
});

again('settings: those that need a restart are read-only and say so', async () => {
  writeFileSync(file, 'metrics: false\n');
  await fleet.on('/settings', async (page) => {
    await rowOf(page, 'metrics').getByText('changed in the file, needs a restart').waitFor();
    await rowOf(page, 'savings').getByText('needs a restart', { exact: true }).waitFor();
    await rowOf(page, 'data_dir').getByText('set by --data').waitFor();
    await rowOf(page, 'tokens.warn').getByText('applies at once').waitFor();
    const { field } = await openForm(page);
    expect(await field('tokens.warn').count()).toBe(1);
    expect(await field('metrics').count()).toBe(0);
  });
});

again.each(appearancesOf(import.meta.url))(
  'settings form: accessible at $width in $theme',
  async (appearance) => {
    await fleet.on(
      '/settings',
      async (page, watched) => {
        const { field, press, changes } = await openForm(page);
        await watched.expectAccessible();
        await watched.screenshot('settings-form');
        await field('tokens.warn').fill('150k');
        await press('Review');
        await changes();
        await watched.expectAccessible();
        await watched.screenshot('settings-review');
      },
      appearance,
    );
  },
);
