import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '@millrace/kit/clock';
import { messageOf, Refusal } from '@millrace/kit/errors';
import { daemonApi, authOf } from '../daemon/api.js';
import { readSessions } from '../agent/find-session.js';
import { dataDirectory } from '../base/data-directory.js';
import { withDatabase } from '../db/connection.js';
import { queueApi } from '../queue/api.js';
import { locateGrpc } from '../queue/locate.js';
import type { Tools } from '../base/tools.js';
import { positionsCollection } from '../connect/positions-collection.js';
import { readConnectorStates } from './connectors.js';
import { queueTotals, type Overview, type PartState } from './overview.js';

export interface StatusFlags {
  data?: string;
}

const patienceMs = 5_000;

/** Reads all three servers at once. A stopped server is a result, not an error. */
export async function readOverview(flags: StatusFlags, tools: Tools): Promise<Overview> {
  const [db, queue, daemon] = await Promise.all([
    readDatabase(flags, tools),
    readQueue(flags, tools),
    readDaemon(flags, tools),
  ]);
  return { ok: db.up && queue.up && daemon.up, db, queue, daemon };
}

async function readDatabase({ data }: StatusFlags, tools: Tools): Promise<Overview['db']> {
  const nothing = {
    role: null,
    collections: null,
    records: null,
    seq: null,
    followers: null,
    connectors: null,
  };
  const place = data === undefined ? {} : { data: join(dataDirectory(data, {}), 'db') };
  const flags = { ...place, timeout: `${patienceMs}ms` };
  let address: string | null = null;
  try {
    return await withDatabase(tools, flags, async (database) => {
      address = database.url;
      const status = await database.status({ includeCollections: true });
      return {
        up: true,
        address,
        version: status.version,
        reason: null,
        role: status.role,
        collections: status.collections.length,
        records: status.collections.reduce((sum, { records }) => sum + records, 0),
        seq: status.seq,
        auth: status.auth,
        followers: status.followers.filter(({ connectedAt }) => connectedAt).length,
        connectors: status.collections.some(({ name }) => name === positionsCollection)
          ? await readConnectorStates(database, systemClock)
          : null,
      };
    });
  } catch (error) {
    // It is running, but rejects us.
    if (address !== null && error instanceof Refusal && !isAbsence(error)) {
      return { up: true, address, version: null, reason: error.detail, ...nothing };
    }
    return { ...down(address, error), ...nothing };
  }
}

async function readQueue(flags: StatusFlags, tools: Tools): Promise<Overview['queue']> {
  const { terminal } = tools;
  const none = noQueueOn(flags);
  if (none) return { ...none, grpc_address: null, queues: null, totals: null };
  // --data overrides the environment.
  const env =
    flags.data === undefined
      ? terminal.env
      : { ...terminal.env, MILLRACE_QUEUE_URL: '', MILLRACE_DATA_DIR: flags.data };
  const nothing = { queues: null, totals: null };
  let address: string | null = null;
  try {
    return await inTime(tools, async (lifecycle) => {
      const api = queueApi({}, { terminal: { ...terminal, env }, lifecycle });
      address = api.url;
      const version = versionIn((await api.call('getLiveness')).header('server'));
      const grpc = locateGrpc(api.url, env) ?? null;
      const alive = { up: true, address, grpc_address: grpc, version };
      try {
        const { body: queues } = await api.call('listQueues');
        return { ...alive, reason: null, queues: queues.length, totals: queueTotals(queues) };
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        return { ...alive, reason: error.detail, ...nothing };
      }
    });
  } catch (error) {
    return { ...down(address, error), grpc_address: null, ...nothing };
  }
}

/** Null from a server that is older than the header, and from a proxy with a name of its own. */
function versionIn(server = ''): string | null {
  return /^millrace\/(\S+)$/.exec(server)?.[1] ?? null;
}

async function readDaemon(flags: StatusFlags, tools: Tools): Promise<Overview['daemon']> {
  let address: string | null = null;
  try {
    return await inTime(tools, async (lifecycle) => {
      const api = await daemonApi(flags, { terminal: tools.terminal, lifecycle });
      address = api.url;
      const { version = null } = await api.call('getHealth');
      const alive = { up: true, address, version };
      try {
        const agents: Partial<Record<string, number>> = {};
        for (const { status } of await readSessions(api)) {
          agents[status] = (agents[status] ?? 0) + 1;
        }
        return { ...alive, reason: null, auth: await authOf(api), agents };
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        return { ...alive, reason: error.detail, agents: null };
      }
    });
  } catch (error) {
    return { ...down(address, error), agents: null };
  }
}

const absences = new Set(['UNAVAILABLE', 'DEADLINE_EXCEEDED']);

function isAbsence({ code }: Refusal): boolean {
  return absences.has(code);
}

/**
 * A running queue server leaves a file in its data directory. Without it, a server at the default
 * address belongs to another directory.
 */
function noQueueOn({ data }: StatusFlags): PartState | undefined {
  if (data === undefined) return undefined;
  const directory = dataDirectory(data, {});
  const traces = ['queue.url', 'queue/LOCK'];
  if (traces.some((trace) => existsSync(join(directory, trace)))) return undefined;
  const reason = `no queue server is running on the data in ${directory}.`;
  return { up: false, address: null, version: null, reason };
}

function down(address: string | null, error: unknown): PartState {
  if (error instanceof Refusal) return { up: false, address, version: null, reason: error.detail };
  const isLate = error instanceof Error && error.name === 'AbortError';
  if (!isLate) throw error;
  const reason = `no response within ${patienceMs / 1000} seconds`;
  return { up: false, address, version: null, reason: `${reason} (${messageOf(error)})` };
}

/** Short timeout: a server that does not answer soon counts as down. */
async function inTime<Result>(
  { lifecycle }: Tools,
  read: (lifecycle: Tools['lifecycle']) => Promise<Result>,
): Promise<Result> {
  const late = new AbortController();
  const timer = systemClock.after(patienceMs, () => late.abort());
  const interrupted = AbortSignal.any([lifecycle.interrupted, late.signal]);
  try {
    return await read({ ...lifecycle, interrupted });
  } finally {
    timer.cancel();
  }
}
