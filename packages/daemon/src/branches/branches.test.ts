import { join } from 'node:path';
import { open, type Database } from '@millrace/engine';
import { systemClock, type Clock } from '@millrace/kit/clock';
import { memoryLog } from '@millrace/kit/log';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Alert, AlertSink, Once } from '../notify/alert-store.js';
import { memorySessions, type MemorySessions } from '../sessions/sessions.test-support.js';
import { Branches, type BranchesParts } from './branches.js';
import type { BranchStatus } from './inspection.js';
import { Workshop, type Repository } from './repositories.test-support.js';

/** Real time for the programs; what is to happen in a minute happens when the test says so. */
class PatientClock implements Clock {
  readonly due: { delayMs: number; run: () => void }[] = [];
  #skippedMs = 0;
  now = () => systemClock.now() + this.#skippedMs;
  monotonic = () => systemClock.monotonic() + this.#skippedMs;
  sleep = systemClock.sleep;
  after(delayMs: number, run: () => void) {
    const isOurs = delayMs === 60_000 || (delayMs >= 900 && delayMs <= 5_000 && delayMs !== 2_000);
    if (!isOurs) return systemClock.after(delayMs, run);
    const timer = { delayMs, run };
    this.due.push(timer);
    return { cancel: () => void this.due.splice(this.due.indexOf(timer), 1) };
  }
  /** The time of the next look comes. */
  ring(): void {
    const [timer] = this.due.splice(0);
    this.#skippedMs += Math.ceil(timer!.delayMs);
    timer!.run();
  }
  skip(durationMs: number): void {
    this.#skippedMs += durationMs;
  }
}

