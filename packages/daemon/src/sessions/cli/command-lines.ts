import type { Entry, OutputFormat } from '../../core/session.js';
import type { DaemonSettings } from '../../core/settings.js';
import type { CliRules, ScreenKind } from './own-rules.js';
import { invocationOf, oneShotOf, promptPlace } from '../../registry/programs.js';

/** Arguments of a headless run. */
interface HeadlessLine {
  /** `{prompt}` is replaced by the prompt; without it, the prompt goes to stdin. */
  args: readonly string[];
  /** The arguments that resume a session follow these. */
  resume?: (id: string) => readonly string[];
  format: OutputFormat;
}

/** How it is run for a conversation. */
interface InteractiveLine {
  args: readonly string[];
  /** Flags that are added when the program's `--help` lists them. */
  whenOffered?: readonly string[];
  /** Arguments that pass the first prompt; without them it is pasted. */
  prompt?: (text: string) => readonly string[];
  resume?: (id: string) => readonly string[];
}

interface CliLine {
  headless?: HeadlessLine;
  interactive?: InteractiveLine;
  /** The flag that names the model. */
  model?: string;
  /** The flag that sets the id of a new session. */
  sessionId?: string;
  /** Older versions lack `sessionId`, so `--help` decides. */
  isSessionIdNew?: true;
  /** The flag that skips the program's own check whether a workspace is trusted. */
  skipTrust?: string;
  /** Headless runs ask through the permission tool. */
  usesPermissionTool?: true;
  /** Flags that give it the MCP tools at a URL, with the token in MILLRACE_TOKEN. */
  tools?: (url: string) => readonly string[];
}

/**
 * By id. Headless runs may edit files in their workspace, because otherwise they could do nothing;
 * none has more permissions than its vendor considers safe. CLIs that are not listed run as for a
 * one-shot prompt, and in a conversation their prompt is pasted.
 */
const lines: Readonly<Record<string, CliLine>> = {
  claude: {
    headless: {
      args: [
        '--print',
        '--output-format',
        'stream-json',
        '--verbose',
        '--permission-mode',
        'acceptEdits',
      ],
      resume: (id) => ['--resume', id],
      format: 'claude-json',
    },
    interactive: {
      args: [],
      prompt: (text) => (text.startsWith('-') ? ['--', text] : [text]),
      resume: (id) => ['--resume', id],
    },
    model: '--model',
    sessionId: '--session-id',
    usesPermissionTool: true,
    tools: (url) => {
      const headers = { Authorization: 'Bearer ${MILLRACE_TOKEN}' };
      const server = { type: 'http', url: `${url}/mcp`, headers };
      return [`--mcp-config=${JSON.stringify({ mcpServers: { millrace: server } })}`];
    },
  },
  codex: {
    headless: {
      args: ['exec', '--json', '--skip-git-repo-check', '--sandbox', 'workspace-write'],
      resume: (id) => ['resume', id],
      format: 'codex-json',
    },
    interactive: {
      args: [],
      // The shared background server would tie this agent to every other codex of this user.
      whenOffered: ['--no-daemon'],
      prompt: (text) => ['--', text],
      resume: (id) => ['resume', id],
    },
    model: '--model',
    // Settings are merged with those of the user, who may have a server called millrace. Without a
    // terminal nobody could approve a call; the agent's own token limits what it may do.
    tools: (url) =>
      [
        `url="${url}/mcp"`,
        'bearer_token_env_var="MILLRACE_TOKEN"',
        'default_tools_approval_mode="approve"',
      ].flatMap((setting) => ['--config', `mcp_servers.millrace_agents.${setting}`]),
  },
  gemini: {
    headless: { args: ['--approval-mode', 'auto_edit'], format: 'text' },
    interactive: { args: [], prompt: (text) => ['--prompt-interactive', text] },
    model: '--model',
    sessionId: '--session-id',
    isSessionIdNew: true,
    skipTrust: '--skip-trust',
  },
  qwen: {
    headless: {
      args: ['--approval-mode', 'auto-edit'],
      resume: (id) => ['--resume', id],
      format: 'text',
    },
    interactive: {
      args: [],
      prompt: (text) => ['--prompt-interactive', text],
      resume: (id) => ['--resume', id],
    },
    model: '--model',
    sessionId: '--session-id',
    isSessionIdNew: true,
  },
  aider: {
    headless: {
      args: [
        '--yes-always',
        '--no-pretty',
        '--no-stream',
        '--no-check-update',
        '--message',
        promptPlace,
      ],
      format: 'text',
    },
    model: '--model',
  },
  'cursor-agent': { model: '--model' },
  opencode: {
    headless: {
      args: ['run', '--format', 'json'],
      resume: (id) => ['--session', id],
      format: 'opencode-json',
    },
    model: '--model',
  },
  copilot: { model: '--model' },
  droid: { model: '--model' },
};

