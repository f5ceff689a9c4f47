import { mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { afterEach, expect, test, vi } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { Repository } from '../src/branches/repositories.test-support.js';
import { expectSchema } from './support/client.js';
import { startDaemon, type TestDaemon } from './support/daemon.js';
import { EventSource, type Event } from './support/event-source.js';
import { FakeClis } from './support/fake-clis.js';

const again = inCampaign('process');

type Session = DaemonSchema<'Session'>;

let daemon: TestDaemon | undefined;
afterEach(async () => {
  await daemon?.dispose();
  daemon = undefined;
});

const url = 'https://ci.example.org/runs/42';
const failed = [{ workflowName: 'test', status: 'completed', conclusion: 'failure', url }];

async function start(flags: Record<string, string> = {}) {
  const home = mkdtempSync(join(tmpdir(), 'mr-branches-'));
  const clis = new FakeClis(join(home, 'bin'));
  clis.add('claude', `console.log('done');`);
  const answerOfCi = (runs: object[]) =>
    clis.add('gh', `console.log(${JSON.stringify(JSON.stringify(runs))});`);
  answerOfCi(failed);
  const path = join(home, 'mill');
  mkdirSync(path);
  const mill = new Repository(path);
  mill.git('init', '--quiet', '--initial-branch', 'main');
  mill.commit('first');
  daemon = await startDaemon({ home, path: `${clis.path}:/usr/bin:/bin`, flags });
  const { api } = daemon;
  const branches = async (query = '') => {
    const answer = await api.ok('GET', `/api/v1/collab/branches${query}`);
    expectSchema('BranchStandings', answer);
    return answer.branches;
  };
  const spawn = async () => {
    const body = {
      prompt: 'x',
      backend: 'claude',
      driver: 'headless',
      repo: path,
      branch: 'retry-upload',
    };
    const reply = await api.send({ method: 'POST', path: '/api/v1/spawn', body });
    expect([reply.status, reply.text]).toEqual([201, reply.text]);
    return reply.json;
  };
  return { api, clis, answerOfCi, mill, branches, spawn };
}

test('the branch of a spawned agent is looked at, and its failure is in the inbox once', async () => {
  const { api, answerOfCi, mill, branches, spawn } = await start();
  // The daemon may look by itself before the agent's commit is there, which could fail as well.
  answerOfCi([]);
  expect(await branches('?refresh=true')).toEqual([]);
  const source = await EventSource.open(api.url);
  const { id, name } = await spawn();
  const { worktree } = await sessionDone(source, api, id);
  new Repository(worktree).commit('mine');
  mill.commit('theirs');
  answerOfCi(failed);
  // Rounds asked for at the same time, beside those that the daemon begins by itself.
  await Promise.all([1, 2, 3].map(() => branches('?refresh=true')));
  const [standing] = await branches();
  expect(standing).toMatchObject({
    agent_id: id,
    name,
    branch: 'retry-upload',
    base: 'main',
    ahead: 1,
    behind: 1,
    merged: false,
    ci: { state: 'failure', workflow: 'test', url },
    checks: [{ name: 'test', state: 'failure', url }],
    error: null,
  });
  const failures = async () =>
    (await api.ok('GET', '/api/v1/inbox')).notes.filter(
      ({ kind }: { kind: string }) => kind === 'ci_failed',
    );
  await vi.waitFor(async () => expect(await failures()).not.toEqual([]), patience);
  await branches('?refresh=true');
  source.cut();
  expect(await failures()).toMatchObject([
    { severity: 'critical', title: 'test failed on retry-upload', body: url, agent_id: id },
  ]);
  await api.ok('DELETE', `/api/v1/sessions/${id}`);
  expect(await branches()).toEqual([]);
  // The worktree has a commit that is nowhere else: it is kept, with its branch.
  mill.git('worktree', 'remove', '--force', worktree);
}, 300_000);

const patience = { timeout: 240_000, interval: 20 };

/** Waits for the event that ends the session. */
async function sessionDone(source: EventSource, api: TestDaemon['api'], id: string) {
  const isDone = ({ key, data }: Event) => key === id && (data as Session)?.status === 'done';
  await vi.waitFor(() => expect(source.events.some(isDone)).toBe(true), patience);
  return api.ok('GET', `/api/v1/sessions/${id}`);
}

again('branches: without gh the rest is reported', async () => {
  const { api, clis, branches, spawn } = await start();
  clis.remove('gh');
  const { id } = await spawn();
  const [standing] = await branches('?refresh=true');
  expect(standing).toMatchObject({ branch: 'retry-upload', ahead: 0, ci: { state: null } });
  expect(standing.error).toBe('gh is not installed');
  await api.ok('DELETE', `/api/v1/sessions/${id}`);
});

again('with branches off the list is empty', async () => {
  const { api, branches, spawn } = await start({ 'branches-enabled': 'off' });
  const { id } = await spawn();
  expect(await branches()).toEqual([]);
  expect(await branches('?refresh=true')).toEqual([]);
  await api.refused({ path: '/api/v1/collab/branches?refresh=maybe' }, 400, 'INVALID_REQUEST');
  await api.ok('DELETE', `/api/v1/sessions/${id}`);
});
