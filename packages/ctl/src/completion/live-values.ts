import { systemClock } from '@millrace/kit/clock';
import { messageOf } from '@millrace/kit/errors';
import type { Lifecycle } from '../base/lifecycle.js';
import { openTerminal, type Outside } from '../base/terminal.js';
import type { Tools } from '../base/tools.js';
import type { LiveKind } from './live-kind.js';

/** The user is waiting for the shell; MILLRACE_COMPLETION_TIMEOUT_MS is for servers far away. */
const defaultLimitMs = 300;
const maxValues = 50;
/** Queues whose tasks are offered when the line does not name one. */
const maxQueues = 5;

/** Shells may expand what they are given, so only names without special characters are offered. */
const harmless = /^[A-Za-z0-9][\w.@/+-]*$/;

export interface LiveRequest {
  readonly kind: LiveKind;
  /** The command line so far, which may name a server, a data directory and a queue. */
  readonly line: string;
}

/** The values of a kind, or nothing if no server has answered by `signal`. */
export async function liveValues(
  request: LiveRequest,
  outside: Outside,
  signal: AbortSignal,
): Promise<string[]> {
  const lifecycle: Lifecycle = {
    interrupted: signal,
    serve: (work) => work(Promise.resolve()),
    onInterrupt: () => () => undefined,
    handOver: (work) => work(),
  };
  const terminal = openTerminal([], outside);
  const here = { terminal, lifecycle };
  const late = new Promise<string[]>((resolve) => {
    signal.addEventListener('abort', () => resolve([]), { once: true });
  });
  try {
    const found = await Promise.race([readers[request.kind](request.line, here as Tools), late]);
    return [...new Set(found)].filter((value) => harmless.test(value)).slice(0, maxValues);
  } catch (error) {
    // A message would break the line that the user is typing.
    if (terminal.debug) terminal.err.write(`${messageOf(error)}\n`);
    return [];
  }
}

/** Prints the values one per line and exits in time, whatever the servers do. */
export async function printLiveValues(
  [kind = '', line = '']: readonly string[],
  self: Outside & { exit(code: number): never },
): Promise<void> {
  const late = new AbortController();
  const limitMs = Number(self.env['MILLRACE_COMPLETION_TIMEOUT_MS']) || defaultLimitMs;
  systemClock.after(limitMs, () => late.abort());
  const isKnown = Object.hasOwn(readers, kind);
  const request = { kind: kind as LiveKind, line };
  const values = isKnown ? await liveValues(request, self, late.signal) : [];
  self.stdout.write(values.map((value) => `${value}\n`).join(''));
  // A connection that is still being made would keep the process.
  if (late.signal.aborted) self.exit(0);
}

type Reader = (line: string, tools: Tools) => Promise<string[]>;

const readers: Readonly<Record<LiveKind, Reader>> = {
  agents: async (line, tools) => {
    const { sessions } = await (await daemonOf(line, tools)).call('listSessions');
    return sessions.map(({ id, name }) => (harmless.test(name) ? name : id));
  },
  backends: async (line, tools) => {
    const { backends } = await (await daemonOf(line, tools)).call('listBackends');
    return backends.map(({ id }) => id);
  },
  pipelines: async (line, tools) => {
    const { pipelines } = await (await daemonOf(line, tools)).call('listPipelines');
    return pipelines.map(({ id }) => id);
  },
  notes: async (line, tools) => {
    const query = { unread: true, limit: maxValues };
    const { notes } = await (await daemonOf(line, tools)).call('listInbox', { query });
    return notes.map(({ id }) => id);
  },
  queues: async (line, tools) => queueNames(await queueOf(line, tools)),
  schedules: async (line, tools) => {
    const api = await queueOf(line, tools);
    const queue = operandsAfter(line, /\bschedule\s+\S+\s+/)[0];
    if (queue === undefined) return [];
    const { readPages } = await import('../base/run-operation.js');
    const { schedules } = await readPages({ member: 'schedules' }, {}, async (query) => {
      const { body } = await api.call('listSchedules', { queue, query });
      return body;
    });
    return (schedules as { name: string }[]).map(({ name }) => name);
  },
  tasks: async (line, tools) => {
    const api = await queueOf(line, tools);
    const named = flagIn(line, 'queue');
    const queues = named === undefined ? await queueNames(api) : [named];
    const query = { limit: '20', order: 'newest' };
    const pages = queues
      .slice(0, maxQueues)
      .map(async (queue) => (await api.call('listTasks', { queue, query })).body.tasks);
    return (await Promise.all(pages)).flat().map(({ id }) => id);
  },
  'dead-tasks': async (line, tools) => {
    const api = await queueOf(line, tools);
    const queue = operandsAfter(line, /\b(?:redrive|purge)\s+/)[0];
    if (queue === undefined) return [];
    const { body } = await api.call('listDlq', { queue, query: { limit: String(maxValues) } });
    return body.tasks.map(({ id }) => id);
  },
  jobs: async (line, tools) => {
    const api = await queueOf(line, tools);
    const queues = (await queueNames(api)).slice(0, maxQueues);
    const lists = queues.map(async (queue) => (await api.call('listJobs', { queue })).body.jobs);
    return (await Promise.all(lists)).flat().map(({ id }) => id);
  },
  collections: async (line, tools) => {
    const { withDatabase } = await import('../db/connection.js');
    return withDatabase(tools, flagsIn(line, ['url', 'key', 'data']), async (database) => {
      const { collections } = await database.status({ includeCollections: true });
      return collections.map(({ name }) => name);
    });
  },
};

async function daemonOf(line: string, tools: Tools) {
  const { daemonApi } = await import('../daemon/api.js');
  return daemonApi(flagsIn(line, ['url', 'data']), tools);
}

async function queueOf(line: string, tools: Tools) {
  const { queueApi } = await import('../queue/api.js');
  const { 'token-file': tokenFile, ...flags } = flagsIn(line, ['url', 'token-file']);
  return queueApi({ ...flags, ...(tokenFile === undefined ? {} : { tokenFile }) }, tools);
}

async function queueNames(api: Awaited<ReturnType<typeof queueOf>>): Promise<string[]> {
  const { body: queues } = await api.call('listQueues');
  return queues.map(({ name }) => name).filter((name) => harmless.test(name));
}

/** The value of `--name VALUE` or `--name=VALUE`, without the quotes of a shell. */
function flagIn(line: string, name: string): string | undefined {
  const found = new RegExp(`\\s--${name}(?:=|\\s+)("[^"]*"|'[^']*'|\\S+)`).exec(line)?.[1];
  return found?.replace(/^(["'])(.*)\1$/, '$2');
}

function flagsIn<Name extends string>(
  line: string,
  names: readonly Name[],
): Partial<Record<Name, string>> {
  const found = names.map((name) => [name, flagIn(line, name)] as const);
  const given = found.filter(([, value]) => value !== undefined);
  return Object.fromEntries(given) as Partial<Record<Name, string>>;
}

/** Words after a command that are no options, without the word being typed. */
function operandsAfter(line: string, command: RegExp): string[] {
  const found = command.exec(line);
  const rest = found ? line.slice(found.index + found[0].length) : '';
  const words = rest.split(/\s+/).slice(0, -1);
  return words.filter((word) => word !== '' && !word.startsWith('-'));
}
