import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { systemCode } from '@millrace/kit/errors';

/** Publishes a text for `ctl` while this daemon runs. Returns a function that removes it. */
export function publishText(file: string, text: string): () => void {
  const fresh = `${file}.new`;
  writeFileSync(fresh, text, { mode: 0o600 });
  renameSync(fresh, file);
  return () => {
    try {
      // Another daemon may have started meanwhile and written its own.
      if (readFileSync(file, 'utf8') === text) rmSync(file);
    } catch (error) {
      if (systemCode(error) !== 'ENOENT') throw error;
    }
  };
}
