import { createSecureContext, rootCertificates } from 'node:tls';
import { systemClock, type Clock } from '@millrace/kit/clock';
import {
  parseTarget,
  sharedLookups,
  systemResolver,
  type AddressPolicy,
  type FailureType,
  type Guard,
  type Outbound,
  type OutboundOutcome,
  type OutboundRequest,
  type Resolver,
  type Target,
  type TargetResult,
} from '@millrace/kit/outbound';
import { systemConnect, type Connect } from './dial.js';
import { Exchange } from './exchange.js';
import { outgoingHeaders } from './headers.js';
import { Lanes, type LaneLimits } from './lanes.js';

export interface OutboundOptions {
  guard: Guard;
  clock?: Clock;
  resolver?: Resolver;
  connect?: Connect;
  /** PEM certificates to trust beside the public ones that come with Node. */
  extraCa?: readonly string[];
  limits?: Partial<LaneLimits>;
}

const defaultLimits: LaneLimits = {
  connectionsPerLane: 512,
  lanes: 256,
  connectionAgeMs: 30_000,
};

const rememberedUrls = 1_000;

export function createOutbound(options: OutboundOptions): Outbound {
  return new GuardedOutbound(options);
}

class GuardedOutbound implements Outbound {
  readonly #guard: Guard;
  readonly #clock: Clock;
  readonly #lanes: Lanes;
  readonly #watched = new WeakSet<AbortSignal>();
  readonly #parsed = new Map<string, TargetResult>();
  #isClosed = false;

  constructor(options: OutboundOptions) {
    const { extraCa } = options;
    this.#guard = options.guard;
    this.#clock = options.clock ?? systemClock;
    this.#lanes = new Lanes(
      {
        clock: this.#clock,
        resolver: sharedLookups(options.resolver ?? systemResolver, this.#clock),
        connect: options.connect ?? systemConnect,
        secureContext: extraCa && createSecureContext({ ca: [...rootCertificates, ...extraCa] }),
      },
      { ...defaultLimits, ...options.limits },
    );
  }

  request(ask: OutboundRequest): Promise<OutboundOutcome> {
    if (this.#isClosed) return refused('ABORTED', 'Outbound requests have been shut down');
    if (ask.signal?.aborted) return refused('ABORTED', 'The request was aborted');
    const parsed = this.#parse(ask.url);
    if (!parsed.ok) return refused('TARGET_BLOCKED', parsed.reason);
    const verdict = this.#guard(parsed.target);
    if ('blocked' in verdict) return refused('TARGET_BLOCKED', verdict.blocked);
    return this.#send(ask, parsed.target, verdict.policy);
  }

  close(): Promise<void> {
    this.#isClosed = true;
    for (const exchange of this.#lanes.underway()) {
      exchange.abort('Outbound requests were shut down');
    }
    this.#lanes.close();
    return Promise.resolve();
  }

  /** A server calls the same few URLs over and over, and parsing is pure. */
  #parse(url: string): TargetResult {
    let result = this.#parsed.get(url);
    if (result === undefined) {
      result = parseTarget(url);
      if (this.#parsed.size >= rememberedUrls) this.#parsed.clear();
      this.#parsed.set(url, result);
    }
    return result;
  }

  /** One listener for each signal: a server hands its shutdown signal to every request. */
  #watch(signal: AbortSignal): void {
    if (this.#watched.has(signal)) return;
    this.#watched.add(signal);
    const stopThose = () => {
      for (const exchange of this.#lanes.underway()) {
        if (exchange.ask.signal === signal) exchange.abort('The request was aborted');
      }
    };
    signal.addEventListener('abort', stopThose, { once: true });
  }

  #send(ask: OutboundRequest, target: Target, policy: AddressPolicy): Promise<OutboundOutcome> {
    const startedAt = this.#clock.monotonic();
    return new Promise((resolve) => {
      const request = {
        method: ask.method,
        path: target.path,
        host: target.authority,
        headers: outgoingHeaders(ask.headers ?? {}),
        body: ask.body,
      };
      const timeoutMs = ask.timeoutMs ?? 30_000;
      const lane = this.#lanes.find(target, policy);
      const exchange = new Exchange(
        {
          target,
          policy,
          request,
          timeoutMs,
          connectTimeoutMs: ask.connectTimeoutMs ?? 5_000,
          maxResponseBytes: ask.maxResponseBytes ?? 65_536,
          signal: ask.signal,
        },
        () => Math.round(this.#clock.monotonic() - startedAt),
        (outcome) => {
          deadline.cancel();
          this.#lanes.leave(lane, exchange);
          resolve(outcome);
        },
      );
      const deadline = this.#clock.after(timeoutMs, () => exchange.expire());
      if (ask.signal !== undefined) this.#watch(ask.signal);
      this.#lanes.enter(lane, exchange);
    });
  }
}

function refused(errorType: FailureType, message: string): Promise<OutboundOutcome> {
  return Promise.resolve({ ok: false, errorType, message, durationMs: 0 });
}
