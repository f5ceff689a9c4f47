import type { Clock } from '@millrace/kit/clock';
import { Refusal } from '@millrace/kit/errors';
import type { Upstream, Upstreams } from './upstream.js';

interface ServerState {
  state: 'live' | 'no_answer' | 'down' | 'checking';
  answered_ms_ago: number | null;
  latency_ms: number | null;
  detail: string | null;
}

export interface ServerStates {
  queue: ServerState;
  database: ServerState;
}

/** A check without an answer for this long means that the server does not answer. */
const silenceMs = 1_000;
/** A check is given up after this, so that a server that comes back is seen. */
const checkTimeoutMs = 2_000;
/** How long a caller waits for checks to finish. */
const waitMs = 250;

/** Checks the servers behind the daemon; callers share the checks in progress. */
export class ServerHealth {
  readonly #queue: ServerCheck;
  readonly #database: ServerCheck;

  constructor(
    { queue, database }: Upstreams,
    private readonly clock: Clock,
  ) {
    this.#queue = new ServerCheck(queue, clock);
    this.#database = new ServerCheck(database, clock);
  }

  async read(signal: AbortSignal): Promise<ServerStates> {
    const checks = Promise.all([this.#queue.run(), this.#database.run()]);
    await Promise.race([checks, this.clock.sleep(waitMs, signal)]);
    return { queue: this.#queue.state(), database: this.#database.state() };
  }
}

class ServerCheck {
  #running: { since: number; promise: Promise<void> } | undefined;
  /** Start of the first check since the last answer. */
  #askedAt: number | undefined;
  #answer: { at: number; latencyMs: number } | undefined;
  #failure: string | undefined;

  constructor(
    private readonly upstream: Upstream,
    private readonly clock: Clock,
  ) {}

  run(): Promise<void> {
    const since = this.clock.monotonic();
    this.#askedAt ??= since;
    this.#running ??= { since, promise: this.#check(since) };
    return this.#running.promise;
  }

  state(): ServerState {
    const now = this.clock.monotonic();
    const answered_ms_ago = this.#answer ? Math.round(now - this.#answer.at) : null;
    const silentMs = this.#askedAt === undefined ? 0 : now - this.#askedAt;
    const known = { answered_ms_ago, latency_ms: null, detail: null };
    if (this.#failure !== undefined) return { ...known, state: 'down', detail: this.#failure };
    if (silentMs >= silenceMs) return { ...known, state: 'no_answer' };
    if (!this.#answer) return { ...known, state: 'checking' };
    return { ...known, state: 'live', latency_ms: Math.round(this.#answer.latencyMs) };
  }

  async #check(since: number): Promise<void> {
    const timeout = new AbortController();
    const timer = this.clock.after(checkTimeoutMs, () => timeout.abort());
    try {
      const answer = await this.upstream.request({
        method: 'GET',
        target: '/readyz',
        headers: {},
        body: undefined,
        signal: timeout.signal,
      });
      answer.destroy();
      const at = this.clock.monotonic();
      this.#answer = { at, latencyMs: at - since };
      this.#askedAt = undefined;
      this.#failure = undefined;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.#failure = timeout.signal.aborted ? undefined : error.detail;
    } finally {
      timer.cancel();
      this.#running = undefined;
    }
  }
}
