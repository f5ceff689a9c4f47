import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { describe, expect } from 'vitest';
import {
  agentTest as test,
  spawn,
  until,
  untilIs,
  type AgentDaemon,
  type Session,
} from './support/sessions.js';
import { expectSchema } from './support/client.js';

type View = DaemonSchema<'ConfigView'>;

const fileOf = ({ home }: AgentDaemon) => join(home, 'config.yaml');
const read = (daemon: AgentDaemon) => daemon.api.ok('GET', '/api/v1/config') as Promise<View>;
const patch = (daemon: AgentDaemon, body: object) =>
  daemon.api.ok('PATCH', '/api/v1/config', body) as Promise<View>;
const refusal = (daemon: AgentDaemon, body: object, status: number, code: string) =>
  daemon.api.refused({ method: 'PATCH', path: '/api/v1/config', body }, status, code);
const entryOf = (view: View, key: string) => view.entries.find((entry) => entry.key === key)!;

describe('PATCH /api/v1/config', () => {
  test('writes the file, keeps its comments, applies and logs', async ({ newDaemon }) => {
    const daemon = await newDaemon();
    expect(await read(daemon)).toMatchObject({ config_file: null });
    writeFileSync(fileOf(daemon), '# of Ada\ntokens:\n  warn: 100k # low\n');
    const before = await read(daemon);
    expect(entryOf(before, 'tokens.warn')).toMatchObject({ value: '200k', pending: true });
    const after = await patch(daemon, {
      revision: before.revision,
      values: { 'tokens.warn': '150k', 'notify.stuck_after': '1h' },
    });
    expectSchema('ConfigView', after);
    expect(readFileSync(fileOf(daemon), 'utf8')).toBe(
      '# of Ada\ntokens:\n  warn: 150k # low\nnotify:\n  stuck_after: 1h\n',
    );
    const { config_file: file } = after;
    expect(file).toBe(fileOf(daemon));
    expect(entryOf(after, 'tokens.warn')).toMatchObject({
      value: '150k',
      source: 'file',
      origin: file,
      editable: true,
      pending: false,
      default: '200k',
    });
    expect(after.revision).not.toBe(before.revision);
    expect(await read(daemon)).toEqual(after);
    const line = daemon.log.lines.find(({ message }) => message === 'settings changed');
    expect(line?.fields).toMatchObject({ keys: ['tokens.warn', 'notify.stuck_after'] });
  });

  test('null restores the default, and validate_only writes nothing', async ({ newDaemon }) => {
    const daemon = await newDaemon();
    const values = { 'tokens.warn': '150k', 'tokens.guard': false };
    const trial = await patch(daemon, { values, validate_only: true });
    expect(entryOf(trial, 'tokens.warn').value).toBe('150k');
    expect(existsSync(fileOf(daemon))).toBe(false);
    expect(entryOf(await read(daemon), 'tokens.warn').value).toBe('200k');
    await patch(daemon, { values });
    const view = await patch(daemon, { values: { 'tokens.warn': null } });
    expect(readFileSync(fileOf(daemon), 'utf8')).toBe('tokens:\n  guard: false\n');
    expect(entryOf(view, 'tokens.warn')).toMatchObject({ value: '200k', source: 'default' });
  });

  test('refuses what start-up would refuse, with the place in the request', async ({
    newDaemon,
  }) => {
    const daemon = await newDaemon();
    const values = { 'tokens.warn': 'many', 'tokens.guard': true, 'permissions.timeout': '1ms' };
    const reply = await refusal(daemon, { values }, 400, 'INVALID_REQUEST');
    expect(reply.errors).toEqual([
      { pointer: '/values/tokens.warn', message: expect.stringMatching(/^tokens\.warn must be/) },
      {
        pointer: '/values/permissions.timeout',
        message: expect.stringContaining('at least 1s'),
      },
    ]);
    const typo = { values: { 'tokens.wran': 1 } };
    const unknown = await refusal(daemon, typo, 400, 'INVALID_REQUEST');
    expect(unknown.detail).toContain('tokens.warn');
    expect(existsSync(fileOf(daemon))).toBe(false);
  });

  test('two editors do not overwrite each other', async ({ newDaemon }) => {
    const daemon = await newDaemon();
    const { revision } = await read(daemon);
    const changes = ['1h', '2h', '3h'].map((value) => ({
      revision,
      values: { 'permissions.timeout': value },
    }));
    const replies = await Promise.all(
      changes.map((body) => daemon.api.send({ method: 'PATCH', path: '/api/v1/config', body })),
    );
    expect(replies.map(({ status }) => status)).toEqual([200, 409, 409]);
    expect(replies[1]!.json.code).toBe('CONFIG_CONFLICT');
    expect(entryOf(await read(daemon), 'permissions.timeout').value).toBe('1h');
  });

  test('refuses settings that need a restart, and those that a flag or variable sets', async ({
    newDaemon,
  }) => {
    const daemon = await newDaemon({
      flags: { 'tokens-warn': '50k' },
      environment: { MILLRACE_TOKENS_CRITICAL: '90k' },
    });
    for (const [key, reason] of [
      ['metrics', 'next start'],
      ['token', 'next start'],
      ['tokens.warn', '--tokens-warn'],
      ['tokens.critical', '$MILLRACE_TOKENS_CRITICAL'],
    ] as const) {
      expect(entryOf(await read(daemon), key).editable).toBe(false);
      const body = { values: { [key]: 1 } };
      const reply = await refusal(daemon, body, 409, 'SETTING_NOT_EDITABLE');
      expect(reply.detail).toContain(reason);
    }
  });

  test('writes through a symbolic link', async ({ newDaemon }) => {
    const daemon = await newDaemon();
    const target = join(daemon.home, 'dotfiles.yaml');
    writeFileSync(target, 'insights: true\n');
    symlinkSync(target, fileOf(daemon));
    await patch(daemon, { values: { 'tokens.warn': '150k' } });
    expect(lstatSync(fileOf(daemon)).isSymbolicLink()).toBe(true);
    expect(readFileSync(target, 'utf8')).toBe('insights: true\ntokens:\n  warn: 150k\n');
  });
});

