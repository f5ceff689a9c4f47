import { hash } from 'node:crypto';
import type { Clock, Timer } from './clock-and-random.js';
import { messageOf } from './errors.js';
import type { Log } from './log.js';

/** The position of a request in a trace (W3C Trace Context). */
export interface TraceContext {
  readonly traceId: string;
  readonly spanId: string;
  /** Two hexadecimal digits; the lowest bit means sampled. */
  readonly flags: string;
}

/** A finished span. Times are milliseconds since the epoch. */
export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string | undefined;
  readonly name: string;
  readonly kind: 'internal' | 'server' | 'client';
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  /** The message of a failure; undefined if it succeeded. */
  readonly error?: string | undefined;
}

/** Collects spans and exports them in the background. */
export interface Tracer {
  record(span: Span): void;
  /** Exports what is left. */
  close(): Promise<void>;
}

const traceparentPattern =
  /^(?<version>[0-9a-f]{2})-(?<trace>[0-9a-f]{32})-(?<span>[0-9a-f]{16})-(?<flags>[0-9a-f]{2})(?<rest>-.*)?$/;

/** Parses a `traceparent` header; undefined if it is invalid. */
export function readTraceparent(text: string): TraceContext | undefined {
  const parts = traceparentPattern.exec(text.trim())?.groups;
  if (!parts) return undefined;
  const { version, trace, span, flags, rest } = parts;
  if (version === 'ff' || (version === '00' && rest !== undefined)) return undefined;
  if (/^0+$/.test(trace!) || /^0+$/.test(span!)) return undefined;
  // Of a later version's flags only "sampled" is defined here.
  const known = version === '00' ? flags! : parseInt(flags!, 16) & 1 ? '01' : '00';
  return { traceId: trace!, spanId: span!, flags: known };
}

export function isSampled({ flags }: TraceContext): boolean {
  return (parseInt(flags, 16) & 1) === 1;
}

/** Derived ids, so that processes agree on the span of a thing without exchanging it. */
export function spanIdOf(thing: string): string {
  return hash('sha256', thing, 'hex').slice(0, 16);
}

export function traceIdOf(thing: string): string {
  return hash('sha256', thing, 'hex').slice(0, 32);
}

export interface TracerOptions {
  environment: Readonly<Record<string, string | undefined>>;
  clock: Clock;
  log: Log;
  /** Replaced in tests. */
  send?: typeof fetch;
}

const maxBufferedSpans = 4_096;
const maxBatch = 512;
const exportEveryMs = 1_000;
const exportTimeoutMs = 10_000;

/**
 * Exports spans to the OpenTelemetry collector of `OTEL_EXPORTER_OTLP_ENDPOINT`, as JSON over HTTP.
 * Undefined if the variable is not set.
 */
export function openTracer(component: string, options: TracerOptions): Tracer | undefined {
  const { environment } = options;
  const base = environment['OTEL_EXPORTER_OTLP_ENDPOINT'];
  const url =
    environment['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'] ||
    (base && `${base.replace(/\/+$/, '')}/v1/traces`);
  if (!url || environment['OTEL_SDK_DISABLED'] === 'true') return undefined;
  const service = environment['OTEL_SERVICE_NAME'] || `millrace-${component}`;
  return new OtlpTracer(url, service, options);
}

class OtlpTracer implements Tracer {
  #spans: Span[] = [];
  #dropped = 0;
  #timer: Timer | undefined;
  #sending: Promise<void> = Promise.resolve();
  #hasFailed = false;

  constructor(
    private readonly url: string,
    private readonly service: string,
    private readonly options: TracerOptions,
  ) {}

  record(span: Span): void {
    if (this.#spans.length >= maxBufferedSpans) {
      this.#dropped++;
      return;
    }
    this.#spans.push(span);
    this.#timer ??= this.options.clock.after(exportEveryMs, () => this.#flush());
  }

  async close(): Promise<void> {
    this.#flush();
    await this.#sending;
  }

  #flush(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    const spans = this.#spans;
    this.#spans = [];
    for (let from = 0; from < spans.length; from += maxBatch) {
      const batch = spans.slice(from, from + maxBatch);
      this.#sending = this.#sending.then(() => this.#send(batch));
    }
  }

  /** A collector that is away costs spans, never work: they are dropped and counted. */
  async #send(spans: readonly Span[]): Promise<void> {
    const { log, environment, send = fetch } = this.options;
    try {
      const response = await send(this.url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headersIn(environment) },
        body: JSON.stringify(otlpBody(this.service, spans)),
        signal: AbortSignal.timeout(exportTimeoutMs),
      });
      await response.arrayBuffer();
      if (!response.ok) throw new Error(`HTTP status ${response.status}`);
      if (this.#hasFailed) log.info({ dropped: this.#dropped }, 'trace export recovered');
      this.#hasFailed = false;
    } catch (error) {
      this.#dropped += spans.length;
      const fields = { url: this.url, dropped: this.#dropped, reason: messageOf(error) };
      // Once, not every second.
      if (!this.#hasFailed) log.warn(fields, 'trace export failed');
      this.#hasFailed = true;
    }
  }
}

/** `OTEL_EXPORTER_OTLP_HEADERS`: `name=value` pairs separated by commas, percent-encoded. */
function headersIn(environment: TracerOptions['environment']): Record<string, string> {
  const pairs = (environment['OTEL_EXPORTER_OTLP_HEADERS'] ?? '').split(',');
  return Object.fromEntries(
    pairs.flatMap((pair) => {
      const at = pair.indexOf('=');
      if (at < 1) return [];
      return [[pair.slice(0, at).trim(), decodeURIComponent(pair.slice(at + 1).trim())]];
    }),
  );
}

const kinds = { internal: 1, server: 2, client: 3 };

function otlpBody(service: string, spans: readonly Span[]): object {
  return {
    resourceSpans: [
      {
        resource: { attributes: attributesOf({ 'service.name': service }) },
        scopeSpans: [{ scope: { name: 'millrace' }, spans: spans.map(otlpSpan) }],
      },
    ],
  };
}

function otlpSpan(span: Span): object {
  const { traceId, spanId, parentSpanId, name, kind, attributes, error } = span;
  return {
    traceId,
    spanId,
    ...(parentSpanId !== undefined && { parentSpanId }),
    name,
    kind: kinds[kind],
    startTimeUnixNano: nanos(span.startMs),
    endTimeUnixNano: nanos(Math.max(span.startMs, span.endMs)),
    attributes: attributesOf(attributes),
    status: error === undefined ? { code: 1 } : { code: 2, message: error },
  };
}

/** As text, because the number is too large for JSON. */
function nanos(ms: number): string {
  return String(BigInt(Math.round(ms)) * 1_000_000n);
}

function attributesOf(attributes: Span['attributes']): object[] {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: valueOf(value) }));
}

function valueOf(value: string | number | boolean): object {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}
