import { chainAfter } from '../../format/record.js';
import type { Hash64 } from '../../value/bytes.js';
import { sameHash } from '../../watch/message.js';
import {
  batchesVersion,
  damagedAt,
  hashFromHex,
  type BackupCatalog,
  type BackupHeader,
  type BackupTrailer,
} from './frames.js';
import type { PortableBatch, PortableCommit } from './portable.js';
import { UsageError } from '@millrace/kit/errors';
import { fileParts } from './file.js';
import { readBackup } from './reader.js';

/** Checks the hash chain of an increment: that it starts and ends at the stated hashes. */
class ChainCheck {
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
      this.#advance(seq);
      // With only some collections the chain cannot be computed, only taken from the commits.
      this.#chain = this.catalog.only ? chain : this.#after(commit);
      if (!sameHash(this.#chain, chain)) throw this.#broken(`the chain breaks at commit ${seq}`);
      if (seq === this.wantedSeq) this.wanted = chain;
    }
  }

  /** Batches have the checksums of the log for a chain. */
  takeBatches(batches: readonly PortableBatch[]): void {
    for (const { seq, checksum } of batches) {
      this.#advance(seq);
      this.#chain = { high: 0, low: checksum };
      if (seq === this.wantedSeq) this.wanted = this.#chain;
    }
  }

  #advance(seq: number): void {
    if (seq !== this.#next) {
      throw this.#broken(`it has commit ${seq} where ${this.#next} is expected`);
    }
    this.#next = seq + 1;
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

/** A backup file that was read completely and is valid. */
export interface CheckedBackup {
  file: string;
  header: BackupHeader;
  catalog: BackupCatalog;
  trailer: BackupTrailer;
  /** For an increment: the chain hash at the requested commit, if it has that commit. */
  overlapChain: Hash64 | undefined;
}

/**
 * Reads a backup file and throws, with the position, when anything is invalid. For an increment
 * that starts before `overlapSeq`, `overlapChain` is its chain hash there.
 */
export async function checkBackup(file: string, overlapSeq?: number): Promise<CheckedBackup> {
  let header: BackupHeader | undefined;
  let catalog: BackupCatalog | undefined;
  let trailer: BackupTrailer | undefined;
  let chain: ChainCheck | undefined;
  for await (const statement of readBackup(fileParts(file), file)) {
    if (statement.kind === 'header') header = statement.header;
    else if (statement.kind === 'catalog') {
      catalog = statement.catalog;
      if (isByBatches(header!) !== (catalog.commit !== undefined)) {
        throw damagedAt(file, 0, 'its header and its catalog disagree on its format version');
      }
      if (header!.sinceSeq > 0 && !isIncrement(catalog)) {
        throw damagedAt(file, 0, 'its header and its catalog disagree on what it builds on');
      }
      if (isIncrement(catalog)) chain = new ChainCheck(header!, catalog, file, overlapSeq);
    } else if (statement.kind === 'commits' || statement.kind === 'batches') {
      if (!chain) throw damagedAt(file, 0, 'a full backup has no commits');
      if ((statement.kind === 'batches') !== isByBatches(header!)) {
        throw damagedAt(file, 0, 'its header has the wrong format version');
      }
      if (statement.kind === 'commits') chain.take(statement.commits);
      else chain.takeBatches(statement.batches);
    } else if (statement.kind === 'records' || statement.kind === 'rows') {
      if (chain) throw damagedAt(file, 0, 'an increment has nothing apart from its commits');
    } else trailer = statement.trailer;
  }
  chain?.end();
  return {
    file,
    header: header!,
    catalog: catalog!,
    trailer: trailer!,
    overlapChain: chain?.wanted,
  };
}

/** Checks that the files are a full backup and its increments, in order and without a gap. */
export function checkSequence(backups: readonly CheckedBackup[]): void {
  const [base, ...increments] = backups;
  if (!base) throw new UsageError('Name at least one backup file to restore from.');
  if (isIncrement(base.catalog)) {
    throw new UsageError(
      `${base.file} is an increment on a backup at commit ${base.header.sinceSeq}: ` +
        'name the full backup first, then its increments in order.',
    );
  }
  let before = base;
  for (const increment of increments) {
    const problem = whyNotAfter(before, increment);
    if (problem) throw new UsageError(`${increment.file} ${problem}.`);
    before = increment;
  }
}

/** Why the second backup does not continue the first, after its name. */
export function whyNotAfter(before: CheckedBackup, increment: CheckedBackup): string | undefined {
  const { header, catalog } = increment;
  if (!isIncrement(catalog)) return 'is a full backup: only the first file may be one';
  if (header.lineageId !== before.header.lineageId) {
    return `is of another database than ${before.file}`;
  }
  if (header.formatVersion !== before.header.formatVersion) {
    return `cannot continue ${before.file}, which an earlier Millrace made: take a full backup`;
  }
  const { overlapChain } = increment;
  if (header.sinceSeq !== before.header.seq && !overlapChain) {
    return (
      `builds on commit ${header.sinceSeq}, but ${before.file} ends at commit ${before.header.seq}: ` +
      'list the increments in order, without a gap'
    );
  }
  if (!sameHash(overlapChain ?? hashFromHex(catalog.since_chain ?? ''), before.header.chainHash)) {
    return `builds on another history than ${before.file} has`;
  }
  if (JSON.stringify(catalog.only) !== JSON.stringify(before.catalog.only)) {
    return `has other collections than ${before.file}`;
  }
  return undefined;
}

function isByBatches({ formatVersion }: BackupHeader): boolean {
  return formatVersion === batchesVersion;
}

/** An archive has an increment on commit 0, too: that of an empty database. */
function isIncrement(catalog: BackupCatalog): boolean {
  return catalog.since_chain !== null;
}
