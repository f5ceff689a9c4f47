import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { systemCode } from '@millrace/kit/errors';
import { addressFile } from './data-files.js';

/** Tells the command line where the daemon listens. Returns what takes it back. */
export function publishAddress(dataDir: string, url: string): () => void {
  const file = addressFile(dataDir);
  const fresh = `${file}.new`;
  const text = `${reachable(url)}\n`;
  writeFileSync(fresh, text, { mode: 0o600 });
  renameSync(fresh, file);
  return () => {
    try {
      // Another daemon may have started in the meantime and said where it is.
      if (readFileSync(file, 'utf8') === text) rmSync(file);
    } catch (error) {
      if (systemCode(error) !== 'ENOENT') throw error;
    }
  };
}

/** An address that stands for every interface cannot be dialled; loopback is one of them. */
function reachable(url: string): string {
  return url.replace('://0.0.0.0:', '://127.0.0.1:').replace('://[::]:', '://[::1]:');
}
