import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { expect, test } from 'vitest';
import { listProcesses } from '../../src/sessions/drivers/headless.js';
import { expectSchema, type ApiClient } from './client.js';
import { afterEvents } from './event-source.js';
import { inHome, startDaemon, type TestDaemon, type TestOptions } from './daemon.js';
import { installFakeAgent } from './fake-agent.js';

export type Session = DaemonSchema<'Session'>;

/** Why tests that need tmux cannot run; undefined where they can. */
export const noTmux = hasTmux() ? undefined : 'tmux is not installed';

function hasTmux(): boolean {
  try {
    execFileSync('tmux', ['-V'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

export interface AgentDaemon extends TestDaemon {
  /** A directory for agents to work in. */
  workdir: string;
}

/** A daemon whose `claude` is the fake agent. */
export function startAgentDaemon(options: TestOptions = {}): Promise<AgentDaemon> {
  return inHome('mr-agents-', options, startIn);
}

async function startIn(home: string, options: TestOptions): Promise<AgentDaemon> {
  const bin = join(home, 'bin');
  await installFakeAgent(bin, ['claude']);
  const workdir = join(home, 'work');
  mkdirSync(workdir, { recursive: true });
  const daemon = await startDaemon({
    ...options,
    home,
    path: `${bin}:${options.path ?? process.env['PATH']}`,
    environment: { ...gitIdentity, ...options.environment },
  });
  return { ...daemon, workdir };
}

/** A test that may start daemons; nothing that belongs to them is left when it is over. */
export const agentTest = test.extend<{
  newDaemon: (options?: TestOptions) => Promise<AgentDaemon>;
}>({
  // eslint-disable-next-line no-empty-pattern -- vitest reads which fixtures are wanted from it.
  newDaemon: async ({}, use) => {
    const daemons: AgentDaemon[] = [];
    await use(async (options) => {
      const daemon = await startAgentDaemon(options);
      daemons.push(daemon);
      return daemon;
    });
    for (const daemon of daemons) await endDaemon(daemon);
  },
});

export const gitIdentity = {
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_AUTHOR_NAME: 'Ada',
  GIT_AUTHOR_EMAIL: 'ada@example.org',
  GIT_COMMITTER_NAME: 'Ada',
  GIT_COMMITTER_EMAIL: 'ada@example.org',
};

/** A repository with one commit. */
export function newRepo(directory: string): string {
  mkdirSync(directory, { recursive: true });
  gitIn(directory, 'init', '--quiet', '--initial-branch=main');
  const commit = ['-c', 'maintenance.auto=false', 'commit', '--quiet', '--allow-empty'];
  gitIn(directory, ...commit, '--message=first');
  return directory;
}

export function gitIn(directory: string, ...args: string[]): string {
  const env = { PATH: process.env['PATH'], ...gitIdentity };
  return execFileSync('git', args, { cwd: directory, env, encoding: 'utf8' }).trim();
}

export async function spawn(api: ApiClient, body: object): Promise<Session> {
  const reply = await api.send({ method: 'POST', path: '/api/v1/spawn', body });
  expect([reply.status, reply.text]).toEqual([201, reply.text]);
  expectSchema('Session', reply.json);
  expect(reply.headers['location']).toBe(`/api/v1/sessions/${reply.json.id}`);
  return reply.json as Session;
}

/** Waits until the session has this status. */
export async function until(api: ApiClient, id: string, status: string): Promise<Session> {
  return untilIs(api, id, (session) => session.status, status);
}

export async function untilIs(
  api: ApiClient,
  id: string,
  of: (session: Session) => unknown,
  wanted: unknown,
): Promise<Session> {
  let seen: Session | undefined;
  const check = async () => {
    seen = await api.ok('GET', `/api/v1/sessions/${id}`);
    expect(of(seen!)).toEqual(wanted);
  };
  try {
    await afterEvents(api, check);
  } catch (error) {
    const { lines } = await api.ok('GET', `/api/v1/sessions/${id}/output`);
    console.error(seen, lines);
    throw error;
  }
  expectSchema('Session', seen);
  return seen!;
}

/** Deletes every session, so that nothing of them is left. */
export async function removeSessions(api: ApiClient): Promise<void> {
  const { sessions } = await api.ok('GET', '/api/v1/sessions');
  const ids = (sessions as Session[]).map(({ id }) => id);
  // Not all at once: each takes a connection, and the daemon limits those.
  while (ids.length > 0) {
    const some = ids.splice(0, 50);
    await Promise.all(some.map((id) => api.ok('DELETE', `/api/v1/sessions/${id}`)));
  }
}

/** Deletes the sessions of a daemon and ends it; fails when a process of its home is left. */
export async function endDaemon(daemon: TestDaemon): Promise<void> {
  await removeSessions(daemon.api);
  await daemon.dispose();
  const lines = (await listProcesses()).map(({ args }) => args.join(' '));
  expect(lines.filter((line) => line.includes(daemon.home))).toEqual([]);
}
