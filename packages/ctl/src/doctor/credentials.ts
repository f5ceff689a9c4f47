import { join } from 'node:path';
import { messageOf, UsageError } from '@millrace/kit/errors';
import { readableByOthers } from '@millrace/kit/private-files';
import type { Check } from './check.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** Files with tokens, keys and secrets that Millrace creates in its data directory. */
const ownFiles = [
  'token',
  'token-read-only',
  'daemon.token',
  'queue.token',
  'queue-daemon.token',
  'queue-tokens.yaml',
  'queue-secrets.yaml',
  'db.key',
  'db/db.key',
];

/** Checks that other users cannot read files with tokens, keys or secrets. */
export function credentialsCheck(dataDir: string, env: Environment): Check {
  return {
    name: 'credentials',
    async run() {
      try {
        const own = ownFiles.map((name) => join(dataDir, name));
        const exposed = [...own, ...(await configuredFiles(dataDir, env))].filter(
          (file) => readableByOthers(file) !== undefined,
        );
        if (exposed.length === 0) {
          return { status: 'ok', finding: 'no other user can read tokens, keys or secrets' };
        }
        const finding = `other users can read ${exposed.join(', ')}`;
        return { status: 'warn', finding, advice: `Run: chmod 600 ${exposed.join(' ')}` };
      } catch (error) {
        if (!(error instanceof UsageError)) throw error;
        const finding = `the settings cannot be read: ${messageOf(error)}`;
        return { status: 'warn', finding, advice: 'Fix the file and run doctor again.' };
      }
    },
  };
}

/** Files named in the settings of the queue and the database. */
async function configuredFiles(dataDir: string, environment: Environment): Promise<string[]> {
  const [{ loadConfig }, { queueConfig }, { databaseConfig }] = await Promise.all([
    import('@millrace/kit/config'),
    import('@millrace/queue/config'),
    import('@millrace/db/config'),
  ]);
  const { values: queue } = loadConfig(queueConfig, {
    environment,
    defaultFile: join(dataDir, 'queue.yaml'),
  });
  const { values: db } = loadConfig(databaseConfig, {
    environment,
    defaultFile: join(dataDir, 'db.yaml'),
  });
  return [queue.tokens_file, queue.secrets_file, db.keys_file, db.tls_key].filter(
    (file) => file !== undefined,
  );
}
