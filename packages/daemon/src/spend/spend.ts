import { homedir } from 'node:os';
import type { DaemonSchema } from '@millrace/contract/daemon';
import type { Database } from '@millrace/engine';
import type { Clock, Timer } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import { SharedRuns } from '../core/turns.js';
import { ownReader, type TranscriptRule } from '../transcripts/own.js';
import { transcriptReaders } from '../transcripts/readers.js';
import { Scanner } from '../transcripts/scanner.js';
import { blocksOf } from './blocks.js';
import {
  exactDollarsOf,
  exactPriceOf,
  exactRatesOf,
  pricedTokens,
  reportedTokens,
} from './pricing.js';
import { rollup, type SpentByModel, type Work } from './rollup.js';
import type { KnownPlace } from './rows.js';
import { Tally } from './tally.js';
import { taskOf } from './value.js';

type Rollup = DaemonSchema<'SpendRollup'>;
type Session = DaemonSchema<'Session'>;

export interface SpendOptions {
  database: Database;
  clock: Clock;
  log: Log;
  environment: Readonly<Record<string, string | undefined>>;
  /** Whether figures that are estimates rest on a calibration. */
  basis: () => Promise<Rollup['basis']>;
  /** Backends of the config; some have transcripts of their own. */
  extra?: readonly { id: string; transcript?: TranscriptRule | undefined }[];
  /** The daemon's data directory, which has the copy of opencode's counts. */
  dataDir?: string;
  /** Copies what other programs keep in databases; true when there was something new. */
  copy?: (signal: AbortSignal, isUrgent: boolean) => Promise<boolean>;
  /** Called when there are new figures. */
  onChange?: () => unknown;
}

const intervalMs = 30_000;
/** How long a caller waits for the newest figures before it gets the known ones. */
const maxWaitMs = 20_000;
/**
 * Figures stay fresh for as long as their scan took, at most this long: even constant requests
 * leave half of the time without a scan.
 */
const maxFreshMs = 1_000;

/** Spend of the agents, from their transcripts. */
export class Spend {
  readonly #tally: Tally;
  readonly #scanner: Scanner;
  readonly #scans: SharedRuns<void>;
  readonly #copies: SharedRuns<void>;
  readonly #stop = new AbortController();
  #freshUntil = -1;
  #isCopyUrgent = false;
  #scanStartedAt = 0;
  #timer: Timer | undefined;
  #latest: Promise<unknown> = Promise.resolve();
  #latestCopy: Promise<unknown> = Promise.resolve();

