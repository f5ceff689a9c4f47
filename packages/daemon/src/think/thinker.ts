import type { DaemonSchema } from '@millrace/contract/daemon';
import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import {
  isLocal,
  cooldownEnd,
  isStillCandidate,
  candidates,
  type Backend,
} from '../core/backend.js';
import type { Backends } from '../registry/backends.js';

export interface ThinkerParts {
  backends: Backends;
  clock: Clock;
  log: Log;
  /** Minimum cooldown of a rate-limited backend. */
  limitRetryMs: () => number;
  /** Runs a prompt on one CLI. */
  thinkWithCli: (backend: Backend, prompt: string, signal: AbortSignal) => Promise<Attempt>;
  thinkWithLocal: (prompt: string, signal: AbortSignal) => Promise<Attempt>;
  /** Called for every answer of the local model. */
  onLocalAnswer?:
    ((prompt: string, text: string, tokens: ModelTokens | undefined) => Promise<void>) | undefined;
}

type ThinkResult = DaemonSchema<'ThinkResult'>;

/** Concurrency limit: each prompt may be a process of hundreds of megabytes. */
const thoughtsAtOnce = 4;

/** Answers prompts on free and local backends, trying one candidate after the other. */
export class Thinker {
  readonly #semaphore = new Semaphore(thoughtsAtOnce);
  readonly #closing = new AbortController();
  readonly #underway = new Set<Promise<unknown>>();

  constructor(private readonly parts: ThinkerParts) {}

  /** Never throws for a failed backend: the result is degraded when no candidate answered. */
  async think(prompt: string, withdrawn: AbortSignal): Promise<ThinkResult> {
    const signal = AbortSignal.any([withdrawn, this.#closing.signal]);
    const tried: ThinkResult['tried'] = [];
    const running = this.#semaphore.run(signal, () => this.#tryCandidates(prompt, signal, tried));
    this.#underway.add(running);
    try {
      return (await running) ?? { backend: null, text: null, degraded: true, tried };
    } finally {
      this.#underway.delete(running);
    }
  }

  /** Cancels all prompts and waits until their programs have ended. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled(this.#underway);
  }

  async #tryCandidates(
    prompt: string,
    signal: AbortSignal,
    tried: ThinkResult['tried'],
  ): Promise<ThinkResult | undefined> {
    const { backends, clock } = this.parts;
    for (const { id } of candidates(await backends.read(), clock.now())) {
      if (signal.aborted) return undefined;
      // Earlier candidates may have taken minutes, in which this one was limited or reclassified.
      const state = await backends.read();
      const backend = state.backends.find((each) => each.id === id);
      if (!backend || !isStillCandidate(state, id, clock.now())) continue;
      const attempt = await this.#tryBackend(backend, prompt, signal);
      if (attempt.outcome === 'answered') {
        tried.push({ id, outcome: 'answered', reason: null });
        return { backend: id, text: attempt.text, degraded: false, tried };
      }
      tried.push({ id, outcome: attempt.outcome, reason: attempt.reason });
    }
    return undefined;
  }

  async #tryBackend(backend: Backend, prompt: string, signal: AbortSignal): Promise<Attempt> {
    const { thinkWithCli, thinkWithLocal, backends, clock, log, limitRetryMs } = this.parts;
    if (isLocal(backend)) {
      const attempt = await thinkWithLocal(prompt, signal);
      if (attempt.outcome === 'answered') await this.#reportLocalAnswer(prompt, attempt);
      return attempt;
    }
    const attempt = await thinkWithCli(backend, prompt, signal);
    if (attempt.outcome === 'rate_limited' || attempt.outcome === 'spend_limited') {
      const until = cooldownEnd(clock.now(), limitRetryMs(), attempt.resetAt);
      await backends.limit(backend.id, until);
      log.info({ backend: backend.id, reason: attempt.reason, until }, 'backend rate limited');
    }
    return attempt;
  }

  async #reportLocalAnswer(
    prompt: string,
    { text, tokens }: Extract<Attempt, { outcome: 'answered' }>,
  ): Promise<void> {
    try {
      await this.parts.onLocalAnswer?.(prompt, text, tokens);
    } catch (error) {
      // The answer matters more than its savings record.
      this.parts.log.warn({ err: error }, 'failed to record local model savings');
    }
  }
}

type Outcome = DaemonSchema<'ThinkOutcome'>;

/** Token counts that the model itself reported. */
export interface ModelTokens {
  input: number;
  output: number;
}

/** Result of one candidate. */
export type Attempt =
  | { outcome: 'answered'; text: string; tokens?: ModelTokens | undefined }
  | {
      outcome: Exclude<Outcome, 'answered'>;
      /** Human-readable; never the provider's text. */
      reason: string;
      /** Reset time that the backend reported. */
      resetAt?: number | undefined;
    };

/** Counting semaphore with a FIFO queue. */
export class Semaphore {
  #free: number;
  readonly #waiting: ((isIn: boolean) => void)[] = [];

  constructor(permits: number) {
    this.#free = permits;
  }

  /** Runs the work when a permit is free; undefined, without running it, when aborted before. */
  async run<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result | undefined> {
    if (!(await this.#acquire(signal))) return undefined;
    try {
      return await work();
    } finally {
      this.#release();
    }
  }

  #acquire(signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false);
    if (this.#free > 0) {
      this.#free--;
      return Promise.resolve(true);
    }
    return new Promise((resolve) => {
      const step = (isIn: boolean) => {
        signal.removeEventListener('abort', giveUp);
        resolve(isIn);
      };
      const giveUp = () => {
        this.#waiting.splice(this.#waiting.indexOf(step), 1);
        step(false);
      };
      signal.addEventListener('abort', giveUp, { once: true });
      this.#waiting.push(step);
    });
  }

  #release(): void {
    const next = this.#waiting.shift();
    if (next) next(true);
    else this.#free++;
  }
}
