import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '@millrace/kit/clock';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { expectSchema } from '../../test/support/client.js';
import { planRef } from '../questions/question.js';
import { Questions } from '../questions/questions.js';
import type { Session } from '../sessions/port.js';
import { AlertStore, maxNotes, type Alert } from './alert-store.js';
import { Desktop } from './desktop.js';
import { openNotify, type NotifySettings, type OpenNotify } from './notify.js';
import { TestStore, until } from './notify.test-support.js';

let room: TestStore;
let open: OpenNotify | undefined;
let questions: Questions | undefined;

beforeEach(() => {
  room = new TestStore();
});
afterEach(async () => {
  await open?.close();
  open = undefined;
  await room.dispose();
  expect(room.sessions.listenerCount).toBe(0);
});

const stuckAfterMs = 1_800_000;

async function start(settings: Partial<NotifySettings> = {}): Promise<OpenNotify['notify']> {
  const { database } = await room.open();
  questions = await Questions.open({ ...room.world, database });
  open = await openNotify({
    ...room.world,
    settings: {
      enabled: false,
      webhook_enabled: false,
      webhook_url: '',
      stuck_after: stuckAfterMs,
      ...settings,
    },
    database,
    dataDir: room.dataDir,
    environment: {},
    outbound: { request: () => Promise.reject(new Error('nothing is to be sent')) },
    sessions: room.sessions,
    questions,
  });
  return open.notify;
}

async function restart(): Promise<OpenNotify['notify']> {
  await open?.close();
  await room.closeStore();
  return start();
}

const notes = () => open!.notify.list({ unread: false, limit: 1000 });
const kinds = async () => (await notes()).map(({ kind }) => kind).toReversed();
const alert = (more: Partial<Alert> = {}): Alert => ({
  kind: 'ci_failed',
  severity: 'critical',
  title: 'test failed',
  body: '',
  agentId: null,
  ...more,
});

