import { agentsQueue } from '../agent/submitting.js';
import { lineOf } from '../daemon/places.js';
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

/** What the parts show one another. */
export interface Introductions {
  /** The token by which we set up the queue; undefined when its owner keeps the tokens. */
  readonly ownerToken: string | undefined;
  /** The token by which the daemon settles tasks. */
  readonly daemonToken: string | undefined;
  /** What the queue signs tasks for agents with. */
  readonly signingSecret: string | undefined;
  /** Whether the queue can show the daemon the token that it asks for, or it asks for none. */
  readonly isLetIn: boolean;
  /** What could not be made, and what to do about it. */
  readonly notices: readonly string[];
}

/**
 * Makes what is missing of it. Files of the queue's own that its settings name belong to its
 * owner: they are read, and never written.
 */
export async function introduce(
  dataDir: string,
  settings: Settings,
  env: Environment,
): Promise<Introductions> {
  const tokens = await tokensOf(dataDir, settings, env);
  const secrets = secretsOf(dataDir, settings);
  const notices = [...tokens.notices, ...secrets.notices];
  if (settings.hasDatabaseKeys && lineOf(databaseKeyFile(dataDir)) === undefined) {
    notices.push(
      `The database asks for keys, and the daemon has none to show it by: put one into ` +
        `${databaseKeyFile(dataDir)}; \`ctl db keys create\` makes one.`,
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
            `The queue has a tokens file of its own: put a token of an admin into ` +
              `${ownerTokenFile(dataDir)}, so that the daemon can settle its tasks.`,
          ]
        : [];
    return { ownerToken: token, daemonToken: token, notices };
  }
  const owner = { file: ownerTokenFile(dataDir), principal: 'owner' };
  const daemon = { file: daemonTokenFile(dataDir), principal: 'daemon' };
  const ownerToken = await makeToken(dataDir, owner);
  return { ownerToken, daemonToken: await makeToken(dataDir, daemon), notices: [] };
}

function secretsOf(dataDir: string, { queue, daemonToken }: Settings) {
  const { secrets_file: file } = queue;
  if (file === undefined) {
    const secret = makeSecrets(dataDir, agentsQueue, daemonToken);
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
          `The queue has a secrets file of its own, and tasks for agents need in it, open to the ` +
            `queue ${agentsQueue}: ${missing.join(' and ')}.`,
        ];
  return { signingSecret: secret, isLetIn, notices };
}
