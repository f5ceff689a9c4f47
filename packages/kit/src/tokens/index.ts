/**
 * Bearer tokens, stored as hashes, with their holders and grants, and the token file, which is
 * reloaded when it changes.
 */
export { Grants, type Grant, type RoleLevels } from './grants.js';
export { globMatches } from './glob.js';
export { bearerToken, hashSecret, newToken, sameHash, type NewToken } from './secret.js';
export {
  parseTokens,
  tokenEntryYaml,
  watchTokens,
  TokenSet,
  type TokenEntry,
  type TokenHolder,
  type TokenLookup,
  type WatchTokensOptions,
} from './token-file.js';
export { watchFile, type WatchedFile, type WatchFileOptions } from './watched-file.js';
