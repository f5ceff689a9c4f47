import { rmSync } from 'node:fs';
import { Refusal } from '@millrace/kit/errors';
import { dataDirectory } from '../data-directory.js';
import { daemonApi } from '../daemon/api.js';
import { dashboardLink } from '../open/login-link.js';
import { runningUp } from '../queue/locate.js';
import type { Tools } from '../tools.js';
import { bannerFor, eventsFor } from './banner.js';
import { bringUp, type BroughtUp } from './bring-up.js';
import { makeDataDirectory, queueAddressFile } from './own-files.js';
import type { UpOptions } from './settings.js';
import { runParts } from './supervisor.js';

export interface UpFlags extends UpOptions {
  data?: string;
}

/** Runs the three servers as processes that know one another, until it is told to stop. */
export async function runUp({ data, ...addresses }: UpFlags, tools: Tools): Promise<void> {
  const { out, env, json } = tools.terminal;
  const dataDir = dataDirectory(data, env);
  makeDataDirectory(dataDir);
  await tools.lifecycle.serve(async (stopped) => {
    const up = await bringUp({ dataDir, addresses, stopped }, tools).catch((error: unknown) => {
      throw besideAnother(dataDir, error);
    });
    const { kept } = up;
    try {
      if (up.hasStarted) {
        if (json) out.write(`${kept.map(eventsFor).join('')}{"event":"ready"}\n`);
        else out.write(bannerFor({ running: kept, dataDir, ...(await access(up, tools)) }, out));
      }
      await runParts(kept, stopped);
    } finally {
      rmSync(queueAddressFile(dataDir), { force: true });
    }
    out.write(json ? '{"event":"stopped"}\n' : '\nStopped.\n');
  });
}

/** How the person at the terminal gets into the dashboard. */
async function access({ daemonToken, url }: BroughtUp, { terminal, lifecycle }: Tools) {
  const daemonUrl = url('daemon');
  const plain = { dashboard: daemonUrl, isLogin: false, hasAuth: daemonToken !== undefined };
  if (daemonToken === undefined) return plain;
  const env = { ...terminal.env, MILLRACE_TOKEN: daemonToken };
  try {
    const api = await daemonApi({ url: daemonUrl }, { terminal: { ...terminal, env }, lifecycle });
    return { ...plain, dashboard: (await dashboardLink(api)).url, isLogin: true };
  } catch (error) {
    // Everything runs; the link can be had later.
    if (error instanceof Refusal) return plain;
    throw error;
  }
}

/** Whoever starts it a second time mostly forgot the first. */
function besideAnother(dataDir: string, error: unknown): unknown {
  const other = runningUp(dataDir);
  if (!other || !(error instanceof Refusal)) return error;
  return new Refusal(
    error.code,
    `Millrace already runs on ${dataDir}, as process ${other.pid}: \`ctl status\` shows it.`,
    { cause: error },
  );
}
