import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { geminiReader, qwenReader } from './answers.js';
import type { JsonObject } from './reader.js';

const conversations = { rootOf: () => undefined, learnRoot: () => {} };
const tokens = { input: 120, output: 10, cacheRead: 900, cacheWrite: 0, cacheWriteLong: 0 };

test('gemini transcripts: cached input stands apart, thoughts are output', () => {
  const project = mkdtempSync(join(tmpdir(), 'mr-gemini-'));
  try {
    writeFileSync(join(project, '.project_root'), '/src/mill\n');
    mkdirSync(join(project, 'chats'));
    const file = join(project, 'chats', 'session-2026-11-16T08-41-dc391a37.jsonl');
    const reader = geminiReader.begin(file, null, conversations);
    expect(reader.read({ sessionId: 's1', kind: 'main' }, 0)).toBeUndefined();
    const answer: JsonObject = {
      id: 'd8e3692e',
      timestamp: '2026-11-16T08:41:02.464Z',
      type: 'gemini',
      content: 'hello',
      tokens: { input: 1020, output: 7, cached: 900, thoughts: 3, tool: 0, total: 1030 },
      model: 'gemini-3.8-flash',
    };
    const seen = reader.read(answer, 100);
    const place = { agent: 's1', cwd: '/src/mill', model: 'gemini-3.8-flash' };
    expect(seen).toMatchObject({ tokens, place });
    // The rest of the file is read later, by a reader that knows the session from before.
    const later = geminiReader.begin(file, reader.carry(), conversations);
    expect(later.read(answer, 100)).toEqual(seen);
  } finally {
    rmSync(project, { recursive: true, force: true });
  }
});

test('qwen transcripts: each response of the model counts, those to subagents too', () => {
  const reader = qwenReader.begin('/x/chats/s1.jsonl', null, conversations);
  const line = (uuid: string, response_id: string) => ({
    uuid,
    sessionId: 's1',
    timestamp: '2026-11-16T08:40:10.443Z',
    type: 'system',
    cwd: '/src/mill',
    subtype: 'ui_telemetry',
    systemPayload: {
      uiEvent: {
        'event.name': 'qwen-code.api_response',
        response_id,
        model: 'qwen3-coder',
        input_token_count: 1020,
        output_token_count: 10,
        cached_content_token_count: 900,
        thoughts_token_count: 3,
      },
    },
  });
  const first = reader.read(line('u1', 'r1'), 0);
  const place = { agent: 's1', cwd: '/src/mill', model: 'qwen3-coder' };
  expect(first).toMatchObject({ tokens, place });
  expect(reader.read(line('u2', 'r2'), 0)?.key).not.toBe(first?.key);
  const other = { type: 'assistant', usageMetadata: { promptTokenCount: 1020 } };
  expect(reader.read(other, 0)).toBeUndefined();
});
