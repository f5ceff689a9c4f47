import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import type { Random } from '@millrace/kit/random';
import { agentToken, type Entry } from '../core/session.js';
import type { Backends } from '../registry/backends.js';
import {
  acpFlags,
  askingModes,
  canResume,
  mayRequestTrust,
  optionalFlags,
  prepareRun,
  takesSessionId,
  usesPermissionTool,
} from './cli/command-lines.js';
import type { AcpSources } from './cli/acp-sources.js';
import type { OfferedFlags } from '../registry/run-program.js';
import type { SessionSettings } from './cli/settings.js';
import type { Launch } from './drivers/driver.js';
import type { PermissionRequests } from '../permission-tool/requests.js';
import { OutputLog, sessionDirectory } from './drivers/session-files.js';
import { findTranscript, type TranscriptParts } from './evidence/transcript.js';
import type { RunFacts, StartKind } from '../core/session-events.js';

export interface LaunchParts extends Pick<TranscriptParts, 'places' | 'taken'> {
  backends: Backends;
  random: Random;
  dataDir: string;
  /** Environment variables of a backend's program. */
  variablesFor: (backend: string) => Record<string, string>;
  settings: SessionSettings;
  acp: Pick<AcpSources, 'find'>;
  flags: OfferedFlags;
  requests: PermissionRequests;
  /** Where this daemon is reached; undefined before it listens. */
  address?: { readonly url: string | undefined } | undefined;
}

/** A start that can be carried out. */
export interface LaunchPlan {
  run: RunFacts;
  launch: Launch;
  /** The process gets its prompt at its start. */
  isPrompted: boolean;
}

type Failure = { failure: string };

/** Decides how the agent of a session is started; a failure says why it cannot be. */
export function planLaunch(
  parts: LaunchParts,
  entry: Entry,
  how: StartKind,
): Promise<LaunchPlan | Failure> {
  return entry.session.driver === 'acp'
    ? planAcp(parts, entry, how)
    : planProgram(parts, entry, entry.session.driver, how);
}

async function planProgram(
  parts: LaunchParts,
  entry: Entry,
  driver: 'tmux' | 'headless',
  how: StartKind,
): Promise<LaunchPlan | Failure> {
  const { session, handle } = entry;
  const { id, backend } = session;
  const { binary_path: file } = await parts.backends.find(backend);
  const failure = await obstacle(file, session.workdir);
  if (failure !== undefined) return { failure };
  const variables = parts.variablesFor(backend);
  const offered = await parts.flags.among(file, optionalFlags(handle.cli), variables);
  const own = await ownSession(parts, entry, driver, offered);
  const prompt = promptFor(parts, entry, how, own?.isThere ?? false);
  const isAsking = driver === 'headless' && usesPermissionTool(handle.cli);
  const prepared = prepareRun(backend, parts.settings.values.backends.extra, {
    cli: handle.cli,
    driver,
    prompt,
    model: handle.model,
    session: own,
    offered,
    isTrusted: isTrusted(parts, entry),
    permissionFlags: isAsking ? parts.requests.prepare(sessionDirectory(parts.dataDir, id)) : [],
    toolsAt: parts.settings.values.agents.tools ? parts.address?.url : undefined,
  });
  if ('impossible' in prepared) return { failure: prepared.impossible };
  const { args, input, paste, format, isPiped } = prepared;
  return {
    run: runFacts(parts, id, own?.id ?? null, format, paste !== undefined),
    launch: launchOf(parts, entry, { file, args, input, isPiped }),
    isPrompted: prompt !== undefined && paste === undefined,
  };
}

/** Agents over ACP get their prompt from their host, and open or continue their own session. */
async function planAcp(
  parts: LaunchParts,
  entry: Entry,
  how: StartKind,
): Promise<LaunchPlan | Failure> {
  const { session, handle } = entry;
  const { id, backend_session_id: own } = session;
  const backend = await parts.backends.find(session.backend);
  const source = await parts.acp.find(backend, { isRequested: true });
  if (!source) return { failure: 'its backend does not speak ACP any more' };
  const [file = '', ...args] = source.command;
  const failure = await obstacle(file, session.workdir);
  if (failure !== undefined) return { failure };
  const more = source.via === 'native' ? await acpArgs(parts, entry, file) : [];
  const acp = {
    resume: how === 'first' ? null : own,
    prompt: session.prompt,
    resumePrompt: handle.text ?? (how === 'revived' ? resumePrompt(parts) : null),
    model: more.includes(handle.model ?? '') ? null : handle.model,
    mode: handle.mode ?? null,
    modeInstead: askingModes(handle.cli),
  };
  return {
    run: runFacts(parts, id, own, 'acp-json', false),
    launch: launchOf(parts, entry, { file, args: [...args, ...more], input: '', acp }),
    isPrompted: false,
  };
}

