import { mkdtempSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createServer, type ViteDevServer } from 'vite';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { startDaemon, type TestDaemon } from '../../daemon/test/support/daemon.js';
import { appearancesOf, missingBrowser, type TestBrowser, widths } from './browser.js';
import { eventually, Fleet } from './support/fleet.js';

const again = inCampaign('browser');

const token = 'full-token-of-the-shell-test';
const readOnlyToken = 'reading-token-of-the-shell-test';

let fleet: Fleet;
let guarded: TestDaemon;

beforeAll(async () => {
  fleet = await Fleet.start();
  guarded = await startDaemon({ flags: { token, 'read-only-token': readOnlyToken } });
}, 240_000);
afterAll(async () => {
  await fleet?.stop();
  await guarded?.dispose();
});
beforeEach(({ skip }) => skip(fleet.browser === undefined, missingBrowser));

const open = (options: Parameters<TestBrowser['open']>[1] = {}) =>
  fleet.browser!.open(`${guarded.url}/#/settings`, {
    allowedErrors: /status of 40[13]/,
    ...options,
  });

describe('login', () => {
  test('token: required first, never part of a URL, deleted on request', async () => {
    const watched = await open();
    const { page } = watched;
    const urls: string[] = [];
    page.on('request', (request) => urls.push(request.url()));
    await page.getByRole('heading', { name: 'Log in to this daemon' }).waitFor();
    await page.getByText('ctl open', { exact: true }).waitFor();
    await watched.expectAccessible();
    await page.getByLabel('Token', { exact: true }).fill('a-wrong-token-of-some-length');
    await page.getByRole('button', { name: 'Log in', exact: true }).click();
    await page.getByText('Wrong token.').waitFor();
    await page.getByLabel('Token', { exact: true }).fill(token);
    await page.getByRole('button', { name: 'Log in', exact: true }).click();
    await page.getByRole('table').getByText('tokens.warn').first().waitFor();
    await page.getByText('Live', { exact: true }).waitFor();
    expect([page.url(), ...urls].join('\n')).not.toContain(token);
    // A reload of this tab still has it; another tab does not.
    await page.reload();
    await page.getByRole('table').getByText('tokens.warn').first().waitFor();
    const other = await open();
    await other.page.getByRole('heading', { name: 'Log in to this daemon' }).waitFor();
    await other.close();
    await page.getByRole('button', { name: 'Delete token' }).click();
    // The next poll is refused, and its login page may come before this check.
    const login = page.getByRole('heading', { name: 'Log in to this daemon' });
    await page
      .getByText(/Logged in with a link/)
      .or(login)
      .waitFor();
    expect(
      await page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }])'),
    ).not.toContain(token);
    await watched.close();
  });

  test('link: logs the browser in once, until it logs out', async () => {
    const owner = guarded.api.withHeaders({ authorization: `Bearer ${token}` });
    const { code } = await owner.ok('POST', '/api/v1/login-codes');
    const link = `${guarded.url}/#login=${code}`;
    const watched = await fleet.browser!.open(link, { allowedErrors: /status of 401/ });
    const { page } = watched;
    await page.getByText('Live', { exact: true }).waitFor();
    expect(page.url()).not.toContain(code);
    await page.getByRole('link', { name: 'Settings' }).click();
    await page.getByRole('table').getByText('tokens.warn').first().waitFor();
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByRole('heading', { name: 'Log in to this daemon' }).waitFor();
    await page.goto('about:blank');
    await page.goto(link);
    await page.getByText('The login link was already used').waitFor();
    await watched.close();
  });

  test('token: stored for other tabs only on request', async () => {
    const watched = await open();
    await watched.page.getByLabel('Token', { exact: true }).fill(token);
    await watched.page.getByLabel(/Remember on this computer/).check();
    await watched.page.getByRole('button', { name: 'Log in', exact: true }).click();
    await watched.page.getByRole('table').getByText('tokens.warn').first().waitFor();
    const other = await open();
    await other.page.getByRole('table').getByText('tokens.warn').first().waitFor();
    await other.page.getByRole('button', { name: 'Delete token' }).click();
    await other.close();
    await watched.close();
  });

  test('read-only token: shows why a change is refused', async () => {
    const watched = await open();
    const { page } = watched;
    await page.getByLabel('Token', { exact: true }).fill(readOnlyToken);
    await page.getByRole('button', { name: 'Log in', exact: true }).click();
    await page.getByRole('link', { name: 'Backends & usage' }).click();
    await page.getByRole('button', { name: 'Rescan' }).click();
    await page.getByText(/A read-only token cannot change anything/).waitFor();
    await watched.close();
  });
});

