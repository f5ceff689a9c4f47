import {
  address,
  byteSize,
  count,
  defineConfig,
  duration,
  path,
  secret,
} from '@millrace/kit/config';
import { logLevels } from '@millrace/kit/log';
import { z } from 'zod';

export * from '../savings/index.js';
import { worktreeSchema } from '../sessions/drivers/worktree-rules.js';

export { tmuxSocket } from '../sessions/drivers/session-files.js';
export * from '../storage/data-files.js';
export { ensureToken } from './access/tokens.js';

/** A setting with its description. */
const note = <Schema extends z.ZodType>(schema: Schema, description: string, more: object = {}) =>
  schema.meta({ description, ...more });

/** A setting that can change while the daemon runs. */
const live = <Schema extends z.ZodType>(schema: Schema, description: string, more: object = {}) =>
  schema.meta({ live: true, description, ...more });

const flag = (isOn: boolean) => z.boolean().default(isOn);

const backendId = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/)
  .meta({ expected: 'an id of letters, digits, dots, dashes or underscores' });

const httpUrl = () =>
  z
    .string()
    .regex(/^https?:\/\/[^\s/]+/)
    .meta({ expected: 'a URL such as http://127.0.0.1:11434', placeholder: 'url' });

/** A regular expression of JavaScript. */
const pattern = ({ hasGroup = false } = {}) =>
  z.string().superRefine((source, context) => {
    const trouble = patternTrouble(source, hasGroup);
    if (trouble !== undefined) context.addIssue({ code: 'custom', message: trouble });
  });

function patternTrouble(source: string, hasGroup: boolean): string | undefined {
  if (source === '') return 'is empty, which matches everything: write a regular expression';
  try {
    // An empty alternative matches, and shows how many groups there are.
    const groups = new RegExp(`${source}|`).exec('')!.length - 1;
    return hasGroup && groups === 0 ? 'needs a group, such as "resets at (.+)"' : undefined;
  } catch (error) {
    return `is not a regular expression: ${(error as Error).message}`;
  }
}

const fieldPath = z
  .string()
  .regex(/^[^.]+(?:\.[^.]+)*$/)
  .meta({ expected: 'names joined by dots, such as usage.input_tokens' });

const percent = z.number().min(0).max(100).default(0);

const dollars = z.number().min(0).default(0);

const variableName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]*\*?$/)
  .meta({ expected: 'the name of a variable, or a prefix and *' });

const agents = z.object({
  env: note(
    z
      .union([z.array(variableName), z.record(z.string().regex(/^[A-Za-z_]\w*$/), z.string())])
      .default([]),
    'Additional environment variables for agents',
    { placeholder: 'names' },
  ),
  env_inherit: note(
    z.enum(['allowlist', 'all']).default('allowlist'),
    "Which of the daemon's environment variables agents inherit",
    { placeholder: 'allowlist|all' },
  ),
  trust_workspace: note(
    z.array(backendId).default([]),
    'Backends whose own check for trusted workspaces is skipped (gemini)',
    { placeholder: 'ids' },
  ),
  adapters: note(
    z
      .record(backendId, z.union([z.string().min(1), z.array(z.string().min(1)).min(1)]))
      .default({}),
    'Programs that speak the Agent Client Protocol for a backend, by its id',
    {
      expected: 'backend ids with a program, or a list of the program and its arguments',
      placeholder: 'map',
    },
  ),
  tools: live(
    flag(true),
    "Give agents the daemon's MCP tools, where their program takes them by a flag",
  ),
  token_rights: live(
    z.enum(['children', 'full']).default('children'),
    "What an agent's own token may do: act on agents that it started, or everything",
    { placeholder: 'children|full' },
  ),
  max_depth: live(
    z.int().min(1).max(10).default(3),
    'How deep agents may start agents; one of a person is at 1',
  ),
  max_children: live(
    z.int().min(0).max(100).default(8),
    'Most running agents that one agent may have started',
  ),
  feedback_interval: live(
    duration({ min: 100 }).prefault('60s'),
    'How often CI and the pull request of a plan with feedback are read',
  ),
});

const drivers = z.object({
  default: live(
    z.enum(['auto', 'acp', 'tmux', 'headless']).default('auto'),
    'Driver of new agents; auto: acp where a backend has it, else tmux, headless',
    { placeholder: 'auto|acp|tmux|headless' },
  ),
});

const permissions = z.object({
  policy: live(
    z
      .array(
        z.object({
          backend: z
            .string()
            .regex(/^[A-Za-z0-9._*-]{1,64}$/)
            .optional()
            .meta({ expected: 'the id of a backend, with * for any characters' }),
          tool: z
            .string()
            .regex(/^[^()\s][^()]*(?:\([^\n]*\))?$/)
            .meta({ expected: 'a tool such as execute, edit or execute(git status*)' }),
          action: z.enum(['allow', 'ask', 'deny']),
        }),
      )
      .default([]),
    'Rules that answer permission requests; the first match decides',
  ),
  timeout: live(
    duration({ min: 1000 }).prefault('1h'),
    'How long a headless agent waits for a permission before it is denied',
  ),
});

