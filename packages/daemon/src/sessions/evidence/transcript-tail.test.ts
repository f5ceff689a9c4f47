import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { opencodeReader } from '../../transcripts/answers.js';
import {
  answersTranscript,
  claudeTail,
  claudeTranscript,
  codexTail,
  codexTranscript,
  readTail,
} from './transcript.js';

const timestamp = '2026-01-15T09:00:00.000Z';
const at = Date.parse(timestamp);

describe('the end of a transcript of claude', () => {
  const answer = (stop_reason: string | null, more: object = {}) => ({
    type: 'assistant',
    timestamp,
    message: {
      model: 'claude-opus-4-5',
      stop_reason,
      usage: {
        input_tokens: 1,
        cache_read_input_tokens: 20,
        cache_creation_input_tokens: 300,
        output_tokens: 4_000,
      },
      content: [{ type: 'text', text: 'hi' }],
      ...more,
    },
  });
  const user = (content: unknown, more: object = {}) => ({
    type: 'user',
    timestamp,
    message: { role: 'user', content },
    ...more,
  });

  test('transcript: context size and model are read', () => {
    const tail = claudeTail([answer('end_turn')]);
    expect(tail).toMatchObject({ contextTokens: 321, model: 'claude-opus-4-5' });
    expect(claudeTail([])).toEqual({
      contextTokens: undefined,
      model: undefined,
      turn: undefined,
    });
  });

  test('tells where the turn stands, where it can', () => {
    const statusOf = (...lines: object[]) => claudeTail(lines as never).turn?.sign.status;
    expect(statusOf(answer('end_turn'))).toBe('idle');
    expect(statusOf(user('do it'))).toBe('working');
    expect(statusOf(answer('end_turn'), user('more'))).toBe('working');
    expect(statusOf(user([{ type: 'tool_result', content: 'ok' }]))).toBe('working');
    expect(statusOf(answer('tool_use'))).toBeUndefined();
    expect(statusOf(answer(null))).toBeUndefined();
    const stopped = user([{ type: 'text', text: '[Request interrupted by user]' }]);
    expect(statusOf(stopped)).toBe('idle');
    expect(statusOf(user('<command-name>/compact</command-name>'))).toBeUndefined();
    expect(statusOf(user('summary', { isCompactSummary: true }))).toBeUndefined();
    expect(statusOf({ ...user('do it'), timestamp: 'never' })).toBeUndefined();
    expect(claudeTail([answer('end_turn')]).turn?.at).toBe(at);
  });

  test('an API error is a failed turn, and leaves the context as it was', () => {
    const refused = (text: string, more: object = {}) => ({
      ...answer('stop_sequence', {
        model: '<synthetic>',
        usage: { input_tokens: 0, output_tokens: 0 },
        content: [{ type: 'text', text }],
      }),
      isApiErrorMessage: true,
      ...more,
    });
    const text = 'API Error: 500 {"type":"error"}';
    const tail = claudeTail([answer('end_turn'), refused(text)]);
    expect(tail).toMatchObject({ contextTokens: 321, model: 'claude-opus-4-5' });
    expect(tail.turn?.sign).toMatchObject({ status: 'idle', failure: text });
    const limit = refused('Limit reached', { error: 'rate_limit' });
    expect(claudeTail([limit]).turn?.sign.status).toBe('rate_limited');
    const named = refused("You've hit your session limit · resets in 30 minutes");
    expect(claudeTail([named]).turn?.sign).toMatchObject({
      status: 'rate_limited',
      limitedUntil: at + 1_800_000,
    });
  });

  test('the size after a compaction counts until the next answer', () => {
    const boundary = {
      type: 'system',
      subtype: 'compact_boundary',
      compactMetadata: { trigger: 'auto', preTokens: 321, postTokens: 42 },
    };
    expect(claudeTail([answer('end_turn'), boundary]).contextTokens).toBe(42);
    expect(claudeTail([boundary, answer('end_turn')]).contextTokens).toBe(321);
    const silent = { ...boundary, compactMetadata: { trigger: 'manual', preTokens: 321 } };
    expect(claudeTail([answer('end_turn'), silent]).contextTokens).toBe(321);
  });

  test('leaves out what subagents do and what no model said', () => {
    const lines = [answer('end_turn'), { ...answer('tool_use'), isSidechain: true }];
    expect(claudeTail(lines)).toMatchObject({ turn: { sign: { status: 'idle' } } });
    const synthetic = answer('stop_sequence', { model: '<synthetic>' });
    expect(claudeTail([synthetic]).model).toBeUndefined();
  });
});

