import { vi } from 'vitest';
import {
  startDaemon,
  type TestDaemon,
  type TestOptions,
} from '../../../daemon/test/support/daemon.js';
import { buildDashboard } from '../../scripts/build.mjs';
import { TestBrowser, type OpenOptions, type WatchedPage } from '../browser.js';
import { Stores } from './stores.js';

/** The built dashboard on a real daemon with real servers behind it, and a browser. */
export class Rig {
  private constructor(
    readonly stores: Stores,
    readonly daemon: TestDaemon,
    readonly browser: TestBrowser | undefined,
  ) {}

  static async start(
    flags: TestOptions['flags'] = {},
    databaseSettings: Readonly<Record<string, unknown>> = {},
  ): Promise<Rig> {
    const stores = new Stores(databaseSettings);
    const [browser] = await Promise.all([TestBrowser.start(), buildDashboard(), stores.start()]);
    const daemon = await startDaemon({ flags: { ...stores.flags, ...flags } });
    return new Rig(stores, daemon, browser);
  }

  async stop(): Promise<void> {
    await this.browser?.close();
    await this.daemon.dispose();
    await this.stores.stop();
  }

  open(path: string, options: OpenOptions = {}): Promise<WatchedPage> {
    return this.browser!.open(`${this.daemon.url}/#${path}`, options);
  }

  /** Opens a page, runs `act` on it, and fails when a problem was recorded. */
  async on(
    path: string,
    act: (page: WatchedPage['page'], watched: WatchedPage) => Promise<void>,
    options: OpenOptions = {},
  ): Promise<void> {
    const watched = await this.open(path, options);
    try {
      await act(watched.page, watched);
    } catch (error) {
      // An open page holds connections, and a browser has only six per server.
      await watched.page.close();
      throw error;
    }
    await watched.close();
  }
}

/** Repeats a check until it passes; the timeout allows for a loaded machine. */
export function eventually(check: () => Promise<void>): Promise<void> {
  return vi.waitFor(check, { timeout: 60_000, interval: 100 });
}

/** Scrolls to the end of the rows loaded so far. */
export async function scrollToEnd(page: WatchedPage['page'], selector: string): Promise<void> {
  await page.evaluate(`{
    const element = document.querySelector(${JSON.stringify(selector)});
    element.scrollTo(0, element.scrollHeight);
  }`);
}
