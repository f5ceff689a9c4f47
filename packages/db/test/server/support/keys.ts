import { createHash } from 'node:crypto';

export interface KeyEntry {
  id: string;
  secret: string;
  scopes: [collections: string, access: 'read' | 'write' | 'admin'][];
  expiresAt?: string;
}

/** A keys file, written as in the documentation. */
export function keysYaml(keys: readonly KeyEntry[]): string {
  const entries = keys.map(({ id, secret, scopes, expiresAt }) => {
    const sha = createHash('sha256').update(secret).digest('hex');
    const list = scopes.map(
      ([collections, access]) => `      - {collections: "${collections}", access: ${access}}`,
    );
    const expiry = expiresAt === undefined ? '' : `\n    expires_at: ${expiresAt}`;
    const scopeText = list.length === 0 ? ' []' : `\n${list.join('\n')}`;
    return `  - id: ${id}\n    secret_sha256: ${sha}\n    scopes:${scopeText}${expiry}`;
  });
  return entries.length === 0 ? 'keys: []\n' : `keys:\n${entries.join('\n')}\n`;
}
