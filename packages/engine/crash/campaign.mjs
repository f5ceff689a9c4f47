/**
 * Kills a database process with -9 at random moments, again and again on the same directory, and
 * judges what it left behind: nothing acknowledged is missing, nothing is there by half.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '@millrace/kit/clock';
import { seededRandom } from '@millrace/kit/random';
import { checkBackup, open, restore } from '../dist/index.js';
import { judge, newMemory } from './judge.mjs';
import { readLedger } from './ledger.mjs';
import { collectionsOf } from './schema.mjs';

const worker = fileURLToPath(new URL('worker.mjs', import.meta.url));
const specials = [
  'none',
  'none',
  'open',
  'build',
  'compact',
  'compact',
  'backup',
  'fresh',
  'restore',
];

export class CrashFailure extends Error {}

/** Runs the rounds; throws a CrashFailure that says how to run them again. */
export async function campaign({ rounds, seed, say = () => undefined, directory }) {
  const home = directory ?? mkdtempSync(join(tmpdir(), 'millrace-crash-'));
  let keep = directory !== undefined;
  const run = new Campaign(home, seed, say);
  try {
    for (let round = 0; round < rounds; round++) await run.round(round);
    return run.tally;
  } catch (error) {
    keep = true;
    throw new CrashFailure(`${error.message}\nseed ${seed}, files kept in ${home}`, {
      cause: error,
    });
  } finally {
    run.end();
    if (!keep) rmSync(home, { recursive: true, force: true });
  }
}

class Campaign {
  tally = { rounds: 0, kills: 0, answered: 0, unanswered: 0, specials: {} };
  #memory = newMemory();
  #withPassing = false;
  #specials = [];
  #next;

  constructor(home, seed, say) {
    this.home = home;
    this.seed = seed;
    this.say = say;
    this.random = seededRandom(seed);
    this.#next = new Worker();
  }

  async round(round) {
    const special = this.#pickSpecial();
    const process = this.#next;
    await process.says('ready');
    if (special === 'restore') await this.#killRestore(round, process);
    else if (special === 'fresh') await this.#killFirstOpen(round, process);
    else await this.#killWork(round, process, special);
    this.tally.rounds++;
    this.tally.specials[special] = (this.tally.specials[special] ?? 0) + 1;
  }

  end() {
    this.#next.kill();
  }

  /** Each in its turn, in an order of chance. */
  #pickSpecial() {
    if (this.#specials.length === 0) this.#specials = [...specials];
    const at = this.random.integer(0, this.#specials.length - 1);
    return this.#specials.splice(at, 1)[0];
  }

  async #killWork(round, process, special) {
    if (special === 'build') this.#withPassing = !this.#withPassing;
    const directory = join(this.home, 'data');
    const withPassing = this.#withPassing;
    const ledger = join(this.home, `ledger-${round}`);
    const seed = this.random.integer(0, 2 ** 31);
    process.order({ directory, ledger, round, seed, special, withPassing });
    // `open` and `build` are cut down on the way; the others in the middle of their work.
    const early = special === 'open' || special === 'build';
    if (!early) await process.says('working');
    const killedAt = await this.#kill(process, early ? [0, 400] : [20, 500]);
    const entries = existsSync(ledger) ? readLedger(ledger) : [];
    this.#count(entries);
    const memory = this.#memory;
    const problems = await judge(directory, { entries, memory, withPassing, killedAt });
    for (const { file, answer } of entries.filter(({ kind }) => kind === 'backup')) {
      // A file of that name is there only when it is whole.
      if (existsSync(file)) await checkBackup(file);
      else if (answer) problems.push(`the backup ${file} is gone`);
    }
    this.#conclude(round, special, problems, entries.length);
  }

