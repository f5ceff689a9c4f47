import type { StdioOptions } from 'node:child_process';
import { rmSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { systemClock } from '@millrace/kit/clock';
import { messageOf } from '@millrace/kit/errors';
import { systemRandom } from '@millrace/kit/random';
import { humanDuration } from '@millrace/kit/units';
import type { Tools } from '../tools.js';
import { Digester } from './digest.js';
import { failureLine } from './failure-line.js';
import { openLogFile, type LogFile } from './log-file.js';
import { linesOf } from './log-lines.js';
import { NotStarted, runProgram, type Ending } from './program.js';
import { watchProgress } from './progress.js';
import { repositoryOf } from './repository.js';
import type { Rules } from './rules.js';

export interface ShortenedRun {
  readonly feature: 'check' | 'git';
  readonly command: readonly string[];
  readonly rules: Rules;
  /** The daemon's data directory, if one was named. */
  readonly data?: string | undefined;
  /** What the command finds in its environment; as ours unless told. */
  readonly env?: NodeJS.ProcessEnv | undefined;
  /** On a screen, tell that it is still under way. */
  readonly showsProgress: boolean;
}

interface Settings {
  /** Where logs and the ledger are. */
  readonly dataDir: string;
  readonly savings: boolean;
  readonly savingsSamples: boolean;
}

/** Runs a command, prints the short form of its output, and writes down what that saved. */
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
  // Before it is printed: whoever reads may go away, and we with them.
  const record = settings.savings ? await recordOf(feature, short, settings, tools) : undefined;
  const { json, out } = tools.terminal;
  if (!json) {
    bytesOut(out.stream).write(short.bytes);
    // The output of a command that failed tells why, unless there is none or it was cut off.
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
    kept_bytes: short.keptBytes,
    raw_tokens: record?.rawTokens ?? null,
    kept_tokens: record?.keptTokens ?? null,
    basis: record?.basis ?? null,
    output: short.bytes.toString('utf8'),
  };
  out.write(`${JSON.stringify(document, null, 2)}\n`);
}

interface ShortForm {
  readonly path: string;
  /** What is printed. Not a text: a command may write what is none, and that is passed on too. */
  readonly bytes: Buffer;
  readonly lines: number;
  readonly rawBytes: number;
  readonly keptBytes: number;
}

function bytesOut(stream: object): { write(bytes: Uint8Array): unknown } {
  return stream as { write(bytes: Uint8Array): unknown };
}

/** To leave out less than this is not worth a look at the log. */
const shortOutput = { bytes: 2_048, lines: 25 };

async function shortForm(
  rules: Rules,
  { exitCode }: Ending,
  { path, elapsedMs }: { path: string; elapsedMs: number },
): Promise<ShortForm> {
  // What the command left running may still write; the log as it is now is what counts.
  const { size: rawBytes } = await stat(path);
  const digester = new Digester(rules);
  for await (const line of linesOf(path)) digester.add(line);
  const { text, lines, left } = digester.finish(exitCode === 0);
  const note =
    `ctl: exit code ${exitCode} after ${humanDuration(elapsedMs)}, ` +
    `${left} of ${lines} lines left out, all of them in ${path}\n`;
  const bytes = Buffer.from(text + note);
  const isShort = rawBytes <= shortOutput.bytes && lines <= shortOutput.lines;
  if (!isShort && left > 0 && bytes.length < rawBytes) {
    return { path, bytes, lines, rawBytes, keptBytes: bytes.length };
  }
  const whole = await readFile(path);
  return { path, bytes: whole, lines, rawBytes: whole.length, keptBytes: whole.length };
}

async function recordOf(
  feature: ShortenedRun['feature'],
  { path, bytes, rawBytes, keptBytes }: ShortForm,
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
      keptBytes,
      texts: async () => ({ raw: await readFile(path, 'utf8'), kept: bytes.toString('utf8') }),
    });
  } catch (error) {
    // The command has run, and how it went is what counts.
    warn(tools, `what this saved could not be recorded: ${messageOf(error)}`, 'UNRECORDED');
    return undefined;
  }
}

/** Without a place for the log nothing can be left out. */
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
    // The daemon that runs decides, unless whoever calls has said otherwise for this call.
    const isSaid = (key: string) => sourceOf(key).kind === 'environment';
    return {
      dataDir,
      savings: (isSaid('savings') ? undefined : running?.savings) ?? values.savings,
      savingsSamples:
        (isSaid('savings_samples') ? undefined : running?.savingsSamples) ?? values.savings_samples,
    };
  } catch (error) {
    warn(tools, `the output is not shortened: ${messageOf(error)}`, 'UNRECORDED');
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
    warn(tools, `the output is not shortened: ${messageOf(error)}`, 'UNRECORDED');
    return undefined;
  }
}

function warn({ terminal: { err, json } }: Tools, message: string, code: string): void {
  const text = json
    ? JSON.stringify({ error: { code, message } })
    : `${err.paint('warn', 'ctl:')} ${message}`;
  err.write(`${text}\n`);
}
