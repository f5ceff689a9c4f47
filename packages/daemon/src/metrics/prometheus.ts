import type { DaemonSchema } from '@millrace/contract/daemon';
import { createMetrics, type Counter, type Metrics } from '@millrace/kit/metrics';
import type { SpentByModel } from '../spend/rollup.js';

/** What is shown for Prometheus. Nothing of it calls a provider or waits for a scan. */
export interface SeriesSources {
  sessions: () => Promise<readonly DaemonSchema<'Session'>[]>;
  questions: () => Promise<readonly DaemonSchema<'Question'>[]>;
  usage: () => readonly { backend: string; scope: string; percent: number }[];
  spend: () => readonly SpentByModel[];
}

/** All of them are shown, so that a rule finds a 0 and not nothing. */
const sessionStatuses: readonly DaemonSchema<'SessionStatus'>[] = [
  'spawning',
  'working',
  'waiting_for_input',
  'idle',
  'rate_limited',
  'errored',
  'done',
  'orphaned',
];

const spawnBuckets = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** The daemon's series, named `millrace_daemon_*`. */
export class DaemonSeries {
  readonly #metrics: Metrics = createMetrics('daemon');
  readonly #sessions = this.#metrics.gauge({
    name: 'sessions',
    help: 'Sessions by status.',
    labelNames: ['status'],
  });
  readonly #questions = this.#metrics.gauge({
    name: 'questions_waiting',
    help: 'Questions of agents that wait for an answer.',
  });
  readonly #percent = this.#metrics.gauge({
    name: 'usage_percent',
    help: 'Used part of a usage window, as its provider last reported it.',
    labelNames: ['backend', 'scope'],
  });
  readonly #spawn = this.#metrics.histogram({
    name: 'spawn_seconds',
    help: 'Time from the request to spawn an agent to its session.',
    buckets: spawnBuckets,
  });
  readonly #tokens = new Running(
    this.#metrics.counter({
      name: 'tokens_total',
      help: 'Tokens in the transcripts, by backend and kind.',
      labelNames: ['backend', 'kind'],
    }),
  );
  readonly #usd = new Running(
    this.#metrics.counter({
      name: 'exact_usd_total',
      help: 'List price of the transcripts, cache included, by backend and model.',
      labelNames: ['backend', 'model'],
    }),
  );
  #sources: SeriesSources | undefined;
  /** In milliseconds; taken over when they are shown. */
  readonly spawnTimes: number[] = [];

  get contentType(): string {
    return this.#metrics.contentType;
  }

  /** From then on `text` shows what they have. */
  show(sources: SeriesSources): void {
    this.#sources = sources;
  }

  readonly text = async (): Promise<string> => {
    if (this.#sources) await this.#read(this.#sources);
    for (const ms of this.spawnTimes.splice(0)) this.#spawn.observe({}, ms / 1000);
    return this.#metrics.text();
  };

  close(): void {
    this.#metrics.close();
  }

  async #read({ sessions, questions, usage, spend }: SeriesSources): Promise<void> {
    const [all, open] = await Promise.all([sessions(), questions()]);
    this.#sessions.reset();
    for (const status of sessionStatuses) this.#sessions.set({ status }, 0);
    for (const { status } of all) this.#sessions.inc({ status });
    this.#questions.set(open.length);
    this.#percent.reset();
    for (const { backend, scope, percent } of usage())
      this.#percent.set({ backend, scope }, percent);
    const tokens = new Map<string, number>();
    for (const spent of spend()) {
      const { backend, model, exactUsd } = spent;
      for (const [kind, count] of Object.entries(spent.tokens)) {
        const name = `${backend}\0${kind}`;
        tokens.set(name, (tokens.get(name) ?? 0) + count);
      }
      if (exactUsd !== null) this.#usd.set({ backend, model }, exactUsd);
    }
    for (const [name, count] of tokens) {
      const [backend = '', kind = ''] = name.split('\0');
      this.#tokens.set({ backend, kind }, count);
    }
  }
}

/** A counter of sums that are kept elsewhere. A sum that was corrected downwards stays. */
class Running<Label extends string> {
  readonly #shown = new Map<string, number>();

  constructor(private readonly counter: Counter<Label>) {}

  set(labels: Readonly<Record<Label, string>>, sum: number): void {
    const name = JSON.stringify(labels);
    const before = this.#shown.get(name) ?? 0;
    if (sum <= before && this.#shown.has(name)) return;
    this.#shown.set(name, sum);
    this.counter.inc(labels, sum - before);
  }
}
