import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '@millrace/kit/clock';
import { messageOf } from '@millrace/kit/errors';

export interface ReadinessReport {
  isReady: boolean;
  /** `ok`, or the problem. */
  checks: { database: string; data_directory: string; cluster?: string };
}

export interface ReadinessOptions {
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
