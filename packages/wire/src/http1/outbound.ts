import { createSecureContext, rootCertificates } from 'node:tls';
import { systemClock, type Clock } from '@millrace/kit/clock';
import {
  connectionHeaders,
  namedByConnection,
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
import { ConnectionPools, type PoolLimits } from './connection-pools.js';
import { validateHeaderName, validateHeaderValue } from 'node:http';

export interface OutboundOptions {
  guard: Guard;
  clock?: Clock;
  resolver?: Resolver;
  connect?: Connect;
  /** Additional PEM certificates to trust, besides the root certificates of Node. */
  extraCa?: readonly string[];
  limits?: Partial<PoolLimits>;
}

const defaultLimits: PoolLimits = {
  connectionsPerPool: 512,
  pools: 256,
  connectionAgeMs: 30_000,
};

const maxCachedUrls = 1_000;

export function createOutbound(options: OutboundOptions): Outbound {
  return new GuardedOutbound(options);
}

class GuardedOutbound implements Outbound {
  readonly #guard: Guard;
  readonly #clock: Clock;
  readonly #pools: ConnectionPools;
  readonly #parsed = new Map<string, TargetResult>();
  #isClosed = false;

  constructor(options: OutboundOptions) {
    const { extraCa } = options;
    this.#guard = options.guard;
    this.#clock = options.clock ?? systemClock;
    this.#pools = new ConnectionPools(
      {
        clock: this.#clock,
        resolver: sharedLookups(options.resolver ?? systemResolver, this.#clock),
        connect: options.connect ?? systemConnect,
        secureContext: extraCa && createSecureContext({ ca: [...rootCertificates, ...extraCa] }),
      },
      { ...defaultLimits, ...options.limits },
    );
  }

  request(params: OutboundRequest): Promise<OutboundOutcome> {
    if (this.#isClosed) return refused('ABORTED', 'Outbound requests have been shut down');
    if (params.signal?.aborted) return refused('ABORTED', 'The request was aborted');
    const parsed = this.#parse(params.url);
    if (!parsed.ok) return refused('TARGET_BLOCKED', parsed.reason);
    const verdict = this.#guard(parsed.target);
    if ('blocked' in verdict) return refused('TARGET_BLOCKED', verdict.blocked);
    return this.#send(params, parsed.target, verdict.policy);
  }

  close(): Promise<void> {
    this.#isClosed = true;
    for (const exchange of this.#pools.inFlight()) {
      exchange.abort('Outbound requests were shut down');
    }
    this.#pools.close();
    return Promise.resolve();
  }

  /** Cached, because the same few URLs repeat. */
  #parse(url: string): TargetResult {
    let result = this.#parsed.get(url);
    if (result === undefined) {
      result = parseTarget(url);
      if (this.#parsed.size >= maxCachedUrls) this.#parsed.clear();
      this.#parsed.set(url, result);
    }
    return result;
  }

  #send(params: OutboundRequest, target: Target, policy: AddressPolicy): Promise<OutboundOutcome> {
    const startedAt = this.#clock.monotonic();
    return new Promise((resolve) => {
      const request = {
        method: params.method,
        path: target.path,
        headers: outgoingHeaders(params.headers ?? {}),
        body: params.body,
      };
      const timeoutMs = params.timeoutMs ?? 30_000;
      const pool = this.#pools.find(target, policy);
      const exchange = new Exchange(
        {
          target,
          policy,
          request,
          timeoutMs,
          connectTimeoutMs: params.connectTimeoutMs ?? 5_000,
          maxResponseBytes: params.maxResponseBytes ?? 65_536,
        },
        () => Math.round(this.#clock.monotonic() - startedAt),
        (outcome) => {
          deadline.cancel();
          params.signal?.removeEventListener('abort', abort);
          this.#pools.release(pool, exchange);
          resolve(outcome);
        },
      );
      const abort = () => exchange.abort('The request was aborted');
      const deadline = this.#clock.after(timeoutMs, () => exchange.expire());
      params.signal?.addEventListener('abort', abort);
      this.#pools.acquire(pool, exchange);
    });
  }
}

function refused(errorType: FailureType, message: string): Promise<OutboundOutcome> {
  return Promise.resolve({ ok: false, errorType, message, durationMs: 0 });
}

const ownedByConnection: ReadonlySet<string> = new Set([...connectionHeaders, 'content-length']);

/** `owned`: set by the client itself. `options`: the Connection field, which names more fields. */
type NameKind = 'passed' | 'owned' | 'options';

const invalidValue = /[^\t\x20-\x7e\x80-\xff]/;
const maxCachedNames = 1_000;
const maxCachedNameLength = 64;
const kinds = new Map<string, NameKind>();

/**
 * The outgoing headers as a flat list of names and values. Throws a TypeError on invalid ones;
 * callers validate user input before.
 */
function outgoingHeaders(headers: Readonly<Record<string, string>>): string[] {
  const list: string[] = [];
  let options: string | undefined;
  for (const name of Object.keys(headers)) {
    const value = headers[name]!;
    const kind = kinds.get(name) ?? kindOf(name);
    if (kind === 'options') options = value;
    if (kind !== 'passed') continue;
    // Node's check is slow, so it only runs to produce its error.
    if (typeof value !== 'string' || invalidValue.test(value)) validateHeaderValue(name, value);
    list.push(name, value);
  }
  return options === undefined ? list : withoutOptions(list, options);
}

/** Cached, because the same few names repeat. */
function kindOf(name: string): NameKind {
  const lower = name.toLowerCase();
  const kind =
    lower === 'connection' ? 'options' : ownedByConnection.has(lower) ? 'owned' : 'passed';
  if (kind === 'passed') validateHeaderName(name);
  if (name.length > maxCachedNameLength) return kind;
  if (kinds.size >= maxCachedNames) kinds.clear();
  kinds.set(name, kind);
  return kind;
}

/** Fields named in the Connection header are hop-by-hop too. */
function withoutOptions(list: readonly string[], options: string): string[] {
  const named = new Set(namedByConnection(options));
  return list.filter((_, i) => !named.has(list[i - (i % 2)]!.toLowerCase()));
}
