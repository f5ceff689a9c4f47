import { readFileSync, rmSync } from 'node:fs';
import { ifThere } from '@millrace/kit/errors';
import { writePrivateFile } from '@millrace/kit/private-files';

/** Publishes a text for `ctl` while this daemon runs. Returns a function that removes it. */
export function publishText(file: string, text: string): () => void {
  writePrivateFile(file, text);
  return () => {
    // Another daemon may have started meanwhile and written its own.
    if (ifThere(() => readFileSync(file, 'utf8')) === text) rmSync(file, { force: true });
  };
}