test('transcript: the end of a codex rollout is read', () => {
  const event = (payload: object) => ({ type: 'event_msg', timestamp, payload });
  const count = (input_tokens: number) =>
    event({
      type: 'token_count',
      info: { total_token_usage: { input_tokens: 9e6 }, last_token_usage: { input_tokens } },
    });
  const lines = [
    { type: 'turn_context', payload: { model: 'gpt-9' } },
    count(10),
    count(250),
    event({ type: 'token_count', info: null }),
    event({ type: 'task_complete' }),
  ];
  expect(codexTail(lines)).toMatchObject({
    contextTokens: 250,
    model: 'gpt-9',
    turn: { sign: { status: 'idle' }, at },
  });
  expect(codexTail([event({ type: 'task_started' })]).turn).toBeUndefined();
  const error = { message: 'fake model error 400', codex_error_info: 'other' };
  const failed = event({ type: 'task_complete', last_agent_message: null, error });
  expect(codexTail([failed]).turn?.sign.failure).toBe('fake model error 400');
  const older = [event({ type: 'task_started' }), event({ type: 'error', message: 'stream' })];
  const ended = event({ type: 'task_complete', last_agent_message: null });
  expect(codexTail([...older, ended]).turn?.sign.failure).toBe('stream');
  const next = [...older, ended, event({ type: 'task_started' }), ended];
  expect(codexTail(next).turn?.sign.failure).toBeUndefined();
  const compacted = event({
    type: 'token_count',
    info: { last_token_usage: { input_tokens: 0, total_tokens: 7_485 } },
  });
  expect(codexTail([count(450_104), compacted]).contextTokens).toBe(7_485);
  expect(codexTail([event({ type: 'turn_aborted' })]).turn?.sign.status).toBe('idle');
});

