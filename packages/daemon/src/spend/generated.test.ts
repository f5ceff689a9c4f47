import { existsSync, readFileSync, renameSync, truncateSync, writeFileSync } from 'node:fs';
import { seededRandom, type Random } from '@millrace/kit/random';
import { afterEach, expect, test, vi } from 'vitest';
import {
  claudeLine,
  claudeNoise,
  codexCount,
  codexMeta,
  codexTurn,
  TranscriptHome,
  truth,
  type Truth,
} from '../../test/support/transcripts.js';
import { rollup } from './rollup.js';

afterEach(() => vi.unstubAllEnvs());

const zones = ['UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kathmandu', 'Pacific/Apia'];
const now = Date.now();

/** A file that grows: what is in it in the end, and how much of that has been written. */
interface Growing {
  path: string;
  whole: Buffer;
  written: number;
}

/**
 * Generates messages, and files that contain them in every way that transcripts do: streamed,
 * resumed, forked, aside, with noise and rubbish between. The messages are the truth.
 */
class Story {
  readonly truths: (Truth & { backend: string })[] = [];
  readonly #texts = new Map<string, string>();

  constructor(
    private readonly random: Random,
    private readonly home: TranscriptHome,
  ) {
    for (let each = 0; each < 4; each++) this.#claude(`a-claude-${each}`);
    for (let each = 0; each < 3; each++) this.#codex(`codex-${each}`);
  }

  files(): Growing[] {
    return [...this.#texts].map(([path, text]) => ({ path, whole: Buffer.from(text), written: 0 }));
  }

  #add(path: string, text: string): void {
    this.#texts.set(path, (this.#texts.get(path) ?? '') + text);
  }

