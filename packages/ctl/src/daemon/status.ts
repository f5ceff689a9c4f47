import { Refusal } from '@millrace/kit/errors';
import type { Tools } from '../base/tools.js';
import { renderFacts, type Cell } from '../render/table.js';
import { authOf, daemonApi, type DaemonApi, type DaemonFlags } from './api.js';

interface Status {
  readonly running: boolean;
  /** Null if no daemon is running on the named data directory. */
  readonly url: string | null;
  readonly version: string | null;
  /** Whether it accepts our token; null if it is not running. */
  readonly access: 'granted' | 'refused' | null;
  /** Whether it requires a token; null if unknown. */
  readonly auth: 'token' | 'none' | null;
  readonly backends: { readonly known: number; readonly installed: number } | null;
  readonly default_backend: string | null;
  /** Why it is not running, or why it rejects us. */
  readonly reason: string | null;
}

/**
 * Shows whether a daemon is running and some facts about it. A stopped daemon is a result, not an
 * error.
 */
export async function showStatus(flags: DaemonFlags, tools: Tools): Promise<void> {
  const status = await read(flags, tools);
  if (!status.running) tools.exitWith(1);
  tools.terminal.show(status, (out) => renderFacts(rowsOf(status), out));
}

async function read(flags: DaemonFlags, tools: Tools): Promise<Status> {
  let url: string | null = null;
  let version: string | null = null;
  const rest = { access: null, auth: null, backends: null, default_backend: null };
  const nothing = () => ({ url, version, ...rest });
  let api: DaemonApi;
  try {
    api = await daemonApi(flags, tools);
    url = api.url;
    const health = await api.call('getHealth');
    version = health.version ?? null;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return { running: false, ...nothing(), reason: error.detail };
  }
  try {
    const { backends } = await api.call('listBackends');
    const installed = backends.filter((row) => row.installed).length;
    return {
      running: true,
      url,
      version,
      access: 'granted',
      auth: await authOf(api),
      backends: { known: backends.length, installed },
      default_backend: backends.find((row) => row.default)?.id ?? null,
      reason: null,
    };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return { running: true, ...nothing(), access: 'refused', reason: error.detail };
  }
}

function rowsOf(status: Status): Cell[][] {
  const { running, url, version, backends, default_backend: standard, reason } = status;
  const state: Cell = running ? { text: 'running', tone: 'ok' } : { text: 'down', tone: 'bad' };
  const rows: Cell[][] = [['daemon', state]];
  if (url !== null) rows.push(['url', url]);
  if (version !== null) rows.push(['version', version]);
  if (backends) {
    rows.push(['backends', `${backends.installed} of ${backends.known} installed`]);
    rows.push(['default', standard ?? 'none']);
  }
  if (status.auth === 'none') {
    rows.push(['auth', { text: 'off: every local user has full access', tone: 'warn' }]);
  }
  if (reason !== null) rows.push(['reason', reason]);
  return rows;
}
