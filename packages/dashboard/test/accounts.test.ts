import type { DaemonSchema } from '@millrace/contract/daemon';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { appearancesOf, missingBrowser } from './browser.js';
import { eventually, Fleet } from './support/fleet.js';

const again = inCampaign('browser');

let fleet: Fleet;

beforeAll(async () => {
  fleet = await Fleet.start({ hasHistory: true, flags: { 'tokens-budget-daily-usd': '0.5' } });
  const { api } = fleet.daemon;
  await api.ok('PATCH', '/api/v1/backends/claude', { tier: 'subscription' });
  await api.ok('PATCH', '/api/v1/backends/cursor-agent', { tier: 'subscription' });
  const prompt = 'context 120k, then write notes.txt, then sleep 900';
  const body = { prompt, name: 'fix the flaky search test', driver: 'headless' };
  await api.send({
    method: 'POST',
    path: '/api/v1/spawn',
    body: { ...body, backend: 'claude', cwd: fleet.workdir, force: true },
  });
}, 240_000);
afterAll(() => fleet?.stop());
beforeEach(({ skip }) => skip(fleet.browser === undefined, missingBrowser));

const backend = async (id: string): Promise<DaemonSchema<'BackendRow'>> => {
  const registry = await fleet.daemon.api.registry();
  return registry.backends.find((row: DaemonSchema<'BackendRow'>) => row.id === id)!;
};

describe('backends and usage', () => {
  test('usage: windows are bars with their reset time, unknown is not 0', async () => {
    await fleet.on('/backends', async (page) => {
      const panel = page.getByRole('region', { name: 'Usage windows' });
      const claude = panel.getByRole('listitem').filter({ hasText: 'claude' });
      await claude.getByText('42%', { exact: true }).waitFor();
      await claude.getByText('in 2 h').or(claude.getByText('in 3 h')).waitFor();
      const cursor = panel.getByRole('listitem').filter({ hasText: 'cursor-agent' });
      await cursor.getByText('unavailable').first().waitFor();
      const windows = await cursor.locator('.usage-window').allTextContents();
      expect(windows).toHaveLength(3);
      for (const text of windows) {
        expect(text).toContain('unknown');
        expect(text).not.toMatch(/\d%/);
      }
    });
  });

  test('backends: set the tier, disable, enable, make default', async () => {
    await fleet.on('/backends', async (page) => {
      await page.getByLabel('Tier of gemini').selectOption('free');
      await page.getByText('gemini: free, enabled.').waitFor();
      expect(await backend('gemini')).toMatchObject({ tier: 'free', enabled: true });
      await page.getByLabel('Enable gemini').uncheck();
      await page.getByText('gemini: free, disabled.').waitFor();
      expect(await backend('gemini')).toMatchObject({ enabled: false });
      await page.getByLabel('Enable gemini').check();
      await page.getByRole('button', { name: 'Make default: gemini' }).click();
      await page.getByText('gemini is now the default.').waitFor();
      expect(await backend('gemini')).toMatchObject({ default: true, enabled: true });
      await page.getByRole('button', { name: 'Make default: claude' }).click();
      await page.getByText('claude is now the default.').waitFor();
    });
    expect(await backend('gemini')).toMatchObject({ default: false });
  });

  again('backends: a change made elsewhere shows immediately', async () => {
    await fleet.on('/backends', async (page) => {
      await page.getByText('Live', { exact: true }).waitFor();
      await page.getByLabel('Tier of gemini').waitFor();
      await fleet.daemon.api.ok('PATCH', '/api/v1/backends/gemini', { tier: 'pay_per_use' });
      await eventually(async () =>
        expect(await page.getByLabel('Tier of gemini').inputValue()).toBe('pay_per_use'),
      );
    });
  });

  again('backends: set the thinking mode, rescan, refresh usage', async () => {
    await fleet.on('/backends', async (page) => {
      await page.getByLabel('Local model only').check();
      await page.getByText('Thinking mode: local only.').waitFor();
      const { settings } = await fleet.daemon.api.registry();
      expect(settings.internal_thinking_mode).toBe('local_only');
      await page.getByRole('button', { name: 'Rescan' }).click();
      await page.getByText(/Found \d+ installed backends/).waitFor();
      await page.getByRole('button', { name: 'Refresh' }).click();
      await page.getByText('Usage refreshed.').waitFor();
    });
  });
});

