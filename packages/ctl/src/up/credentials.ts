import { agentsQueue } from '../agent/submitting.js';
import { lineOf } from '../base/places.js';
import {
  daemonTokenFile,
  daemonTokenSecret,
  databaseKeyFile,
  makeSecrets,
  makeToken,
  ownerTokenFile,
  secretIn,
  signingSecret,
} from './own-files.js';
import type { Environment, Settings } from './settings.js';

/** Credentials that the servers use with each other. */
export interface Credentials {
  /** Token to set up the queue with; undefined if the owner manages the tokens. */
  readonly ownerToken: string | undefined;
  /** Token with which the daemon completes tasks. */
  readonly daemonToken: string | undefined;
  /** Secret with which the queue signs tasks for agents. */
  readonly signingSecret: string | undefined;
  /** Whether the queue can send the daemon's token, or none is required. */
  readonly isLetIn: boolean;
  /** What could not be created, and what to do about it. */
  readonly notices: readonly string[];
}

/**
 * Creates missing credentials. Files named in the settings of the queue belong to its owner: they
 * are read and never written.
 */
export async function ensureCredentials(
  dataDir: string,
  settings: Settings,
  env: Environment,
): Promise<Credentials> {
  const tokens = await tokensOf(dataDir, settings, env);
  const secrets = await secretsOf(dataDir, settings);
  const notices = [...tokens.notices, ...secrets.notices];
  if (settings.hasDatabaseKeys && lineOf(databaseKeyFile(dataDir)) === undefined) {
    notices.push(
      'The database requires keys, and the daemon has none to show it with. Create one ' +
        `with \`ctl db keys create\` and put it into ${databaseKeyFile(dataDir)}.`,
    );
  }
  return { ...tokens, ...secrets, notices };
}

async function tokensOf(dataDir: string, { queue }: Settings, env: Environment) {
  if (queue.tokens_file !== undefined) {
    const token = env['MILLRACE_QUEUE_TOKEN'] || lineOf(ownerTokenFile(dataDir));
    const notices =
      token === undefined
        ? [
            'The queue has its own tokens file. Put an admin token into ' +
              `${ownerTokenFile(dataDir)}, so that the daemon can complete its tasks.`,
          ]
        : [];
    return { ownerToken: token, daemonToken: token, notices };
  }
  const owner = { file: ownerTokenFile(dataDir), principal: 'owner' };
  const daemon = { file: daemonTokenFile(dataDir), principal: 'daemon' };
  const ownerToken = await makeToken(dataDir, owner);
  return { ownerToken, daemonToken: await makeToken(dataDir, daemon), notices: [] };
}

async function secretsOf(dataDir: string, { queue, daemonToken }: Settings) {
  const { secrets_file: file } = queue;
  if (file === undefined) {
    const secret = await makeSecrets(dataDir, agentsQueue, daemonToken);
    return { signingSecret: secret, isLetIn: true, notices: [] };
  }
  const secret = secretIn(file, signingSecret);
  const isLetIn = daemonToken === undefined || secretIn(file, daemonTokenSecret) === daemonToken;
  const missing = [
    ...(secret === undefined ? [`${signingSecret} ("whsec_" and base64)`] : []),
    ...(isLetIn ? [] : [`${daemonTokenSecret} (the token of the daemon)`]),
  ];
  const notices =
    missing.length === 0
      ? []
      : [
          'The queue has its own secrets file, which lacks secrets for tasks of agents. ' +
            `Add, for the queue ${agentsQueue}: ${missing.join(' and ')}.`,
        ];
  return { signingSecret: secret, isLetIn, notices };
}
