import { dbReasons, type DbReason, type GrpcCode } from '@millrace/contract/db';
import { Refusal, type FieldError, UsageError, messageOf } from '@millrace/kit/errors';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isUlid } from '@millrace/kit/ulid';
import type { World } from '@millrace/kit/world';
import type { Clock } from '@millrace/kit/clock';
import { open, rm } from 'node:fs/promises';

/** Why a call failed, in terms of both gRPC and HTTP. */
export interface CallStatus {
  readonly reason: DbReason;
  readonly code: GrpcCode;
  /** HTTP status. */
  readonly status: number;
  readonly message: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly retryAfterMs: number | undefined;
  readonly violations: readonly FieldError[];
  /** An internal error, to be logged. */
  readonly isBug: boolean;
}

/** The status to send for an error. Unexpected errors reveal no details. */
export function statusOf(error: unknown): CallStatus {
  if (!(error instanceof Refusal) || !isReason(error.code)) return internal;
  const { code, status } = dbReasons[error.code];
  const { members, retryAfterMs, errors } = error.extra;
  return {
    reason: error.code,
    code,
    status,
    message: fitting(error.detail, maxMessageLength),
    metadata: fittingMetadata(members?.['metadata'] as Record<string, string> | undefined),
    retryAfterMs: retryAfterMs ?? defaultRetryMs[error.code],
    violations: errors ?? [],
    isBug: error.code === 'INTERNAL' || error.code === 'CORRUPT',
  };
}

// gRPC sends both in headers, which clients limit to a few KiB. A record key fits in full.
const maxMessageLength = 400;
const maxMetadataLength = 1_024;

/** Truncates a text for a header without splitting a character. */
function fitting(text: string, longest: number): string {
  const whole = text.toWellFormed();
  return whole.length > longest ? `${whole.slice(0, longest).toWellFormed()}...` : whole;
}

const noMetadata = {};

function fittingMetadata(metadata: Readonly<Record<string, string>> | undefined) {
  if (metadata === undefined) return noMetadata;
  const entries = Object.entries(metadata);
  return Object.fromEntries(
    entries.map(([name, value]) => [name, fitting(value, maxMetadataLength)]),
  );
}

function isReason(code: string): code is DbReason {
  return Object.hasOwn(dbReasons, code);
}

/** Transient conditions. */
const defaultRetryMs: Partial<Record<DbReason, number>> = {
  OVERLOADED: 250,
  RATE_LIMITED: 1_000,
  WATCH_LIMIT: 1_000,
  NOT_READY: 1_000,
  SHUTTING_DOWN: 1_000,
  REPLICA_BEHIND: 250,
  NOT_ENOUGH_ACKS: 250,
};

const internal: CallStatus = {
  reason: 'INTERNAL',
  code: 'INTERNAL',
  status: 500,
  message: 'Internal error. See the server log for details.',
  metadata: {},
  retryAfterMs: undefined,
  violations: [],
  isBug: true,
};

/** The node id, created once per data directory and stored in it. */
export function nodeIdOf(directory: string, { clock, random }: World): string {
  const file = join(directory, 'NODE');
  if (existsSync(file)) {
    const id = readFileSync(file, 'utf8').trim();
    if (isUlid(id)) return id;
    throw new UsageError(`${file} does not contain a valid node id; delete it to create a new one`);
  }
  const id = random.ulid(clock.now());
  const fresh = `${file}.new`;
  writeFileSync(fresh, `${id}\n`, { mode: 0o600 });
  renameSync(fresh, file);
  return id;
}

let known: string | undefined;

/** The version of the package, shared by all Millrace packages. */
export function serverVersion(): string {
  if (known !== undefined) return known;
  // The package root is three folders up from both src/server/base and dist/server/base.
  const text = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8');
  return (known = (JSON.parse(text) as { version: string }).version);
}

/** Runs a function every `everyMs`; returns the function that stops it. */
export function repeat(clock: Clock, everyMs: number, run: () => void): () => void {
  let timer = clock.after(everyMs, function again() {
    run();
    timer = clock.after(everyMs, again);
  });
  return () => timer.cancel();
}

interface ReadinessReport {
  isReady: boolean;
  /** `ok`, or the problem. */
  checks: { database: string; data_directory: string; cluster?: string };
}

interface ReadinessOptions {
  clock: Clock;
  /** The data directory. */
  directory: string;
  /** `ok`, or why the database is not served. */
  database: () => string;
  /** What the node does in its cluster. For information: a node without a leader serves reads. */
  cluster?: (() => string) | undefined;
}

const cacheMs = 1_000;

/** Readiness check: the database is open, and its directory is writable. */
export class Readiness {
  #probe: Promise<string> | undefined;
  #probedAt = -Infinity;

  constructor(private readonly options: ReadinessOptions) {}

  async check(): Promise<ReadinessReport> {
    const { clock, database, cluster } = this.options;
    const now = clock.monotonic();
    if (!this.#probe || now - this.#probedAt >= cacheMs) {
      this.#probedAt = now;
      this.#probe = this.#write();
    }
    const checks: ReadinessReport['checks'] = {
      data_directory: await this.#probe,
      database: database(),
      ...(cluster && { cluster: cluster() }),
    };
    return { isReady: checks.database === 'ok' && checks.data_directory === 'ok', checks };
  }

  async #write(): Promise<string> {
    const file = join(this.options.directory, `.ready-${process.pid}`);
    try {
      const handle = await open(file, 'w', 0o600);
      try {
        await handle.writeFile('probe\n');
        await handle.sync();
      } finally {
        await handle.close();
      }
      await rm(file);
      return 'ok';
    } catch (error) {
      return messageOf(error);
    }
  }
}
