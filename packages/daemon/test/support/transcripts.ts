import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { open, type Database } from '@millrace/engine';
import { memoryLog, type MemoryLog } from '@millrace/kit/log';
import { Tally } from '../../src/spend/tally.js';
import { LineWalker } from '../../src/transcripts/lines.js';
import { transcriptReaders } from '../../src/transcripts/readers.js';
import { Scanner, type ScanReport } from '../../src/transcripts/scanner.js';
import { noTokens, type Tokens } from '../../src/transcripts/reader.js';

/** One message that a provider was really asked for: what must be counted, once. */
export interface Truth {
  id: string;
  request: string;
  session: string;
  cwd: string;
  model: string;
  at: number;
  tokens: Tokens;
}

export function truth(id: string, part: Partial<Truth> = {}): Truth {
  return {
    id,
    request: `req_${id}`,
    session: 'session-1',
    cwd: '/nowhere/mill',
    model: 'claude-opus-4-5',
    at: Date.parse('2026-01-15T09:30:00Z'),
    tokens: { ...noTokens, input: 10, output: 20 },
    ...part,
  };
}

/** A line of a claude transcript; `change` for what it gets wrong or leaves out. */
export function claudeLine(message: Truth, change: Record<string, unknown> = {}): string {
  const { tokens } = message;
  return `${JSON.stringify({
    parentUuid: null,
    isSidechain: false,
    cwd: message.cwd,
    sessionId: message.session,
    version: '2.0.14',
    message: {
      model: message.model,
      id: message.id,
      type: 'message',
      role: 'assistant',
      content: [{ type: 'text', text: 'He said "usage" {"usage": 1}\nand left.' }],
      usage: {
        input_tokens: tokens.input,
        cache_creation_input_tokens: tokens.cacheWrite,
        cache_read_input_tokens: tokens.cacheRead,
        cache_creation: {
          ephemeral_5m_input_tokens: tokens.cacheWrite - tokens.cacheWriteLong,
          ephemeral_1h_input_tokens: tokens.cacheWriteLong,
        },
        output_tokens: tokens.output,
        service_tier: 'standard',
      },
    },
    requestId: message.request,
    type: 'assistant',
    uuid: `uuid-of-${message.id}`,
    timestamp: new Date(message.at).toISOString(),
    ...change,
  })}\n`;
}

/** What people and tools say, which costs nothing and looks as if it did. */
export function claudeNoise(session: string): string {
  const usage = { input_tokens: 999, output_tokens: 999 };
  const lines = [
    { type: 'summary', summary: 'About "usage"', leafUuid: 'x' },
    { type: 'user', sessionId: session, message: { role: 'user', content: '"usage":{}' } },
    { type: 'user', sessionId: session, message: { role: 'user' }, toolUseResult: { usage } },
    { type: 'progress', data: { message: { message: { usage } } } },
    { type: 'assistant', message: { model: '<synthetic>', usage: { input_tokens: 5 } } },
    { type: 'file-history-snapshot', messageId: 'x', snapshot: {} },
    { type: 'system', timestamp: '2026-01-15T09:30:00Z', message: { id: 'x', usage } },
  ];
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('');
}

export function codexMeta(id: string, part: object = {}, at = 0): string {
  return codexLine('session_meta', { id, cwd: '/nowhere/race', ...part }, at);
}

export function codexTurn(model: string, part: object = {}, at = 0): string {
  return codexLine('turn_context', { model, cwd: '/nowhere/race', ...part }, at);
}

/** Totals of a conversation so far, and of its last step if given. */
export function codexCount(
  total: readonly [number, number] | undefined,
  at: number,
  last?: readonly [number, number],
): string {
  const usage = (totals: readonly [number, number] | undefined) =>
    totals && {
      input_tokens: totals[0],
      cached_input_tokens: Math.floor(totals[0] / 2),
      output_tokens: totals[1],
      reasoning_output_tokens: 0,
      total_tokens: totals[0] + totals[1],
    };
  const info = { total_token_usage: usage(total), last_token_usage: usage(last) };
  return codexLine('event_msg', { type: 'token_count', info, rate_limits: null }, at);
}

function codexLine(type: string, payload: object, at: number): string {
  return `${JSON.stringify({ timestamp: new Date(at).toISOString(), type, payload })}\n`;
}

/** A home directory with transcripts, and a tally of them. */
export class TranscriptHome {
  readonly home = mkdtempSync(join(tmpdir(), 'mr-transcripts-'));
  readonly log: MemoryLog = memoryLog();
  #database: Database | undefined;
  #tally: Tally | undefined;
  #scanner: Scanner | undefined;

  get tally(): Tally {
    return this.#tally!;
  }

  async open({ batchMessages = 1_000, pieceBytes = 4_096 } = {}): Promise<this> {
    this.#database = await open(join(this.home, 'store'));
    this.#tally = Tally.open(this.#database);
    this.#scanner = new Scanner({
      readers: transcriptReaders,
      places: { home: this.home, environment: {} },
      tally: this.#tally,
      log: this.log,
      batchMessages,
      walker: new LineWalker(pieceBytes, 1_000_000),
    });
    return this;
  }

  /** As after a restart of the daemon. */
  async reopen(options?: { batchMessages?: number; pieceBytes?: number }): Promise<void> {
    await this.#database!.close();
    await this.open(options);
  }

  async remove(): Promise<void> {
    await this.#database?.close();
    rmSync(this.home, { recursive: true, force: true });
  }

  scan(signal?: AbortSignal): Promise<ScanReport> {
    return this.#scanner!.scan(signal);
  }

  claude(name: string): string {
    return join(this.home, '.claude', 'projects', '-nowhere-mill', `${name}.jsonl`);
  }

  codex(name: string): string {
    const day = join(this.home, '.codex', 'sessions', '2026', '01', '15');
    return join(day, `rollout-2026-01-15T09-30-00-${name}.jsonl`);
  }

  write(file: string, text: string): void {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }

  append(file: string, text: string | Buffer): void {
    mkdirSync(dirname(file), { recursive: true });
    appendFileSync(file, text);
  }

  /** All that has been counted, of one agent or of all. */
  total(agent?: string): Tokens {
    const sum = { ...noTokens };
    for (const { place, tokens } of this.tally.cells()) {
      if (agent !== undefined && this.tally.place(place).agent !== agent) continue;
      for (const name of Object.keys(sum) as (keyof Tokens)[]) sum[name] += tokens[name];
    }
    return sum;
  }
}

export function sumOf(truths: Iterable<{ tokens: Tokens }>): Tokens {
  const sum = { ...noTokens };
  for (const { tokens } of truths) {
    for (const name of Object.keys(sum) as (keyof Tokens)[]) sum[name] += tokens[name];
  }
  return sum;
}