describe('the inbox', () => {
  test('has the newest note first, and can leave out those that are read', async () => {
    const notify = await start();
    for (const title of ['one', 'two', 'three']) {
      await notify.raise(alert({ title }));
      room.clock.advance(10);
    }
    const all = await notify.list({ unread: false, limit: 10 });
    expect(all.map(({ title }) => title)).toEqual(['three', 'two', 'one']);
    expectSchema('Inbox', { notes: all });
    const read = await notify.markRead(all[1]!.id);
    expect(read).toEqual({ ...all[1], read: true });
    const { database } = await room.open();
    const stored = () => database.collection('notes').findByKey(read.id);
    const { rev } = (await stored())!;
    expect(await notify.markRead(read.id)).toEqual(read);
    expect((await stored())!.rev).toBe(rev);
    const unread = await notify.list({ unread: true, limit: 10 });
    expect(unread.map(({ title }) => title)).toEqual(['three', 'one']);
    expect(await notify.list({ unread: true, limit: 1 })).toHaveLength(1);
    await expect(notify.markRead('nope')).rejects.toMatchObject({ code: 'NOTE_NOT_FOUND' });
  });

  test('is there after a restart', async () => {
    const notify = await start();
    await notify.raise(alert());
    const before = await notes();
    await notify.markRead(before[0]!.id);
    await restart();
    expect(await notes()).toEqual([{ ...before[0], read: true }]);
  });

  test('keeps the newest thousand', async () => {
    const store = new AlertStore((await room.open()).database);
    const note = (index: number) => ({
      id: room.random.ulid(room.clock.now()),
      ts: new Date(room.clock.now()).toISOString(),
      kind: 'errored' as const,
      severity: 'critical' as const,
      title: `note ${index}`,
      body: '',
      agent_id: null,
      read: false,
    });
    const nothingElse = { once: undefined, outbox: undefined };
    const indexes = Array.from({ length: maxNotes + 5 }, (_, index) => index);
    await Promise.all(indexes.map((index) => store.add(note(index), nothingElse)));
    const stored = await store.list({ unread: false, limit: 5000 });
    expect([stored.length, stored[0]!.title, stored.at(-1)!.title]).toEqual([
      maxNotes,
      `note ${maxNotes + 4}`,
      'note 5',
    ]);
  });

  test('has the same alert once, as long as it is the same', async () => {
    const notify = await start();
    const raise = (value: string, agentId: string | null = null) =>
      notify.raise(alert({ agentId }), { topic: 'ci', value });
    await raise('sha 1');
    await raise('sha 1');
    await raise('sha 1', 'another agent');
    await restart();
    await open!.notify.raise(alert(), { topic: 'ci', value: 'sha 1' });
    expect(await notes()).toHaveLength(2);
    await open!.notify.raise(alert(), { topic: 'ci', value: 'sha 2' });
    await open!.notify.raise(alert(), { topic: 'ci', value: 'sha 1' });
    expect(await notes()).toHaveLength(4);
  });

  test('has an event once, whichever agents and rounds report it at the same time', async () => {
    const notify = await start();
    const raise = (agentId: string, head: string, ...keys: string[]) =>
      notify.raise(alert({ agentId }), { topic: 'ci', value: head, keys: [head, ...keys] });
    // Two rounds overlap: one has read the branch before it moved, and CI after.
    await Promise.all([
      raise('one', 'sha 1', 'run 7'),
      raise('one', 'sha 2', 'run 7'),
      raise('two', 'sha 1', 'run 7'),
      raise('two', 'sha 2'),
    ]);
    expect(await notes()).toHaveLength(1);
    await restart();
    for (const head of ['sha 1', 'sha 2', 'sha 1']) {
      await open!.notify.raise(alert({ agentId: 'three' }), {
        topic: 'ci',
        value: head,
        keys: [head],
      });
    }
    expect(await notes()).toHaveLength(1);
    await open!.notify.raise(alert(), { topic: 'ci', value: 'sha 3', keys: ['sha 3'] });
    expect(await notes()).toHaveLength(2);
  });

  test('holds plain text of a sensible length, whatever an agent wrote', async () => {
    const notify = await start();
    await notify.raise(
      alert({ title: ` \u001B[31mred\n\tname\u0000 `, body: `a\r\nb\u0007 ${'🙂'.repeat(2000)}` }),
    );
    await notify.raise(alert({ title: 'x'.repeat(500), body: '\uD800 half' }));
    const [second, first] = await notes();
    expect(first!.title).toBe('[31mred name');
    expect(first!.body.startsWith('a \nb')).toBe(true);
    expect(first!.body.length).toBeLessThanOrEqual(2000);
    expect(first!.body.isWellFormed()).toBe(true);
    expect(second!.title).toHaveLength(200);
    expect(second!.body.isWellFormed()).toBe(true);
  });
});

