import { Readable } from 'node:stream';
import { outputArgs, type OutputFormat } from './output-args.js';
import type { Converter } from '../render/output-format.js';
import { safeForScreen } from '../render/text.js';
import { plain, painter, wantsColour, type Paint } from '../render/paint.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** An output stream of a command: stdout or stderr. */
export interface Outlet {
  /** Writes text. On a terminal, escapes control characters except line breaks and colours. */
  write(text: string): void;
  /** Writes bytes or our own control sequences unchanged. */
  writeRaw(bytes: string | Uint8Array): void;
  readonly paint: Paint;
  readonly colour: boolean;
  /** Width to fit, or Infinity for a pipe, which gets whole lines. */
  readonly columns: number;
  /** `--utc`: show times as RFC 3339 times instead of ages. */
  readonly utc?: boolean;
  /** Whether it is a terminal, where progress may be shown. */
  readonly isScreen: boolean;
  /** The underlying stream, for readline. */
  readonly stream: Stream;
  /** Collects what `run` writes, to show it in another way. */
  capture(run: () => Promise<void>): Promise<string>;
  /** Resolves when the stream can take more, for output larger than memory. */
  drained(): Promise<void>;
}

type Shown = string | ((out: Outlet) => string);

/** Streams, environment and global flags of a command. */
export interface Terminal {
  readonly out: Outlet;
  readonly err: Outlet;
  readonly in: Inlet;
  readonly env: Environment;
  /** `--json` or `-o`: commands write only JSON to stdout; `-o yaml` and `-o name` convert it. */
  readonly json: boolean;
  readonly format: OutputFormat;
  /** The program for long output; undefined for none. */
  readonly pager: string | undefined;
  /** `MILLRACE_DEBUG=1`: errors include a stack trace. */
  readonly debug: boolean;
  /** Writes the result of a command: as JSON with --json, else as text. */
  show(result: unknown, text: Shown): void;
  /** The same, with the JSON on one line. */
  showLine(result: unknown, text: Shown): void;
}

/** Input of a command for `-` or no argument. */
export interface Inlet {
  /** stdin, or an empty stream if there is none. */
  readonly stream: NodeJS.ReadableStream;
  /** Whether it is a terminal. */
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

export function openTerminal(
  args: readonly string[],
  outside: Outside,
  converter?: Pick<Converter, 'push'>,
): Terminal {
  const { env } = outside;
  // Read here because errors of the parser itself depend on it.
  const { format, utc } = outputArgs(args);
  const out = openOutlet(outside.stdout, env, utc);
  return {
    out: converter ? { ...out, write: (text) => out.write(converter.push(text)) } : out,
    err: openOutlet(outside.stderr, env, utc),
    in: {
      // A getter, because reading process.stdin starts reading from it.
      get stream() {
        return outside.stdin ?? Readable.from([]);
      },
      get isScreen() {
        return outside.stdin?.isTTY === true;
      },
    },
    env,
    json: format !== 'table',
    format,
    pager: args.includes('--no-pager') ? undefined : pagerOf(env),
    debug: env['MILLRACE_DEBUG'] === '1',
    show(result, text) {
      write(this, JSON.stringify(result, null, 2), text);
    },
    showLine(result, text) {
      write(this, JSON.stringify(result), text);
    },
  };
}

function write({ out, json }: Terminal, result: string, text: Shown): void {
  if (json) out.write(`${result}\n`);
  else out.write(typeof text === 'string' ? text : text(out));
}

function openOutlet(stream: Stream, env: Environment, utc: boolean): Outlet {
  const isScreen = stream.isTTY === true;
  const colour = wantsColour(env, isScreen);
  let collected: string[] | undefined;
  return {
    write(text) {
      const safe = isScreen ? safeForScreen(text) : text;
      if (collected) collected.push(safe);
      else stream.write(safe);
    },
    async capture(run) {
      const pieces: string[] = [];
      collected = pieces;
      try {
        await run();
      } finally {
        collected = undefined;
      }
      return pieces.join('');
    },
    writeRaw: (bytes) => void stream.write(bytes),
    colour,
    paint: colour ? painter : plain,
    columns: columnsOf(stream, env),
    utc,
    isScreen,
    stream,
    drained: () => drained(stream),
  };
}

/** `PAGER=` and `PAGER=cat` turn it off. */
function pagerOf({ PAGER: pager = 'less' }: Environment): string | undefined {
  return pager.trim() === '' || pager.trim() === 'cat' ? undefined : pager;
}

async function drained(stream: Stream): Promise<void> {
  if (stream.writableNeedDrain !== true || !stream.once) return;
  await new Promise<void>((resolve) => {
    stream.once?.('drain', resolve);
    // Do not wait for a reader that closed the pipe.
    stream.once?.('close', resolve);
  });
}

function columnsOf(stream: Stream, env: Environment): number {
  const configured = Number(env['COLUMNS']);
  if (Number.isInteger(configured) && configured > 0) return configured;
  // A terminal of unknown size reports 0.
  return stream.isTTY === true ? stream.columns || 80 : Infinity;
}
