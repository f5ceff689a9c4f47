import { chainAfter } from '../../format/changes.js';
import type { Hash64 } from '../../value/hash.js';
import { sameHash } from '../../watch/token.js';
import { damagedAt } from './frames.js';
import { hashFromHex, type BackupCatalog, type BackupHeader } from './parts.js';
import type { PortableCommit } from './portable.js';

/** Checks the hash chain of an increment: that it starts and ends at the stated hashes. */
export class ChainCheck {
  #next: number;
  #chain: Hash64;
  readonly #names: Map<number, string>;
  /** The chain hash at `wantedSeq`, once that commit was read. */
  wanted: Hash64 | undefined;

  constructor(
    private readonly header: BackupHeader,
    private readonly catalog: BackupCatalog,
    private readonly source: string,
    private readonly wantedSeq?: number,
  ) {
    this.#next = header.sinceSeq + 1;
    this.#chain = hashFromHex(catalog.since_chain ?? '');
    this.#names = new Map(catalog.collections.map(({ number, name }) => [number, name]));
  }

  take(commits: readonly PortableCommit[]): void {
    for (const commit of commits) {
      const { seq, chain } = commit;
      if (seq !== this.#next)
        throw this.#broken(`it has commit ${seq} where ${this.#next} is expected`);
      this.#next = seq + 1;
      // With only some collections the chain cannot be computed, only taken from the commits.
      this.#chain = this.catalog.only ? chain : this.#after(commit);
      if (!sameHash(this.#chain, chain)) throw this.#broken(`the chain breaks at commit ${seq}`);
      if (seq === this.wantedSeq) this.wanted = chain;
    }
  }

  end(): void {
    if (this.#next !== this.header.seq + 1) {
      throw this.#broken(`it ends at commit ${this.#next - 1}, not at ${this.header.seq}`);
    }
    if (!sameHash(this.#chain, this.header.chainHash)) {
      throw this.#broken('its commits do not lead to the chain of its header');
    }
  }

  #after(commit: PortableCommit) {
    return chainAfter(this.#chain, commit, (number) => {
      const name = this.#names.get(number);
      if (name === undefined) throw this.#broken(`it has no collection ${number}`);
      return name;
    });
  }

  #broken(problem: string) {
    return damagedAt(this.source, 0, problem);
  }
}