/** Flags for a command line that supports ACP itself. */
async function acpArgs(parts: LaunchParts, entry: Entry, file: string): Promise<string[]> {
  const { session, handle } = entry;
  const flags = acpFlags(handle.cli);
  const wanted = Object.values(flags).filter((flag) => flag !== undefined);
  const offered = await parts.flags.among(file, wanted, parts.variablesFor(session.backend));
  const { model, skipTrust } = flags;
  const isModel = model !== undefined && handle.model !== null && offered.has(model);
  const mayTrust = skipTrust !== undefined && offered.has(skipTrust);
  return [
    ...(mayTrust && isTrusted(parts, entry) ? [skipTrust] : []),
    ...(isModel ? [model, handle.model!] : []),
  ];
}

function runFacts(
  { dataDir }: LaunchParts,
  id: string,
  own: string | null,
  format: RunFacts['format'],
  isPromptPending: boolean,
): RunFacts {
  const outputStart = new OutputLog(sessionDirectory(dataDir, id)).end();
  return { own, format, isPromptPending, outputStart };
}

function launchOf(
  { dataDir, variablesFor, address }: LaunchParts,
  { session, handle }: Entry,
  program: Pick<Launch, 'file' | 'args' | 'input' | 'isPiped' | 'acp'>,
): Launch {
  const { id, backend, workdir: cwd } = session;
  const url = address?.url;
  return {
    ...program,
    id,
    directory: sessionDirectory(dataDir, id),
    token: handle.token,
    cwd,
    // With its session id, for `ctl`.
    environment: {
      ...variablesFor(backend),
      PWD: cwd,
      MILLRACE_AGENT_ID: id,
      MILLRACE_DATA_DIR: dataDir,
      // Its own token, with which it can start agents.
      ...(url !== undefined && {
        MILLRACE_URL: url,
        MILLRACE_TOKEN: agentToken(id, handle.token),
      }),
    },
  };
}

/** The backend's own session: the one to resume, or the id for a new one. */
async function ownSession(
  parts: LaunchParts,
  entry: Entry,
  driver: 'tmux' | 'headless',
  offered: ReadonlySet<string>,
): Promise<{ id: string; isThere: boolean } | undefined> {
  const { cli } = entry.handle;
  const { backend_session_id: id } = entry.session;
  const mayResume = id !== null && canResume(cli, driver);
  if (mayResume && (await findTranscript(parts, entry))) return { id, isThere: true };
  if (!takesSessionId(cli, offered)) return undefined;
  if (mayRequestTrust({ cli, driver, offered, isTrusted: isTrusted(parts, entry) }))
    return undefined;
  return { id: uuidFrom(parts.random.bytes(16)), isThere: false };
}

/** Only workspaces that this daemon made, or that the caller named. */
function isTrusted({ settings }: LaunchParts, { session, handle }: Entry): boolean {
  const isChosen = session.worktree !== null || handle.isWorkspaceNamed === true;
  return isChosen && settings.values.agents.trust_workspace.includes(session.backend);
}

/** The prompt of this start. An idle agent is resumed without one. */
function promptFor(
  parts: LaunchParts,
  { session, handle: { text } }: Entry,
  how: StartKind,
  isResumed: boolean,
): string | undefined {
  // An agent that cannot be resumed gets its first prompt, too.
  if (text !== undefined) return isResumed ? text : `${session.prompt}\n\n${text}`;
  if (how === 'first' || !isResumed) return session.prompt;
  if (how === 'revived') return resumePrompt(parts);
  return session.driver === 'headless' ? session.prompt : undefined;
}

/** Sent when a crashed agent is resumed. */
function resumePrompt({ settings }: LaunchParts): string {
  return settings.values.tokens.compact_resume_prompt;
}

async function obstacle(file: string, cwd: string): Promise<string | undefined> {
  const isProgram = await access(file, constants.X_OK).then(
    () => true,
    () => false,
  );
  if (!isProgram) return 'the program is gone; run `ctl backend rescan`';
  const facts = await stat(cwd).catch(() => undefined);
  return facts?.isDirectory() ? undefined : 'the directory to work in is gone';
}

/** RFC 9562, version 4. */
function uuidFrom(bytes: Uint8Array): string {
  const own = Uint8Array.from(bytes);
  own[6] = (own[6]! & 0x0f) | 0x40;
  own[8] = (own[8]! & 0x3f) | 0x80;
  const hex = Buffer.from(own).toString('hex');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
