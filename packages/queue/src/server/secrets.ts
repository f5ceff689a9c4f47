import { parseYamlText } from '@millrace/kit/config';
import { UsageError } from '@millrace/kit/errors';
import { globMatches } from '@millrace/kit/tokens';
import { z } from 'zod';

/** Secrets for callbacks, each available to the queues that match its globs. */
export interface Secrets {
  /** Undefined also for a secret of other queues, so that its existence is not revealed. */
  find(name: string, queue: string): string | undefined;
}

interface Secret {
  value: string;
  queues: readonly string[];
}

export class SecretSet implements Secrets {
  readonly #byName: ReadonlyMap<string, Secret>;

  constructor(secrets: ReadonlyMap<string, Secret>) {
    this.#byName = secrets;
  }

  get size(): number {
    return this.#byName.size;
  }

  find(name: string, queue: string): string | undefined {
    const secret = this.#byName.get(name);
    return secret?.queues.some((glob) => globMatches(glob, queue)) ? secret.value : undefined;
  }
}

export const noSecrets = new SecretSet(new Map());

const textMatching = (fits: (given: string) => boolean, error: string) =>
  z.string().refine(fits, { error });

const schema = z.strictObject({
  secrets: z.array(
    z.strictObject({
      name: textMatching(
        (name) => /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(name),
        'must be 1 to 128 letters, digits, dots, dashes or underscores',
      ),
      // Each value is used in a header or a signature.
      value: textMatching(
        (value) => /^[!-~](?:[ -~]{0,8190}[!-~])?$/.test(value),
        'must be 1 to 8192 visible ASCII characters without a space at either end',
      ),
      queues: z
        .array(
          textMatching(
            (glob) => /^[a-z0-9*][a-z0-9._*-]{0,127}$/.test(glob),
            'must be a queue name, in which * stands for any characters: payments.*',
          ),
        )
        .min(1),
    }),
  ),
});

/**
 * Parses `secrets: [{name, value, queues: ["payments.*"]}]`. Errors name file and line, never a
 * value.
 */
export function parseSecrets(yaml: string, file: string): SecretSet {
  const parsed = parseYamlText(file, yaml, schema, { secret: true });
  const secrets = new Map<string, Secret>();
  for (const [index, { name, value, queues }] of parsed.value.secrets.entries()) {
    if (secrets.has(name)) {
      const place = parsed.at('secrets', index, 'name');
      throw new UsageError(`${place}: secrets[${index}].name is used twice: ${name}`);
    }
    secrets.set(name, { value, queues });
  }
  return new SecretSet(secrets);
}
