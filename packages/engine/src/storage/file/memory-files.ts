import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FileLayer, LogFile } from './files.js';

/** The name that opens a database in memory. */
export const memoryName = ':memory:';

const linuxMemory = '/dev/shm';

/**
 * An own directory for a database in memory: in a file system in memory where there is one. It is
 * removed by the function that is returned, and at the end of the process.
 */
export function temporaryDirectory(): { directory: string; remove: () => void } {
  const parent = statSync(linuxMemory, { throwIfNoEntry: false })?.isDirectory()
    ? linuxMemory
    : tmpdir();
  const directory = mkdtempSync(join(parent, 'millrace-'));
  const clear = () => rmSync(directory, { recursive: true, force: true });
  process.once('exit', clear);
  const remove = () => {
    process.off('exit', clear);
    clear();
  };
  return { directory, remove };
}

/** Removes the names of open files, which live on without them; Windows cannot do that. */
export function unlinkFiles(directory: string): void {
  if (process.platform === 'win32') return;
  for (const name of readdirSync(directory)) rmSync(join(directory, name), { recursive: true });
}

/** The files of a log in memory. */
export function memoryFiles(): FileLayer {
  const files = new Map<string, MemoryFile>();
  return {
    open(path, mode) {
      if (mode === 'create') files.set(path, new MemoryFile());
      const file = files.get(path);
      if (file) return file;
      throw Object.assign(new Error(`ENOENT: no such file, open '${path}'`), { code: 'ENOENT' });
    },
    rename(from, to) {
      files.set(to, files.get(from)!);
      files.delete(from);
    },
    remove: (path) => void files.delete(path),
    list: (directory) =>
      [...files.keys()]
        .filter((path) => path.startsWith(join(directory, '/')))
        .map((path) => path.slice(directory.length + 1)),
    makeDirectory: () => undefined,
    removeDirectory(directory) {
      for (const path of files.keys())
        if (path.startsWith(join(directory, '/'))) files.delete(path);
    },
    syncDirectory: () => Promise.resolve(),
  };
}

class MemoryFile implements LogFile {
  #bytes = Buffer.alloc(0);
  #size = 0;

  write(bytes: Buffer, at: number): undefined {
    const end = at + bytes.length;
    if (end > this.#bytes.length) {
      const larger = Buffer.alloc(Math.max(end, 2 * this.#bytes.length, 64 * 1024));
      this.#bytes.copy(larger, 0, 0, this.#size);
      this.#bytes = larger;
    }
    bytes.copy(this.#bytes, at);
    this.#size = Math.max(this.#size, end);
  }

  sync(): Promise<void> {
    return Promise.resolve();
  }

  read(target: Buffer, at: number): number {
    return at >= this.#size ? 0 : this.#bytes.copy(target, 0, at, this.#size);
  }

  size(): number {
    return this.#size;
  }

  close(): void {}
}
