import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { arch, platform, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import axe from 'axe-core';
import { chromium, type BrowserContext, type Page } from 'playwright-core';
import { expect } from 'vitest';

const screenshots = join(
  dirname(fileURLToPath(import.meta.url)),
  '..',
  '..',
  '..',
  'docs',
  'screenshots',
);

/** Found on the machine when no other is named. */
const usual = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/usr/bin/google-chrome-stable',
  '/opt/google/chrome/chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  'C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe',
];

/** Nothing but what a test asks for. */
const quiet = [
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
  '--disable-quic',
  '--disable-dev-shm-usage',
];

/** Pages share a process, and nothing is drawn on a graphics card that there is not. */
const thrifty = [
  '--disable-gpu',
  '--in-process-gpu',
  '--renderer-process-limit=1',
  '--disable-site-isolation-trials',
];

interface Program {
  executablePath: string;
  args: string[];
}

async function findProgram(): Promise<Program | undefined> {
  const named = process.env['MILLRACE_TEST_BROWSER'];
  if (named) return { executablePath: named, args: [] };
  const found = usual.find((path) => existsSync(path));
  if (found) return { executablePath: found, args: [] };
  // The one from npm is a build for x64 Linux alone.
  if (platform() !== 'linux' || arch() !== 'x64') return undefined;
  const { default: packed } = await import('@sparticuz/chromium');
  return { executablePath: await packed.executablePath(), args: packed.args };
}

export const missingBrowser =
  'no Chromium: install one, or name it in MILLRACE_TEST_BROWSER (npm has one for x64 Linux only)';

export const widths = { phone: 390, desk: 1440 } as const;

export interface OpenOptions {
  width?: number;
  theme?: 'light' | 'dark';
  /** Console errors that the test brings about itself, such as an answer of 401. */
  allowedErrors?: RegExp;
}

/** A real browser with a profile of its own. */
export class TestBrowser {
  readonly #profile: string;
  readonly #browser: BrowserContext;

  private constructor(profile: string, browser: BrowserContext) {
    this.#profile = profile;
    this.#browser = browser;
  }

  /** Undefined where there is none; skip then with `missingBrowser` as the reason. */
  static async start(): Promise<TestBrowser | undefined> {
    const program = await findProgram();
    if (!program) return undefined;
    const profile = mkdtempSync(join(tmpdir(), 'mr-browser-'));
    const isRoot = process.getuid?.() === 0;
    const context = await chromium.launchPersistentContext(profile, {
      executablePath: program.executablePath,
      args: [...program.args, ...quiet, ...thrifty, ...(isRoot ? ['--no-sandbox'] : [])],
      headless: true,
      timeout: 90_000,
    });
    return new TestBrowser(profile, context);
  }

  /** Opens an address of the dashboard and watches over what the page does. */
  async open(url: string, options: OpenOptions = {}): Promise<WatchedPage> {
    const { width = widths.desk, theme = 'light' } = options;
    const page = await this.#browser.newPage();
    page.setDefaultTimeout(45_000);
    await page.setViewportSize({ width, height: width < 700 ? 844 : 900 });
    await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
    const watched = new WatchedPage(page, new URL(url).origin, { width, theme, ...options });
    await page.goto(url);
    return watched;
  }

  async close(): Promise<void> {
    await this.#browser.close();
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** A page and what must not happen on it. */
export class WatchedPage {
  readonly page: Page;
  readonly #options: OpenOptions & { width: number; theme: string };
  /** Console errors, exceptions, and requests to anywhere but the daemon. */
  readonly mishaps: string[] = [];

  constructor(page: Page, origin: string, options: OpenOptions & { width: number; theme: string }) {
    this.page = page;
    this.#options = options;
    page.on('console', (message) => {
      if (message.type() !== 'error' && message.type() !== 'warning') return;
      if (options.allowedErrors?.test(message.text())) return;
      this.mishaps.push(`console ${message.type()}: ${message.text()}`);
    });
    page.on('pageerror', (error) => this.mishaps.push(`exception: ${String(error)}`));
    page.on('request', (request) => {
      const url = request.url();
      if (!url.startsWith(`${origin}/`)) this.mishaps.push(`request to ${url}`);
    });
  }

  /** No serious finding of axe-core, and nothing wider than the page. */
  async expectAccessible(): Promise<void> {
    await this.page.evaluate(axe.source);
    const findings = await this.page.evaluate<string[]>(`
      axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations
        .filter(({ impact }) => impact === 'serious' || impact === 'critical')
        .map(({ id, help, nodes }) => id + ': ' + help + ' ' + nodes.slice(0, 3)
          .map((node) => node.html.slice(0, 200) + ' ' + node.failureSummary).join(' | ')))`);
    expect(findings).toEqual([]);
    const tooWide = await this.page.evaluate<string[]>(`(() => {
      const { scrollWidth, clientWidth } = document.documentElement;
      if (scrollWidth <= clientWidth) return [];
      return [...document.querySelectorAll('main *')]
        .filter((element) => element.getBoundingClientRect().right > clientWidth)
        .map((element) => element.outerHTML.slice(0, 120));
    })()`);
    expect(tooWide, 'the page scrolls sideways').toEqual([]);
  }

  /**
   * Takes a picture, and keeps it in docs/screenshots when MILLRACE_SCREENSHOTS is set: otherwise
   * a test run would change the tree each time.
   */
  async screenshot(name: string): Promise<void> {
    const { width, theme } = this.#options;
    const image = await this.page.screenshot({ animations: 'disabled' });
    expect(image.length).toBeGreaterThan(5000);
    if (!process.env['MILLRACE_SCREENSHOTS']) return;
    mkdirSync(screenshots, { recursive: true });
    writeFileSync(join(screenshots, `${name}-${width}-${theme}.png`), image);
  }

  /** Closes the page; fails when anything went wrong on it. */
  async close(): Promise<void> {
    await this.page.close();
    expect(this.mishaps).toEqual([]);
  }
}

/** Every look that is kept as a picture. */
export const looks = [
  { width: widths.desk, theme: 'light' },
  { width: widths.desk, theme: 'dark' },
  { width: widths.phone, theme: 'light' },
  { width: widths.phone, theme: 'dark' },
] as const;
