import { spawn } from 'node:child_process';
import { asTyped } from '../base/command-name.js';
import { findOnPath } from '../base/places.js';
import { daemonApi, dashboardLink, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../base/tools.js';

export interface OpenFlags extends DaemonFlags {
  print?: boolean;
}

/** Opens the dashboard in the browser, logged in; prints the link if that fails. */
export async function openDashboard(flags: OpenFlags, tools: Tools): Promise<void> {
  const { out, err, json, env } = tools.terminal;
  const { url, isLogin } = await dashboardLink(await daemonApi(flags, tools));
  const hasOpened = !flags.print && (await startBrowser(url, env));
  if (json) {
    out.write(`${JSON.stringify({ url, one_time: isLogin, opened: hasOpened }, null, 2)}\n`);
    return;
  }
  if (hasOpened) {
    out.write('Opened the dashboard in your browser.\n');
    return;
  }
  out.write(`${url}\n`);
  const advice =
    'The link works once and expires after 5 minutes. Get another with `ctl open --print`.\n';
  if (isLogin) err.write(err.paint('dim', asTyped(advice)));
}

/** True if a program that opens links was started. */
async function startBrowser(
  url: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<boolean> {
  const name = process.platform === 'darwin' ? 'open' : 'xdg-open';
  // Without a display xdg-open falls back to a browser in the terminal, or fails.
  const hasDisplay = process.platform === 'darwin' || env['DISPLAY'] || env['WAYLAND_DISPLAY'];
  const program = hasDisplay ? findOnPath(name, env['PATH']) : undefined;
  if (program === undefined) return false;
  const child = spawn(program, [url], { detached: true, stdio: 'ignore', env: { ...env } });
  return new Promise((resolve) => {
    child.once('error', () => resolve(false));
    child.once('spawn', () => {
      child.unref();
      resolve(true);
    });
  });
}