describe('a transcript is found', () => {
  let home: string;
  beforeEach(() => (home = mkdtempSync(join(tmpdir(), 'mr-tail-'))));
  afterEach(() => rmSync(home, { recursive: true, force: true }));

  const places = () => ({ home, environment: {} });
  const put = (path: string, ...lines: object[]) => {
    const file = join(home, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    return file;
  };

  test('of claude by its id, wherever it lies', async () => {
    const claude = (id: string) => ({ id, cwd: '/src/mill', isWide: true });
    expect(await claudeTranscript(places(), claude('s1'))).toBeUndefined();
    const usual = put('.claude/projects/-src-mill/s1.jsonl');
    const other = put('.claude/projects/elsewhere/s2.jsonl');
    expect(await claudeTranscript(places(), claude('s1'))).toBe(usual);
    expect(await claudeTranscript(places(), claude('s2'))).toBe(other);
  });

  test('of codex by its id, or as the first of its directory that nobody has', async () => {
    const since = Date.UTC(2026, 0, 15, 9);
    const ids = ['a', 'b', 'c'].map((letter) => `${letter.repeat(8)}-1111-2222-3333-444444444444`);
    const [first, second, third] = ids as [string, string, string];
    const write = (id: string, cwd: string, minute: number) =>
      put(`.codex/sessions/2026/01/15/rollout-2026-01-15T09-0${minute}-00-${id}.jsonl`, {
        type: 'session_meta',
        payload: { id, cwd, timestamp: `2026-01-15T09:0${minute}:00Z` },
      });
    write(first, '/elsewhere', 1);
    const two = write(second, '/src/mill', 2);
    const three = write(third, '/src/mill', 3);
    const options = { id: null, cwd: '/src/mill', since, taken: new Set<string>() };
    expect(await codexTranscript(places(), options)).toEqual({ path: two, id: second });
    const taken = new Set([second]);
    expect(await codexTranscript(places(), { ...options, taken })).toEqual({
      path: three,
      id: third,
    });
    expect(await codexTranscript(places(), { ...options, id: third })).toMatchObject({
      path: three,
    });
    const late = { ...options, since: since + 3_600_000 };
    expect(await codexTranscript(places(), late)).toBeUndefined();
  });

  test('and is read again only when it has grown', async () => {
    const line = { type: 'assistant', timestamp, message: { usage: { input_tokens: 5 } } };
    const file = put('t.jsonl', line);
    const { tail, size } = await readTail('claude', { path: file, id: '' }, -1);
    expect(tail?.contextTokens).toBe(5);
    expect((await readTail('claude', { path: file, id: '' }, size)).tail).toBeUndefined();
    const long = Array.from({ length: 5_000 }, () => line);
    put('t.jsonl', ...long, { ...line, message: { usage: { input_tokens: 6 } } });
    expect((await readTail('claude', { path: file, id: '' }, size)).tail?.contextTokens).toBe(6);
  });

  test('of opencode is in the copy of its database: the first session there since the start', async () => {
    const row = (session_id: string, cwd: string, time: number, input: number) => ({
      id: `msg_${session_id}_${time}`,
      session_id,
      time_created: time,
      time_updated: time,
      model: 'fake-1',
      cwd,
      input,
      output: 5,
      reasoning: 0,
      cache_read: 10,
      cache_write: 1,
    });
    const since = Date.now() - 5_000;
    const rows = [
      row('old', '/src/mill', since - 60_000, 1),
      row('other', '/src/race', since, 2),
      row('mine', '/src/mill', since + 10, 3),
      row('mine', '/src/mill', since + 20, 4),
    ];
    const path = put('data/transcripts/opencode.jsonl', ...rows);
    const here = { ...places(), dataDir: dirname(dirname(path)) };
    const wanted = { id: null, cwd: '/src/mill', since, taken: new Set<string>() };
    const found = await answersTranscript(opencodeReader, here, wanted);
    expect(found?.id).toBe('mine');
    const { tail } = await readTail('opencode', found!, -1);
    expect(tail).toEqual({ contextTokens: 15, model: 'fake-1', turn: undefined });
    const taken = { ...wanted, taken: new Set(['mine']) };
    expect(await answersTranscript(opencodeReader, here, taken)).toBeUndefined();
    const known = await answersTranscript(opencodeReader, here, { ...wanted, id: 'other' });
    expect(known?.id).toBe('other');
  });

  test('gemini and qwen: the last answer of the conversation has model and context', async () => {
    const time = new Date().toISOString();
    const counts = { input: 1020, cached: 900, output: 7, thoughts: 3, tool: 0 };
    const gemini = put(
      '.gemini/tmp/mill/chats/session-1.jsonl',
      { sessionId: 'g1', kind: 'main' },
      { id: 'a', type: 'gemini', timestamp: time, model: 'gemini-3', tokens: counts },
    );
    const event = {
      'event.name': 'qwen-code.api_response',
      model: 'qwen3-coder',
      input_token_count: 700,
      cached_content_token_count: 200,
      output_token_count: 5,
    };
    const line = { sessionId: 'q1', timestamp: time, cwd: '/src/mill', type: 'system' };
    const qwen = put('.qwen/projects/mill/chats/q1.jsonl', {
      ...line,
      systemPayload: { uiEvent: event },
    });
    for (const [format, path, id, model, contextTokens] of [
      ['gemini', gemini, 'g1', 'gemini-3', 1020],
      ['qwen', qwen, 'q1', 'qwen3-coder', 700],
    ] as const) {
      const { tail } = await readTail(format, { path, id }, -1);
      expect(tail).toEqual({ contextTokens, model, turn: undefined });
    }
  });
});