describe('a config file edited by hand', () => {
  test('is shown as pending and applied by {}', async ({ newDaemon }) => {
    const daemon = await newDaemon();
    writeFileSync(fileOf(daemon), 'metrics: false\ndrivers: { default: headless }\n');
    const before = await read(daemon);
    expect(before.entries.filter(({ pending }) => pending).map(({ key }) => key)).toEqual([
      'drivers.default',
      'metrics',
    ]);
    const after = await patch(daemon, {});
    expect(entryOf(after, 'drivers.default')).toMatchObject({ value: 'headless', pending: false });
    // It needs a restart.
    expect(entryOf(after, 'metrics')).toMatchObject({ value: true, pending: true });
  });

  test('is named while it is invalid, and not overwritten', async ({ newDaemon }) => {
    const daemon = await newDaemon();
    writeFileSync(fileOf(daemon), 'metrics: often\n');
    const view = await read(daemon);
    expect(view.warnings).toEqual([expect.stringMatching(/config\.yaml:1: metrics must be/)]);
    expect(view.entries.filter(({ editable }) => editable)).toEqual([]);
    const body = { values: { 'tokens.warn': '1k' } };
    const reply = await refusal(daemon, body, 409, 'CONFIG_NOT_WRITABLE');
    expect(reply.detail).toContain('metrics must be');
    expect(readFileSync(fileOf(daemon), 'utf8')).toBe('metrics: often\n');
  });

  test('is not changed when it cannot be written, and neither is the daemon', async ({
    newDaemon,
  }) => {
    const daemon = await newDaemon();
    // No other file fits beside this name: not the new text, before it replaces the old one.
    const target = join(daemon.home, 'x'.repeat(255));
    writeFileSync(target, 'tokens:\n  warn: 100k\n');
    symlinkSync(target, fileOf(daemon));
    const before = await read(daemon);
    const body = { values: { 'tokens.critical': '1m' } };
    const reply = await refusal(daemon, body, 409, 'CONFIG_NOT_WRITABLE');
    expect(reply.detail).toContain(`${fileOf(daemon)} cannot be written: ENAMETOOLONG`);
    expect(readFileSync(target, 'utf8')).toBe('tokens:\n  warn: 100k\n');
    expect(await read(daemon)).toEqual(before);
  });

  test('in a directory that is gone or not one cannot be written', async ({ newDaemon }) => {
    const daemon = await newDaemon({ flags: {} });
    mkdirSync(join(daemon.home, 'aside'));
    mkdirSync(fileOf(daemon));
    await refusal(daemon, { values: { 'tokens.warn': '1k' } }, 409, 'CONFIG_NOT_WRITABLE');
    renameSync(fileOf(daemon), join(daemon.home, 'aside', 'dir'));
    rmSync(join(daemon.home, 'aside'), { recursive: true });
    await patch(daemon, { values: { 'tokens.warn': '1k' } });
  });
});

