import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { afterEach, describe, expect, test } from 'vitest';
import { useScratch } from './scratch.test-support.js';
import { campaignSize } from '../../../test/support/campaign.js';

const races = campaignSize({ quick: 3, full: 20 });

const scratch = useScratch();
const program = fileURLToPath(new URL('programs/contend.mjs', import.meta.url));

/** Another process that opens directories on command. */
class Contender {
  readonly #child = spawn(process.execPath, [program], { stdio: ['pipe', 'pipe', 'inherit'] });
  readonly #lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();

  get pid(): number {
    return this.#child.pid!;
  }

  async nextLine(): Promise<string> {
    const line = await this.#lines.next();
    return line.done ? 'ended' : line.value;
  }

  request(line: string): Promise<string> {
    this.#child.stdin.write(`${line}\n`);
    return this.nextLine();
  }

  async kill(): Promise<void> {
    if (this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'close');
    this.#child.kill('SIGKILL');
    await ended;
  }
}

const contenders: Contender[] = [];
afterEach(async () => {
  await Promise.all(contenders.splice(0).map((each) => each.kill()));
});

async function contender(): Promise<Contender> {
  const made = new Contender();
  contenders.push(made);
  expect(await made.nextLine()).toBe('ready');
  return made;
}

describe('two processes', () => {
  test('cannot open one database twice; the error names the owner', async () => {
    const db = await scratch.open();
    const other = await contender();
    const answer = await other.request(`open ${db.directory}`);
    expect(answer).toBe(
      `lost UsageError: The database in ${db.directory} is in use by process ${process.pid} on ` +
        `${hostname()}. Stop it first, or open another directory.`,
    );
    await db.collection('docs').insert({ n: 1 });
    await db.close();
    expect(await other.request(`open ${db.directory}`)).toBe('won');
    await expect(scratch.open({}, db.directory)).rejects.toThrow(`process ${other.pid}`);
    expect(await other.request('release')).toBe('released');
    const again = await scratch.open({}, db.directory);
    expect(again.core.state.seq).toBe(1);
  });

  test('take over after kill -9', async () => {
    const directory = scratch.directory();
    for (let round = 0; round < 3; round++) {
      const other = await contender();
      expect(await other.request(`open ${directory}`)).toBe('won');
      await other.kill();
      expect(readdirSync(directory)).toContain('LOCK');
    }
    const db = await scratch.open({}, directory);
    await db.collection('docs').insert({ n: 1 });
    expect(JSON.parse(readFileSync(join(directory, 'LOCK'), 'utf8'))).toMatchObject({
      pid: process.pid,
    });
  });
});

describe('a race for a lock that was left behind', () => {
  test.each([2, 4])(`of %i processes has one winner, ${races} times`, async (count) => {
    const racers = await Promise.all(Array.from({ length: count }, contender));
    for (let race = 0; race < races; race++) {
      const directory = scratch.directory();
      const { pid } = spawnSync('true');
      const left = { pid, started: '1', host: hostname(), token: `dead-${race}` };
      writeFileSync(join(directory, 'LOCK'), JSON.stringify(left));
      const start = performance.timeOrigin + performance.now() + 10;
      const answers = await Promise.all(
        racers.map((each) => each.request(`take ${directory} ${start}`)),
      );
      const losers = answers.filter((answer) => answer !== 'won');
      expect(losers).toHaveLength(count - 1);
      for (const answer of losers) expect(answer).toContain('is in use by process');
      expect(readdirSync(directory)).toEqual(['LOCK']);
      await Promise.all(racers.map((each) => each.request('release')));
      expect(readdirSync(directory)).toEqual([]);
    }
  });
});

test('another thread cannot open an open database', async () => {
  const db = await scratch.open();
  const engine = new URL('../dist/index.js', import.meta.url).href;
  const script = `
    const { parentPort } = require('node:worker_threads');
    import(${JSON.stringify(engine)})
      .then(({ open }) => open(${JSON.stringify(db.directory)}))
      .then(() => parentPort.postMessage('opened'), (error) => parentPort.postMessage(error.message));
  `;
  const thread = new Worker(script, { eval: true, execArgv: [] });
  const [message] = (await once(thread, 'message')) as [string];
  await thread.terminate();
  expect(message).toContain(`is in use by process ${process.pid}`);
});
