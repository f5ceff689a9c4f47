import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';

type Environment = Readonly<Record<string, string | undefined>>;

/** The name of the program as the user started it: `millrace` or `ctl`. */
export function programName(script = process.argv[1] ?? ''): string {
  return basename(script).startsWith('millrace') ? 'millrace' : 'ctl';
}

/** The command as the user types it: in a clone and with npx it is not on the PATH. */
export function commandName(
  script = process.argv[1] ?? '',
  env: Environment = process.env,
  directory = '.',
): string {
  const typed = typedName(script, env);
  return typed === 'ctl' && existsSync(join(directory, 'bin', 'ctl')) ? 'bin/ctl' : typed;
}

/**
 * Text of ours with each `ctl ...` as the user types it. Never for data of users. A clone keeps
 * `ctl`, as its documentation does.
 */
export function asTyped(
  text: string,
  script = process.argv[1] ?? '',
  env: Environment = process.env,
): string {
  const name = typedName(script, env);
  if (name === 'ctl') return text;
  return text.replace(/(^\s*|[`'(]|[:;|] )ctl (?=[a-z<-])/gm, `$1${name} `);
}

/** Programs that npx runs may start us with its environment: only its own links count. */
function typedName(script: string, env: Environment): string {
  const name = programName(script);
  const isLink = /node_modules.\.bin.(?:millrace|ctl)$/.test(script);
  return isLink && env['npm_command'] === 'exec' ? `npx ${name}` : name;
}
