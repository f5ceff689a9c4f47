import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { systemCode } from '@millrace/kit/errors';

/** Leaves a text for the command line while this daemon runs. Returns what takes it back. */
export function publishText(file: string, text: string): () => void {
  const fresh = `${file}.new`;
  writeFileSync(fresh, text, { mode: 0o600 });
  renameSync(fresh, file);
  return () => {
    try {
      // Another daemon may have started in the meantime and left its own.
      if (readFileSync(file, 'utf8') === text) rmSync(file);
    } catch (error) {
      if (systemCode(error) !== 'ENOENT') throw error;
    }
  };
}
