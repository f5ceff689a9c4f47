import type { StdioOptions } from 'node:child_process';
import { rmSync, closeSync, mkdirSync, openSync, readdirSync, createReadStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { systemClock } from '@millrace/kit/clock';
import { messageOf } from '@millrace/kit/errors';
import { systemRandom } from '@millrace/kit/random';
import { humanDuration, formatTimestamp } from '@millrace/kit/units';
import { programName } from '../base/command-name.js';
import type { Tools } from '../base/tools.js';
import { Digester } from './digest.js';
import { NotStarted, runProgram, type Ending } from './program.js';
import { watchProgress } from './progress.js';
import { repositoryOf } from './repository.js';
import { checkRules, type Rules } from './rules.js';
import { join } from 'node:path';
import { StringDecoder } from 'node:string_decoder';
import { cut, printable } from '../render/text.js';

export interface ShortenedRun {
  readonly feature: 'check' | 'git';
  readonly command: readonly string[];
  readonly rules: Rules;
  /** Data directory of the daemon, from --data. */
  readonly data?: string | undefined;
  /** Environment of the command (default: ours). */
  readonly env?: NodeJS.ProcessEnv | undefined;
  /** Show progress on a terminal. */
  readonly showsProgress: boolean;
}

interface Settings {
  /** Data directory with the logs and the savings ledger. */
  readonly dataDir: string;
  readonly savings: boolean;
  readonly savingsSamples: boolean;
}

export async function runCheck(
  command: string[],
  { data }: { data?: string },
  tools: Tools,
): Promise<void> {
  const run = { feature: 'check', command, rules: checkRules, showsProgress: true } as const;
  await runShortened({ ...run, data }, tools);
}

/** Runs a command, prints its shortened output and records the saving. */
export async function runShortened(run: ShortenedRun, tools: Tools): Promise<void> {
  try {
    const settings = await settingsOf(run, tools);
    const log = settings && openLog(run, settings, tools);
    if (!settings || !log) return await runPlainly(run, tools);
    await runLogged(run, settings, log, tools);
  } catch (error) {
    if (!(error instanceof NotStarted)) throw error;
    warn(tools, error.message, error.code);
    tools.exitWith(error.exitCode);
  }
}

async function runLogged(
  run: ShortenedRun,
  settings: Settings,
  log: LogFile,
  tools: Tools,
): Promise<void> {
  const { command, env, feature } = run;
  const startedAt = systemClock.monotonic();
  const isOnTerminal = tools.terminal.in.isScreen;
  const progress = run.showsProgress ? watchProgress(command, log.path, tools) : undefined;
  let ending: Ending;
  try {
    const stdio: StdioOptions = ['inherit', log.fd, log.fd];
    ending = await runProgram({ command, stdio, env, isOnTerminal });
  } catch (error) {
    rmSync(log.path, { force: true });
    throw error;
  } finally {
    progress?.stop();
    log.close();
  }
  tools.exitWith(ending.exitCode);
  const elapsedMs = systemClock.monotonic() - startedAt;
  const short = await shortForm(run.rules, ending, { path: log.path, elapsedMs });
  // Before printing: a reader that closes the pipe ends us.
  const record = settings.savings ? await recordOf(feature, short, settings, tools) : undefined;
  const { json, out } = tools.terminal;
  if (!json) {
    bytesOut(out.stream).write(short.bytes);
    // The output of a failed command explains the failure, unless it is empty or was cut off.
    const isSilent = short.rawBytes === 0;
    if (ending.exitCode === 0 || (!isSilent && ending.signal === null)) return;
    return warn(tools, failureLine(command, ending, { elapsedMs, isSilent }), 'FAILED');
  }
  const document = {
    command,
    exit_code: ending.exitCode,
    signal: ending.signal,
    log: log.path,
    lines: short.lines,
    raw_bytes: short.rawBytes,
    kept_bytes: short.retainedBytes,
    raw_tokens: record?.rawTokens ?? null,
    kept_tokens: record?.retainedTokens ?? null,
    basis: record?.basis ?? null,
    output: short.bytes.toString('utf8'),
  };
  out.write(`${JSON.stringify(document, null, 2)}\n`);
}

interface ShortForm {
  readonly path: string;
  /** The output in bytes, because a command may write what is not UTF-8. */
  readonly bytes: Buffer;
  readonly lines: number;
  readonly rawBytes: number;
  readonly retainedBytes: number;
}

function bytesOut(stream: object): { write(bytes: Uint8Array): unknown } {
  return stream as { write(bytes: Uint8Array): unknown };
}

/** Below this saving the whole output is shown. */
const shortOutput = { bytes: 2_048, lines: 25 };

async function shortForm(
  rules: Rules,
  { exitCode }: Ending,
  { path, elapsedMs }: { path: string; elapsedMs: number },
): Promise<ShortForm> {
  // A background process of the command may still write; only the log as it is now counts.
  const { size: rawBytes } = await stat(path);
  const digester = new Digester(rules);
  for await (const line of linesOf(path)) digester.add(line);
  const { text, lines, left } = digester.finish(exitCode === 0);
  const note =
    `${programName()}: exit code ${exitCode} after ${humanDuration(elapsedMs)}, ${left} of ${lines} ` +
    `lines omitted; full log: ${path}\n`;
  const bytes = Buffer.from(text + note);
  const isShort = rawBytes <= shortOutput.bytes && lines <= shortOutput.lines;
  if (!isShort && left > 0 && bytes.length < rawBytes) {
    return { path, bytes, lines, rawBytes, retainedBytes: bytes.length };
  }
  const whole = await readFile(path);
  return { path, bytes: whole, lines, rawBytes: whole.length, retainedBytes: whole.length };
}

async function recordOf(
  feature: ShortenedRun['feature'],
  { path, bytes, rawBytes, retainedBytes }: ShortForm,
  { dataDir, savingsSamples }: Settings,
  tools: Tools,
) {
  try {
    const { SavingsRecorder } = await import('@millrace/daemon/config');
    const recorder = new SavingsRecorder({
      dataDir,
      clock: systemClock,
      random: systemRandom,
      keepsSamples: savingsSamples,
    });
    return await recorder.recordShortening({
      feature,
      agentId: tools.terminal.env['MILLRACE_AGENT_ID'] || null,
      repo: repositoryOf(process.cwd()),
      rawBytes,
      retainedBytes,
      texts: async () => ({ raw: await readFile(path, 'utf8'), kept: bytes.toString('utf8') }),
    });
  } catch (error) {
    // The command has already run; a failure to record must not change its result.
    warn(tools, `The saving could not be recorded: ${messageOf(error)}`, 'UNRECORDED');
    return undefined;
  }
}

/** Without a log nothing may be omitted. */
async function runPlainly({ command, env }: ShortenedRun, tools: Tools): Promise<void> {
  const isOnTerminal = tools.terminal.in.isScreen;
  const { exitCode } = await runProgram({ command, stdio: 'inherit', env, isOnTerminal });
  tools.exitWith(exitCode);
}

async function settingsOf({ data }: ShortenedRun, tools: Tools): Promise<Settings | undefined> {
  try {
    const { loadDaemonSettings } = await import('../daemon/local-settings.js');
    const { runningRecording } = await import('@millrace/daemon/config');
    const flags: Record<string, string> = data === undefined ? {} : { data };
    const { values, dataDir, sourceOf } = loadDaemonSettings(flags, tools.terminal.env);
    const running = await runningRecording(dataDir);
    // The running daemon decides, unless --data names another directory.
    const isSaid = (key: string) => sourceOf(key).kind === 'environment';
    return {
      dataDir,
      savings: (isSaid('savings') ? undefined : running?.savings) ?? values.savings,
      savingsSamples:
        (isSaid('savings_samples') ? undefined : running?.savingsSamples) ?? values.savings_samples,
    };
  } catch (error) {
    warn(tools, `The output is not shortened: ${messageOf(error)}`, 'UNRECORDED');
    return undefined;
  }
}

function openLog(
  { feature, command }: ShortenedRun,
  { dataDir }: Settings,
  tools: Tools,
): LogFile | undefined {
  try {
    return openLogFile(dataDir, { feature, command, now: systemClock.now() });
  } catch (error) {
    warn(tools, `The output is not shortened: ${messageOf(error)}`, 'UNRECORDED');
    return undefined;
  }
}

function warn({ terminal: { err, json } }: Tools, message: string, code: string): void {
  const text = json
    ? JSON.stringify({ error: { code, message } })
    : `${err.paint('warn', `${programName()}:`)} ${message}`;
  err.write(`${text}\n`);
}

/** Number of logs to keep; older ones are removed. */
const maxLogs = 100;

interface LogFile {
  readonly path: string;
  readonly fd: number;
  close(): void;
}

/**
 * Creates the log of a command's whole output: `<data_dir>/logs/check/<time>-<pid>-npm-test.log`.
 */
export function openLogFile(
  dataDir: string,
  { feature, command, now }: { feature: string; command: readonly string[]; now: number },
): LogFile {
  const folder = join(dataDir, 'logs', feature);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  removeOld(folder);
  const time = formatTimestamp(now).replaceAll(':', '-');
  const path = join(folder, `${time}-${process.pid}-${nameOf(command)}.log`);
  // Both streams append to it, so that their lines stay in order.
  const fd = openSync(path, 'ax', 0o600);
  return { path, fd, close: () => closeSync(fd) };
}

/** The program and its subcommand, without options and scripts: `npm-test`. */
function nameOf(command: readonly string[]): string {
  const words = command.slice(0, 3).filter((word) => /^[A-Za-z0-9_./@:]/.test(word));
  const plain = words.filter((word) => /^[\w./@:+-]{1,80}$/.test(word));
  const name = plain
    .map((word) =>
      word
        .split('/')
        .at(-1)!
        .replaceAll(/[^\w.+-]/g, '-'),
    )
    .join('-');
  return name.slice(0, 40) || 'command';
}

function removeOld(folder: string): void {
  const names = readdirSync(folder).filter((name) => name.endsWith('.log'));
  // Names start with the time. Another process may remove the same file.
  const old = names
    .toSorted()
    .toReversed()
    .slice(maxLogs - 1);
  for (const name of old) rmSync(join(folder, name), { force: true });
}

/** A longer line is split, to bound memory. */
const maxLine = 65_536;

/** Reads every line of a file of any size. */
export async function* linesOf(file: string): AsyncGenerator<string> {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>) {
    const lines = (rest + decoder.write(chunk)).split('\n');
    rest = lines.pop()!;
    yield* lines;
    while (rest.length > maxLine) {
      yield rest.slice(0, maxLine);
      rest = rest.slice(maxLine);
    }
  }
  rest += decoder.end();
  if (rest !== '') yield rest;
}

const maxCommand = 120;

/** One line about a failed command whose output does not explain the failure. */
function failureLine(
  command: readonly string[],
  { exitCode, signal }: Ending,
  { elapsedMs, isSilent }: { elapsedMs: number; isSilent: boolean },
): string {
  const what = cut(printable(command.join(' ')), maxCommand);
  const how =
    signal === null
      ? `failed with exit code ${exitCode}`
      : `was killed by ${signal} (exit code ${exitCode})`;
  const silence = isSilent ? ' and printed nothing' : '';
  return `\`${what}\` ${how} after ${humanDuration(elapsedMs)}${silence}`;
}
