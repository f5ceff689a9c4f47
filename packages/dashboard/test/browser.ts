import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { arch, platform, tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliDecompressSync } from 'node:zlib';
import axe from 'axe-core';
import { chromium, type BrowserContext, type Page } from 'playwright-core';
import { expect, vi } from 'vitest';
import { isFullCampaign } from '../../../test/support/campaign.js';

const screenshots = join(
  dirname(fileURLToPath(import.meta.url)),
  '..',
  '..',
  '..',
  'docs',
  'screenshots',
);

const views = join(dirname(fileURLToPath(import.meta.url)), 'views');

/** What a page is made of, without its data: its height, headings and columns. */
const readView = `[
  'height ' + document.querySelector('main').scrollHeight,
  ...[...document.querySelectorAll('h2, [role=columnheader], th[scope=col]')]
    .filter((element) => element.checkVisibility())
    .map((element) => element.tagName.toLowerCase() + ' ' +
      element.textContent.replaceAll(/\\b[0-9A-Z]{26}\\b/g, 'ID').replaceAll(/\\d+/g, '#').replaceAll('\\n', ' ')),
].join('\\n') + '\\n'`;

/** Used when MILLRACE_TEST_BROWSER is not set. */
const defaultPaths = [
  // Without windows; a test takes a fifth less CPU time with it.
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/usr/bin/google-chrome-stable',
  '/opt/google/chrome/chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  'C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe',
];

/** No background traffic. */
const quietArgs = [
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
  '--disable-quic',
  '--disable-dev-shm-usage',
];

/** One renderer process, no GPU. */
const lowMemoryArgs = [
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
  const found = defaultPaths.find((path) => existsSync(path));
  if (found) return { executablePath: found, args: [] };
  // The package has a build for x64 Linux only.
  if (platform() !== 'linux' || arch() !== 'x64') return undefined;
  const { default: bundled } = await import('@sparticuz/chromium');
  // Drawing with its software GPU takes CPU time, and no page uses WebGL.
  bundled.setGraphicsMode = false;
  return { executablePath: unpackChromium(), args: bundled.args };
}

/**
 * The package unpacks it to a path that others see before it is complete: a second worker then
 * fails with ETXTBSY. It is no temporary file, because the next run would unpack it again.
 */
function unpackChromium(): string {
  const main = createRequire(import.meta.url).resolve('@sparticuz/chromium');
  const packed = (name: string) => join(dirname(main), '..', '..', 'bin', name);
  const size = statSync(packed('chromium.br')).size;
  const cache = new URL('../../../node_modules/.cache/', import.meta.url);
  const folder = join(fileURLToPath(cache), `mr-chromium-${size}`);
  const program = join(folder, 'chromium');
  if (existsSync(program)) return program;
  const unpacked = `${folder}.${process.pid}`;
  mkdirSync(unpacked, { recursive: true });
  const bytes = (name: string) => brotliDecompressSync(readFileSync(packed(name)));
  // It loads its drawing libraries from its own folder.
  execFileSync('tar', ['-x', '-C', unpacked], { input: bytes('swiftshader.tar.br') });
  writeFileSync(join(unpacked, 'chromium'), bytes('chromium.br'), { mode: 0o755 });
  try {
    renameSync(unpacked, folder);
  } catch (error) {
    rmSync(unpacked, { recursive: true });
    // Another worker was faster.
    if (!existsSync(program)) throw error;
  }
  return program;
}

export const missingBrowser =
  'no Chromium: install one, or set MILLRACE_TEST_BROWSER (npm has one for x64 Linux only)';

export const widths = { phone: 390, desktop: 1440 } as const;

export interface OpenOptions {
  width?: number;
  theme?: 'light' | 'dark';
  /** Console errors that the test causes, such as a 401. */
  allowedErrors?: RegExp;
  /** Runs before the page loads, for example to answer some of its requests. */
  prepare?: (page: Page) => Promise<void>;
  /** Uses a new tab and closes it, for a test that changes its tab for good. */
  needsOwnTab?: boolean;
}