again('spawn: an agent over budget needs a second confirmation', async () => {
  const { api } = fleet.daemon;
  const names = async (): Promise<string[]> => {
    const { sessions } = await api.ok('GET', '/api/v1/sessions');
    return sessions.map(({ name }: DaemonSchema<'Session'>) => name);
  };
  await fleet.on(
    '/',
    async (page) => {
      await page.getByRole('button', { name: 'New agent' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByLabel('Prompt').fill('say hello');
      await dialog.getByLabel('Name').fill('over the cap');
      await dialog.getByLabel('Backend').selectOption('claude');
      await dialog.getByLabel('Driver').selectOption('headless');
      await dialog.getByRole('button', { name: 'Start agent' }).click();
      await dialog.getByText(/Today \$\d+\.\d+ of \$0\.50/).waitFor();
      expect(await names()).not.toContain('over the cap');
      await dialog.getByRole('button', { name: 'Start over budget' }).click();
      await page.getByRole('heading', { name: 'over the cap', level: 1 }).waitFor();
    },
    { allowedErrors: /status of 428/ },
  );
  expect(await names()).toContain('over the cap');
});

describe('spend and savings', () => {
  test('spend: grouped by agent, repository, day, model and backend', async () => {
    const rollup: DaemonSchema<'SpendRollup'> = await fleet.daemon.api.ok('GET', '/api/v1/spend');
    expect(rollup.by_day.length).toBeGreaterThan(20);
    await fleet.on('/spend', async (page) => {
      await page.getByRole('img', { name: /^Dollars by day/ }).waitFor();
      const table = (by: string) => page.getByRole('table', { name: `Spend by ${by}` });
      await page.getByRole('button', { name: 'Repository' }).click();
      await table('repo').getByText('race').first().waitFor();
      await page.getByRole('button', { name: 'Model' }).click();
      await table('model').getByText('claude-opus-4-5').waitFor();
      await page.getByRole('button', { name: 'Backend' }).click();
      await table('backend').getByText('claude').waitFor();
      await page.getByRole('button', { name: 'Day', exact: true }).click();
      await table('day').getByText(rollup.by_day.at(-1)!.key).waitFor();
      const total = rollup.total_usd.toFixed(2);
      await page.locator('.figure', { hasText: 'All time' }).getByText(`$${total}`).waitFor();
      const value = page.getByRole('region', { name: 'Value' });
      await value.getByRole('columnheader', { name: 'Per merged branch' }).waitFor();
      const { total: all } = await fleet.daemon.api.ok('GET', '/api/v1/usage/value');
      await value.getByText(String(all.sessions)).first().waitFor();
    });
  });

  again('spend: a task links to itself, and one of a plan is named by its key', async () => {
    const rollup = await fleet.daemon.api.ok('GET', '/api/v1/spend');
    const [row] = rollup.by_model;
    const id = '01K9ZV0B1C2D3E4F5G6H7J8K9M';
    const by_task = [`${id}/docs`, id, 'none'].map((key) => ({ ...row, key }));
    await fleet.on('/spend', async (page) => {
      await page.route('**/api/v1/spend', (route) =>
        route.fulfill({ json: { ...rollup, by_task } }),
      );
      await page.reload();
      await page.getByRole('button', { name: 'Task', exact: true }).click();
      const links = page.getByRole('table', { name: 'Spend by task' }).getByRole('link');
      await links.first().waitFor();
      const seen = await links.evaluateAll((all) =>
        all.map((link) => [link.getAttribute('href'), link.textContent]),
      );
      expect(seen).toEqual([
        [`#/plans/${id}`, 'docs'],
        [`#/tasks/${id}`, id],
      ]);
    });
  });

  again('savings: hourly buckets up to two days, daily beyond', async () => {
    const requests: string[] = [];
    await fleet.on('/spend', async (page) => {
      await page.getByRole('img', { name: /^Tokens saved by day/ }).waitFor();
      page.on('request', (request) => {
        if (request.url().includes('/savings')) requests.push(new URL(request.url()).search);
      });
      for (const window of ['24 hours', '48 hours', '30 days', '90 days']) {
        const width = window.endsWith('hours') ? 'hour' : 'day';
        await page.getByRole('button', { name: window }).click();
        await page.getByRole('img', { name: new RegExp(`^Tokens saved by ${width}`) }).waitFor();
      }
    });
    expect(requests.sort()).toEqual([
      '?since=24h&bucket=hour',
      '?since=30d&bucket=day',
      '?since=48h&bucket=hour',
      '?since=90d&bucket=day',
    ]);
  });

  test('savings: context and offload are separate', async () => {
    const report: DaemonSchema<'SavingsReport'> = await fleet.daemon.api.ok(
      'GET',
      '/api/v1/savings?since=7d&bucket=day',
    );
    await fleet.on('/spend', async (page) => {
      const context = page.getByRole('region', { name: /^Context/ });
      const offload = page.getByRole('region', { name: /^Offload/ });
      const { reduction_pct } = report.axes.context;
      await context.getByText(`${Math.round(reduction_pct)}%`, { exact: true }).waitFor();
      await offload.getByText(String(report.axes.offload.events), { exact: true }).waitFor();
      expect(await context.textContent()).not.toContain('offload');
      await offload.getByRole('img', { name: /^Tokens offloaded by day/ }).waitFor();
    });
  });
});

test('metrics: machine, daemon and agents, current and over time', async () => {
  await fleet.on('/metrics', async (page) => {
    await page.getByRole('img', { name: /^Machine CPU/ }).waitFor();
    await page.getByRole('img', { name: /^Machine memory/ }).waitFor();
    await page.getByRole('img', { name: /^Daemon memory/ }).waitFor();
    const figure = page.locator('.figure', { hasText: 'Memory' }).first();
    expect(await figure.textContent()).toMatch(/Memory[\d.]+ [GM]iBof [\d.]+ [GM]iB/);
    await page.getByRole('img', { name: /^Memory by agent.*flaky search/ }).waitFor();
    await page.getByRole('img', { name: /^Context by agent.*flaky search.*latest 120k/ }).waitFor();
    await page.getByRole('button', { name: '7 days' }).click();
    await page.getByRole('img', { name: /^Machine CPU/ }).waitFor();
  });
});

again.each(appearancesOf(import.meta.url))(
  'backends, spend, metrics: accessible at $width in $theme',
  async (appearance) => {
    const watched = await fleet.open('/', appearance);
    const { page } = watched;
    for (const [name, ready] of [
      ['backends', '42%'],
      ['spend', 'Offload: work done by the local model'],
      ['metrics', 'Memory by agent'],
    ] as const) {
      await watched.visit(`/${name}`);
      await page.getByText(ready, { exact: true }).waitFor();
      if (name !== 'backends') await page.getByRole('img').first().waitFor();
      await watched.expectAccessible();
      await watched.screenshot(name);
    }
    await watched.close();
  },
);
