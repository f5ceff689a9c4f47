import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { dataDirectory } from '@millrace/kit/config';
import { newToken, tokenEntryYaml } from '@millrace/kit/tokens';
import type { World } from '@millrace/kit/world';

/**
 * The tokens file of a queue that nobody has set up: on the first run with one token, for
 * everything, whose clear text lies beside it for its owner alone. Answers the file.
 */
export function firstRun(dataDir: string, { random, log }: World): string {
  const directory = dataDirectory(dataDir);
  const file = join(directory, 'queue-tokens.yaml');
  if (existsSync(file)) return file;
  const { id, token, sha256 } = newToken(random);
  const entry = tokenEntryYaml({
    id,
    principal: 'owner',
    token_sha256: sha256,
    grants: [{ queue: '*', role: 'admin' }],
  });
  const tokenFile = join(directory, 'queue.token');
  writeFileSync(tokenFile, `${token}\n`, { mode: 0o600 });
  // The entry comes last: a token without one is made anew, an entry without one is of no use.
  writeFileSync(file, `tokens:\n${entry}\n`, { mode: 0o600 });
  log.info({ file, token_file: tokenFile }, 'made a token for the owner of the queue');
  return file;
}