describe('a change applies at once', () => {
  const headless = ({ workdir: cwd }: AgentDaemon, prompt: string) => ({
    backend: 'claude',
    driver: 'headless',
    cwd,
    prompt,
  });

  test('a cap is enforced where spend was not counted before', async ({ newDaemon }) => {
    const daemon = await newDaemon({ flags: { savings: 'off', insights: 'off' } });
    const first = await spawn(daemon.api, headless(daemon, 'wait go.txt'));
    await patch(daemon, {
      values: { 'tokens.budget_daily_usd': 0.5, 'tokens.assumed_session_usd': 2 },
    });
    const body = headless(daemon, 'say hello');
    await daemon.api.refused(
      { method: 'POST', path: '/api/v1/spawn', body },
      428,
      'BUDGET_CONFIRMATION_REQUIRED',
    );
    await patch(daemon, { values: { 'tokens.budget_daily_usd': null } });
    const { id } = await spawn(daemon.api, body);
    await until(daemon.api, id, 'done');
    writeFileSync(join(daemon.workdir, 'go.txt'), '');
    await until(daemon.api, first.id, 'done');
  });

  test('thresholds are compared with every context, and alert', async ({ newDaemon }) => {
    const daemon = await newDaemon();
    const prompt = 'context 150k write notes.txt wait go.txt';
    const { id } = await spawn(daemon.api, headless(daemon, prompt));
    const contextOf = ({ context_tokens: tokens, context_state: state }: Session) => [
      tokens,
      state,
    ];
    await untilIs(daemon.api, id, contextOf, [150_000, 'ok']);
    const alerts = async () => {
      const { notes } = (await daemon.api.ok('GET', '/api/v1/inbox')) as DaemonSchema<'Inbox'>;
      return notes.map(({ kind, agent_id }) => [kind, agent_id]);
    };
    expect(await alerts()).toEqual([]);
    await patch(daemon, { values: { 'tokens.warn': '100k' } });
    const { context_state } = await daemon.api.ok('GET', `/api/v1/sessions/${id}`);
    expect(context_state).toBe('warning');
    await expect.poll(alerts).toEqual([['context_warning', id]]);
    writeFileSync(join(daemon.workdir, 'go.txt'), '');
    await until(daemon.api, id, 'done');
  });

  test('a permission rule answers the next request', async ({ newDaemon }) => {
    const daemon = await newDaemon();
    const policy = [{ tool: 'Bash(make *)', action: 'allow' }];
    await patch(daemon, { values: { 'permissions.policy': policy } });
    const { id } = await spawn(daemon.api, headless(daemon, 'ask "$ make test"'));
    await until(daemon.api, id, 'done');
    const { questions } = await daemon.api.ok('GET', `/api/v1/questions?session_id=${id}`);
    expect(questions).toMatchObject([{ answered_by: 'policy', answer: 'allow' }]);
  });

  test('the default driver of new agents', async ({ newDaemon }) => {
    const daemon = await newDaemon();
    await patch(daemon, { values: { 'drivers.default': 'headless' } });
    const { backend, cwd, prompt } = headless(daemon, 'say hello');
    const { id, driver } = await spawn(daemon.api, { backend, cwd, prompt });
    expect(driver).toBe('headless');
    await until(daemon.api, id, 'done');
  });
});