  constructor(private readonly options: SpendOptions) {
    const { database, environment, log, dataDir, extra = [] } = options;
    const own = extra.flatMap(({ id, transcript }) =>
      transcript ? [ownReader(id, transcript)] : [],
    );
    this.#tally = Tally.open(database);
    this.#scanner = new Scanner({
      readers: [...transcriptReaders, ...own],
      places: { home: environment['HOME'] || homedir(), environment, dataDir },
      tally: this.#tally,
      log,
    });
    this.#scans = new SharedRuns(() => this.#scan());
    this.#copies = new SharedRuns(() => this.#copy());
  }

  /** Scans every 30 s until it is closed. */
  start(): void {
    void this.refresh().finally(() => {
      if (this.#stop.signal.aborted) return;
      this.#timer = this.options.clock.after(intervalMs, () => this.start());
    });
  }

  /** The figures as of now. `own`: the daemon's sessions, which know their branches and tasks. */
  async read(own: readonly Session[] = []): Promise<Rollup> {
    const tally = await this.tally();
    const basis = await this.options.basis();
    return rollup(tally, { now: this.options.clock.now(), basis, workOf: worksOf(own) });
  }

  /** Sums by backend and model, of what has been read so far. */
  byModel(): SpentByModel[] {
    const sums = new Map<string, SpentByModel>();
    for (const { place, tokens } of this.#tally.cells()) {
      const { backend, model } = this.#tally.place(place);
      const name = `${backend}\0${model}`;
      const before = sums.get(name);
      const rates = exactRatesOf(model);
      const price = rates && exactDollarsOf(exactPriceOf(rates, pricedTokens(backend, tokens)));
      const { input, output, cacheRead, cacheWrite } = reportedTokens(backend, tokens);
      sums.set(name, {
        backend,
        model,
        tokens: {
          input: (before?.tokens.input ?? 0) + input,
          output: (before?.tokens.output ?? 0) + output,
          cache_read: (before?.tokens.cache_read ?? 0) + cacheRead,
          cache_write: (before?.tokens.cache_write ?? 0) + cacheWrite,
        },
        exactUsd: price === undefined ? null : (before?.exactUsd ?? 0) + price,
      });
    }
    return [...sums.values()];
  }

  /** Five-hour blocks of a backend, oldest first. */
  async blocks(backend: string): Promise<DaemonSchema<'UsageBlock'>[]> {
    const tally = await this.tally();
    const spanOf = (from: number, to: number) => tally.span(backend, from, to);
    return blocksOf(tally, { now: this.options.clock.now(), backend, spanOf });
  }

  /** The sums with the newest transcripts, or without them when reading takes too long. */
  async tally(): Promise<Tally> {
    const { clock, log } = this.options;
    if (clock.monotonic() < this.#freshUntil) return this.#tally;
    const done = new AbortController();
    const waiting = clock.sleep(maxWaitMs, done.signal).then(
      () => log.warn({}, 'transcript scan is slow, using known figures'),
      () => {},
    );
    await Promise.race([this.refresh(), waiting]);
    done.abort();
    return this.#tally;
  }

  /** How far the scan in progress is; undefined while none runs. */
  async progress(): Promise<DaemonSchema<'TranscriptScan'> | undefined> {
    const progress = await this.#scanner.progress();
    if (!progress) return undefined;
    return {
      bytes_read: progress.bytesRead,
      bytes_total: progress.bytesTotal,
      elapsed_ms: Math.round(this.options.clock.monotonic() - this.#scanStartedAt),
    };
  }

  /** Stops a scan in progress; what it has committed stays. */
  async close(): Promise<void> {
    this.#stop.abort();
    this.#timer?.cancel();
    await this.#latestCopy;
    await this.#latest;
  }

  /** Reads new transcript lines. A failure is logged, and the known figures stay. */
  async refresh(): Promise<void> {
    if (this.#stop.signal.aborted) return;
    // It takes seconds, so the figures do not wait for it.
    if (this.options.copy) this.#latestCopy = this.#copies.run();
    await this.#scanNow();
  }

  /** Copies what a run that has just ended left, so that its tokens are counted. */
  async copyNow(): Promise<void> {
    if (this.#stop.signal.aborted) return;
    this.#isCopyUrgent = true;
    await (this.#latestCopy = this.#copies.run());
  }

  async #copy(): Promise<void> {
    const { signal } = this.#stop;
    const isUrgent = this.#isCopyUrgent;
    this.#isCopyUrgent = false;
    try {
      if ((await this.options.copy!(signal, isUrgent)) && !signal.aborted) await this.#scanNow();
    } catch (error) {
      this.options.log.error({ err: error }, 'failed to copy transcripts');
    }
  }

  async #scanNow(): Promise<void> {
    const run = this.#scans.run();
    this.#latest = run;
    await run;
  }

  async #scan(): Promise<void> {
    const { clock, log, onChange } = this.options;
    const { signal } = this.#stop;
    const startedAt = clock.monotonic();
    this.#scanStartedAt = startedAt;
    try {
      const report = await this.#scanner.scan(signal);
      if (report.filesRead > 0) {
        log.debug(report, 'transcripts read');
        onChange?.();
      }
    } catch (error) {
      if (signal.aborted) return;
      log.error({ err: error }, 'transcript scan failed');
    }
    const now = clock.monotonic();
    this.#freshUntil = now + Math.min(maxFreshMs, now - startedAt);
  }
}

/** Finds the session of the daemon that a transcript belongs to, by its id, then its directory. */
function worksOf(own: readonly Session[]): (place: KnownPlace) => Work | undefined {
  const works = new Map<string, Work>();
  for (const session of own.toReversed()) {
    const work = { branch: session.branch, repo: session.repo, task: taskOf(session) };
    if (session.worktree !== null) works.set(session.worktree, work);
    if (session.backend_session_id !== null) works.set(session.backend_session_id, work);
  }
  return ({ agent, cwd }) => works.get(agent) ?? works.get(cwd);
}