/** Reads its prompt from stdin when a dash replaces it. */
const dashForStdin = new Set(['codex']);

/** A row of `backends.extra`. */
export type ExtraCli = Omit<DaemonSettings['backends']['extra'][number], 'binary'>;

export interface Run {
  cli: string;
  driver: 'tmux' | 'headless';
  /** Undefined: nothing to say yet, as when an idle agent is resumed. */
  prompt: string | undefined;
  model: string | null;
  /** The id that the backend's own session has or is to have. */
  session: { id: string; isThere: boolean } | undefined;
  /** Those of `optionalFlags` that the installed program supports. */
  offered?: ReadonlySet<string>;
  /** Skip the program's own check whether the workspace is trusted. */
  isTrusted?: boolean;
  /** Flags for permission requests of a headless run. */
  permissionFlags?: readonly string[];
  /** The URL of the daemon, whose tools the agent gets. */
  toolsAt?: string | undefined;
}

export interface PreparedRun {
  args: readonly string[];
  /** Content of stdin. */
  input: string;
  /** In a terminal, stdin is a file with the input all the same. */
  isPiped?: boolean;
  /** Text to paste once the agent is ready. */
  paste: string | undefined;
  format: OutputFormat;
}

/** The row that describes a backend's command line. */
export function cliOf(id: string, extra: readonly ExtraCli[]): string {
  return extra.find((each) => each.id === id)?.like ?? id;
}

/** The rules that the config has for a backend. */
export function rulesOf(extra: readonly ExtraCli[], backend: string): CliRules | undefined {
  return extra.find(({ id }) => id === backend);
}

/** What describes the screens of an agent: rules of the config, or a row of the tables. */
export function screenKindOf(extra: readonly ExtraCli[], { session, handle }: Entry): ScreenKind {
  const rules = rulesOf(extra, session.backend);
  return rules && (rules.ready ?? rules.working ?? rules.asks) !== undefined ? rules : handle.cli;
}

export function takesModel(cli: string): boolean {
  return lineOf(cli).model !== undefined;
}

/** Whether new sessions can be given an id chosen by the daemon. */
export function takesSessionId(cli: string, offered: ReadonlySet<string>): boolean {
  const { sessionId, isSessionIdNew } = lineOf(cli);
  return sessionId !== undefined && (!isSessionIdNew || offered.has(sessionId));
}

/** The flags that are used only where the program's `--help` lists them. */
export function optionalFlags(cli: string): readonly string[] {
  const { interactive, sessionId, isSessionIdNew, skipTrust } = lineOf(cli);
  return [
    ...(interactive?.whenOffered ?? []),
    ...(sessionId !== undefined && isSessionIdNew ? [sessionId] : []),
    ...(skipTrust === undefined ? [] : [skipTrust]),
  ];
}

/** Flags for a command line that supports ACP itself, if its help lists them. */
export function acpFlags(cli: string): {
  model: string | undefined;
  skipTrust: string | undefined;
} {
  const { model, skipTrust } = lineOf(cli);
  return { model, skipTrust };
}

/**
 * ACP modes to use instead of an agent's default, so that a person decides: codex-acp starts in
 * `agent`, in which a model reviews commands that leave the sandbox.
 */
export function askingModes(cli: string): Readonly<Record<string, string>> | undefined {
  return cli === 'codex' ? { agent: 'workspace-write' } : undefined;
}

/**
 * Whether the program may ask if the workspace is trusted. After the answer gemini restarts with
 * the same arguments, so a prompt among them would run twice and a session id would be in use.
 * Versions without the flag do not ask.
 */
export function mayRequestTrust(
  run: Pick<Run, 'cli' | 'driver' | 'isTrusted' | 'offered'>,
): boolean {
  const { skipTrust } = lineOf(run.cli);
  const hasCheck = skipTrust !== undefined && run.offered?.has(skipTrust) === true;
  return run.driver === 'tmux' && hasCheck && !run.isTrusted;
}

export function canResume(cli: string, driver: Run['driver']): boolean {
  return lineOf(cli)[driver === 'tmux' ? 'interactive' : 'headless']?.resume !== undefined;
}

/** Whether headless runs ask through the permission tool. */
export function usesPermissionTool(cli: string): boolean {
  return lineOf(cli).usesPermissionTool === true;
}

// Linux limits an argument to 128 KiB.
const maxPromptArgumentBytes = 120_000;

export function prepareRun(
  backend: string,
  extra: readonly ExtraCli[],
  run: Run,
): PreparedRun | { impossible: string } {
  const own = extra.find(({ id }) => id === backend);
  const way = own && promptWay(own);
  if (way) return ownRun(own, way, run);
  return run.driver === 'tmux' ? interactiveRun(run) : headlessRun(backend, extra, run);
}

