import { describe, expect, test } from 'vitest';
import {
  usesPermissionTool,
  canResume,
  cliOf,
  optionalFlags,
  prepareRun,
  takesModel,
  takesSessionId,
  type PreparedRun,
  type Run,
} from './command-lines.js';

const usual: Run = {
  cli: 'claude',
  driver: 'headless',
  prompt: 'do it',
  model: null,
  session: undefined,
};

function prepared(
  backend: string,
  run: Partial<Run>,
  extra: Parameters<typeof prepareRun>[1] = [],
) {
  const result = prepareRun(backend, extra, { ...usual, cli: cliOf(backend, extra), ...run });
  if ('impossible' in result) throw new Error(result.impossible);
  return result satisfies PreparedRun;
}

describe('without anybody at the keyboard', () => {
  test('claude reports in JSON, takes the prompt from stdin, an id and a model', () => {
    const session = { id: 's1', isThere: false };
    const run = prepared('claude', { model: 'opus', session });
    expect(run).toMatchObject({ input: 'do it', paste: undefined, format: 'claude-json' });
    expect(run.args.join(' ')).toContain('--print --output-format stream-json');
    expect(run.args.join(' ')).toMatch(/--model opus --session-id s1$/);
    expect(run.args).not.toContain('do it');
    const resumed = prepared('claude', { session: { id: 's1', isThere: true } });
    expect(resumed.args.join(' ')).toMatch(/--resume s1$/);
  });

  test('only claude asks through the permission tool', () => {
    const permissionFlags = ['--permission-prompt-tool=mcp__a__b'];
    expect(prepared('claude', { permissionFlags }).args).toContain(permissionFlags[0]);
    const own = [{ id: 'mine', like: 'claude', args: ['--dangerously-skip-permissions'] }];
    expect(prepared('mine', { permissionFlags }, own).args).not.toContain(permissionFlags[0]);
    expect(['claude', 'codex', 'gemini', 'toString'].filter(usesPermissionTool)).toEqual([
      'claude',
    ]);
  });

  test('codex works in a sandbox and reads a dash for stdin', () => {
    const run = prepared('codex', { session: { id: 't1', isThere: true }, model: 'o9' });
    expect(run.args.join(' ')).toBe(
      'exec --json --skip-git-repo-check --sandbox workspace-write --model o9 resume t1 -',
    );
    expect(run.format).toBe('codex-json');
  });

  test('qwen may edit files, and nothing more', () => {
    expect(prepared('qwen', {})).toMatchObject({
      args: ['--approval-mode', 'auto-edit'],
      input: 'do it',
    });
  });

  test('no known command line may do everything unasked', () => {
    for (const id of ['claude', 'codex', 'gemini', 'aider', 'qwen', 'goose']) {
      const text = prepared(id, {}).args.join(' ');
      expect(text).not.toMatch(/dangerously|yolo|bypass|danger-full-access/);
    }
  });

  test('one of the config runs with its own arguments', () => {
    const extra = [{ id: 'mine', args: ['run', '{prompt}'] }, { id: 'plain' }];
    expect(prepared('mine', {}, extra)).toMatchObject({ args: ['run', 'do it'], input: '' });
    expect(prepared('plain', {}, extra)).toMatchObject({ args: [], input: 'do it' });
    const like = [{ id: 'wrapped', like: 'claude' }];
    expect(prepared('wrapped', {}, like).format).toBe('claude-json');
    const both = [{ id: 'wrapped', like: 'claude', args: ['{prompt}'] }];
    expect(prepared('wrapped', {}, both)).toMatchObject({ args: ['do it'], format: 'text' });
  });

  test('a prompt that cannot be given says why', () => {
    const extra = [{ id: 'mine', args: ['{prompt}'] }];
    const run = { ...usual, cli: 'mine', prompt: 'x'.repeat(200_000) };
    expect(prepareRun('mine', extra, run)).toMatchObject({
      impossible: expect.stringContaining('too long') as string,
    });
  });
});

describe('in a conversation', () => {
  const talk = { driver: 'tmux' as const };

  test('the prompt is an argument where the command line takes one', () => {
    expect(prepared('claude', talk).args).toEqual(['do it']);
    expect(prepared('claude', { ...talk, prompt: '-v' }).args).toEqual(['--', '-v']);
    expect(prepared('codex', talk).args).toEqual(['--', 'do it']);
    expect(prepared('gemini', talk).args).toEqual(['--prompt-interactive', 'do it']);
  });

  test('elsewhere, and when it is very long, it is pasted', () => {
    expect(prepared('goose', talk)).toMatchObject({ args: [], paste: 'do it', input: '' });
    const prompt = 'x'.repeat(200_000);
    expect(prepared('claude', { ...talk, prompt })).toMatchObject({ args: [], paste: prompt });
  });

  test('flags of newer versions are used where the program lists them', () => {
    const offered = new Set(['--no-daemon', '--skip-trust']);
    expect(optionalFlags('codex')).toEqual(['--no-daemon']);
    expect(prepared('codex', { ...talk, offered }).args).toEqual(['--no-daemon', '--', 'do it']);
    expect(prepared('codex', { offered }).args).not.toContain('--no-daemon');
    expect(prepared('gemini', { ...talk, offered })).toMatchObject({ args: [], paste: 'do it' });
    const trusted = { offered, isTrusted: true };
    expect(prepared('gemini', { ...talk, ...trusted }).args[0]).toBe('--skip-trust');
    expect(prepared('gemini', trusted).args).toContain('--skip-trust');
    expect(prepared('gemini', { isTrusted: true }).args).not.toContain('--skip-trust');
  });

  test('an agent at rest is resumed without a word', () => {
    const session = { id: 's1', isThere: true };
    const run = prepared('claude', { ...talk, prompt: undefined, session });
    expect(run).toMatchObject({ args: ['--resume', 's1'], paste: undefined });
  });
});

test('tables: inherited names are not found', () => {
  expect([takesModel('claude'), takesModel('goose'), takesModel('toString')]).toEqual([
    true,
    false,
    false,
  ]);
  const [none, listed] = [new Set<string>(), new Set(['--session-id'])];
  expect([takesSessionId('claude', none), takesSessionId('codex', listed)]).toEqual([true, false]);
  expect([takesSessionId('qwen', none), takesSessionId('qwen', listed)]).toEqual([false, true]);
  expect([canResume('codex', 'tmux'), canResume('gemini', 'headless')]).toEqual([true, false]);
});
