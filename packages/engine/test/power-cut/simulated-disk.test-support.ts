import { basename, dirname, join } from 'node:path';
import type { Random } from '@millrace/kit/random';
import type { FileLayer, LogFile } from '../../src/storage/file/files.js';

const sectorBytes = 512;

interface Write {
  at: number;
  bytes: Buffer;
}

/** A file on the disk: what is durable, and the writes since then. */
interface Inode {
  durable: Buffer;
  pending: Write[];
}

type Entries = Map<string, Inode>;

/** Mistakes that a log or a disk can make. The harness must find each. */
export interface Faults {
  /** A sync returns and has done nothing. */
  ignoresSync?: boolean;
  /** The sync of a directory returns and has done nothing. */
  ignoresDirectorySync?: boolean;
  /** The header of a file that is used again stays the old one. */
  keepsOldHeader?: boolean;
}

/**
 * A disk in memory that knows which writes are durable. `afterPowerCut` gives the disk that a power
 * cut could leave: of what was not synced, any sectors of any writes may be there.
 */
export class SimulatedDisk implements FileLayer {
  #entries: Entries = new Map();
  #durableEntries: Entries = new Map();
  /** The directory after each change that was not synced yet. */
  #pendingEntries: Entries[] = [];
  /** Directories, and whether their names are durable. */
  readonly #directories = new Map<string, boolean>();
  readonly #spares = new Set<Inode>();
  /** Called before and after every operation that changes something. */
  onEvent: () => void = () => undefined;
  /** How long a sync takes. */
  beforeSync: () => Promise<void> = turn;
  /** Called before every write and sync with its name; it may throw. */
  onCall: (call: string) => void = () => undefined;

  constructor(private readonly faults: Faults = {}) {}

  afterPowerCut(random: Random): SimulatedDisk {
    const cut = new SimulatedDisk();
    const listings = [this.#durableEntries, ...this.#pendingEntries];
    const listing = listings[random.integer(0, listings.length - 1)]!;
    for (const [path, inode] of listing) {
      if (!this.#directories.get(dirname(path))) continue;
      const entry = { durable: survivors(inode, random), pending: [] };
      cut.#entries.set(path, entry);
      cut.#durableEntries.set(path, entry);
    }
    for (const path of listing.keys()) cut.#directories.set(dirname(path), true);
    return cut;
  }

  open(path: string, mode: 'read' | 'write' | 'create'): LogFile {
    let inode = this.#entries.get(path);
    if (mode === 'create') {
      inode = { durable: Buffer.alloc(0), pending: [] };
      this.#change((entries) => entries.set(path, inode!));
    }
    if (!inode) throw Object.assign(new Error(`ENOENT: ${path}`), { code: 'ENOENT' });
    return new SimulatedFile(this, inode, this.faults, this.#spares);
  }

  rename(from: string, to: string): void {
    this.onCall('rename');
    const inode = this.#entries.get(from)!;
    if (basename(from).startsWith('spare')) this.#spares.add(inode);
    this.#change((entries) => {
      entries.delete(from);
      entries.set(to, inode);
    });
  }

  remove(path: string): void {
    this.#change((entries) => entries.delete(path));
  }

  list(directory: string): string[] {
    const paths = [...this.#entries.keys()].filter((path) => dirname(path) === directory);
    return paths.map((path) => basename(path));
  }

  makeDirectory(directory: string): void {
    if (!this.#directories.has(directory)) this.#directories.set(directory, false);
  }

  removeDirectory(directory: string): void {
    for (const name of this.list(directory)) this.remove(join(directory, name));
  }

  async syncDirectory(directory: string): Promise<void> {
    this.onCall('syncDirectory');
    const entries = new Map(this.#entries);
    await turn();
    if (this.faults.ignoresDirectorySync) return;
    for (const child of this.#directories.keys()) {
      if (dirname(child) === directory) this.#directories.set(child, true);
    }
    if (!this.#directories.has(directory)) return;
    this.#durableEntries = entries;
    this.#pendingEntries = [];
    this.onEvent();
  }

  /** Moves every file to another directory, as a copy of the disk elsewhere has it. */
  moveTo(directory: string): void {
    const moved = (entries: Entries): Entries =>
      new Map(
        Array.from(entries, ([path, inode]) => [
          join(directory, basename(dirname(path)), basename(path)),
          inode,
        ]),
      );
    this.#entries = moved(this.#entries);
    this.#durableEntries = moved(this.#durableEntries);
    for (const path of this.#entries.keys()) this.#directories.set(dirname(path), true);
  }

  #change(apply: (entries: Entries) => void): void {
    this.onEvent();
    this.#entries = new Map(this.#entries);
    apply(this.#entries);
    this.#pendingEntries.push(this.#entries);
    this.onEvent();
  }
}

class SimulatedFile implements LogFile {
  constructor(
    private readonly disk: SimulatedDisk,
    private readonly inode: Inode,
    private readonly faults: Faults,
    private readonly spares: Set<Inode>,
  ) {}

  write(bytes: Buffer, at: number): Promise<void> | undefined {
    this.disk.onCall('write');
    this.disk.onEvent();
    const isOldHeader = this.faults.keepsOldHeader && at === 0 && this.spares.has(this.inode);
    if (!isOldHeader) this.inode.pending.push({ at, bytes: Buffer.from(bytes) });
    this.disk.onEvent();
    return bytes.length > 4_096 ? turn() : undefined;
  }

  async sync(): Promise<void> {
    this.disk.onCall('sync');
    const { inode } = this;
    const count = inode.pending.length;
    await this.disk.beforeSync();
    this.disk.onEvent();
    if (this.faults.ignoresSync) return;
    inode.durable = applied(inode.durable, inode.pending.splice(0, count));
    this.disk.onEvent();
  }

  read(target: Buffer, at: number): number {
    return this.#content().copy(target, 0, at);
  }

  size(): number {
    return this.#content().length;
  }

  close(): void {}

  #content(): Buffer {
    return applied(this.inode.durable, this.inode.pending);
  }
}

function applied(base: Buffer, writes: readonly Write[]): Buffer {
  if (writes.length === 0) return base;
  const size = Math.max(base.length, ...writes.map(({ at, bytes }) => at + bytes.length));
  const content = Buffer.alloc(size);
  base.copy(content);
  for (const { at, bytes } of writes) bytes.copy(content, at);
  return content;
}

/** What is left of a file: each sector of each unsynced write is there or is not. */
function survivors({ durable, pending }: Inode, random: Random): Buffer {
  const pieces: Write[] = [];
  const keeps = random.next();
  for (const { at, bytes } of pending) {
    for (let from = at; from < at + bytes.length;) {
      const to = Math.min(at + bytes.length, (Math.floor(from / sectorBytes) + 1) * sectorBytes);
      if (random.next() < keeps) {
        pieces.push({ at: from, bytes: bytes.subarray(from - at, to - at) });
      }
      from = to;
    }
  }
  return applied(durable, pieces);
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