  /** A directory that nobody has opened before: it must open, whenever the first one died. */
  async #killFirstOpen(round, process) {
    const directory = join(this.home, `fresh-${round}`);
    const ledger = join(this.home, `ledger-${round}`);
    process.order({ directory, ledger, round, seed: round, special: 'none', withPassing: true });
    const killedAt = await this.#kill(process, [0, 600]);
    const entries = existsSync(ledger) ? readLedger(ledger) : [];
    this.#count(entries);
    const fresh = { entries, memory: newMemory(), withPassing: true, killedAt };
    const problems = await judgeFresh(directory, fresh);
    rmSync(directory, { recursive: true, force: true });
    this.#conclude(round, 'fresh', problems, entries.length);
  }

  /** A restore that was cut short leaves what cannot be opened by mistake. */
  async #killRestore(round, process) {
    const file = join(this.home, `restore-${round}.backup`);
    const collections = collectionsOf(this.#withPassing);
    const source = await open(join(this.home, 'data'), { collections });
    const { header } = await source.writeBackup(file);
    await source.close();
    const directory = join(this.home, `restored-${round}`);
    const ledger = join(this.home, `ledger-${round}`);
    process.order({ directory, ledger, special: 'restore', files: [file] });
    await this.#kill(process, [0, 400]);
    const [entry] = existsSync(ledger) ? readLedger(ledger) : [];
    const problems = [];
    const db = await openOrNot(directory);
    if (db) {
      const report = await db.verify();
      for (const { kind, where, detail } of report.problems) {
        problems.push(`restored copy: ${kind} ${where}: ${detail}`);
      }
      if (report.seq !== header.seq) {
        problems.push(`the restored copy is at commit ${report.seq}, not at ${header.seq}`);
      }
      await db.close();
    } else if (entry?.answer) problems.push('an acknowledged restore cannot be opened');
    if (!db) {
      rmSync(directory, { recursive: true, force: true });
      await restore([file], directory);
    }
    rmSync(directory, { recursive: true, force: true });
    rmSync(file);
    this.#conclude(round, 'restore', problems, 1);
  }

  /** Kills the process after a while, and meanwhile starts the next one. */
  async #kill(process, [low, high]) {
    await new Promise((resolve) => setTimeout(resolve, this.random.integer(low, high)));
    const killedAt = Date.now();
    process.kill();
    await process.ended;
    if (process.failure) throw new Error(`the process failed by itself: ${process.failure}`);
    this.tally.kills++;
    this.#next = new Worker();
    return killedAt;
  }

  #count(entries) {
    for (const { answer } of entries) this.tally[answer ? 'answered' : 'unanswered']++;
  }

  #conclude(round, special, problems, entries) {
    this.say(`round ${round} (${special}): ${entries} calls, ${problems.length} problems`);
    if (problems.length === 0) return;
    throw new Error(`round ${round} (${special}):\n  ${problems.slice(0, 20).join('\n  ')}`);
  }
}

async function judgeFresh(directory, fresh) {
  if (!existsSync(directory)) mkdirSync(directory);
  const problems = [];
  // Without accounts there is nothing for the judge to add up.
  const db = await open(directory);
  const isSetUp = (await db.collection('accounts').findByKey('a7')) !== undefined;
  if (!(await db.verify()).ok) problems.push('the first open left a damaged database');
  await db.close();
  return isSetUp ? [...problems, ...(await judge(directory, fresh))] : problems;
}

/** On a busy machine the sweeper would otherwise remove expired records before the check. */
const withoutTimers = Object.assign(Object.create(systemClock), {
  after: () => ({ cancel: () => undefined }),
});

/** The database, or undefined when it says that a restore was cut short. */
async function openOrNot(directory) {
  if (!existsSync(directory) || readdirSync(directory).every((name) => name.startsWith('LOCK'))) {
    return undefined;
  }
  try {
    return await open(directory, { clock: withoutTimers });
  } catch (error) {
    if (/restore that was cut short/.test(error.message)) return undefined;
    throw error;
  }
}

/** A process that is loaded and waits for its orders, so that a round does not wait for it. */
class Worker {
  failure = '';
  #child = spawn(process.execPath, [worker], { stdio: ['pipe', 'pipe', 'pipe'] });
  #said = '';
  #errors = '';
  #waiting = new Set();
  #isKilled = false;

  constructor() {
    this.#child.stdout.on('data', (text) => {
      this.#said += text;
      for (const check of this.#waiting) check();
    });
    this.#child.stderr.on('data', (text) => (this.#errors += text));
    // The order may meet a process that is already gone.
    this.#child.stdin.on('error', () => undefined);
    this.ended = new Promise((resolve) => {
      this.#child.on('close', (code, signal) => {
        if (!this.#isKilled || signal !== 'SIGKILL') {
          this.failure = `exit ${code ?? signal}: ${this.#errors}`;
        }
        for (const check of this.#waiting) check();
        resolve();
      });
    });
  }

  says(word) {
    return new Promise((resolve, reject) => {
      const check = () => {
        if (this.failure) reject(new Error(`the process failed by itself: ${this.failure}`));
        else if (this.#said.includes(word)) resolve();
        else return;
        this.#waiting.delete(check);
      };
      this.#waiting.add(check);
      check();
    });
  }

  order(orders) {
    this.#child.stdin.write(`${JSON.stringify(orders)}\n`);
  }

  kill() {
    this.#isKilled = true;
    this.#child.kill('SIGKILL');
  }
}
