import { Readable } from 'node:stream';
import { safeForScreen } from './render/text.js';
import { plain, painter, wantsColour, type Paint } from './render/paint.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** One of the two places a command writes to. */
export interface Outlet {
  /** Text. On a terminal, control characters but line breaks and colours are escaped. */
  write(text: string): void;
  /** Bytes or a control sequence of our own, as they are. */
  writeRaw(bytes: string | Uint8Array): void;
  readonly paint: Paint;
  readonly colour: boolean;
  /** Columns to fit, or Infinity where nobody looks at a screen: pipes get whole lines. */
  readonly columns: number;
  /** Somebody is looking: what moves, such as progress, may be shown. */
  readonly isScreen: boolean;
  /** The stream itself, for readline. */
  readonly stream: Stream;
  /** Resolves when the reader has caught up: for those who write more than fits in memory. */
  drained(): Promise<void>;
}

/** What a command knows of the place it was called from. */
export interface Terminal {
  readonly out: Outlet;
  readonly err: Outlet;
  readonly in: Inlet;
  readonly env: Environment;
  /** `--json`: stdout carries JSON alone. */
  readonly json: boolean;
  /** `MILLRACE_DEBUG=1`: errors come with their stack. */
  readonly debug: boolean;
}

/** Where a command reads from when it is told `-`, or nothing. */
export interface Inlet {
  /** What is read: nothing where there is no stdin. */
  readonly stream: NodeJS.ReadableStream;
  /** Somebody is typing. */
  readonly isScreen: boolean;
}

export interface Stream {
  write(bytes: string | Uint8Array): unknown;
  isTTY?: boolean;
  columns?: number;
  writableNeedDrain?: boolean;
  once?(event: 'drain' | 'close', listener: () => void): unknown;
}

export interface Outside {
  stdout: Stream;
  stderr: Stream;
  stdin?: NodeJS.ReadableStream & { isTTY?: boolean };
  env: Environment;
}

export function openTerminal(args: readonly string[], outside: Outside): Terminal {
  const { env } = outside;
  const end = args.indexOf('--');
  return {
    out: openOutlet(outside.stdout, env),
    err: openOutlet(outside.stderr, env),
    in: {
      // Asked for late: to look at stdin is to begin reading it.
      get stream() {
        return outside.stdin ?? Readable.from([]);
      },
      get isScreen() {
        return outside.stdin?.isTTY === true;
      },
    },
    env,
    // Read here and not from the parser: errors of the parser itself must know it.
    json: (end < 0 ? args : args.slice(0, end)).includes('--json'),
    debug: env['MILLRACE_DEBUG'] === '1',
  };
}

function openOutlet(stream: Stream, env: Environment): Outlet {
  const isScreen = stream.isTTY === true;
  const colour = wantsColour(env, isScreen);
  return {
    write: (text) => void stream.write(isScreen ? safeForScreen(text) : text),
    writeRaw: (bytes) => void stream.write(bytes),
    colour,
    paint: colour ? painter : plain,
    columns: columnsOf(stream, env),
    isScreen,
    stream,
    drained: () => drained(stream),
  };
}

async function drained(stream: Stream): Promise<void> {
  if (stream.writableNeedDrain !== true || !stream.once) return;
  await new Promise<void>((resolve) => {
    stream.once?.('drain', resolve);
    // A reader that goes away must not leave us waiting.
    stream.once?.('close', resolve);
  });
}

function columnsOf(stream: Stream, env: Environment): number {
  const asked = Number(env['COLUMNS']);
  if (Number.isInteger(asked) && asked > 0) return asked;
  // A terminal that does not know its size says 0.
  return stream.isTTY === true ? stream.columns || 80 : Infinity;
}