describe('an agent', () => {
  const moved = (session: Session, partial: Partial<Session>) => {
    room.clock.advance(1000);
    room.sessions.set(session.id, partial);
  };

  test('that waits, fails or is lost raises an alert each time', async () => {
    await start();
    const session = room.sessions.add({ name: 'docs', status: 'working' });
    moved(session, { status: 'waiting_for_input', status_reason: 'It asks for permission.' });
    moved(session, { context_tokens: 5 });
    moved(session, { status: 'working' });
    moved(session, { status: 'waiting_for_input' });
    moved(session, { status: 'errored', last_error: 'exit code 3' });
    moved(session, { status: 'spawning' });
    moved(session, { status: 'orphaned', status_reason: null, last_error: null });
    moved(session, { status: 'done' });
    await until(async () => (await notes()).length === 4);
    expect((await notes()).toReversed().map((note) => [note.kind, note.title, note.body])).toEqual([
      ['waiting_for_input', 'docs waits for input', 'It asks for permission.'],
      ['waiting_for_input', 'docs waits for input', 'It asks for permission.'],
      ['errored', 'docs failed', 'exit code 3'],
      ['orphaned', 'docs was lost', 'Its process was gone when the daemon restarted.'],
    ]);
    expect((await notes()).every(({ agent_id }) => agent_id === session.id)).toBe(true);
  });

  test('that asks several questions, or while it works, raises an alert for each once', async () => {
    await start();
    const session = room.sessions.add({ name: 'docs', status: 'working' });
    const add = (title: string, ref: string) =>
      questions!.add(session.id, {
        kind: 'choice',
        title,
        body: '',
        tool: null,
        options: [{ id: 'yes', label: 'Yes', kind: 'allow_once' }],
        ref,
      });
    const reported = async () => new Set((await notes()).map(({ question_id: id }) => id));
    const first = await add('May I write?', 'request 1');
    const second = await add('May I delete?', 'request 2');
    moved(session, { status: 'waiting_for_input' });
    const third = await add('May I push?', 'request 3');
    await until(async () => (await notes()).length === 3);
    moved(session, { status: 'working' });
    const merge = await add('Merge it?', planRef('merge 1'));
    await add('Of a driver, whose status follows.', 'request 4');
    const all = new Set([first, second, third, merge].map(({ question }) => question.id));
    await until(async () => (await notes()).length === 4);
    expect(await reported()).toEqual(all);
    await restart();
    expect(await reported()).toEqual(all);
    expect(await notes()).toHaveLength(4);
  });

  test('that is still in the same state after a restart is not told of again', async () => {
    await start();
    const session = room.sessions.add({ status: 'working' });
    moved(session, { status: 'waiting_for_input' });
    await until(async () => (await notes()).length === 1);
    await restart();
    expect(await notes()).toHaveLength(1);
    moved(session, { name: 'another name' });
    await restart();
    expect(await notes()).toHaveLength(1);
  });

  test('that was lost while no daemon ran raises an alert at start', async () => {
    room.sessions.add({ status: 'orphaned' });
    await start();
    expect(await kinds()).toEqual(['orphaned']);
  });

  test('that is idle for too long raises one alert, until it has worked again', async () => {
    await start({ stuck_after: stuckAfterMs });
    const session = room.sessions.add({ name: 'docs', status: 'idle' });
    room.clock.advance(stuckAfterMs - 1);
    room.sessions.set(session.id, { context_tokens: 7 });
    expect(await notes()).toEqual([]);
    room.clock.advance(1);
    await until(async () => (await notes()).length === 1);
    expect((await notes())[0]).toMatchObject({
      kind: 'stuck_idle',
      title: 'docs has been idle for 30m',
    });
    room.clock.advance(10 * stuckAfterMs);
    await restart();
    room.clock.advance(10 * stuckAfterMs);
    moved(session, { status: 'working' });
    room.clock.advance(10 * stuckAfterMs);
    expect(await notes()).toHaveLength(1);
    moved(session, { status: 'idle' });
    room.clock.advance(stuckAfterMs);
    await until(async () => (await notes()).length === 2);
  });

  test('that was idle before the daemon started raises an alert when its time is up', async () => {
    room.sessions.add({ status: 'idle' });
    room.clock.advance(stuckAfterMs - 1000);
    await start();
    room.clock.advance(999);
    expect(await notes()).toEqual([]);
    room.clock.advance(1);
    await until(async () => (await notes()).length === 1);
  });

  test('that is removed leaves its notes and nothing else', async () => {
    await start();
    const session = room.sessions.add({ status: 'waiting_for_input' });
    const other = room.sessions.add({ status: 'idle' });
    await until(async () => (await notes()).length === 1);
    await room.sessions.remove(session.id);
    await room.sessions.remove(other.id);
    const { database } = await room.open();
    await until(async () => (await database.collection('notify_marks').count()) === 0);
    room.clock.advance(stuckAfterMs);
    expect(await kinds()).toEqual(['waiting_for_input']);
  });
});

