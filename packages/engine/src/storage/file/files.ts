import {
  closeSync,
  existsSync,
  fdatasync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  write,
  writeSync,
} from 'node:fs';
import { open } from 'node:fs/promises';

/** An open file of the log. */
export interface LogFile {
  /** Writes all bytes. Small writes finish at once and return nothing to wait for. */
  write(bytes: Buffer, at: number): Promise<void> | undefined;
  /** Makes everything written so far durable. */
  sync(): Promise<void>;
  /** Fills `target` from offset `at`; returns the number of bytes read. */
  read(target: Buffer, at: number): number;
  size(): number;
  close(): void;
}

/**
 * The file operations of the log. Tests replace them: to fail at any call, or to record every write
 * and sync and build the disk that a power cut would leave.
 */
export interface FileLayer {
  open(path: string, mode: 'read' | 'write' | 'create'): LogFile;
  rename(from: string, to: string): void;
  remove(path: string): void;
  list(directory: string): string[];
  makeDirectory(directory: string): void;
  removeDirectory(directory: string): void;
  syncDirectory(directory: string): Promise<void>;
}

/** A larger copy into the page cache would block the event loop for too long. */
const maxSyncWriteBytes = 128 * 1024;
const flags = { read: 'r', write: 'r+', create: 'w+' } as const;

export const nodeFiles: FileLayer = {
  open: (path, mode) => new NodeFile(openSync(path, flags[mode], 0o600)),
  rename: renameSync,
  remove: (path) => rmSync(path, { force: true }),
  list: (directory) => (existsSync(directory) ? readdirSync(directory) : []),
  makeDirectory: (directory) => void mkdirSync(directory, { recursive: true, mode: 0o700 }),
  removeDirectory: (directory) => rmSync(directory, { recursive: true, force: true }),
  async syncDirectory(directory) {
    const handle = await open(directory, 'r');
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  },
};

class NodeFile implements LogFile {
  constructor(private readonly descriptor: number) {}

  write(bytes: Buffer, at: number): Promise<void> | undefined {
    if (bytes.length > maxSyncWriteBytes) return this.#writeInPool(bytes, at);
    for (let done = 0; done < bytes.length;) {
      done += writeSync(this.descriptor, bytes, done, bytes.length - done, at + done);
    }
    return undefined;
  }

  sync(): Promise<void> {
    return new Promise((resolve, reject) => {
      fdatasync(this.descriptor, (error) => (error ? reject(error) : resolve()));
    });
  }

  read(target: Buffer, at: number): number {
    let done = 0;
    while (done < target.length) {
      const count = readSync(this.descriptor, target, done, target.length - done, at + done);
      if (count === 0) break;
      done += count;
    }
    return done;
  }

  size(): number {
    return fstatSync(this.descriptor).size;
  }

  close(): void {
    closeSync(this.descriptor);
  }

  async #writeInPool(bytes: Buffer, at: number): Promise<void> {
    for (let done = 0; done < bytes.length;) {
      done += await new Promise<number>((resolve, reject) => {
        const left = bytes.length - done;
        write(this.descriptor, bytes, done, left, at + done, (error, count) =>
          error ? reject(error) : resolve(count),
        );
      });
    }
  }
}
