import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';

const paths = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/usr/bin/google-chrome-stable',
  '/opt/google/chrome/chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
];

/** Undefined when there is no Chromium. */
export async function openBrowser() {
  const executablePath =
    process.env.MILLRACE_TEST_BROWSER ??
    paths.find((path) => existsSync(path)) ??
    (await bundled());
  if (executablePath === undefined) return undefined;
  const isRoot = process.getuid?.() === 0;
  const browser = await chromium.launch({
    executablePath,
    args: ['--disable-gpu', '--disable-dev-shm-usage', ...(isRoot ? ['--no-sandbox'] : [])],
  });
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  return { newPage: () => context.newPage(), close: () => browser.close() };
}

/** The package has a build for x64 Linux only. */
async function bundled() {
  if (process.platform !== 'linux' || process.arch !== 'x64') return undefined;
  const { default: program } = await import('@sparticuz/chromium');
  return program.executablePath();
}
