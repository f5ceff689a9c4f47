import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { seededRandom, type Random } from '@millrace/kit/random';
import { problemsOf } from '../consistency.test-support.js';
import { Database } from '../../src/api/database.js';
import { ManualClock } from '../manual-clock.test-support.js';
import { Tables } from '../../src/storage/file/tables.js';
import { SimulatedDisk, type Faults } from './simulated-disk.test-support.js';

const collections = {
  docs: {
    indexes: [
      { fields: ['n'] },
      { fields: ['key'], unique: true },
      { search: ['text'], language: 'en' },
      { vector: 'v', dims: 3, metric: 'l2' as const },
    ],
  },
};
const logFiles = { segmentBytes: 8 * 1024 };
const callers = 4;

/** What the callers know: for each key the version that was answered last, and that was sent last. */
interface Known {
  answered: number;
  sent: number;
  /** The version that was sent last removes the record. */
  isRemoved: boolean;
}

/** The disk at one moment, and what had been answered by then. */
interface Image {
  store: { name: string; bytes: Buffer };
  disk: SimulatedDisk;
  known: Map<string, Known>;
  answeredSeq: number;
}

export interface PowerCutOptions {
  seed: number;
  /** How many operations the callers do. */
  operations: number;
  /** How many images to take. */
  images: number;
  faults?: Faults;
  durability?: 'strict' | 'relaxed';
  directory: () => string;
  /** Breaks something of an open database. */
  sabotage?: (database: Database, disk: SimulatedDisk) => void;
}

/**
 * Runs a random workload on a simulated disk and cuts the power at random moments. Each image must
 * open, be sound and have everything that was answered, and nothing by half.
 */
export async function cutPower(options: PowerCutOptions): Promise<string[]> {
  const stores = new Map<string, Buffer>();
  const commit = Tables.prototype.commit;
  Tables.prototype.commit = async function (...args) {
    await commit.apply(this, args);
    stores.set(basename(this.path), readFileSync(this.path));
  };
  try {
    const images = await new Workload(options, stores).run();
    const problems: string[] = [];
    for (const [number, image] of images.entries()) {
      const found = await inspect(image, options);
      problems.push(...found.map((problem) => `image ${number}: ${problem}`));
    }
    return problems;
  } finally {
    Tables.prototype.commit = commit;
  }
}

class Workload {
  readonly #random: Random;
  readonly #disk: SimulatedDisk;
  readonly #known = new Map<string, Known>();
  readonly #images: Image[] = [];
  readonly #clock = new ManualClock();
  #directory = '';
  #left: number;
  #answeredSeq = 0;
  #isRunning = false;
  #pairs = 0;

  constructor(
    private readonly options: PowerCutOptions,
    private readonly stores: Map<string, Buffer>,
  ) {
    this.#random = seededRandom(options.seed);
    this.#disk = new SimulatedDisk(options.faults);
    this.#left = options.operations;
  }