describe('shell', () => {
  again('shortcuts: reach every page, are listed and can be disabled', async () => {
    await fleet.on('/', async (page, watched) => {
      await page.getByText('No agents yet.').waitFor();
      for (const [key, title] of [
        ['p', 'Pipelines'],
        ['b', 'Branches'],
        ['i', 'Inbox'],
        ['u', 'Backends & usage'],
        ['s', 'Spend & savings'],
        ['m', 'Metrics'],
        [',', 'Settings'],
        ['f', 'Fleet'],
      ] as const) {
        await page.keyboard.press('g');
        await page.keyboard.press(key);
        await page.getByRole('heading', { name: title, level: 1 }).waitFor();
        expect(await page.title()).toBe(`${title} – Millrace`);
      }
      await page.keyboard.press('?');
      const sheet = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
      await sheet.getByText('Go to Spend & savings').waitFor();
      await watched.expectAccessible();
      await sheet.getByLabel('Use keyboard shortcuts').uncheck();
      await page.keyboard.press('Escape');
      await sheet.waitFor({ state: 'detached' });
      await page.keyboard.press('g');
      await page.keyboard.press('p');
      await page.keyboard.press('?');
      expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Fleet');
      await page.getByRole('button', { name: /^Shortcuts/ }).click();
      await sheet.getByLabel('Use keyboard shortcuts').check();
    });
  });

  again('skip link: first Tab stop, moves the focus to the content', async () => {
    await fleet.on('/', async (page) => {
      await page.getByText('No agents yet.').waitFor();
      await page.keyboard.press('Tab');
      await page.keyboard.press('Enter');
      await eventually(async () =>
        expect(await page.evaluate('document.activeElement.id')).toBe('content'),
      );
      expect(page.url()).toBe(`${fleet.daemon.url}/#/`);
    });
  });

  again('theme: follows the system unless one is selected', async () => {
    const ground = 'getComputedStyle(document.body).backgroundColor';
    await fleet.on(
      '/',
      async (page) => {
        await page.getByText('No agents yet.').waitFor();
        const dark = await page.evaluate(ground);
        await page.getByLabel('Theme').selectOption('light');
        await eventually(async () => expect(await page.evaluate(ground)).not.toBe(dark));
        await page.reload();
        await page.getByText('No agents yet.').waitFor();
        expect(await page.evaluate(ground)).not.toBe(dark);
        await page.getByLabel('Theme').selectOption('auto');
        await eventually(async () => expect(await page.evaluate(ground)).toBe(dark));
      },
      { theme: 'dark' },
    );
  });

  again('phone: the navigation is a menu', async () => {
    await fleet.on(
      '/',
      async (page, watched) => {
        const link = page.getByRole('link', { name: 'Settings' });
        await page.getByText('No agents yet.').waitFor();
        expect(await link.isVisible()).toBe(false);
        await page.getByRole('button', { name: 'Menu' }).click();
        await watched.expectAccessible();
        await link.click();
        await page.getByRole('heading', { name: 'Settings', level: 1 }).waitFor();
        expect(await link.isVisible()).toBe(false);
      },
      { width: widths.phone },
    );
  });

  again('empty states: every page says what to do', async () => {
    const watched = await fleet.open('/');
    for (const [path, text] of [
      ['/', 'No agents yet.'],
      ['/pipelines', 'No pipelines yet.'],
      ['/plans', 'No plans yet.'],
      ['/branches', 'No agent has a branch.'],
      ['/inbox', 'No unread notes.'],
      ['/backends', 'No backend with the tier subscription.'],
      ['/spend', 'No spend yet.'],
      ['/nowhere', 'Page not found.'],
    ] as const) {
      await watched.visit(path);
      await watched.page.getByText(text).waitFor();
      await watched.expectAccessible();
    }
    await watched.close();
  });

  again('unreachable daemon: shows how to start it, and recovers', async () => {
    const first = await startDaemon();
    const { home } = first;
    const { port } = new URL(first.url);
    const watched = await fleet.browser!.open(`${first.url}/#/inbox`, {
      allowedErrors: /ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET/,
    });
    const { page } = watched;
    await page.getByText('Live', { exact: true }).waitFor();
    await first.stop();
    await page.getByText('Disconnected', { exact: true }).waitFor();
    await page.getByText('Cannot reach the daemon.').waitFor();
    const second = await startDaemon({ home, flags: { listen: `127.0.0.1:${port}` } });
    await page.getByText('Live', { exact: true }).waitFor();
    await page.getByText('Cannot reach the daemon.').waitFor({ state: 'detached' });
    await watched.close();
    await second.dispose();
  });
});

