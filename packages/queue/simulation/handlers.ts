import type { Outbound, OutboundOutcome, OutboundRequest } from '@millrace/kit/outbound';
import { unreliable, type Simulation, type UnreliableOptions } from '@millrace/kit/simulation';
import type { Delivery } from '../src/delivery/index.js';

/** How the handler of a queue behaves. */
export interface Manners extends UnreliableOptions {
  /** How likely it answers 202 and reports later. */
  asyncChance?: number;
  /** What it answers when it fails. */
  failures: readonly Failure[];
}

type Failure =
  | { status: number; headers?: Record<string, string> }
  | { errorType: 'CONNECTION_REFUSED' | 'CONNECTION_RESET' | 'DNS_FAILURE' | 'TARGET_BLOCKED' };

/** Simulated handlers: they respond late, wrongly, twice or never. */
export class Handlers implements Outbound {
  /** Tasks whose work was done to the end, at least once. */
  readonly done = new Set<string>();
  readonly #work = new Map<string, (signal?: AbortSignal) => Promise<'ok' | 'failed'>>();
  #isHealed = false;
  requests = 0;
  reports = 0;

  constructor(
    private readonly world: Simulation,
    private readonly manners: ReadonlyMap<string, Manners>,
    /** A running server, if any, to report to. */
    private readonly anyServer: () => Delivery | undefined,
  ) {
    for (const [queue, temper] of manners) this.#work.set(queue, unreliable(world, temper));
  }

  /** From now on everything succeeds quickly. */
  heal(): void {
    this.#isHealed = true;
  }

  async request(outgoing: OutboundRequest): Promise<OutboundOutcome> {
    const { world } = this;
    this.requests++;
    const headers = outgoing.headers ?? {};
    const queue = headers['X-Queue-Name']!;
    const id = headers['X-Queue-Task-Id']!;
    const startedAt = world.clock.monotonic();
    const stop = new AbortController();
    const timer = world.clock.after(outgoing.timeoutMs ?? 30_000, () => stop.abort('TIMEOUT'));
    const abort = () => stop.abort('ABORTED');
    outgoing.signal?.addEventListener('abort', abort);
    let outcome: OutboundOutcome;
    try {
      outcome = await this.#answer(queue, id, headers['X-Queue-Lease-Token']!, stop.signal);
    } catch {
      const errorType = stop.signal.reason as 'TIMEOUT' | 'ABORTED';
      outcome = { ok: false, errorType, message: 'No complete response', durationMs: 0 };
    }
    timer.cancel();
    outgoing.signal?.removeEventListener('abort', abort);
    const what = outcome.ok ? outcome.status : outcome.errorType;
    world.note('answer', { queue, id, what });
    return { ...outcome, durationMs: world.clock.monotonic() - startedAt };
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  async #answer(
    queue: string,
    id: string,
    token: string,
    signal: AbortSignal,
  ): Promise<OutboundOutcome> {
    const { world } = this;
    const manners = this.manners.get(queue)!;
    const result = this.#isHealed ? 'ok' : await this.#work.get(queue)!(signal);
    if (result === 'failed') return failureOf(this.#pick(manners.failures));
    if (!this.#isHealed && world.chance(manners.asyncChance ?? 0)) {
      this.#reportLater(queue, id, token);
      return response(202, { 'x-queue-async': 'true' });
    }
    this.done.add(id);
    return response(200);
  }

  /** Asynchronous work: it may be extended, fail, be reported twice, or never be reported. */
  #reportLater(queue: string, id: string, token: string): void {
    const { world } = this;
    const isForgotten = !this.#isHealed && world.chance(0.1);
    if (isForgotten) return;
    const extendMs = world.chance(0.3) ? world.between([1, 120_000]) : 0;
    const fails = !this.#isHealed && world.chance(0.3);
    const defer = fails && world.chance(0.3);
    const repeats = world.between([1, 3]);
    world.clock.after(world.between([0, 40_000]), () => {
      const report = async () => {
        if (extendMs > 0) await this.anyServer()?.extend(id, token, extendMs);
        await world.clock.sleep(world.between([0, 40_000]));
        if (!fails) this.done.add(id);
        for (let i = 0; i < repeats; i++) await this.#report(queue, id, token, fails, defer);
      };
      // If no server can be reached, the lease expires.
      report().catch((error: unknown) => world.note('report failed', { queue, id, error }));
    });
  }

  async #report(
    queue: string,
    id: string,
    token: string,
    fails: boolean,
    defer: boolean,
  ): Promise<void> {
    const server = this.anyServer();
    if (!server) return;
    this.reports++;
    const result = fails
      ? await server.fail(id, token, { error_type: 'WORK_FAILED', retry_after_ms: 1_500, defer })
      : await server.complete(id, token);
    const what = typeof result === 'string' ? result : result.status;
    this.world.note('report', { queue, id, fails, what });
    if (!fails && typeof result === 'object' && result.status !== 'SUCCEEDED') {
      this.world.fail(new Error(`a completed task is ${result.status} (${id})`));
    }
  }

  #pick<T>(choices: readonly T[]): T {
    return choices[this.world.between([0, choices.length - 1])]!;
  }
}

function failureOf(failure: Failure): OutboundOutcome {
  if ('status' in failure) return response(failure.status, failure.headers);
  return { ok: false, errorType: failure.errorType, message: 'out of reach', durationMs: 0 };
}

function response(status: number, headers: Record<string, string> = {}): OutboundOutcome {
  const body = new Uint8Array(0);
  return {
    ok: true,
    status,
    headers,
    body,
    truncated: false,
    remoteIp: '203.0.113.7',
    durationMs: 0,
  };
}
