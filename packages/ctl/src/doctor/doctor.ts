import { dataDirectory } from '../base/data-directory.js';
import type { Tools } from '../base/tools.js';
import { renderTable, wrapped } from '../render/table.js';
import { parts, type Part } from '../up/parts.js';
import { examine, type Report, type Check, type Finding } from './check.js';
import { credentialsCheck } from './credentials.js';
import { nodeCheck, programChecks } from './programs.js';
import { constants } from 'node:fs';
import { access, mkdtemp, rmdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { messageOf, systemCode } from '@millrace/kit/errors';
import { createServer } from 'node:net';
import { listenerOn, type Holder } from './port-holder.js';
import { queueApi } from '../queue/api.js';
import { runningUp } from '../queue/locate.js';

const tones = { ok: 'ok', warn: 'warn', fail: 'bad' } as const;

/** Checks everything and says how to fix what is wrong. */
export async function runDoctor({ data }: { data?: string }, tools: Tools): Promise<void> {
  const { env } = tools.terminal;
  const { interrupted } = tools.lifecycle;
  const dataDir = dataDirectory(data, env);
  const reports = await examine([
    nodeCheck(),
    ...programChecks(env, interrupted),
    dataCheck(dataDir),
    credentialsCheck(dataDir, env),
    ...portChecks(parts, interrupted),
    ...queueChecks(dataDir, tools),
  ]);
  const failed = reports.some(({ status }) => status === 'fail');
  if (failed) tools.exitWith(1);
  const checks = reports.map((report) => ({ ...report, advice: report.advice ?? null }));
  const rows = reports.map(({ status, name, finding, advice }) => [
    { text: status, tone: tones[status] },
    name,
    advice === undefined ? finding : `${finding}. ${advice}`,
  ]);
  tools.terminal.show(
    { ok: !failed, checks },
    (out) => `${renderTable(['', '', wrapped('')], rows, out)}\n${verdict(reports)}\n`,
  );
}

function verdict(reports: readonly Report[]): string {
  const count = (wanted: string) => reports.filter(({ status }) => status === wanted).length;
  const [fails, warns] = [count('fail'), count('warn')];
  const warnings = `${warns} ${warns === 1 ? 'warning' : 'warnings'}`;
  if (fails > 0) return `${fails} to fix before Millrace can run, ${warnings}.`;
  return warns > 0 ? `Ready, with ${warnings}.` : 'Ready.';
}

/** Checks that the data directory can be used or created, without creating it. */
export function dataCheck(path: string): Check {
  return {
    name: 'data directory',
    async run() {
      try {
        return (await existing(path)) ?? (await creatable(path));
      } catch (error) {
        return {
          status: 'fail',
          finding: `${path} is not writable: ${messageOf(error)}`,
          advice: 'Make it writable for you, or choose another with --data DIR.',
        };
      }
    },
  };
}

async function existing(path: string): Promise<Finding | null> {
  const found = await statOrNull(path);
  if (!found) return null;
  if (!found.isDirectory()) throw new Error('it is not a directory');
  // Write a file: permissions alone do not reveal a full or read-only disk.
  await rmdir(await mkdtemp(join(path, '.doctor-')));
  if ((found.mode & 0o077) === 0) return { status: 'ok', finding: `${path} is writable` };
  return {
    status: 'warn',
    finding: `${path} is accessible to other users of this machine`,
    advice: `Run: chmod 700 ${path}`,
  };
}

async function creatable(path: string): Promise<Finding> {
  let parent = dirname(path);
  while (!(await statOrNull(parent))) parent = dirname(parent);
  await access(parent, constants.W_OK | constants.X_OK);
  return { status: 'ok', finding: `${path} will be created at the first start` };
}

/** Null for a missing path; throws every other error. */
async function statOrNull(path: string) {
  try {
    return await stat(path);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return null;
    throw error;
  }
}

/** Checks that the default ports are free, or names the process that uses them. */
export function portChecks(parts: readonly Part[], interrupted: AbortSignal): Check[] {
  return parts.flatMap((part) =>
    part.addresses.map(({ port, listener }) => ({
      name: `port ${port}`,
      async run() {
        const use = `${part.title}, ${listener}`;
        const refused = await tryToListen(port);
        if (refused === null) return { status: 'ok', finding: `free (${use})` };
        if (refused !== 'EADDRINUSE') {
          return {
            status: 'warn',
            finding: `cannot be used: ${refused} (${use})`,
            advice: 'Give the server another address.',
          };
        }
        const holder = await listenerOn(port, interrupted);
        if (holder && isServerOf(part, holder)) {
          return { status: 'ok', finding: `in use by Millrace, pid ${holder.pid} (${use})` };
        }
        return {
          status: 'warn',
          finding: `used by ${nameOf(holder)} (${use})`,
          advice: 'Stop it, or give the server another address.',
        };
      },
    })),
  );
}

/** Null if the port is free, else the system's reason. */
function tryToListen(port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => {
      server.close(() => resolve(null));
    });
  });
}

/** Whether it is the server that should listen there, started by `ctl NAME serve`. */
function isServerOf({ name }: Part, { command }: Holder): boolean {
  return new RegExp(`[/ ](?:ctl|millrace)(\\.js)? ${name} serve( |$)`).test(command);
}

function nameOf(holder: Holder | null): string {
  return holder ? `${holder.name} (pid ${holder.pid})` : 'a process of another user';
}

/** Checks the queues of the server on this data directory, or of MILLRACE_QUEUE_URL. */
function queueChecks(dataDir: string, tools: Tools): Check[] {
  const isHere = runningUp(dataDir) !== undefined;
  if (!isHere && !tools.terminal.env['MILLRACE_QUEUE_URL']) return [];
  return [{ name: 'queues', run: () => queuesOf(isHere ? { data: dataDir } : {}, tools) }];
}

async function queuesOf(flags: { data?: string }, tools: Tools): Promise<Finding> {
  try {
    const api = queueApi(flags, tools);
    const { body: queues } = await api.call('listQueues');
    const alone = queues.filter(({ summary }) => summary.state === 'no_worker');
    if (alone.length > 0) {
      const names = alone.map(({ name }) => name).join(', ');
      return {
        status: 'warn',
        finding: `no_worker: tasks are due and no worker is connected to ${names}`,
        advice: 'Start one with `ctl queue work` or an SDK.',
      };
    }
    const open = queues.filter(({ summary }) => summary.breaker === 'open');
    if (open.length > 0) {
      const names = open.map(({ name }) => name).join(', ');
      const finding = `a handler keeps failing, so its circuit breaker is open: ${names}`;
      return { status: 'warn', finding, advice: 'Check it with `ctl queue stats`.' };
    }
    return { status: 'ok', finding: `${queues.length} on ${flags.data ?? api.url}` };
  } catch (error) {
    const finding = `the queue server does not list its queues: ${messageOf(error)}`;
    return { status: 'warn', finding, advice: 'Check it with `ctl status`.' };
  }
}