again('test browser: a page finds nothing that the one before has stored or routed', async () => {
  const stored = 'JSON.stringify([{ ...localStorage }, { ...sessionStorage }])';
  const routed = `fetch('/not-there').then((response) => response.status)`;
  await fleet.on(
    '/settings',
    async (page) => {
      await page.evaluate(`localStorage.setItem('a', '1'); sessionStorage.setItem('b', '2')`);
      expect(await page.evaluate(stored)).toContain('"a":"1"');
      expect(await page.evaluate(routed)).toBe(204);
    },
    {
      prepare: async (page) => {
        await page.route('**/not-there', (route) => route.fulfill({ status: 204 }));
      },
    },
  );
  await fleet.on(
    '/settings',
    async (page) => {
      expect(await page.evaluate<string>(stored)).not.toMatch(/"[ab]":/);
      expect(await page.evaluate(routed)).toBe(404);
    },
    { allowedErrors: /status of 404/ },
  );
});

test('settings: show every value with its source, and are searchable', async () => {
  await fleet.on('/settings', async (page) => {
    const row = page.getByRole('row').filter({ hasText: 'data_dir' });
    await row.getByText('flag').waitFor();
    await page.getByLabel('Search settings').fill('tokens.');
    await page.getByRole('rowheader', { name: 'tokens.critical', exact: true }).waitFor();
    expect(await page.getByRole('rowheader', { name: 'listen' }).count()).toBe(0);
    await page.getByLabel('Search settings').fill('nothing like it');
    await page.getByText('No setting matches.').waitFor();
  });
});

again.each(appearancesOf(import.meta.url))(
  'settings: accessible at $width in $theme',
  async (appearance) => {
    await fleet.on(
      '/settings',
      async (page, watched) => {
        await page.getByRole('rowheader').first().waitFor();
        await watched.expectAccessible();
        await watched.screenshot('settings');
      },
      appearance,
    );
  },
);

test('documentation: one search over all pages, and links between them', async () => {
  await fleet.on('/help', async (page) => {
    await page.getByRole('link', { name: 'Your first worker' }).waitFor();
    await page.getByLabel('Search the documentation').fill('redrive dead');
    const results = page.getByRole('list', { name: 'Results' });
    await results
      .getByRole('link', { name: /Handle dead tasks/ })
      .first()
      .click();
    await page.getByRole('heading', { name: 'Handle dead tasks' }).waitFor();
    await page.getByLabel('Search the documentation').fill('xqzwvk');
    await page.getByText('Nothing matches.').waitFor();
    await page.goto(`${fleet.daemon.url}/#/help?page=tutorials/quickstart`);
    await page.getByLabel('Search the documentation').fill('');
    await page.locator('.doc').getByRole('link').first().click();
    await page.getByRole('heading', { name: 'Quickstart' }).waitFor({ state: 'hidden' });
    await page.locator('.doc h2').first().waitFor();
  });
});

again.each(appearancesOf(import.meta.url))(
  'documentation: accessible at $width in $theme',
  async (appearance) => {
    await fleet.on(
      '/help?page=how-to/query-records',
      async (page, watched) => {
        await page.getByRole('heading', { name: 'Explain a query' }).waitFor();
        await watched.expectAccessible();
        await watched.screenshot('documentation');
      },
      appearance,
    );
  },
);

describe('the gallery of a development build', { tags: 'campaign-browser' }, () => {
  let server: ViteDevServer;
  let cacheDir = '';
  beforeAll(async () => {
    const root = fileURLToPath(new URL('..', import.meta.url));
    const proxy = { '/api': fleet.daemon.url };
    cacheDir = mkdtempSync(join(tmpdir(), 'mr-vite-'));
    const own = { host: '127.0.0.1', port: 0, proxy, hmr: false };
    server = await createServer({ root, cacheDir, logLevel: 'silent', server: own });
    await server.listen();
  });
  afterAll(async () => {
    await server?.close();
    rmSync(cacheDir, { recursive: true, force: true });
  });

  test.each(appearancesOf(import.meta.url))(
    'every part is accessible at $width in $theme',
    async (appearance) => {
      const { port } = server.httpServer!.address() as AddressInfo;
      const options = { ...appearance, allowedErrors: /./ };
      const watched = await fleet.browser!.open(`http://127.0.0.1:${port}/#/gallery`, options);
      await watched.page.getByRole('heading', { name: 'Gallery' }).waitFor();
      await watched.page.getByRole('img', { name: 'Bars' }).waitFor();
      await watched.expectAccessible();
      await watched.screenshot('gallery');
      await watched.page.getByRole('button', { name: 'Open a form that failed' }).click();
      await watched.page.getByText('The queue is not paused.').waitFor();
      await watched.expectAccessible();
      await watched.close();
    },
  );
});
