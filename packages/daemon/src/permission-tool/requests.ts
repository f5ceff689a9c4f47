import { fileURLToPath } from 'node:url';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  watch,
  type FSWatcher,
} from 'node:fs';
import { join } from 'node:path';
import { ifThere, jsonIn, systemCode } from '@millrace/kit/errors';
import { z } from 'zod';
import { maxBodyLength } from '../questions/question.js';
import type { PendingPermission } from '../acp-host/state.js';
import { changedLines } from '../acp-host/host-events.js';

/** The MCP server through which a headless claude asks for permissions: run it with node. */
export const permissionToolProgram = fileURLToPath(
  new URL('./permission-main.js', import.meta.url),
);

/** Not `millrace`, under which people configure the daemon's own tools. */
export const permissionServerName = 'millrace_permissions';
export const permissionToolName = 'request_permission';

/**
 * Flags that let claude ask. Each is one word, because `--mcp-config` takes all words that follow.
 */
export function permissionFlags(program: string, sessionDirectory: string): string[] {
  const server = {
    type: 'stdio',
    command: process.execPath,
    args: [program, sessionDirectory],
    // Claude waits for it before the first turn; otherwise an early request would be denied.
    alwaysLoad: true,
  };
  const config = { mcpServers: { [permissionServerName]: server } };
  return [
    `--mcp-config=${JSON.stringify(config)}`,
    `--permission-prompt-tool=mcp__${permissionServerName}__${permissionToolName}`,
  ];
}

/**
 * The permission tool and the daemon communicate through files in the session's directory, so that
 * either side may be restarted and the tool of one session cannot send requests for another.
 */

const requestSchema = z.object({
  id: z.string().regex(/^[0-9a-f]{32}$/),
  title: z.string().min(1).max(500),
  tool: z.string().min(1).max(256),
  body: z.string().max(maxBodyLength),
});
const answerSchema = z.object({ isAllowed: z.boolean(), message: z.string() });

export type PermissionRequest = z.output<typeof requestSchema>;
export type PermissionAnswer = z.output<typeof answerSchema>;

const maxFileBytes = 64 * 1024;
const maxRequests = 100;
const requestEnd = '.request.json';

/** The folder of a session's permission requests. */
export function requestsDirectory(sessionDirectory: string): string {
  return join(sessionDirectory, 'permissions');
}

/** Makes the folder, without the requests of an earlier start. */
export function resetRequests(directory: string): void {
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true, mode: 0o700 });
}

export function writeRequest(directory: string, request: PermissionRequest): void {
  writeWhole(requestFile(directory, request.id), request);
}

export function removeRequest(directory: string, id: string): void {
  // The request first: without its answer it would be open again.
  rmSync(requestFile(directory, id), { force: true });
  rmSync(answerFile(directory, id), { force: true });
}

/** The requests without an answer. */
export function openRequests(directory: string): PermissionRequest[] {
  return namesIn(directory)
    .filter((name) => name.endsWith(requestEnd))
    .toSorted()
    .slice(0, maxRequests)
    .map((name) => name.slice(0, -requestEnd.length))
    .filter((id) => !existsSync(answerFile(directory, id)))
    .flatMap((id) => {
      const request = readFile(requestFile(directory, id), requestSchema);
      return request?.id === id ? [request] : [];
    });
}

/** False when there is no such request any more. */
export function writeAnswer(directory: string, id: string, answer: PermissionAnswer): boolean {
  if (!existsSync(requestFile(directory, id))) return false;
  writeWhole(answerFile(directory, id), answer);
  return true;
}

export function readAnswer(directory: string, id: string): PermissionAnswer | undefined {
  return readFile(answerFile(directory, id), answerSchema);
}

function requestFile(directory: string, id: string): string {
  return join(directory, `${id}${requestEnd}`);
}

function answerFile(directory: string, id: string): string {
  return join(directory, `${id}.answer.json`);
}

function namesIn(directory: string): string[] {
  return ifThere(() => readdirSync(directory)) ?? [];
}

