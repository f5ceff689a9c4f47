import { UsageError } from '@millrace/kit/errors';

const providers = ['claude', 'cursor', 'gemini'];

/** Expands `--provider-url claude=http://...` to the flags of single providers. */
export function providerFlags(given: readonly string[]): Record<string, string> {
  const flags: Record<string, string> = {};
  for (const text of given) {
    const [, name, url] = /^(?:([a-z-]+)=)?(https?:\/\/.+)$/.exec(text) ?? [];
    if (url === undefined || (name !== undefined && !providers.includes(name))) {
      throw new UsageError(
        `--provider-url must be a URL, or one of ${providers.join(', ')} and a URL such as ` +
          `claude=http://127.0.0.1:9000/usage, not "${text}".`,
      );
    }
    for (const each of name === undefined ? providers : [name]) {
      flags[`providers-${each}-url`] = url;
    }
  }
  return flags;
}