/** Raises each alert once, as the real one does. */
class Inbox implements AlertSink {
  readonly alerts: Alert[] = [];
  isFull = false;
  readonly #last = new Map<string, string>();
  async raise(alert: Alert, once?: Once): Promise<void> {
    if (this.isFull) throw new Error('the disk is full');
    const key = `${alert.agentId} ${once!.topic}`;
    if (this.#last.get(key) === once!.value) return;
    this.#last.set(key, once!.value);
    this.alerts.push(alert);
  }
}

let shop: Workshop;
let clock: PatientClock;
let database: Database;
let sessions: MemorySessions;
let inbox: Inbox;
let mill: Repository;
let branches: Branches;
const log = memoryLog();

/** Waits as long as a busy machine may take. */
const eventually = <Value>(read: () => Value) => expect.poll(read, { timeout: 60_000 });

beforeEach(async () => {
  log.lines.length = 0;
  shop = await Workshop.open();
  clock = new PatientClock();
  database = await open(join(shop.directory, 'store'));
  sessions = memorySessions({ clock });
  inbox = new Inbox();
  mill = shop.repository();
  branches = await openBranches();
});
afterEach(async () => {
  await branches.close();
  expect(sessions.listenerCount).toBe(0);
  await database.close();
  shop.remove();
});

async function openBranches(partial: Partial<BranchesParts> = {}): Promise<Branches> {
  const { environment } = shop;
  const opened = await Branches.open({
    database,
    clock,
    log,
    sessions,
    alerts: inbox,
    environment,
    isOn: true,
    ...partial,
  });
  opened.start();
  return opened;
}

function agentOn(branch: string) {
  const work = mill.worktree(branch);
  const place = { repo: mill.path, worktree: work.path, workdir: work.path, branch };
  return { work, session: sessions.add({ ...place, name: branch, status: 'working' }) };
}

const failing = { workflowName: 'test', status: 'completed', conclusion: 'failure' };
const stored = async () =>
  (await database.collection<BranchStatus>('branches').find()).records.map(({ data, rev }) => ({
    ...data,
    rev,
  }));

test('each agent on a branch has a status, sorted by agent; the others have none', async () => {
  const [one, two] = [agentOn('one'), agentOn('two')];
  sessions.add({ repo: null, worktree: null, branch: null });
  one.work.commit('a');
  const before = await branches.list();
  expect(before.map(({ observed_at, branch, error }) => [observed_at, branch, error])).toEqual([
    [null, 'one', null],
    [null, 'two', null],
  ]);
  await branches.refresh();
  const after = await branches.list();
  expect(after).toMatchObject([
    { agent_id: one.session.id, name: 'one', ahead: 1, ci: { state: 'none' }, error: null },
    { agent_id: two.session.id, name: 'two', ahead: 0 },
  ]);
  expect(Date.parse(after[0]!.observed_at!)).toBeGreaterThan(0);
  sessions.set(one.session.id, { name: 'renamed' });
  expect((await branches.list())[0]!.name).toBe('renamed');
});

test('they are looked at soon after they come, and every minute as long as there are any', async () => {
  expect(clock.due.map(({ delayMs }) => delayMs)).toEqual([1_000]);
  clock.ring();
  // Nobody is there: nothing wakes the daemon up again.
  await branches.refresh();
  expect(clock.due).toEqual([]);
  sessions.add({ repo: null, worktree: null, branch: null });
  expect(clock.due).toEqual([]);
  const { session } = agentOn('one');
  await eventually(() => clock.due.length).toBe(1);
  clock.ring();
  await eventually(() => clock.due.map(({ delayMs }) => delayMs)).toEqual([60_000]);
  const [first] = await branches.list();
  clock.ring();
  await eventually(() => clock.due.length).toBe(1);
  expect((await branches.list())[0]!.observed_at! > first!.observed_at!).toBe(true);
  // A new status is no reason to look.
  sessions.set(session.id, { status: 'idle' });
  expect(clock.due.map(({ delayMs }) => delayMs)).toEqual([60_000]);
  await sessions.remove(session.id);
  expect(clock.due[0]!.delayMs).toBeLessThanOrEqual(5_000);
  clock.ring();
  await eventually(async () => (await stored()).length).toBe(0);
});

test('a status is written when it differs, not when it is seen again', async () => {
  const { work, session } = agentOn('one');
  await branches.refresh();
  await branches.refresh();
  const [first] = await stored();
  expect(first).toMatchObject({ agent_id: session.id, ahead: 0, rev: 1 });
  work.commit('a');
  await branches.refresh();
  expect(await stored()).toMatchObject([{ ahead: 1, rev: 2 }]);
  const record = await database.collection('branches').findByKey(session.id);
  expect(record).toBeDefined();
  // Another daemon begins with what this one knew.
  await branches.close();
  branches = await openBranches();
  expect(await branches.list()).toMatchObject([{ ahead: 1 }]);
});

test('those who ask at the same time share a look', async () => {
  agentOn('one');
  shop.gh('sleep 0.2; echo "[]"');
  await Promise.all(Array.from({ length: 12 }, () => branches.refresh()));
  expect(shop.ghCalls.length).toBeLessThanOrEqual(2);
});

test('branches: agents on one branch share one call, and one alert', async () => {
  const { work, session } = agentOn('one');
  sessions.add({ repo: mill.path, worktree: work.path, workdir: work.path, branch: 'one' });
  shop.runs(failing);
  await branches.refresh();
  expect(shop.ghCalls).toHaveLength(1);
  await eventually(() => inbox.alerts).toHaveLength(1);
  expect(inbox.alerts[0]!.agentId).toBe(session.id);
});

test('branch alerts: a CI failure is raised once per commit', async () => {
  const { work, session } = agentOn('one');
  const seen = async () => {
    await branches.refresh();
    await branches.list();
    return inbox.alerts.length;
  };
  const url = 'https://ci.example.org/runs/42';
  shop.runs({ ...failing, url });
  await branches.refresh();
  await eventually(() => inbox.alerts).toEqual([
    {
      kind: 'ci_failed',
      severity: 'critical',
      title: 'test failed on one',
      body: url,
      agentId: session.id,
    },
  ]);
  // Neither again, nor because gh had nothing to say for a while, nor by another daemon.
  expect(await seen()).toBe(1);
  shop.gh('exit 1');
  expect(await seen()).toBe(1);
  shop.runs({ ...failing, workflowName: 'lint' });
  expect(await seen()).toBe(1);
  await branches.close();
  branches = await openBranches();
  expect(await seen()).toBe(1);
  work.commit('a');
  shop.runs({ ...failing, status: 'in_progress', conclusion: '' });
  expect(await seen()).toBe(1);
  shop.runs(failing);
  await branches.refresh();
  await eventually(() => inbox.alerts).toHaveLength(2);
});

test('branch alerts: merged and far-behind branches are raised once', async () => {
  const { work } = agentOn('one');
  work.commit('mine');
  mill.emptyCommits(10);
  await branches.refresh();
  expect(inbox.alerts).toEqual([]);
  mill.commit('base-10');
  for (let each = 0; each < 3; each++) {
    await branches.refresh();
    mill.commit(`more-${each}`);
  }
  await eventually(() => inbox.alerts.map(({ title }) => title)).toEqual([
    'one is 11 commits behind main',
  ]);
  expect(inbox.alerts[0]).toMatchObject({ kind: 'branch_behind', severity: 'warning' });
  work.git('rebase', '--quiet', 'main');
  await branches.refresh();
  mill.emptyCommits(11);
  await branches.refresh();
  await eventually(() => inbox.alerts).toHaveLength(2);
  mill.git('merge', '--quiet', '--no-edit', 'one');
  mill.emptyCommits(12);
  await branches.refresh();
  await branches.refresh();
  await eventually(() => inbox.alerts).toHaveLength(3);
  expect(inbox.alerts[2]).toMatchObject({
    kind: 'branch_merged',
    severity: 'info',
    title: 'one is merged into main',
  });
});

test('an inbox that takes nothing stops no look, and is tried again', async () => {
  agentOn('one');
  shop.runs(failing);
  inbox.isFull = true;
  await branches.refresh();
  await eventually(() => log.lines.filter(({ level }) => level === 'error')).toHaveLength(1);
  expect((await branches.list())[0]!.ci.state).toBe('failure');
  inbox.isFull = false;
  await branches.refresh();
  await eventually(() => inbox.alerts).toHaveLength(1);
});

test('whoever has ended is looked at seldom, and at last no more, unless somebody asks', async () => {
  const { session } = agentOn('one');
  await branches.refresh();
  sessions.set(session.id, { status: 'done', exit_code: 0 });
  const read = async () => {
    const before = shop.ghCalls.length;
    await eventually(() => clock.due.length).toBe(1);
    clock.ring();
    await eventually(() => clock.due.length).toBe(1);
    return shop.ghCalls.length - before;
  };
  expect(await read()).toBe(0);
  clock.skip(600_000);
  expect(await read()).toBe(1);
  await branches.refresh();
  expect(shop.ghCalls).toHaveLength(3);
  clock.skip(8 * 86_400_000);
  expect(await read()).toBe(0);
  await branches.refresh();
  expect(shop.ghCalls).toHaveLength(3);
  expect(await branches.list()).toHaveLength(1);
});

test('branches: a merge is shown at once, and inspected though the agent has ended', async () => {
  const { session } = agentOn('one');
  sessions.set(session.id, { status: 'done', exit_code: 0 });
  await branches.refresh();
  await eventually(() => clock.due.length).toBe(1);
  const before = shop.ghCalls.length;
  sessions.set(session.id, { merged_at: new Date(clock.now()).toISOString() });
  expect(await branches.list()).toMatchObject([{ merged: true }]);
  clock.ring();
  await eventually(() => shop.ghCalls.length).toBe(before + 1);
});

test('branches: a failed round is logged, and the next one runs', async () => {
  await branches.close();
  clock.due.length = 0;
  let isBroken = true;
  const list = () => (isBroken ? Promise.reject(new Error('broken')) : sessions.list());
  branches = await openBranches({ sessions: { ...sessions, list } });
  clock.ring();
  await eventually(() => clock.due.length).toBe(1);
  expect(log.lines).toMatchObject([{ level: 'error', message: 'failed to inspect branches' }]);
  isBroken = false;
  clock.ring();
  await branches.refresh();
  expect(clock.due).toEqual([]);
});

test('switched off, there are no statuses and no looks', async () => {
  agentOn('one');
  await branches.close();
  clock.due.length = 0;
  branches = await openBranches({ isOn: false });
  await branches.refresh();
  expect(await branches.list()).toEqual([]);
  expect([shop.ghCalls, clock.due]).toEqual([[], []]);
});

test('a daemon that ends does not wait for a slow program', async () => {
  agentOn('one');
  shop.gh('sleep 60');
  const refreshed = branches.refresh();
  await eventually(() => shop.ghCalls).toHaveLength(1);
  await branches.close();
  await refreshed;
});
