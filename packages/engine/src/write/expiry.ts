import type { Core } from '../core/core.js';
import { CommitBuilder } from './mutations.js';
import {
  expiryHeadLength,
  expiryKey,
  expiryKinds,
  prefixLength,
  readId,
  readUint48,
} from '../format/keys.js';
import type { Timer } from '@millrace/kit/clock';

const maxPerCommit = 500;
const sweepEveryMs = 1_000;
const maxScanned = 5_000;

/** Removes what has expired: records with an EXPIRE change, stored request results silently. */
export class ExpirySweeper {
  #timer: Timer | undefined;
  #stopped = false;

  constructor(private readonly core: Core) {
    this.#schedule();
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  /** Sweeps until nothing is due. A follower gets the EXPIRE commits from its leader instead. */
  async sweep(): Promise<void> {
    if (this.core.sealed) {
      while (this.#anythingDue() && (await this.core.writer.submit(() => this.#sweepRequests()))) {
        if (this.#stopped) return;
      }
      return;
    }
    while (this.#anythingDue() && (await this.core.writer.submit(() => this.#sweepSome()))) {
      if (this.#stopped) return;
    }
  }

  #schedule(): void {
    this.#timer = this.core.clock.after(sweepEveryMs, () => {
      this.sweep()
        .catch((error: unknown) => this.core.log.error({ err: error }, 'Expiry sweep failed'))
        .finally(() => {
          if (!this.#stopped) this.#schedule();
        });
    });
  }

  #anythingDue(): boolean {
    for (const { key } of this.core.store.range('expiry', { limit: 1 })) {
      return readUint48(key, 0) <= this.core.clock.now();
    }
    return false;
  }

  /**
   * Deletes expired request results among the first rows, where records may remain for long. True
   * if more may be due.
   */
  #sweepRequests(): boolean {
    const { clock, writer } = this.core;
    const end = expiryKey(clock.now() + 1, 0, new Uint8Array(0));
    const due = Array.from(writer.range('expiry', { end, limit: maxScanned }));
    let removed = 0;
    for (const { key } of due) {
      if (key[6] !== expiryKinds.request) continue;
      writer.remove('requests', Buffer.from(key.subarray(expiryHeadLength)));
      writer.remove('expiry', key);
      removed++;
    }
    return removed > 0 && due.length === maxScanned;
  }

  /** Removes expired rows in one commit. True when there may be more. */
  #sweepSome(): boolean {
    const { core } = this;
    const commit = new CommitBuilder(core);
    const view = core.view();
    const end = expiryKey(commit.now + 1, 0, new Uint8Array(0));
    const due = Array.from(core.writer.range('expiry', { end, limit: maxPerCommit }));
    for (const { key } of due) {
      const what = key.subarray(expiryHeadLength);
      if (key[6] === expiryKinds.request) core.writer.remove('requests', Buffer.from(what));
      else if (key[6] === expiryKinds.record) {
        const collection = core.catalog.byId(what.readUInt32BE(0));
        const record = view.record(collection.id, readId(what, prefixLength));
        if (record?.expiresAt === readUint48(key, 0)) commit.remove(collection, record, 'expire');
      }
      core.writer.remove('expiry', key);
    }
    commit.finish();
    return due.length === maxPerCommit;
  }
}
