import { plain, painter, wantsColour, type Paint } from './render/paint.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** One of the two places a command writes to. */
interface Outlet {
  write(text: string): void;
  readonly paint: Paint;
  readonly colour: boolean;
  /** Columns to fit, or Infinity where nobody looks at a screen: pipes get whole lines. */
  readonly columns: number;
}

/** What a command knows of the place it was called from. */
export interface Terminal {
  readonly out: Outlet;
  readonly err: Outlet;
  readonly env: Environment;
  /** `--json`: stdout carries JSON alone. */
  readonly json: boolean;
  /** `MILLRACE_DEBUG=1`: errors come with their stack. */
  readonly debug: boolean;
}

interface Stream {
  write(text: string): unknown;
  isTTY?: boolean;
  columns?: number;
}

export interface Outside {
  stdout: Stream;
  stderr: Stream;
  env: Environment;
}

export function openTerminal(args: readonly string[], outside: Outside): Terminal {
  const { env } = outside;
  const end = args.indexOf('--');
  return {
    out: openOutlet(outside.stdout, env),
    err: openOutlet(outside.stderr, env),
    env,
    // Read here and not from the parser: errors of the parser itself must know it.
    json: (end < 0 ? args : args.slice(0, end)).includes('--json'),
    debug: env['MILLRACE_DEBUG'] === '1',
  };
}

function openOutlet(stream: Stream, env: Environment): Outlet {
  const colour = wantsColour(env, stream.isTTY === true);
  return {
    write: (text) => void stream.write(text),
    colour,
    paint: colour ? painter : plain,
    columns: columnsOf(stream, env),
  };
}

function columnsOf(stream: Stream, env: Environment): number {
  const asked = Number(env['COLUMNS']);
  if (Number.isInteger(asked) && asked > 0) return asked;
  // A terminal that does not know its size says 0.
  return stream.isTTY === true ? stream.columns || 80 : Infinity;
}