/** What a person's own command line shows and writes; see sessions/cli/own-rules.ts. */
const cliRules = {
  ready: pattern().optional(),
  working: pattern().optional(),
  asks: z
    .array(
      z.strictObject({
        match: pattern(),
        options: z
          .array(
            z.union([
              z.string().min(1),
              z.strictObject({ label: z.string().min(1), keys: z.string().min(1) }),
            ]),
          )
          .default([]),
      }),
    )
    .optional(),
  limit: z
    .strictObject({ match: pattern(), reset: pattern({ hasGroup: true }).optional() })
    .optional(),
  prompt: z.enum(['argument', 'type', 'stdin']).optional(),
  transcript: z
    .strictObject({
      format: z.literal('jsonl'),
      path: z
        .string()
        .regex(/^(?:~?\/).*[^/]$/)
        .meta({ expected: 'an absolute path, or one that starts with ~/' }),
      fields: z.strictObject({
        input: fieldPath,
        output: fieldPath,
        cache_read: fieldPath.optional(),
        cache_write: fieldPath.optional(),
        model: fieldPath.optional(),
        at: fieldPath.optional(),
      }),
    })
    .optional(),
};

const backends = z.object({
  limit_retry: live(duration().prefault('15m'), 'How long a rate-limited free backend is skipped'),
  extra: note(
    z
      .array(
        z.object({
          id: backendId.refine((id) => id !== 'local', { error: 'is reserved: choose another id' }),
          binary: z.string().min(1).meta({ expected: 'the name of a program or an absolute path' }),
          args: z
            .array(z.string())
            .optional()
            .meta({ expected: 'a list of arguments, with {prompt} in place of the prompt' }),
          like: backendId
            .optional()
            .meta({ expected: 'the id of a built-in CLI that it behaves like' }),
          ...cliRules,
        }),
      )
      .default([]),
    'Additional agent CLIs',
  ),
  local_url: note(
    httpUrl().default('http://127.0.0.1:11434'),
    'URL of the local model server (Ollama or OpenAI-compatible)',
  ),
  local_model: note(
    z.string().min(1).optional(),
    'Local model to use (default: the first one served)',
  ),
  think_timeout: live(duration({ min: 1 }).prefault('2m'), 'Timeout of one prompt on one backend'),
});

const tokens = z.object({
  warn: live(count().prefault('200k'), 'Context size of a warning'),
  critical: live(count().prefault('400k'), 'Context size of a critical alert'),
  warn_pct: live(percent, "Context size of a warning in percent of the model's window; 0: none"),
  critical_pct: live(
    percent,
    "Context size of a critical alert in percent of the model's window; 0: none",
  ),
  guard: live(flag(true), 'Watch the context size of agents'),
  warn_alert: live(flag(true), 'Alert on each upward crossing'),
  auto_compact: live(flag(true), 'Compact idle agents whose context is critical'),
  force_compact: live(flag(false), 'Interrupt busy agents to compact them'),
  compact_resume_prompt: live(
    z.string().default('continue'),
    'Prompt sent to an agent after a forced compaction',
  ),
  budget_gate: live(flag(true), 'Require confirmation to spawn over a cap'),
  budget_daily_usd: live(dollars, 'Cap on spend per day; 0: none'),
  budget_weekly_usd: live(dollars, 'Cap on spend per 7 days; 0: none'),
  budget_basis: live(
    z.enum(['greater', 'contract', 'exact']).default('greater'),
    'Spend that a cap is compared with: family rates, exact prices, or the greater',
    { placeholder: 'greater|contract|exact' },
  ),
  assumed_session_usd: live(
    z.number().min(0).default(0.5),
    'Assumed cost of a running session until its spend is measured',
  ),
});

const notify = z.object({
  enabled: live(flag(false), 'Show desktop notifications'),
  webhook_enabled: live(flag(false), 'Send alerts to the webhook'),
  webhook_url: live(
    z
      .string()
      .regex(/^(?:https?:\/\/[^\s/]+.*)?$/)
      .default(''),
    'URL that receives alerts',
    { expected: 'an http or https URL' },
  ),
  webhook_secret: note(
    secret().optional(),
    'Secret that signs alerts (default: created at the first start)',
  ),
  stuck_after: live(duration({ min: 1 }).prefault('30m'), 'Idle time of an agent before an alert'),
});

const labelText = (expected: string) =>
  z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/)
    .meta({ expected });