describe('the desktop', () => {
  let bin: string;
  let shown: string;

  beforeEach(() => {
    bin = join(room.dataDir, 'bin');
    shown = join(room.dataDir, 'shown');
    mkdirSync(bin);
  });

  const program = (name: string, script: string) => {
    writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(bin, name), 0o755);
  };
  /** Writes each argument on a line of its own. */
  const recording = () => `printf '%s\\n' "$@" >> '${shown}'; echo done >> '${shown}.done'`;
  const desktopOn = (platform: NodeJS.Platform) =>
    new Desktop({
      clock: systemClock,
      log: room.log,
      environment: { PATH: `${bin}:/usr/bin:/bin` },
      cwd: room.dataDir,
      platform,
    });

  const nasty = alert({ title: '--help $(touch x)', body: '`id` <b>&"\'; rm -rf' });

  test('uses notify-send; texts are never options, markup or commands', async () => {
    program('notify-send', recording());
    const desktop = desktopOn('linux');
    desktop.show(nasty);
    await until(() => existsSync(`${shown}.done`));
    expect(readFileSync(shown, 'utf8').trimEnd().split('\n')).toEqual([
      '--app-name=Millrace',
      '--urgency=critical',
      '--',
      '--help $(touch x)',
      '`id` &lt;b&gt;&amp;"\'; rm -rf',
    ]);
    await desktop.close();
    expect(room.warnings).toEqual([]);
  });

  test('uses osascript on a Mac, with the texts as arguments of the script', async () => {
    program('osascript', recording());
    const desktop = desktopOn('darwin');
    desktop.show(nasty);
    await until(() => existsSync(`${shown}.done`));
    const args = readFileSync(shown, 'utf8').trimEnd().split('\n');
    expect(args.slice(-3)).toEqual(['Millrace', nasty.title, nasty.body]);
    expect(args.filter((each) => each === '-e')).toHaveLength(3);
    await desktop.close();
  });

  test('that has no such program is a warning once', async () => {
    const desktop = new Desktop({
      clock: systemClock,
      log: room.log,
      environment: { PATH: bin },
      cwd: room.dataDir,
      platform: 'linux',
    });
    desktop.show(alert());
    desktop.show(alert());
    await until(() => room.warnings.length > 0);
    await desktop.close();
    expect(room.warnings).toEqual([
      'there is no notify-send on the search path: no desktop notifications',
    ]);
  });

  test('that fails or hangs is a warning, and holds nothing up', async () => {
    program('notify-send', 'echo "no display" >&2; exit 1');
    const desktop = desktopOn('linux');
    desktop.show(alert());
    await until(() => room.warnings.length === 1);
    expect(room.warnings).toEqual(['notify-send failed: no display']);
    program('notify-send', 'sleep 600');
    desktop.show(alert());
    await desktop.close();
    expect(room.warnings).toHaveLength(1);
  });

  test('gets alerts of agents and failed checks only', async () => {
    program('notify-send', recording());
    const { database } = await room.open();
    open = await openNotify({
      ...room.world,
      clock: systemClock,
      settings: { enabled: true, webhook_enabled: false, webhook_url: '', stuck_after: 60_000 },
      database,
      dataDir: room.dataDir,
      environment: { PATH: `${bin}:/usr/bin:/bin` },
      outbound: { request: () => Promise.reject(new Error('nothing is to be sent')) },
      sessions: room.sessions,
      questions: await Questions.open({ ...room.world, database }),
      platform: 'linux',
    });
    for (const kind of ['branch_merged', 'branch_behind', 'ci_failed', 'errored'] as const) {
      await open.notify.raise(alert({ kind, title: kind }));
    }
    const titles = () =>
      existsSync(shown) ? (readFileSync(shown, 'utf8').match(/^[a-z]+_?[a-z]+$/gm) ?? []) : [];
    await until(() => titles().length === 2);
    expect(titles()).toEqual(['ci_failed', 'errored']);
    expect(await notes()).toHaveLength(4);
  });
});
