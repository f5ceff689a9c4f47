import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, extname, join } from 'node:path';
import { gzipSync } from 'node:zlib';

/** A file of the dashboard, plain and gzipped. */
export interface SiteFile {
  readonly contentType: string;
  readonly bytes: Buffer;
  readonly gzipped: Buffer;
}

const contentTypes: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml; charset=utf-8',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
};

/**
 * The built dashboard, read from disk on demand. Assets have content hashes in their names and are
 * cached; the page is read on every request, because it names the assets of the current build.
 */
export class DashboardSite {
  readonly #folder: string;
  readonly #assets = new Map<string, SiteFile>();

  constructor(folder: string = builtSite()) {
    this.#folder = folder;
  }

  /** Undefined when the dashboard is not built. */
  page(): SiteFile | undefined {
    return read(join(this.#folder, 'index.html'), 'text/html; charset=utf-8');
  }

  /** Undefined when there is no such file. `name` is a file name, not a path. */
  asset(name: string): SiteFile | undefined {
    const known = this.#assets.get(name);
    if (known) return known;
    const contentType = contentTypes[extname(name)] ?? 'application/octet-stream';
    const file = read(join(this.#folder, 'assets', name), contentType);
    if (file) this.#assets.set(name, file);
    return file;
  }
}

function builtSite(): string {
  const { resolve } = createRequire(import.meta.url);
  return join(dirname(resolve('@millrace/dashboard/package.json')), 'dist', 'site');
}

function read(path: string, contentType: string): SiteFile | undefined {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EISDIR') return undefined;
    throw error;
  }
  return { contentType, bytes, gzipped: gzipSync(bytes) };
}