const queue = z.object({
  mode: note(
    z.enum(['push', 'pull']).default('push'),
    'Whether the queue calls the daemon, or the daemon claims tasks from the queue',
    { placeholder: 'push|pull' },
  ),
  name: note(
    z
      .string()
      .regex(/^[a-z0-9][a-z0-9._-]{0,127}$/)
      .default('agents'),
    'Queue to claim from in pull mode',
    { expected: 'the name of a queue' },
  ),
  labels: note(
    z.record(labelText('the name of a label'), labelText('the text of a label')).default({}),
    'Labels of this machine that tasks may require',
    { placeholder: 'map' },
  ),
  max_agents: note(
    z.int().min(1).max(100).default(4),
    'Maximum number of tasks in progress in pull mode',
  ),
  lease: note(
    duration({ min: 1_000 }).prefault('1m'),
    'Time without a sign of life before a pulled task is retried elsewhere',
  ),
  url: note(httpUrl().default('http://127.0.0.1:8081'), 'URL of the queue server'),
  token: note(secret().optional(), 'Bearer token for the queue server; `ctl up` sets it'),
  callback_secret: note(
    secret().optional(),
    'Secret that signs tasks from the queue; without it they are refused',
  ),
});

const database = z.object({
  url: note(
    httpUrl().default('http://127.0.0.1:8080'),
    "URL of the database's REST bridge; those of a cluster, by commas",
  ),
  api_key: note(secret().optional(), 'API key for the database, if it needs one'),
});

const provider = (url: string, name: string) =>
  z
    .object({
      url: note(httpUrl().default(url), `URL that reports the usage of ${name}`),
    })
    .prefault({});

const providers = z.object({
  codex: z
    .object({
      command: note(
        z.string().min(1).default('codex'),
        'Program whose app-server reports the usage of codex',
      ),
    })
    .prefault({}),
  cursor: provider(
    'https://api2.cursor.sh/aiserver.v1.DashboardService/GetCurrentPeriodUsage',
    'cursor-agent',
  ),
  gemini: provider(
    'https://cloudcode-pa.googleapis.com/v1internal:retrieveUserQuota',
    'gemini and agy',
  ),
  claude: provider('https://api.anthropic.com/api/oauth/usage', 'claude'),
});

// Imported once into the registry, see storage/deprecated-import.ts.
const moved = { deprecation: 'it was imported and is ignored now; remove it and use ctl backend' };
const idList = z.array(z.string()).optional().meta(moved);

const autopilot = z.object({
  brain: z
    .object({
      backends: z.object({ free: idList, subscription: idList, pay_per_use: idList }).prefault({}),
      allow_pay_per_use: z.boolean().optional().meta(moved),
    })
    .prefault({}),
});

const schema = z.object({
  listen: note(address().prefault('127.0.0.1:8765'), 'Address to listen on'),
  metrics_listen: note(address().optional(), 'Serve /metrics at this address too, without a token'),
  data_dir: note(path().optional(), 'Data directory (default: $XDG_DATA_HOME/millrace)', {
    aliases: ['data'],
  }),
  upgrade: note(flag(true), 'Back up and upgrade data of an older version; off: refuse it'),
  auth: note(
    z.enum(['token', 'none']).default('token'),
    'Authentication of callers; none is allowed on loopback only',
    { placeholder: 'token|none' },
  ),
  token: note(
    secret().optional(),
    'Bearer token with full access (default: daemon.token in the data directory)',
  ),
  read_only_token: note(
    secret().optional(),
    'Bearer token with read access (default: its file, likewise)',
  ),
  savings: note(flag(true), 'Record savings and spend'),
  savings_samples: note(flag(false), 'Store samples of raw and shortened text'),
  insights: note(flag(true), 'Find patterns in session history'),
  metrics: note(flag(true), 'Record resource metrics'),
  api_docs: note(flag(true), 'Serve the documentation page'),
  backends: backends.prefault({}),
  tokens: tokens.prefault({}),
  notify: notify.prefault({}),
  branches: z
    .object({
      enabled: note(flag(true), "Track agents' branches"),
    })
    .prefault({}),
  worktrees: z
    .object({
      hooks: note(flag(false), 'Run hooks and filters of repositories when creating worktrees'),
      repo_config: live(
        flag(true),
        'Run the commands that .millrace.yaml of a repository has for its worktrees',
      ),
    })
    .prefault({}),
  repos: live(
    z.array(z.strictObject({ path: path(), worktree: worktreeSchema })).default([]),
    'Rules for the worktrees of repositories',
  ),
  agents: agents.prefault({}),
  permissions: permissions.prefault({}),
  drivers: drivers.prefault({}),
  queue: queue.prefault({}),
  database: database.prefault({}),
  providers: providers.prefault({}),
  autopilot: autopilot.prefault({}),
  max_connections: note(
    z.int().min(1).default(1_000),
    'Maximum open connections; strangers and idle ones make room, then 503',
  ),
  max_peer_memory_bytes: note(
    byteSize({ min: 1024 * 1024 }).prefault('256MiB'),
    'Memory for unfinished requests and unsent responses; beyond it, 429',
  ),
  drain_timeout_ms: note(
    z.int().min(0).default(10_000),
    'Time for requests in flight to finish at shutdown',
  ),
  log_level: note(z.enum(logLevels).optional(), 'Log level (default: $MILLRACE_LOG, or info)'),
});

/** Every setting of the daemon: a key of config.yaml, a flag, and a variable MILLRACE_... */
export const daemonConfig = defineConfig({ component: 'daemon', schema, unknownKeys: 'warn' });

export type DaemonSettings = z.output<typeof schema>;
