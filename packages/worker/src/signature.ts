const prefix = 'whsec_';
/** How far the clocks of queue and handler may differ. */
const toleranceSeconds = 300;

/** The keys of `whsec_` secrets. */
export function importKeys(secrets: readonly string[]): Promise<CryptoKey[]> {
  return Promise.all(
    secrets.map((secret) => {
      if (!secret.startsWith(prefix)) {
        throw new TypeError('A signing secret is "whsec_" followed by base64');
      }
      const bytes = Uint8Array.from(atob(secret.slice(prefix.length)), (c) => c.charCodeAt(0));
      const algorithm = { name: 'HMAC', hash: 'SHA-256' };
      return crypto.subtle.importKey('raw', bytes, algorithm, false, ['verify']);
    }),
  );
}

/** Whether the request was signed by one of the keys (Standard Webhooks), not long ago. */
export async function isSigned(
  headers: Headers,
  body: Uint8Array,
  keys: readonly CryptoKey[],
): Promise<boolean> {
  const id = headers.get('webhook-id');
  const timestamp = headers.get('webhook-timestamp');
  const signatures = headers.get('webhook-signature');
  if (!id || !timestamp || !signatures || !/^\d{1,12}$/.test(timestamp)) return false;
  if (Math.abs(Date.now() / 1000 - Number(timestamp)) > toleranceSeconds) return false;
  const head = new TextEncoder().encode(`${id}.${timestamp}.`);
  const signed = new Uint8Array(head.length + body.length);
  signed.set(head);
  signed.set(body, head.length);
  for (const signature of signatures.split(' ')) {
    const digest = digestOf(signature);
    if (!digest) continue;
    for (const key of keys) {
      if (await crypto.subtle.verify('HMAC', key, digest, signed)) return true;
    }
  }
  return false;
}

function digestOf(signature: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^v1,[A-Za-z0-9+/]{43}=$/.test(signature)) return undefined;
  return Uint8Array.from(atob(signature.slice(3)), (character) => character.charCodeAt(0));
}
