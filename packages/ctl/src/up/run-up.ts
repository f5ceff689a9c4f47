import { rmSync } from 'node:fs';
import { Refusal } from '@millrace/kit/errors';
import { dataDirectory } from '../base/data-directory.js';
import { daemonApi, dashboardLink } from '../daemon/api.js';
import { exchange, isAbort } from '../base/exchange.js';
import { findOnPath } from '../base/places.js';
import { runningUp } from '../queue/locate.js';
import { removeState } from './state-file.js';
import type { Tools } from '../base/tools.js';
import { version } from '../base/version.js';
import { bannerFor, eventsFor } from './banner.js';
import { checkDataVersion, stampDataVersion } from './data-version.js';
import { bringUp, type BroughtUp } from './bring-up.js';
import { makeDataDirectory, makeQueueSettings, queueAddressFile } from './own-files.js';
import type { UpOptions } from './settings.js';
import { runParts } from './supervisor.js';

export interface UpFlags extends UpOptions {
  data?: string;
}

/** Runs the three servers as connected processes until it is stopped. */
export async function runUp({ data, ...addresses }: UpFlags, tools: Tools): Promise<void> {
  const { out, env, json } = tools.terminal;
  const dataDir = dataDirectory(data, env);
  makeDataDirectory(dataDir);
  await refuseSecond(dataDir, tools);
  checkDataVersion(dataDir, version(), addresses.upgrade === false);
  makeQueueSettings(dataDir);
  await tools.lifecycle.serve(async (stopped) => {
    const up = await bringUp({ dataDir, addresses, stopped }, tools).catch((error: unknown) => {
      throw (error instanceof Refusal && alreadyRunning(dataDir, error)) || error;
    });
    const { supervised } = up;
    try {
      if (up.hasStarted) {
        stampDataVersion(dataDir, version());
        if (json) out.write(`${supervised.map(eventsFor).join('')}{"event":"ready"}\n`);
        else
          out.write(bannerFor({ running: supervised, dataDir, ...(await access(up, tools)) }, out));
      }
      await runParts(supervised, stopped);
    } finally {
      rmSync(queueAddressFile(dataDir), { force: true });
      removeState(dataDir);
    }
    out.write(json ? '{"event":"stopped"}\n' : '\nStopped.\n');
  });
}

/** URL with which the user opens the dashboard. */
async function access({ daemonToken, url }: BroughtUp, { terminal, lifecycle }: Tools) {
  const daemonUrl = url('daemon');
  const isOnPath = (program: string) => findOnPath(program, terminal.env['PATH']) !== undefined;
  const programs = { tmux: isOnPath('tmux'), gh: isOnPath('gh') };
  const plain = {
    dashboard: daemonUrl,
    isLogin: false,
    hasAuth: daemonToken !== undefined,
    found: { agents: undefined, defaultAgent: undefined, ...programs },
  };
  const env = {
    ...terminal.env,
    ...(daemonToken !== undefined && { MILLRACE_TOKEN: daemonToken }),
  };
  try {
    const api = await daemonApi({ url: daemonUrl }, { terminal: { ...terminal, env }, lifecycle });
    const { backends } = await api.call('listBackends');
    const usable = backends.filter((one) => one.installed && one.enabled && !one.is_local);
    const found = {
      agents: usable.map(({ id }) => id),
      defaultAgent: usable.find((one) => one.default)?.id,
      ...programs,
    };
    if (daemonToken === undefined) return { ...plain, found };
    return { ...plain, found, dashboard: (await dashboardLink(api)).url, isLogin: true };
  } catch (error) {
    // Everything is running; the link is available later.
    if (error instanceof Refusal) return plain;
    throw error;
  }
}

/** Starting it twice is usually a mistake. */
function alreadyRunning(dataDir: string, cause?: unknown): Refusal | undefined {
  const other = runningUp(dataDir);
  if (!other || other.pid === process.pid) return undefined;
  return new Refusal(
    'PART_FAILED',
    `Millrace is already running on ${dataDir}, as process ${other.pid}. Check it with ` +
      '`ctl status`.',
    { cause },
  );
}

/** After a crash another process may have the same id, so its queue must answer, too. */
async function refuseSecond(dataDir: string, { lifecycle }: Tools): Promise<void> {
  const refusal = alreadyRunning(dataDir);
  if (refusal && (await answers(runningUp(dataDir)?.queueUrl, lifecycle.interrupted)))
    throw refusal;
}

async function answers(url: string | undefined, signal: AbortSignal): Promise<boolean> {
  if (url === undefined) return false;
  try {
    const request = { method: 'GET', url: `${url}/healthz`, headers: {}, signal };
    return (await exchange({ ...request, patienceMs: 2_000 })).status === 200;
  } catch (error) {
    if (isAbort(error)) throw error;
    return false;
  }
}