/** One for all test files of a worker, which load this module once: it takes seconds to start. */
let shared: Promise<TestBrowser | undefined> | undefined;

/** A real browser with a temporary profile. */
export class TestBrowser {
  /** Undefined after it ended, as one does that the system kills for its memory. */
  #browser: BrowserContext | undefined;
  /** A tab without a page, for the next test: a new tab takes 0.2 s of CPU time. */
  #idle: Page | undefined;

  private constructor(private readonly program: Program) {}

  /** Undefined when there is no browser; skip the tests with `missingBrowser` then. */
  static start(): Promise<TestBrowser | undefined> {
    shared ??= TestBrowser.#make().catch((error: unknown) => {
      // One failure must not fail every later file of the worker.
      shared = undefined;
      throw error;
    });
    return shared;
  }

  static async #make(): Promise<TestBrowser | undefined> {
    const program = await findProgram();
    if (!program) return undefined;
    const browser = new TestBrowser(program);
    browser.#browser = await browser.#launch();
    return browser;
  }

  async #launch(): Promise<BrowserContext> {
    const { program } = this;
    const profile = mkdtempSync(join(tmpdir(), 'mr-browser-'));
    const isRoot = process.getuid?.() === 0;
    const context = await chromium.launchPersistentContext(profile, {
      executablePath: program.executablePath,
      args: [...program.args, ...quietArgs, ...lowMemoryArgs, ...(isRoot ? ['--no-sandbox'] : [])],
      headless: true,
      timeout: 90_000,
    });
    // The browser itself ends with this process.
    process.once('exit', () => rmSync(profile, { recursive: true, force: true, maxRetries: 5 }));
    context.once('close', () => {
      this.#browser = undefined;
      this.#idle = undefined;
    });
    return context;
  }

  /** Opens a page of the dashboard and records its problems. */
  async open(url: string, options: OpenOptions = {}): Promise<WatchedPage> {
    const { width = widths.desktop, theme = 'light', needsOwnTab = false } = options;
    this.#browser ??= await this.#launch();
    const page = (!needsOwnTab && this.#takeIdle()) || (await this.#browser.newPage());
    // Ends a test that hangs; on a busy machine a page takes a minute.
    page.setDefaultTimeout(120_000);
    await page.setViewportSize({ width, height: width < 700 ? 844 : 900 });
    await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
    const free = () => (needsOwnTab ? page.close() : this.#free(page));
    const watched = new WatchedPage(page, new URL(url).origin, { width, theme, ...options }, free);
    await options.prepare?.(page);
    await page.goto(url);
    return watched;
  }

  #takeIdle(): Page | undefined {
    const page = this.#idle;
    this.#idle = undefined;
    return page;
  }

  /** Leaves nothing of a page in its tab: no storage, no routes, no listeners. */
  async #free(page: Page): Promise<void> {
    if (this.#idle || !page.url().startsWith('http')) return page.close();
    for (const event of ['console', 'pageerror', 'request']) page.removeAllListeners(event);
    // The page still runs, and must not store anything after this.
    await page.evaluate(`{
      Storage.prototype.setItem = () => {};
      localStorage.clear();
      sessionStorage.clear();
    }`);
    await page.goto('about:blank');
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    this.#idle = page;
  }

  /** Leaves nothing for the next test file: no pages, no cookies, no permissions. */
  async close(): Promise<void> {
    this.#idle = undefined;
    if (!this.#browser) return;
    const [first, ...rest] = this.#browser.pages();
    // A browser without a page may end.
    await first?.goto('about:blank');
    await Promise.all(rest.map((page) => page.close()));
    await this.#browser.clearCookies();
    await this.#browser.clearPermissions();
  }
}

/** A page and the problems recorded on it. */
export class WatchedPage {
  readonly page: Page;
  readonly #options: OpenOptions & { width: number; theme: string };
  /** Console errors, exceptions, and requests to anywhere but the daemon. */
  readonly problems: string[] = [];
  readonly #free: () => Promise<void>;

  constructor(
    page: Page,
    origin: string,
    options: OpenOptions & { width: number; theme: string },
    free: () => Promise<void>,
  ) {
    this.page = page;
    this.#options = options;
    this.#free = free;
    page.on('console', (message) => {
      if (message.type() !== 'error' && message.type() !== 'warning') return;
      if (options.allowedErrors?.test(message.text())) return;
      this.problems.push(`console ${message.type()}: ${message.text()}`);
    });
    page.on('pageerror', (error) => this.problems.push(`exception: ${String(error)}`));
    page.on('request', (request) => {
      const url = request.url();
      if (!url.startsWith(`${origin}/`)) this.problems.push(`request to ${url}`);
    });
  }

  /** Goes to another page of the dashboard without loading it again, for a fifth of the CPU time. */
  async visit(path: string): Promise<void> {
    await this.page.goto(`${new URL(this.page.url()).origin}/#${path}`);
  }

  /** No serious finding of axe-core, no horizontal scrolling. */
  async expectAccessible(): Promise<void> {
    if (!(await this.page.evaluate('"axe" in window'))) await this.page.evaluate(axe.source);
    // No rule that is on reads style sheets, which would be fetched again.
    const findings = await this.page.evaluate<string[]>(`
      axe.run(document, { resultTypes: ['violations'], preload: false }).then(({ violations }) => violations
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
    expect(tooWide, 'the page scrolls horizontally').toEqual([]);
  }

  /**
   * Compares headings, columns and height with those of test/views, which MILLRACE_VIEWS=write
   * writes. Takes a screenshot when MILLRACE_SCREENSHOTS is set: into the folder it names, or into
   * docs/screenshots when it is 1.
   */
  async screenshot(name: string): Promise<void> {
    await this.#compareView(join(views, `${name}-${this.#options.width}.txt`));
    const wanted = process.env['MILLRACE_SCREENSHOTS'];
    if (!wanted) return;
    const { width, theme } = this.#options;
    const image = await this.page.screenshot({ animations: 'disabled' });
    const folder = wanted === '1' ? screenshots : wanted;
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `${name}-${width}-${theme}.png`), image);
  }

  async #compareView(file: string): Promise<void> {
    const read = () => this.page.evaluate<string>(readView);
    if (process.env['MILLRACE_VIEWS'] === 'write') {
      mkdirSync(views, { recursive: true });
      writeFileSync(file, await read());
      return;
    }
    const [lastHeight = '', ...lastParts] = readFileSync(file, 'utf8').split('\n');
    const heightOf = (line: string) => Number(line.replace('height ', ''));
    await vi.waitFor(
      async () => {
        const [height = '', ...parts] = (await read()).split('\n');
        expect(parts).toEqual(lastParts);
        const change = heightOf(height) / heightOf(lastHeight);
        expect(change > 0.4 && change < 2.5, `${height} was ${lastHeight}`).toBe(true);
      },
      { timeout: 60_000, interval: 200 },
    );
  }

  /** Closes the page; fails when a problem was recorded. */
  async close(): Promise<void> {
    await this.#free();
    expect(this.problems).toEqual([]);
  }
}

const allAppearances = [
  { width: widths.desktop, theme: 'light' },
  { width: widths.phone, theme: 'dark' },
  { width: widths.desktop, theme: 'dark' },
  { width: widths.phone, theme: 'light' },
] as const;

/** The widths and themes to check: another one for each test file, and all of them at full size. */
export function appearancesOf(file: string): readonly (typeof allAppearances)[number][] {
  if (isFullCampaign) return allAppearances;
  const letters = Buffer.from(basename(file)).reduce((sum, byte) => sum + byte, 0);
  return [allAppearances[letters % allAppearances.length]!];
}