  #some(most: number): number {
    return this.random.integer(0, most);
  }

  #pick<Each>(list: readonly Each[]): Each {
    return list[this.#some(list.length - 1)]!;
  }

  /** Within the last month, and often close to a midnight somewhere. */
  #time(): number {
    const at = now - 1_000 - this.#some(30 * 86_400_000);
    const hour = Math.floor(at / 3_600_000) * 3_600_000;
    return this.#pick([at, hour, hour - 1]);
  }

  #claude(session: string): void {
    const models = ['claude-opus-4-5', 'claude-sonnet-4-5', 'claude-3-5-haiku', 'someone-new'];
    const file = this.home.claude(session);
    const written: string[] = [];
    for (let at = 0; at < 15; at++) {
      const cacheWrite = this.#some(500);
      const message = truth(`${session}-m${at}`, {
        session,
        cwd: `/nowhere/${this.#pick(['mill', 'race'])}`,
        model: this.#pick(models),
        at: this.#time(),
        tokens: {
          input: this.#some(1_000),
          output: 1 + this.#some(1_000),
          cacheRead: this.#some(9_000),
          cacheWrite,
          cacheWriteLong: this.#some(cacheWrite),
        },
      });
      this.truths.push({ ...message, backend: 'claude' });
      const isAside = this.#some(4) === 0;
      const path = isAside ? this.home.claude(`${session}/subagents/agent-${at}`) : file;
      const lines = this.#streamed(message, isAside);
      written.push(lines);
      this.#add(path, this.#rubbish(session) + lines);
    }
    // Resumed under another name, with all that was said, and forked with the mark of it.
    this.#add(
      this.home.claude(`z-resumed-${session}`),
      written.join('').replaceAll(`"sessionId":"${session}"`, `"sessionId":"z-resumed-${session}"`),
    );
    const forked = written.slice(0, this.#some(written.length)).join('');
    const mark = `"sessionId":"0-fork","forkedFrom":{"sessionId":"${session}"}`;
    this.#add(
      this.home.claude(`0-fork-of-${session}`),
      forked.replaceAll(`"sessionId":"${session}"`, mark),
    );
  }

  /** The first line of a message has its time; its figures grow to the last line. */
  #streamed(message: Truth, isSidechain: boolean): string {
    const parts = this.#some(2);
    let text = '';
    for (let part = 0; part < parts; part++) {
      const tokens = { ...message.tokens, output: Math.min(part + 1, message.tokens.output) };
      text += claudeLine({ ...message, tokens, at: message.at + part }, { isSidechain });
    }
    return text + claudeLine({ ...message, at: message.at + parts }, { isSidechain });
  }

  #rubbish(session: string): string {
    return this.#pick([
      '',
      claudeNoise(session),
      '\n',
      'not JSON\n',
      '{"message":{"usage":{"input_tokens":\n',
      '{"type":"assistant","message":{"usage":{"input_tokens":-5}}}\n',
    ]);
  }

  #codex(session: string): void {
    const model = this.#pick(['gpt-5-codex', 'gpt-5']);
    const cwd = '/nowhere/race';
    const begin = (id: string, part = {}) =>
      codexMeta(id, { cwd, ...part }) + codexTurn(model, { cwd });
    let total: [number, number] = [0, 0];
    const steps: [number, number][] = [];
    const step = (agent: string, turn: string): string => {
      const used = [1 + this.#some(900), 1 + this.#some(90)] as const;
      // Sometimes the counter restarts, by more than this step.
      const fell = total[0] > 2_000 && this.#some(5) === 0;
      total = fell ? [used[0], used[1]] : [total[0] + used[0], total[1] + used[1]];
      const at = this.#time();
      const tokens = {
        input: used[0],
        output: used[1],
        cacheRead: 0,
        cacheWrite: 0,
        cacheWriteLong: 0,
      };
      this.truths.push({
        ...truth(turn, { session: agent, cwd, model, at, tokens }),
        backend: 'codex',
      });
      steps.push(total);
      const line = codexCount(total, at, fell ? used : undefined);
      return line + (this.#some(2) === 0 ? line : '');
    };
    let text = begin(session);
    for (let at = 0; at < 12; at++) text += step(session, `${session}-${at}`);
    this.#add(this.home.codex(session), text);
    // A fork has the same events with times of its own, and then goes on.
    const copied = text.replaceAll(
      /"timestamp":"[^"]+"/g,
      `"timestamp":"${new Date(now).toISOString()}"`,
    );
    let fork = begin(`${session}-fork`, { forked_from_id: session }) + copied;
    fork += codexTurn(model, { cwd, turn_id: 'own' });
    for (let at = 0; at < 4; at++) fork += step(`${session}-fork`, `${session}-fork-${at}`);
    this.#add(this.home.codex(`${session}-fork`), fork);
  }
}

/** What the rollup must say, from the messages alone. */
function expected(truths: readonly (Truth & { backend: string })[], zone: string) {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short' });
  const priceOf = ({ backend, model, tokens: { input, output } }: Truth & { backend: string }) => {
    if (backend !== 'claude') return 0n;
    const [inRate, outRate] = model.includes('sonnet')
      ? [30n, 150n]
      : model.includes('haiku')
        ? [8n, 40n]
        : [50n, 250n];
    return BigInt(input) * inRate + BigInt(output) * outRate;
  };
  const table = (keyOf: (each: Truth & { backend: string }) => string) => {
    const rows = new Map<
      string,
      { input: number; output: number; price: bigint; priced: boolean }
    >();
    for (const each of truths) {
      const row = rows.get(keyOf(each)) ?? { input: 0, output: 0, price: 0n, priced: false };
      row.input += each.tokens.input;
      row.output += each.tokens.output;
      row.price += priceOf(each);
      row.priced ||= each.backend === 'claude';
      rows.set(keyOf(each), row);
    }
    return [...rows]
      .map(([key, { input, output, price, priced }]) => ({
        key,
        input_tokens: input,
        output_tokens: output,
        usd: priced ? Number(price) / 1e7 : null,
      }))
      .sort((a, b) => (a.key < b.key ? -1 : 1));
  };
  const sum = (some: typeof truths) =>
    Number(some.reduce((price, each) => price + priceOf(each), 0n)) / 1e7;
  const total = (name: 'input' | 'output' | 'cacheRead' | 'cacheWrite') =>
    truths.reduce((all, { tokens }) => all + tokens[name], 0);
  const today = format.format(now);
  return {
    total_usd: sum(truths),
    daily_usd: sum(truths.filter(({ at }) => format.format(at) === today)),
    weekly_usd: sum(truths.filter(({ at }) => at > now - 7 * 86_400_000)),
    input_tokens: total('input'),
    output_tokens: total('output'),
    cache_read_tokens: total('cacheRead'),
    cache_write_tokens: total('cacheWrite'),
    by_agent: table(({ session }) => session),
    by_repo: table(({ cwd }) => cwd),
    by_day: table(({ at }) => format.format(at)),
    by_model: table(({ model }) => model),
    by_backend: table(({ backend }) => backend),
  };
}