/** How a command line with rules takes its prompt; undefined for one without, or like another. */
function promptWay({
  prompt,
  args,
  like,
  ...row
}: ExtraCli): NonNullable<ExtraCli['prompt']> | undefined {
  if (prompt !== undefined) return prompt;
  const rules = [row.ready, row.working, row.asks, row.limit, row.transcript];
  if (like !== undefined || rules.every((rule) => rule === undefined)) return undefined;
  return args?.some((arg) => arg.includes(promptPlace)) ? 'argument' : 'type';
}

/** A person's own command line: the same arguments in a terminal and without one. */
function ownRun(
  { args: given = [] }: ExtraCli,
  way: NonNullable<ExtraCli['prompt']>,
  { driver, prompt }: Run,
): PreparedRun | { impossible: string } {
  const hasPlace = given.some((arg) => arg.includes(promptPlace));
  const plain = given.filter((arg) => !arg.includes(promptPlace));
  if (way === 'argument') {
    const args = prompt === undefined ? plain : hasPlace ? given : [...given, promptPlace];
    const invocation = invocationOf({ args }, prompt ?? '');
    return 'impossible' in invocation
      ? invocation
      : { args: invocation.args, input: '', paste: undefined, format: 'text' };
  }
  if (way === 'type' && driver === 'tmux') {
    return { args: plain, input: '', paste: prompt, format: 'text' };
  }
  // A line without its end is lost for programs that read lines.
  const input = prompt === undefined || prompt.endsWith('\n') ? prompt : `${prompt}\n`;
  return { args: plain, input: input ?? '', isPiped: true, paste: undefined, format: 'text' };
}

function interactiveRun(run: Run): PreparedRun {
  const { cli, prompt, model, session, offered = new Set<string>() } = run;
  const line = lineOf(cli);
  const { args = [], whenOffered = [], prompt: withPrompt, resume } = line.interactive ?? {};
  const isArgument =
    prompt !== undefined &&
    withPrompt !== undefined &&
    !mayRequestTrust(run) &&
    Buffer.byteLength(prompt) < maxPromptArgumentBytes &&
    !prompt.includes('\0');
  return {
    args: [
      ...args,
      ...whenOffered.filter((flag) => offered.has(flag)),
      ...toolArgs(line, run),
      ...trustArgs(line, run),
      ...sessionArgs(line, resume, session),
      ...modelArgs(line, model),
      ...(isArgument ? withPrompt(prompt) : []),
    ],
    input: '',
    paste: isArgument ? undefined : prompt,
    format: 'text',
  };
}

function headlessRun(
  backend: string,
  extra: readonly ExtraCli[],
  run: Run,
): PreparedRun | { impossible: string } {
  const { cli, prompt = '', model, session } = run;
  const line = lineOf(cli);
  const hasOwnArgs = extra.some((each) => each.id === backend && each.args !== undefined);
  const known = hasOwnArgs ? undefined : line.headless;
  if (!known) {
    const invocation = invocationOf(oneShotOf(hasOwnArgs ? backend : cli, extra), prompt);
    if ('impossible' in invocation) return invocation;
    const args = hasOwnArgs ? [] : modelArgs(line, model);
    return { ...invocation, args: [...invocation.args, ...args], paste: undefined, format: 'text' };
  }
  const args = [
    ...known.args,
    ...(run.permissionFlags ?? []),
    ...toolArgs(line, run),
    ...trustArgs(line, run),
    ...modelArgs(line, model),
    ...sessionArgs(line, known.resume, session),
    ...(dashForStdin.has(cli) ? ['-'] : []),
  ];
  const invocation = invocationOf({ args }, prompt);
  if ('impossible' in invocation) return invocation;
  return { ...invocation, paste: undefined, format: known.format };
}

function lineOf(cli: string): CliLine {
  return Object.hasOwn(lines, cli) ? lines[cli]! : {};
}

function modelArgs({ model: flag }: CliLine, model: string | null): readonly string[] {
  return flag === undefined || model === null ? [] : [flag, model];
}

function toolArgs({ tools }: CliLine, { toolsAt }: Run): readonly string[] {
  return toolsAt === undefined ? [] : (tools?.(toolsAt) ?? []);
}

function trustArgs({ skipTrust }: CliLine, { isTrusted, offered }: Run): readonly string[] {
  return skipTrust !== undefined && isTrusted && offered?.has(skipTrust) ? [skipTrust] : [];
}

function sessionArgs(
  { sessionId: flag }: CliLine,
  resume: ((id: string) => readonly string[]) | undefined,
  session: Run['session'],
): readonly string[] {
  if (!session) return [];
  if (session.isThere) return resume?.(session.id) ?? [];
  return flag === undefined ? [] : [flag, session.id];
}