/** Undefined when the file does not exist or is invalid. */
function readFile<Schema extends z.ZodType>(
  file: string,
  schema: Schema,
): z.output<Schema> | undefined {
  const text = ifThere(() =>
    statSync(file).size > maxFileBytes ? undefined : readFileSync(file, 'utf8'),
  );
  return text === undefined ? undefined : schema.safeParse(jsonIn(text)).data;
}

/** Readers see all of a file or nothing. */
function writeWhole(file: string, value: object): void {
  writeFileSync(`${file}.new`, JSON.stringify(value), { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

export interface PermissionRequestsParts {
  /** Called when an agent has a new request. */
  onNews: () => void;
  /** The program of the tool; for tests. */
  program?: string | undefined;
}

const allowOption = 'allow';
const rejectOption = 'reject';
const options = [
  { id: allowOption, label: 'Allow', kind: 'allow_once' },
  { id: rejectOption, label: 'Reject', kind: 'reject_once' },
];

/** Permission requests of headless agents, by the directories of their sessions. */
export class PermissionRequests {
  readonly #watchers = new Map<string, FSWatcher>();

  constructor(private readonly parts: PermissionRequestsParts) {}

  /** Prepares a start: the flags for permission requests. */
  prepare(session: string): string[] {
    this.release(session);
    resetRequests(requestsDirectory(session));
    return permissionFlags(this.parts.program ?? permissionToolProgram, session);
  }

  /** The pending requests of the agent; reports new ones from now on. */
  pending(session: string): PendingPermission[] {
    this.#watch(session);
    return openRequests(requestsDirectory(session)).map((request) => ({ ...request, options }));
  }

  /** `gone` when the agent no longer waits for the answer. */
  answer(session: string, request: string, option: string, message?: string): 'taken' | 'gone' {
    const isAllowed = option === allowOption;
    const text = message ?? 'The permission was denied.';
    const answer = { isAllowed, message: isAllowed ? '' : text };
    return writeAnswer(requestsDirectory(session), request, answer) ? 'taken' : 'gone';
  }

  release(session: string): void {
    this.#watchers.get(session)?.close();
    this.#watchers.delete(session);
  }

  close(): void {
    for (const session of this.#watchers.keys()) this.release(session);
  }

  /** Without it, requests are still found when agents are inspected. */
  #watch(session: string): void {
    if (this.#watchers.has(session)) return;
    try {
      const directory = requestsDirectory(session);
      const watcher = watch(directory, { persistent: false }, () => this.parts.onNews());
      watcher.on('error', () => this.release(session));
      this.#watchers.set(session, watcher);
    } catch (error) {
      // An agent of an older version has no such folder, or the system watches no more of them.
      if (!['ENOENT', 'ENOSPC', 'EMFILE'].includes(systemCode(error))) throw error;
    }
  }
}

type Input = Readonly<Record<string, unknown>>;

const maxTitleLength = 200;

/** How a tool call of claude is shown. */
export function describe(tool: string, input: Input): Omit<PermissionRequest, 'id'> {
  const name = tool.slice(0, maxTitleLength);
  const about = textIn(input, 'description')?.split('\n')[0]?.slice(0, maxTitleLength);
  const title = about ? `${name}: ${about}` : name;
  return { tool: name, title, body: bodyOf(input).slice(0, maxBodyLength) };
}

/** The command, the file with its changed lines, the address, or the whole input. */
function bodyOf(input: Input): string {
  const command = textIn(input, 'command');
  if (command !== undefined) return command;
  const file = textIn(input, 'file_path') ?? textIn(input, 'notebook_path');
  if (file !== undefined) {
    const fresh = textIn(input, 'new_string') ?? textIn(input, 'content') ?? '';
    return [file, ...changedLines(textIn(input, 'old_string') ?? '', fresh)].join('\n');
  }
  return textIn(input, 'url') ?? JSON.stringify(input, null, 2);
}

function textIn(input: Input, name: string): string | undefined {
  const value = input[name];
  return typeof value === 'string' ? value : undefined;
}