  async run(): Promise<Image[]> {
    const { directory, durability = 'strict', sabotage } = this.options;
    this.#directory = directory();
    const database = await Database.open(this.#directory, {
      collections,
      logFiles,
      durability,
      files: this.#disk,
      clock: this.#clock,
      random: seededRandom(this.options.seed + 1),
    });
    sabotage?.(database, this.#disk);
    // About twenty events for each operation.
    const chance = (2 * this.options.images) / (this.options.operations * 20);
    this.#disk.onEvent = () => {
      if (this.#isRunning && this.#random.next() < chance) this.#take();
    };
    this.#isRunning = true;
    await Promise.all(Array.from({ length: callers }, () => this.#call(database)));
    this.#isRunning = false;
    await database.close();
    return this.#images;
  }

  #take(): void {
    if (this.#images.length >= this.options.images) return;
    const name = readFileSync(join(this.#directory, 'CURRENT'), 'utf8').trim();
    const bytes = this.stores.get(name);
    if (!bytes) return;
    const known = new Map(Array.from(this.#known, ([key, state]) => [key, { ...state }]));
    this.#images.push({
      store: { name, bytes },
      disk: this.#disk.afterPowerCut(this.#random),
      known,
      answeredSeq: this.#answeredSeq,
    });
  }

  async #call(database: Database): Promise<void> {
    while (this.#left-- > 0) {
      await this.#step(database);
      if (this.#random.next() < 0.1) await this.#maintain(database);
    }
  }

  async #step(database: Database): Promise<void> {
    const random = this.#random;
    const docs = database.collection('docs');
    const kind = random.next();
    if (kind < 0.2) return this.#writePair(database);
    const key = `k${random.integer(0, 40)}`;
    const before = this.#known.get(key);
    // One caller at a time for each key, so that the order of its versions is known.
    if (before && before.sent !== before.answered) return;
    const isRemoved = kind < 0.35 && before !== undefined && !before.isRemoved;
    const state = { answered: before?.answered ?? 0, sent: (before?.sent ?? 0) + 1, isRemoved };
    this.#known.set(key, state);
    const fill = 'x'.repeat(random.integer(0, kind > 0.95 ? 6_000 : 300));
    if (isRemoved) await docs.deleteByKey(key);
    else {
      const { record } = await docs.upsert(key, {
        key,
        version: state.sent,
        n: kind,
        fill,
        text: `Queues of version ${state.sent}`,
        v: [state.sent, kind, 1],
      });
      this.#answeredSeq = Math.max(this.#answeredSeq, record.seq);
    }
    state.answered = state.sent;
  }

  /** Two records of one commit, and a row beside them. */
  async #writePair(database: Database): Promise<void> {
    const number = ++this.#pairs;
    const state: Known = { answered: 0, sent: 1, isRemoved: false };
    this.#known.set(`pair${number}`, state);
    const docs = await database.core.ensureCollection('docs');
    await database.transact((target) => {
      for (const side of ['a', 'b']) {
        const key = `pair${number}${side}`;
        const document = target.encode({ key, version: 1, n: number });
        const fields = { key, expiresAt: 0 };
        target.store(docs, target.newId(), undefined, document, fields);
      }
      target.rows.put(Buffer.from(`pair${number}`), Buffer.from('here'));
    });
    state.answered = 1;
  }

  async #maintain(database: Database): Promise<void> {
    const kind = this.#random.next();
    if (kind < 0.4) this.#clock.advance(250);
    else if (kind < 0.6) await database.core.store.fold();
    else if (kind < 0.85) await database.trimLog(Math.max(1, database.core.durable.seq - 10));
    else if (kind < 0.93) {
      for await (const _part of database.backup());
    } else await database.compact().catch(ignoreRunning);
  }
}

function ignoreRunning(error: unknown): void {
  if (!String(error).includes('ALREADY_RUNNING') && !String(error).includes('already')) throw error;
}

async function inspect(image: Image, options: PowerCutOptions): Promise<string[]> {
  const directory = join(options.directory(), 'data');
  mkdirSync(directory);
  const { store, disk } = image;
  writeFileSync(join(directory, store.name), store.bytes);
  writeFileSync(join(directory, 'CURRENT'), `${store.name}\n`);
  disk.moveTo(directory);
  let database: Database;
  try {
    const clock = new ManualClock();
    database = await Database.open(directory, { collections, logFiles, files: disk, clock });
  } catch (error) {
    return [`does not open: ${String(error)}`];
  }
  try {
    const problems = [...problemsOf(database.core), ...(await missingFrom(database, image))];
    const { problems: found } = await database.verify();
    problems.push(...found.map(({ where, detail }) => `verify: ${where} ${detail}`));
    await database.collection('docs').insert({ key: 'after the cut', version: 0 });
    return problems;
  } finally {
    await database.close();
  }
}

async function missingFrom(database: Database, image: Image): Promise<string[]> {
  const problems: string[] = [];
  const docs = database.collection<{ version: number }>('docs');
  if (database.core.durable.seq < image.answeredSeq) {
    problems.push(`is at commit ${database.core.durable.seq}, ${image.answeredSeq} was answered`);
  }
  for (const [key, state] of image.known) {
    if (key.startsWith('pair')) problems.push(...(await pairProblems(database, key, state)));
    else {
      const version = (await docs.findByKey(key))?.data.version;
      const isSame = state.answered === state.sent;
      const wanted = state.isRemoved ? undefined : state.sent;
      if (isSame ? version !== wanted : version !== undefined && version > state.sent) {
        problems.push(`${key} has version ${version}, answered ${state.answered}`);
      }
    }
  }
  return problems;
}

async function pairProblems(database: Database, key: string, state: Known): Promise<string[]> {
  const docs = database.collection('docs');
  const sides = await Promise.all(['a', 'b'].map((side) => docs.findByKey(`${key}${side}`)));
  const row = database.readRows((rows) => rows.get(Buffer.from(key)));
  const found = [...sides, row].filter((each) => each !== undefined).length;
  if (found !== 0 && found !== 3) return [`${key} is there by half`];
  return found === 0 && state.answered > 0 ? [`${key} is missing`] : [];
}