function written(home: TranscriptHome, zone: string) {
  vi.stubEnv('TZ', zone);
  const whole = rollup(home.tally, {
    now,
    basis: 'HEURISTIC',
  });
  const { week_usd: _, cache_usd: __, basis: ___, ...others } = whole;
  const { exact_usd: _4, daily_exact_usd: _5, weekly_exact_usd: _6, ...more } = others;
  const { unpriced_models: _7, week_exact_usd: _9, ...most } = more;
  const { by_hour: _10, by_branch: _11, by_task: _12, ...rest } = most;
  const inOrder = (rows: typeof rest.by_agent) =>
    rows.map(({ exact_usd: _8, ...row }) => row).toSorted((a, b) => (a.key < b.key ? -1 : 1));
  return {
    ...rest,
    by_day: inOrder(rest.by_day),
    by_agent: inOrder(rest.by_agent),
    by_repo: inOrder(rest.by_repo),
    by_model: inOrder(rest.by_model),
    by_backend: inOrder(rest.by_backend),
  };
}

/** Lets a file grow by a piece that ends anywhere; now and then something happens to the file. */
function grow(file: Growing, random: Random): void {
  const piece = random.integer(1, 4_000);
  const next = Math.min(file.whole.length, file.written + piece);
  switch (random.integer(0, 9)) {
    case 0:
      // Truncated, to be written again.
      if (existsSync(file.path)) truncateSync(file.path, random.integer(0, file.written));
      file.written = existsSync(file.path) ? readFileSync(file.path).length : 0;
      return;
    case 1:
      // Replaced by another file with the same beginning.
      writeFileSync(`${file.path}.tmp`, file.whole.subarray(0, next));
      renameSync(`${file.path}.tmp`, file.path);
      break;
    default:
      writeFileSync(file.path, file.whole.subarray(file.written, next), { flag: 'a' });
  }
  file.written = next;
}

test.each([1, 2, 3, 4, 5, 6])('generated transcripts %i: every token is counted', async (seed) => {
  const random = seededRandom(seed);
  const home = await new TranscriptHome().open();
  try {
    const story = new Story(random, home);
    const files = story.files();
    for (const { path } of files) home.write(path, '');
    while (files.some(({ whole, written }) => written < whole.length)) {
      const growing = files.filter(({ whole, written }) => written < whole.length);
      for (let times = random.integer(1, 25); times > 0; times--) {
        const file = growing[random.integer(0, growing.length - 1)]!;
        if (file.written < file.whole.length) grow(file, random);
      }
      if (random.integer(0, 2) === 0) await home.scan();
      if (random.integer(0, 9) === 0) await home.reopen({ batchMessages: random.integer(1, 20) });
    }
    await home.scan();
    for (const zone of zones) expect(written(home, zone)).toEqual(expected(story.truths, zone));
    await home.reopen();
    expect(await home.scan()).toMatchObject({ filesRead: 0 });
    expect(written(home, zones[1]!)).toEqual(expected(story.truths, zones[1]!));
  } finally {
    await home.remove();
  }
});
